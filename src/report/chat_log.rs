//! Event sink of `agent chat`: at a terminal, the answer on standard output, as Markdown while it streams; each call as one
//! line on standard error.

use crate::answer_shown::AnswerShown;
use crate::human_log::HumanLog;
use agent_core::event::{Event, FinishReason, MessageOrigin, Record};
use agent_core::event_sink::EventSink;
use agent_core::message::ToolCall;
use agent_core::run_result::{InstructionFile, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_terminal::markdown::MarkdownStream;
use agent_terminal::{StdoutTarget, Style, Terminal, one_line};
use agent_text::diff;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum characters shown of a message that was typed while the run worked.
const QUEUED_CHARS: usize = 200;

/// Notices that the conversation has shown: each run would repeat those on the configuration.
#[derive(Debug, Clone, Default)]
pub struct ShownNotices(Rc<RefCell<BTreeSet<String>>>);

impl ShownNotices {
    /// Adds a notice; returns false if it was shown before.
    fn add(&self, text: &str) -> bool {
        self.0.borrow_mut().insert(text.to_owned())
    }
}

impl FromIterator<String> for ShownNotices {
    fn from_iter<T: IntoIterator<Item = String>>(notices: T) -> Self {
        Self(Rc::new(RefCell::new(notices.into_iter().collect())))
    }
}

/// Prints a message of a conversation. What goes wrong is printed by the human log, and so is the text of the model unless
/// standard output is a terminal: there it would mix with the answers.
pub struct ChatLog {
    terminal: Arc<Terminal>,
    log: HumanLog,
    notices: ShownNotices,
    markdown: MarkdownStream,
    /// Whether the text of the model is printed here: standard output is a terminal.
    shows_text: bool,
    /// Whether the current answer was streamed.
    streamed: bool,
    /// Whether a step of this run has begun: what comes before are notices that each run repeats.
    has_begun: bool,
    /// Text shown since the last tool call.
    shown_text: String,
    answer_shown: AnswerShown,
}

impl ChatLog {
    /// Creates a sink on `terminal` that passes what it does not print itself to `log`, except notices that were shown before.
    pub fn new(terminal: Arc<Terminal>, log: HumanLog, notices: ShownNotices) -> Self {
        let shows_text = terminal.stream_info().stdout != StdoutTarget::Elsewhere;
        Self {
            terminal,
            log,
            notices,
            markdown: MarkdownStream::default(),
            shows_text,
            streamed: false,
            has_begun: false,
            shown_text: String::new(),
            answer_shown: AnswerShown::default(),
        }
    }

    /// Returns a flag that shows, after the run, whether the answer was already printed.
    pub fn answer_shown(&self) -> AnswerShown {
        self.answer_shown.clone()
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.shown_text.push_str(text);
        self.markdown.push(&self.terminal, text).map(drop)
    }

    fn end_text(&mut self) -> io::Result<()> {
        self.streamed = false;
        self.markdown.finish(&self.terminal).map(drop)
    }

    fn tool_start(&mut self, call: &ToolCall) -> io::Result<()> {
        self.shown_text.clear();
        edit_diff(call).map_or(Ok(()), |diff| self.terminal.eprint_diff(&diff))
    }

    fn run_end(&mut self, record: &Record, result: &RunResult) -> io::Result<()> {
        self.end_text()?;
        let answer = result.output.text();
        let answer = answer.trim();
        self.answer_shown.set(!answer.is_empty() && self.shown_text.trim_end().ends_with(answer));
        if result.status == Status::Success && result.permission_denials.is_empty() {
            return Ok(());
        }
        if result.stop_reason == Some(StopReason::UserInterrupt) {
            // The user knows why, and the conversation goes on.
            self.answer_shown.set(true);
            return self.terminal.eprintln(Style::Warning, messages::CHAT_INTERRUPTED);
        }
        let result = RunResult { session_id: None, ..result.clone() };
        self.log.emit(&Record { event: Event::RunEnd { result: Box::new(result) }, ..record.clone() })
    }
}

impl EventSink for ChatLog {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::TextDelta { .. } | Event::ModelResponse { .. } if !self.shows_text => {
                self.log.emit(record)
            }
            Event::TextDelta { text } => {
                self.streamed = true;
                self.log.streamed = true;
                self.text(text)
            }
            Event::ModelResponse { purpose, message, finish, .. } => {
                if !purpose.is_internal() && !std::mem::take(&mut self.streamed) {
                    self.text(&message.joined_text())?;
                }
                // The rest of a truncated answer continues its line.
                if *finish == FinishReason::Length { Ok(()) } else { self.end_text() }
            }
            Event::StepStart { .. } => {
                self.has_begun = true;
                Ok(())
            }
            Event::RunStart { max_steps, .. } => {
                self.log.max_steps = *max_steps;
                Ok(())
            }
            Event::Instructions { file } if is_unchanged(file) => Ok(()),
            Event::SessionStart { .. } => Ok(()),
            Event::ToolCallStart { call, .. } => {
                self.end_text()?;
                self.tool_start(call)
            }
            Event::Retry { .. } | Event::ModelFailed { .. } | Event::ModelSwitched { .. } => {
                self.end_text()?;
                self.shown_text.clear();
                self.log.emit(record)
            }
            Event::Notice { text, .. } if !self.has_begun && !self.notices.add(text) => Ok(()),
            Event::Notice { .. } | Event::Closing { .. } => {
                self.end_text()?;
                self.log.emit(record)
            }
            Event::UserMessage { text, origin: MessageOrigin::Queued, .. } => {
                self.end_text()?;
                self.terminal.eprintln(Style::Dim, &messages::chat_queued(&one_line(text, QUEUED_CHARS)))
            }
            Event::RunEnd { result } => self.run_end(record, result),
            _ => self.log.emit(record),
        }
    }
}

