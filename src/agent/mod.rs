//! The agent: the session as a state machine and the loop that does what it says.

pub mod ask;
pub mod prompt;
pub mod run;
pub mod session;
pub mod spending;
pub mod structured;
pub mod tally;
pub mod watchdogs;

use crate::agent::session::Session;
use crate::emit::Emitter;
use crate::engine::Engine;
use crate::event::{EventSink, Record};
use crate::llm::{LlmClient, ToolDefinition};
use crate::price::Price;
use crate::source::Source;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Everything one run needs, put together by the command line.
pub struct Agent {
    /// The model.
    pub llm: Box<dyn LlmClient>,
    /// Runs tool calls.
    pub engine: Engine,
    /// The tools offered, sorted by name.
    pub definitions: Vec<ToolDefinition>,
    /// The conversation; a listener of `emitter`, changed by nothing else.
    pub session: Rc<RefCell<Session>>,
    /// Where every fact is told.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Source>,
    /// Fires when the person asks to stop.
    pub interrupt: CancellationToken,
    /// The agent's name, for hooks.
    pub name: String,
    /// The task in words, for hooks.
    pub task: String,
    /// What the model costs; nothing when that is not known.
    pub price: Option<Price>,
    /// The longest answer that requests allow, in tokens; the server's own limit when absent.
    pub max_output_tokens: Option<u32>,
    /// Whether answers are streamed.
    pub stream: bool,
    /// When this run began, on the clock of `source`.
    pub began: Duration,
}

/// The session as a listener: the only way it changes.
pub struct Fold(pub Rc<RefCell<Session>>);

impl EventSink for Fold {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        self.0.borrow_mut().apply(&record.event);
        Ok(())
    }
}
