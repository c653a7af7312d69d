//! Scans a journal for records of some event types without decoding the others, for queries over all sessions of a workspace.

use crate::read::{decode_inline, for_each_part};
use agent_core::event::Record;
use memchr::memmem;
use std::io;
use std::path::Path;

/// Bytes at the start of a line that contain the event type: little precedes it.
const HEAD_BYTES: usize = 512;

/// JSON that precedes the event type. It cannot occur in a text, where quotes are escaped.
const TYPE_KEY: &[u8] = br#""event":{"type":""#;

/// Calls `f` with each record of these event types, and with each line whose type is not found: a record, or `None` if the
/// line is damaged. Long texts are cut to their prefixes.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn scan(path: &Path, kinds: &[&str], mut f: impl FnMut(Option<Record>)) -> io::Result<()> {
    for_each_part(path, |_, line| {
        if event_type(line).is_none_or(|kind| kinds.iter().any(|wanted| wanted.as_bytes() == kind)) {
            f(decode_inline(line).ok());
        }
        true
    })
}

/// Returns the event type of the record in a line; `None` if it is not found.
fn event_type(line: &[u8]) -> Option<&[u8]> {
    let head = line.get(..HEAD_BYTES).unwrap_or(line);
    let at = memmem::find(head, TYPE_KEY)?;
    let rest = line.get(at.saturating_add(TYPE_KEY.len())..)?;
    rest.get(..rest.iter().position(|byte| *byte == b'"')?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test writes its own journal")]
mod tests {
    use super::*;
    use crate::write::encode;
    use agent_core::event::{EVENT_SCHEMA_VERSION, Event, MessageOrigin, NoticeLevel};

    fn line(run: &str, event: Event) -> Vec<u8> {
        let run = run.to_owned();
        let record = Record { v: EVENT_SCHEMA_VERSION, seq: 0, run, step: 0, wall_ms: 1, mono_us: 2, event };
        let mut line = Vec::new();
        encode(&record, &mut line).unwrap();
        line
    }

    fn user_message(text: &str) -> Event {
        Event::user_message(text.to_owned(), MessageOrigin::Prompt)
    }

    #[test]
    fn only_records_of_the_kind_and_damaged_lines_are_told() {
        let trap = r#""event":{"type":"notice""#;
        let mut damaged = line("r", user_message("gone"));
        damaged[3] ^= 1;
        let journal = [
            line("r", Event::StepEnd),
            line("r", user_message("one")),
            line(trap, user_message(trap)),
            line("r", Event::Notice { level: NoticeLevel::Info, text: trap.to_owned() }),
            b"\n".to_vec(),
            damaged,
            vec![0; 300],
            line("r", user_message("two")),
        ];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), journal.concat()).unwrap();
        let mut found = Vec::new();
        scan(file.path(), &["user_message"], |record| {
            found.push(record.map(|record| match record.event {
                Event::UserMessage { text, .. } => text,
                other => format!("{other:?}"),
            }));
        })
        .unwrap();
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        assert_eq!(found, [Some("one"), Some(trap), None, None, Some("two")]);
    }
}
