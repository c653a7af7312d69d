//! Event sink of `agent chat`: at a terminal, the answer on standard output, as Markdown while it streams; each call as one
//! line on standard error.

use crate::call_view::CallView;
use crate::human_log::HumanLog;
use agent_config::verbosity::Verbosity;
use agent_core::event::{Event, FinishReason, MessageOrigin, Record};
use agent_core::event_sink::EventSink;
use agent_core::language::Language;
use agent_core::run_result::{InstructionFile, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_terminal::preview::Row;
use agent_terminal::{Style, Terminal, first_line, one_line};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum characters shown of a message that was typed while the run worked.
const QUEUED_CHARS: usize = 200;

/// Maximum characters shown of a message that is shown again.
const SHOWN_CHARS: usize = 500;

/// Number of calls whose output can be shown whole.
const STORED_OUTPUTS: usize = 50;

/// What a conversation has shown: each run would repeat the notices on the configuration, and the user can look at the outputs of calls.
#[derive(Debug, Clone, Default)]
pub struct ChatMemory(Rc<RefCell<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    /// Whether a run has made a step.
    has_run: bool,
    /// Whether the thoughts of the model are shown.
    shows_thoughts: bool,
    notices: BTreeSet<String>,
    /// The session in which calls run.
    session: Option<String>,
    /// Number of calls that had an output.
    calls: usize,
    /// The last calls that had an output, the last one at the end.
    outputs: VecDeque<ShownCall>,
    /// The call that was looked at since the last call.
    viewed: Option<usize>,
}

/// A call of a conversation whose output can be looked at.
#[derive(Debug, Clone)]
pub struct ShownCall {
    /// Its number among the calls of the conversation that had an output, from 1.
    pub number: usize,
    /// What it did, in one line.
    pub title: String,
    /// The command, if the title does not show all of it.
    pub command: Vec<Row>,
    /// What it printed for the model, or its whole diff.
    pub rows: Vec<Row>,
    /// Session and id of a call whose whole output is stored, because the model reads a part of it.
    pub stored: Option<StoredCall>,
}

/// Names a stored output.
#[derive(Debug, Clone)]
pub struct StoredCall {
    /// The session.
    pub session: String,
    /// The id of the call.
    pub call_id: String,
}

/// Which output is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewed {
    /// The last one.
    Last,
    /// The one before the last that was looked at.
    Earlier,
    /// The one of the call with this number.
    Number(usize),
}

impl ChatMemory {
    /// Adds a notice; returns false if it was shown before.
    fn add_notice(&self, text: &str) -> bool {
        self.0.borrow_mut().notices.insert(text.to_owned())
    }

    /// Whether a run of this conversation has made a step.
    pub fn has_run(&self) -> bool {
        self.0.borrow().has_run
    }

    /// Notes that another session is continued, or none: what differs from its last run is not what the user has just changed.
    pub fn begin_session(&self, session: Option<&str>) {
        let mut shown = self.0.borrow_mut();
        (shown.has_run, shown.session) = (false, session.map(str::to_owned));
    }

    /// Shows the thoughts of the model from the next message on, or no longer; returns which.
    pub fn toggle_thoughts(&self) -> bool {
        let shows = &mut self.0.borrow_mut().shows_thoughts;
        *shows = !*shows;
        *shows
    }

    /// Adds a call if it had an output; returns its number.
    fn add_output(&self, view: &CallView, call_id: &str) -> Option<usize> {
        let (command, rows) = (view.command_rows(), view.whole());
        if command.is_empty() && rows.is_empty() {
            return None;
        }
        let shown = &mut *self.0.borrow_mut();
        (shown.calls, shown.viewed) = (shown.calls + 1, None);
        let session = shown.session.clone().filter(|_| view.is_stored);
        let stored = session.map(|session| StoredCall { session, call_id: call_id.to_owned() });
        let (number, title) = (shown.calls, view.title.clone());
        shown.outputs.push_back(ShownCall { number, title, command, rows, stored });
        if shown.outputs.len() > STORED_OUTPUTS {
            shown.outputs.pop_front();
        }
        Some(number)
    }

    /// Returns a call to look at its output; `None` if there is none, or no longer.
    pub fn output(&self, which: Viewed) -> Option<ShownCall> {
        let shown = &mut *self.0.borrow_mut();
        let number = match (which, shown.viewed) {
            (Viewed::Number(number), _) => number,
            (Viewed::Earlier, Some(viewed)) => viewed.saturating_sub(1),
            _ => shown.calls,
        };
        let call = shown.outputs.iter().find(|call| call.number == number)?.clone();
        shown.viewed = Some(number);
        Some(call)
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
    /// Whether a step of this run has begun: what comes before are notices that each run repeats.
    has_begun: bool,
}

impl ChatLog {
    /// Creates a sink on `terminal` that passes what it does not print itself to `log`, except notices that were shown before.
    pub fn new(terminal: Arc<Terminal>, mut log: HumanLog, memory: ChatMemory) -> Self {
        if memory.0.borrow().shows_thoughts {
            log.show_thoughts_from(Verbosity::Human);
        }
        Self { terminal, log, memory, has_begun: false }
    }

