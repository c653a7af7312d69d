//! Event sink of `agent chat`: at a terminal, the answer on standard output, as Markdown while it streams; each call as one
//! line on standard error.

use crate::answer_shown::AnswerShown;
use crate::call_view::CallView;
use crate::human_log::HumanLog;
use agent_core::event::{Event, FinishReason, MessageOrigin, Record};
use agent_core::event_sink::EventSink;
use agent_core::message::ToolCall;
use agent_core::run_result::{InstructionFile, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_terminal::markdown::MarkdownStream;
use agent_terminal::preview::Row;
use agent_terminal::{StdoutTarget, Style, Terminal, one_line};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum characters shown of a message that was typed while the run worked.
const QUEUED_CHARS: usize = 200;

/// Number of calls whose output can be shown whole.
const STORED_OUTPUTS: usize = 50;

/// What a conversation has shown: each run would repeat the notices on the configuration, and the user can look at the outputs of calls.
#[derive(Debug, Clone, Default)]
pub struct ChatMemory(Rc<RefCell<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    notices: BTreeSet<String>,
    /// Titles and whole outputs of calls, the last one first.
    outputs: VecDeque<(String, Vec<Row>)>,
}

impl ChatMemory {
    /// Adds a notice; returns false if it was shown before.
    fn add_notice(&self, text: &str) -> bool {
        self.0.borrow_mut().notices.insert(text.to_owned())
    }

    fn add_output(&self, title: String, rows: Vec<Row>) {
        let outputs = &mut self.0.borrow_mut().outputs;
        outputs.push_front((title, rows));
        outputs.truncate(STORED_OUTPUTS);
    }

    /// Returns title and output of the `back`th call before now, the last one being 0.
    pub fn output(&self, back: usize) -> Option<(String, Vec<Row>)> {
        self.0.borrow().outputs.get(back).cloned()
    }
}

impl FromIterator<String> for ChatMemory {
    fn from_iter<T: IntoIterator<Item = String>>(notices: T) -> Self {
        Self(Rc::new(RefCell::new(Shown { notices: notices.into_iter().collect(), ..Shown::default() })))
    }
}

/// Prints a message of a conversation. What goes wrong is printed by the human log, and so is the text of the model unless
/// standard output is a terminal: there it would mix with the answers.
pub struct ChatLog {
    terminal: Arc<Terminal>,
    log: HumanLog,
    memory: ChatMemory,
    markdown: MarkdownStream,
    /// Whether the text of the model is printed here: standard output is a terminal.
    shows_text: bool,
    /// Whether the current answer was streamed.
    streamed: bool,
    /// Whether a step of this run has begun: what comes before are notices that each run repeats.
    has_begun: bool,
    /// The calls that have begun and not ended.
    calls: HashMap<String, ToolCall>,
    /// Text shown since the last tool call.
    shown_text: String,
    answer_shown: AnswerShown,
}

impl ChatLog {
    /// Creates a sink on `terminal` that passes what it does not print itself to `log`, except notices that were shown before.
    pub fn new(terminal: Arc<Terminal>, log: HumanLog, memory: ChatMemory) -> Self {
        let shows_text = terminal.stream_info().stdout != StdoutTarget::Elsewhere;
        Self {
            terminal,
            log,
            memory,
            markdown: MarkdownStream::default(),
            shows_text,
            streamed: false,
            has_begun: false,
            calls: HashMap::new(),
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

    /// Prints what a call did, and the beginning of what it printed.
    fn tool_end(&mut self, event: &Event, call_id: &str) -> io::Result<()> {
        let language = self.log.language();
        let call = self.calls.remove(call_id);
        let Some(view) = CallView::of(event, call.as_ref(), language) else { return Ok(()) };
        self.end_text()?;
        let bullet = if self.terminal.has_icons() { "● " } else { "- " };
        self.terminal
            .eprint_rows(&[vec![(view.style, bullet.to_owned()), (Style::Plain, view.title.clone())]])?;
        view.print_rows(&self.terminal, "", Some(messages::CHAT_KEY_OUTPUT), language)?;
        let whole = view.whole();
        if !whole.is_empty() {
            self.memory.add_output(view.title, whole);
        }
        Ok(())
    }

    fn run_end(&mut self, record: &Record, result: &RunResult) -> io::Result<()> {
        self.end_text()?;
        let answer = result.output.text();
        let answer = answer.trim();
        self.answer_shown.set(!answer.is_empty() && self.shown_text.trim_end().ends_with(answer));
        if result.status == Status::Success {
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
                self.shown_text.clear();
                self.calls.insert(call.id.clone(), call.clone());
                self.end_text()
            }
            event @ Event::ToolCallEnd { result, .. } => self.tool_end(event, &result.call_id),
            Event::Retry { .. } | Event::ModelFailed { .. } | Event::ModelSwitched { .. } => {
                self.end_text()?;
                self.shown_text.clear();
                self.log.emit(record)
            }
            Event::Notice { text, .. } if !self.has_begun && !self.memory.add_notice(text) => Ok(()),
            Event::Notice { .. } | Event::Closing { .. } => {
                self.end_text()?;
                self.log.emit(record)
            }
            Event::UserMessage { text, origin: MessageOrigin::Queued, .. } => {
                self.end_text()?;
                self.terminal.eprintln(Style::Bold, &messages::chat_queued(&one_line(text, QUEUED_CHARS)))
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
