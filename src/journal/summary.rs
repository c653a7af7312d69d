//! Summary of a session, read from the start and the end of its journal.

use crate::read::{self, decode_inline};
use agent_core::event::{Event, MessageOrigin, Purpose, Record};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read from the end; the last record of most runs fits into a few thousand.
const TAIL_BYTES: u64 = 256 << 10;

/// Number of records at the start that are searched for the task.
const HEAD_RECORDS: usize = 64;

/// Summary of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionSummary {
    /// The first prompt; empty if there is none.
    pub task: String,
    /// The workspace in which it began.
    pub workspace: Option<String>,
    /// Time of the first record, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// Time of the last record, in milliseconds since the Unix epoch.
    pub last_ms: u64,
    /// `provider/model` of the last run.
    pub model: Option<String>,
    /// Model calls that were part of the work, over all runs.
    pub steps: u32,
    /// Result of the last run; `None` if it is running or was killed.
    pub end: Option<Box<RunResult>>,
}

impl SessionSummary {
    /// Reads the summary from the journal at `path`. The whole journal is read only if its last run has no end.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut summary = Self::default();
        match read_last_run_end(path)? {
            None => read::for_each_line(path, |_, line| {
                summary.add_all(decode_inline(line));
                true
            })?,
            Some(end) => {
                read::for_each_line(path, |number, line| {
                    summary.add_all(decode_inline(line));
                    summary.task.is_empty() && number < HEAD_RECORDS
                })?;
                summary.add_all(end);
            }
        }
        Ok(summary)
    }

    fn add_all(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            self.add(record);
        }
    }

    fn add(&mut self, record: Record) {
        if self.started_ms == 0 {
            self.started_ms = record.wall_ms;
        }
        self.last_ms = record.wall_ms;
        match record.event {
            Event::SessionStart { workspace, .. } => self.workspace = Some(workspace),
            Event::RunStart { model, .. } => (self.model, self.end) = (Some(model), None),
            Event::UserMessage { text, origin: MessageOrigin::Prompt, .. } if self.task.is_empty() => {
                self.task = text;
            }
            Event::StepStart { purpose: Purpose::Step, .. } => self.steps = self.steps.saturating_add(1),
            Event::RunEnd { result } => {
                self.steps = result.steps;
                self.model.clone_from(&result.model);
                self.end = Some(result);
            }
            _ => {}
        }
    }
}

/// Checks whether the last run at `path` ended with success and nothing is left to do; reads only the end of the file.
///
/// # Errors
/// When the file cannot be opened or read.
pub fn has_completed(path: &Path) -> io::Result<bool> {
    let done = |record: &Record| matches!(&record.event, Event::RunEnd { result } if result.status == Status::Success);
    // A pending call after the end belongs to a run whose start is damaged.
    let waits = |record: &Record| matches!(record.event, Event::ToolCallPending { .. });
    Ok(read_last_run_end(path)?.is_some_and(|end| end.iter().any(done) && !end.iter().any(waits)))
}

/// Returns the end of the last run and the records after it; `None` if it is not among the last records.
fn read_last_run_end(path: &Path) -> io::Result<Option<Vec<Record>>> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let mut found = Vec::new();
    for record in
        tail.split_inclusive(|byte| *byte == b'\n').rev().filter_map(|line| decode_inline(line).ok())
    {
        match record.event {
            Event::RunStart { .. } => return Ok(None),
            Event::RunEnd { .. } => {
                found.push(record);
                found.reverse();
                return Ok(Some(found));
            }
            _ => found.push(record),
        }
    }
    Ok(None)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests write their own journals")]
mod tests {
    use super::*;
    use crate::write::encode;
    use agent_core::event::{EVENT_SCHEMA_VERSION, NoticeLevel};
    use agent_core::failure::{Failure, FailureKind};
    use std::collections::BTreeMap;

    fn record(wall_ms: u64, event: Event) -> Record {
        Record { v: EVENT_SCHEMA_VERSION, seq: 0, run: "r".to_owned(), step: 0, wall_ms, mono_us: 0, event }
    }

    fn start(model: &str) -> Event {
        let (text, tools) = (String::new, Vec::new());
        let (model, sandbox) = (model.to_owned(), text());
        Event::RunStart {
            agent: text(),
            model,
            mode: text(),
            tools,
            mcp_tools: BTreeMap::new(),
            max_steps: 1,
            resumed: false,
            sandbox,
            bounds: None,
        }
    }

    fn prompt(text: &str) -> Event {
        Event::user_message(text.to_owned(), MessageOrigin::Prompt)
    }

    fn step() -> Event {
        Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None }
    }

    fn end(steps: u32) -> Event {
        let failure = Failure { kind: FailureKind::Config, message: String::new(), retryable: false };
        let model = Some("p/two".to_owned());
        Event::RunEnd { result: Box::new(RunResult { steps, ..RunResult::not_started(failure, model) }) }
    }

    /// Creates a record long enough to push all earlier records out of the part that is read from the end.
    fn filler() -> Event {
        let text = "x".repeat(usize::try_from(TAIL_BYTES).unwrap());
        Event::Notice { level: NoticeLevel::Info, text }
    }

    fn summary(events: Vec<Event>) -> SessionSummary {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut bytes = Vec::new();
        for (wall_ms, event) in (1..).zip(events) {
            encode(&record(wall_ms, event), &mut bytes).unwrap();
        }
        std::fs::write(file.path(), bytes).unwrap();
        SessionSummary::read(file.path()).unwrap()
    }

    #[test]
    fn a_session_that_ended_is_told_by_its_beginning_and_its_end() {
        for between in [Vec::new(), vec![filler()]] {
            let count = 5 + between.len() as u64;
            let events =
                [vec![start("p/one"), prompt("task"), step()], between, vec![end(7), prompt("more")]]
                    .concat();
            let seen = summary(events);
            assert_eq!(
                (seen.task.as_str(), seen.steps, seen.started_ms, seen.last_ms),
                ("task", 7, 1, count)
            );
            assert_eq!(seen.model.as_deref(), Some("p/two"));
            assert!(seen.end.is_some());
        }
    }

    #[test]
    fn a_run_without_an_end_is_counted() {
        for between in [Vec::new(), vec![filler()]] {
            let started = vec![start("p/one"), prompt("task"), step(), end(1), start("p/three"), step()];
            let seen = summary([started, between, vec![step()]].concat());
            assert_eq!((seen.task.as_str(), seen.steps, seen.end), ("task", 3, None));
            assert_eq!(seen.model.as_deref(), Some("p/three"));
        }
    }

    #[test]
    fn an_empty_journal_is_nothing() {
        assert_eq!(summary(Vec::new()), SessionSummary::default());
    }
}