    /// Prints what a call did, and the beginning of what it printed.
    fn tool_end(&mut self, event: &Event) -> io::Result<()> {
        let language = self.log.language();
        let Event::ToolCallEnd { result, .. } = event else { return Ok(()) };
        let Some(view) = self.log.view_of_end(event) else { return Ok(()) };
        self.log.answer.end()?;
        let bullet = if self.terminal.has_icons() { "● " } else { "- " };
        self.terminal.eprint_texts(&[vec![
            (view.style.clone(), bullet.to_owned()),
            (Style::Plain, view.title.clone()),
        ]])?;
        let key = self.memory.add_output(&view, &result.call_id).map(messages::chat_key_output);
        view.print_rows(&self.terminal, "", key.as_deref(), language)
    }

    fn run_end(&mut self, result: &RunResult) -> io::Result<()> {
        self.log.answer.end()?;
        self.log.answer.finish(&result.output.text());
        if result.status == Status::Success {
            return Ok(());
        }
        if result.stop_reason == Some(StopReason::UserInterrupt) {
            // The user knows why, and the conversation goes on.
            self.log.answer_shown().set(true);
            return self.terminal.eprintln(Style::Warning, messages::CHAT_INTERRUPTED);
        }
        self.log.end_of_message(result)
    }
}

impl EventSink for ChatLog {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::ModelResponse { purpose, message, finish, .. } if self.log.answer.is_on_output() => {
                if !purpose.is_internal() {
                    self.log.thoughts(message)?;
                    self.log.answer.push_whole(&message.joined_text())?;
                }
                self.log.answer.end_answer();
                // The rest of a truncated answer continues its line.
                if *finish == FinishReason::Length { Ok(()) } else { self.log.answer.end() }
            }
            Event::StepStart { .. } => {
                self.has_begun = true;
                self.memory.0.borrow_mut().has_run = true;
                Ok(())
            }
            Event::RunStart { max_steps, .. } => {
                self.log.max_steps = *max_steps;
                Ok(())
            }
            Event::Instructions { file } if is_unchanged(file) => Ok(()),
            Event::SessionStart { session_id, .. } => {
                self.memory.0.borrow_mut().session = Some(session_id.clone());
                Ok(())
            }
            Event::ToolCallStart { call, .. } => {
                self.log.begin_call(call);
                self.log.answer.end()
            }
            event @ Event::ToolCallEnd { .. } => self.tool_end(event),
            Event::Notice { text, .. } if !self.has_begun && !self.memory.add_notice(text) => Ok(()),
            Event::Retry { .. }
            | Event::ModelFailed { .. }
            | Event::ModelSwitched { .. }
            | Event::Notice { .. }
            | Event::Closing { .. } => {
                self.log.answer.end()?;
                self.log.emit(record)
            }
            Event::UserMessage { text, origin: MessageOrigin::Queued, .. } => {
                self.log.answer.end()?;
                self.terminal.eprintln(Style::Bold, &messages::chat_queued(&one_line(text, QUEUED_CHARS)))
            }
            Event::RunEnd { result } => self.run_end(result),
            _ => self.log.emit(record),
        }
    }
}

/// Shows messages of a session again, with texts and calls as they were shown at first.
///
/// # Errors
/// When the terminal cannot be written.
pub fn show_again(
    terminal: &Arc<Terminal>,
    memory: &ChatMemory,
    language: Language,
    records: &[Record],
) -> io::Result<()> {
    let log = HumanLog::new(Arc::clone(terminal), Verbosity::Human, language, None);
    let mut chat = ChatLog::new(Arc::clone(terminal), log, memory.clone());
    let (mut is_working, mut running) = (false, Vec::new());
    for record in records {
        match &record.event {
            Event::UserMessage { text, origin: MessageOrigin::Prompt | MessageOrigin::Queued, .. } => {
                chat.log.answer.end()?;
                terminal.eprintln(Style::Plain, &format!("> {}", first_line(text, SHOWN_CHARS)))?;
                is_working = true;
            }
            Event::ModelResponse { purpose, message, .. } if !purpose.is_internal() => {
                chat.log.answer.push_whole(&message.joined_text())?;
                chat.log.answer.end_answer();
                chat.log.answer.end()?;
            }
            Event::ToolCallStart { call, summary } => {
                running.push((call.id.clone(), messages::call_title(&call.name, summary, language)));
                chat.emit(record)?;
            }
            Event::ToolCallEnd { result, .. } => {
                running.retain(|(id, _)| *id != result.call_id);
                chat.emit(record)?;
            }
            Event::RunEnd { result } => {
                is_working = false;
                if result.stop_reason == Some(StopReason::UserInterrupt) {
                    terminal.eprintln(Style::Warning, messages::CHAT_CUT_OFF)?;
                }
            }
            Event::RunStart { .. } if std::mem::take(&mut is_working) => {
                terminal.eprintln(Style::Warning, messages::CHAT_CUT_OFF)?;
            }
            _ => {}
        }
    }
    for (_, title) in running {
        terminal.eprintln(Style::Warning, &format!("● {title} ✗ {}", messages::OUTCOME_UNKNOWN))?;
    }
    if is_working { terminal.eprintln(Style::Warning, messages::CHAT_CUT_OFF) } else { Ok(()) }
}

/// Checks whether the model has read these instructions in an earlier session, or reads them for the first time.
fn is_unchanged(file: &InstructionFile) -> bool {
    file.before.as_ref().is_none_or(|before| before.hash == file.hash)
}
