//! Creates sessions from the records of other sessions, for forks and imports.

use crate::blobs::BlobStore;
use crate::images::IMAGES_DIR;
use crate::labels::write_labels;
use crate::read;
use crate::session_store::{JOURNAL_FILE, SessionError, SessionStore, open_for_append};
use crate::write::encode_with_blobs;
use agent_core::event::{Event, Purpose, Record};
use agent_runtime::private_file::{create_private_dir, synced};
use agent_text::delimiter::Delimiter;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::io::{self, Write};
use std::path::Path;

/// Prefix of directories of sessions that are being created; no id starts with it.
const NEW_DIR_PREFIX: &str = ".new-";

/// Run of the marker of an import, which is part of no run of the session.
const IMPORT_RUN: &str = "import";

impl SessionStore {
    /// Creates session `id` from `records` atomically; `fill` writes its other files into its directory.
    ///
    /// # Errors
    /// When the session exists, or a file cannot be created.
    #[expect(clippy::disallowed_methods, reason = "this module owns the session files")]
    pub fn create_from_records(
        &self,
        id: &str,
        records: &[Record],
        fill: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), SessionError> {
        let (dir, new) = (self.session_dir(id)?, self.dir.join(format!("{NEW_DIR_PREFIX}{id}")));
        let made = create_private_dir(&new).and_then(|()| fill(&new));
        let written = made.and_then(|()| write(&new, records));
        let moved = written.and_then(|()| {
            renameat_with(CWD, &new, CWD, &dir, RenameFlags::NOREPLACE).map_err(io::Error::from)
        });
        moved.map_err(|source| {
            // A directory that stays is not taken for a session.
            let _ = std::fs::remove_dir_all(&new);
            match source.kind() {
                io::ErrorKind::AlreadyExists => SessionError::AlreadyExists(id.to_owned()),
                _ => SessionError::Io { what: "cannot create the session", path: dir, source },
            }
        })
    }

    /// Creates the session `new` from session `id`, or from the first steps of session `id`, with its stored outputs and images.
    ///
    /// # Errors
    /// Fails for an unknown or unreadable session, and when the new one cannot be created.
    pub fn copy(&self, id: &str, to_step: Option<u32>, new: &str) -> Result<(), SessionError> {
        self.copy_part(id, new, |records| to_step.map_or(records, |step| up_to_step(records, step)))
    }

    /// Creates the session `new` from the records of session `id` that `part` selects, the first ones, with its stored outputs and images.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    pub fn copy_part(
        &self,
        id: &str,
        new: &str,
        part: impl FnOnce(&[Record]) -> &[Record],
    ) -> Result<(), SessionError> {
        let contents = read::read(&self.journal_path(id)?)
            .map_err(|error| SessionError::Unreadable(id.to_owned(), error.to_string()))?;
        let records = part(&contents.records).to_vec();
        let labels = self.labels(id);
        let (outputs, images) = (self.outputs_dir(id)?, self.images_dir(id)?);
        self.create_from_records(new, &rewrite_for_session(records, new), |dir| {
            write_labels(dir, &labels)?;
            copy_files(&outputs, &dir.join("outputs"))?;
            copy_files(&images, &dir.join(IMAGES_DIR))
        })
    }
}

/// Copies the files of a directory, if it exists.
fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(entries) = from.read_dir() else { return Ok(()) };
    create_private_dir(to)?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn write(dir: &Path, records: &[Record]) -> io::Result<()> {
    let path = dir.join(JOURNAL_FILE);
    let mut journal = open_for_append(&path, true).map_err(io::Error::other)?;
    let mut line = Vec::new();
    for record in records {
        line.clear();
        encode_with_blobs(record, &BlobStore::for_journal(&path), &mut line)?;
        journal.write_all(&line)?;
    }
    synced(journal.sync_all())
}

/// Rewrites the `records` of a file for a new session in `workspace`, which they mark as imported; `None` if they do not begin as a
/// session does. Otherwise like [`rewrite_for_session`].
pub fn rewrite_imported(mut records: Vec<Record>, id: &str, workspace: &str) -> Option<Vec<Record>> {
    let mut starts = 0_u32;
    records.retain(|record| {
        starts = starts.saturating_add(u32::from(matches!(record.event, Event::SessionStart { .. })));
        !matches!(record.event, Event::Imported | Event::Work { .. })
            && (starts == 1 || !matches!(record.event, Event::SessionStart { .. }))
    });
    let Event::SessionStart { workspace: current, imported_from, work_id, .. } =
        &mut records.first_mut()?.event
    else {
        return None;
    };
    let was = std::mem::replace(current, workspace.to_owned());
    imported_from.get_or_insert(was);
    *work_id = None;
    Some(rewrite_for_session(records, id))
}

