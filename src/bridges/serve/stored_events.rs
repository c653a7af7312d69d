//! The stored events of a session as notifications.

use super::protocol::Notification;
use crate::json_rpc::outbox::Outbox;
use agent_core::event::{Event, Record};
use agent_journal::read;
use agent_redactor::Redactor;
use agent_report::json_stream::StreamLine;
use std::io;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// Bytes that may wait for the client before the next event is sent.
const MAX_WAITING: usize = 1 << 20;
/// Records that are read ahead.
const READ_AHEAD: usize = 16;

/// What was read.
#[derive(Default)]
pub struct StoredEvents {
    /// `seq` after the last record.
    pub next_seq: u64,
    /// Number of damaged records.
    pub damaged: u64,
}

/// Sends the events in the `journal` of a session from `from_seq` on, as fast as the client reads them.
///
/// # Errors
/// When the journal cannot be read.
pub async fn send(
    outbox: &Outbox,
    redactor: &Redactor,
    session_id: &str,
    journal: PathBuf,
    from_seq: u64,
) -> io::Result<StoredEvents> {
    let (records, mut stored) = mpsc::channel(READ_AHEAD);
    // Reading waits for the client, and a long journal takes a while.
    let reading = tokio::task::spawn_blocking(move || {
        read::for_each_record(&journal, |_, record| records.blocking_send(record).is_ok())
    });
    let mut sent = StoredEvents::default();
    while let Some(record) = stored.recv().await {
        let Some(record) = record else {
            sent.damaged = sent.damaged.saturating_add(1);
            continue;
        };
        sent.next_seq = record.seq.saturating_add(1);
        if record.seq >= from_seq {
            outbox.output.drained_to(MAX_WAITING).await;
            send_record(outbox, redactor, session_id, record);
        }
    }
    reading.await.map_err(io::Error::other)??;
    Ok(sent)
}

/// Sends a record without the secrets known now; the end of a run is its result.
fn send_record(outbox: &Outbox, redactor: &Redactor, session_id: &str, mut record: Record) {
    redactor.redact_event(&mut record.event);
    outbox.notify(&match &record.event {
        Event::RunEnd { result } => Notification::Finished { session_id, result },
        _ => Notification::Event { session_id, event: StreamLine::from(&record) },
    });
}
