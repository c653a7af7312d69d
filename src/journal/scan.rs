//! Reads of a journal only the records of some kinds: to look into every session of a workspace, most of each is passed over.

use crate::core::event::Record;
use crate::journal::read::{decode_inline, for_each_part};
use memchr::memmem;
use std::io;
use std::path::Path;

/// Bytes of a line among which the kind of its record is: what stands before it is short.
const HEAD_BYTES: usize = 512;

/// What stands before the kind. No text of a record holds it: quotes in a text are escaped.
const TYPE_KEY: &[u8] = br#""event":{"type":""#;

/// Calls `f` with each record of these kinds, named as in the journal, and with whatever a line holds whose kind is not where it
/// should be: a record, or `None` where it is damaged. Of long texts a record has the beginnings.
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

/// The kind of the record in a line; nothing when it is not where it is written.
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
    use crate::core::event::{EVENT_SCHEMA_VERSION, Event, MessageOrigin, NoticeLevel};
    use crate::journal::write::encode;

    fn line(run: &str, event: Event) -> Vec<u8> {
        let run = run.to_owned();
        let record = Record { v: EVENT_SCHEMA_VERSION, seq: 0, run, step: 0, wall_ms: 1, mono_us: 2, event };
        let mut line = Vec::new();
        encode(&record, &mut line).unwrap();
        line
    }

    fn said(text: &str) -> Event {
        Event::UserMessage { text: text.to_owned(), origin: MessageOrigin::Prompt }
    }

    #[test]
    fn only_records_of_the_kind_and_damaged_lines_are_told() {
        let trap = r#""event":{"type":"notice""#;
        let mut damaged = line("r", said("gone"));
        damaged[3] ^= 1;
        let journal = [
            line("r", Event::StepEnd),
            line("r", said("one")),
            line(trap, said(trap)),
            line("r", Event::Notice { level: NoticeLevel::Info, text: trap.to_owned() }),
            b"\n".to_vec(),
            damaged,
            vec![0; 300],
            line("r", said("two")),
        ];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), journal.concat()).unwrap();
        let mut told = Vec::new();
        scan(file.path(), &["user_message"], |record| {
            told.push(record.map(|record| match record.event {
                Event::UserMessage { text, .. } => text,
                other => format!("{other:?}"),
            }));
        })
        .unwrap();
        let told: Vec<Option<&str>> = told.iter().map(Option::as_deref).collect();
        assert_eq!(told, [Some("one"), Some(trap), None, None, Some("two")]);
    }
}