/// Rewrites `records` for a new session. Data in user messages gets its delimiters. Pending approvals and their answers are
/// removed: they belong to the original session. A session that was imported stays one.
pub fn rewrite_for_session(mut records: Vec<Record>, id: &str) -> Vec<Record> {
    let stays =
        |event: &Event| !matches!(event, Event::ToolCallPending { .. } | Event::ApprovalAnswered { .. });
    records.retain(|record| stays(&record.event));
    let delimiter = Delimiter::for_session(id);
    let mut before = delimiter.clone();
    for record in &mut records {
        if let Event::SessionStart { session_id, .. } = &mut record.event {
            before = Delimiter::for_session(&std::mem::replace(session_id, id.to_owned()));
        }
        if let Event::UserMessage { text, .. } = &mut record.event {
            *text = text.replace(before.token(), delimiter.token());
        }
    }
    let is_imported = records.first().is_some_and(|first| first.event.starts_imported_session());
    if is_imported && !records.iter().any(|record| record.event == Event::Imported) {
        let marker = records.last().map(|last| {
            let (seq, event) = (last.seq.saturating_add(1), Event::Imported);
            Record { seq, run: IMPORT_RUN.to_owned(), event, ..last.clone() }
        });
        records.extend(marker);
    }
    records
}

/// Returns the records up to the end of `step`, counted over all runs.
pub fn up_to_step(records: &[Record], step: u32) -> &[Record] {
    let mut steps = 0u32;
    let end = records.iter().position(|record| match record.event {
        Event::StepStart { purpose: Purpose::Step, .. } => {
            steps = steps.saturating_add(1);
            steps > step
        }
        Event::Closing { .. } | Event::RunStart { .. } => step > 0 && steps >= step,
        _ => false,
    });
    records.get(..end.unwrap_or(records.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use agent_core::event::EVENT_SCHEMA_VERSION;
    use agent_core::stop_reason::StopReason;
    use std::collections::BTreeMap;

    fn record(seq: u64, event: Event) -> Record {
        Record { v: EVENT_SCHEMA_VERSION, seq, run: String::new(), step: 0, wall_ms: 1, mono_us: 0, event }
    }

    fn start() -> Event {
        let (session_id, workspace, program) = ("old".to_owned(), "/there".to_owned(), String::new());
        Event::SessionStart { session_id, workspace, program, imported_from: None, work_id: None }
    }

    fn step() -> Event {
        Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None }
    }

    fn run() -> Event {
        let (text, tools) = (String::new, Vec::new());
        Event::RunStart {
            agent: text(),
            model: text(),
            mode: text(),
            tools,
            mcp_tools: BTreeMap::new(),
            max_steps: 1,
            resumed: false,
            sandbox: text(),
            bounds: None,
        }
    }

    #[test]
    fn o16_a_fork_ends_with_the_step_that_was_asked_for() {
        let events = vec![
            start(),
            run(),
            step(),
            Event::StepEnd,
            run(),
            step(),
            Event::StepEnd,
            Event::Closing { reason: StopReason::MaxSteps, limit: None },
        ];
        let records: Vec<Record> = (0..).zip(events).map(|(seq, event)| record(seq, event)).collect();
        for (step, length) in [(0, 2), (1, 4), (2, 7), (3, 8)] {
            assert_eq!(up_to_step(&records, step).len(), length, "{step}");
        }
    }

    #[test]
    fn a_session_is_made_whole_and_never_over_another() {
        let dir = tempfile::tempdir().unwrap();
        let store = SessionStore::new(dir.path().join("sessions"));
        let records = rewrite_imported(vec![record(0, start())], "new", "/here").unwrap();
        let failed = store.create_from_records("new", &records, |_| Err(io::ErrorKind::StorageFull.into()));
        assert!(failed.is_err() && store.list().unwrap().next().is_none());
        store.create_from_records("new", &records, |_| Ok(())).unwrap();
        assert!(matches!(
            store.create_from_records("new", &records, |_| Ok(())),
            Err(SessionError::AlreadyExists(_))
        ));
        let read = read::read(&store.journal_path("new").unwrap()).unwrap();
        assert_eq!(read.records, records);
        let Event::SessionStart { session_id, workspace, imported_from, .. } = &read.records[0].event else {
            panic!()
        };
        assert_eq!((session_id.as_str(), workspace.as_str()), ("new", "/here"));
        assert_eq!(imported_from.as_deref(), Some("/there"));
        assert_eq!(read.records.last().unwrap().event, Event::Imported);
    }

    // Fault E3: an archive could pass for a session of this machine.
    #[test]
    fn an_archive_is_marked_once_after_its_records_whatever_it_contains() {
        assert_eq!(rewrite_imported(vec![record(0, run()), record(1, start())], "new", "/here"), None);
        let events = [start(), Event::Imported, run(), step(), start()];
        let records = (0..).zip(events).map(|(seq, event)| record(seq, event)).collect();
        let imported = rewrite_imported(records, "new", "/there").unwrap();
        let kept: Vec<&Event> = imported.iter().skip(1).map(|record| &record.event).collect();
        assert_eq!(kept, [&run(), &step(), &Event::Imported]);
        let Event::SessionStart { imported_from, .. } = &imported[0].event else { panic!() };
        assert_eq!(imported_from.as_deref(), Some("/there"), "also in the same workspace");
        let fork = rewrite_for_session(up_to_step(&imported, 0).to_vec(), "fork");
        assert_eq!(fork.last().unwrap().event, Event::Imported);
    }
}