/// Checks whether the model has read these instructions in an earlier session, or reads them for the first time.
fn is_unchanged(file: &InstructionFile) -> bool {
    file.before.as_ref().is_none_or(|before| before.hash == file.hash)
}

/// Returns the diff of a call that edits or writes a file, from its arguments; `None` for other calls.
fn edit_diff(call: &ToolCall) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    // Without its newline the end of a passage would be marked as the end of the file.
    let line = |text: &str| {
        if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
    };
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    match call.name.as_str() {
        "edit_file" => {
            let path = text("path")?;
            let pair = |edit: &Value| {
                let part = |key: &str| edit.get(key).and_then(Value::as_str);
                Some(diff::unified(path, &line(part("old_str")?), &line(part("new_str")?)))
            };
            let edits = arguments.get("edits").and_then(Value::as_array);
            Some(edits.map_or_else(|| pair(&arguments), |edits| edits.iter().map(pair).collect())?)
        }
        "write_file" => Some(diff::unified(text("path")?, "", text("content")?)),
        "apply_patch" => text("patch").map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn diff_of(name: &str, arguments: &Value) -> Option<String> {
        let call = ToolCall::new("c", name, arguments.to_string());
        edit_diff(&call)
    }

    #[test]
    fn an_edit_is_shown_as_its_diff_and_another_call_is_not() {
        let edit = json!({"path": "a.txt", "old_str": "one\n", "new_str": "two\n"});
        let diff = diff_of("edit_file", &edit).unwrap();
        assert!(diff.contains("-one\n") && diff.contains("+two\n"), "{diff}");
        let edits = json!({"path": "a.txt", "edits": [edit, {"old_str": "x\n", "new_str": "y\n"}]});
        let diff = diff_of("edit_file", &edits).unwrap();
        assert!(diff.contains("+two\n") && diff.contains("+y\n"), "{diff}");
        assert!(diff_of("write_file", &json!({"path": "a", "content": "new\n"})).unwrap().contains("+new\n"));
        assert_eq!(diff_of("run_command", &json!({"command": "ls"})), None);
        assert_eq!(diff_of("edit_file", &json!({"path": 1})), None);
    }
}
