//! The agent: the session as a state machine and the loop that does what it says.

pub mod breakers;
pub mod compaction;
pub mod context_window;
pub mod conversation_digest;
pub mod evaluation;
pub mod limit_check;
pub mod loop_services;
pub mod model_call;
pub mod output_schema;
pub mod prefix_audit;
pub mod replay;
pub mod run;
pub mod run_end;
pub mod session;
pub mod session_state;
#[cfg(test)]
#[path = "../../tests/simulation/mod.rs"]
mod simulation;
pub mod spending;
pub mod state_saver;
pub mod subagent;
pub mod system_prompt;
pub mod tally;
mod text_guardrails;
mod volatile;

use crate::agent::conversation_digest::ConversationDigest;
use crate::agent::session::Session;
use crate::agent::state_saver::StateSaver;
use crate::core::event::{EventSink, Record};
use crate::core::limits::FallbackChain;
use crate::engine::Engine;
use crate::llm::prompt_prefix::PromptPrefix;
use crate::llm::{LlmClient, ToolDefinition};
use crate::runtime::clock::Clock;
use crate::runtime::emitter::Emitter;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Everything one run needs, put together by the command line, or by a replay out of a journal.
pub struct Agent<S = Engine> {
    /// The models, those that take over included; the session says which of them is in use.
    pub models: FallbackChain<Rc<dyn LlmClient>>,
    /// Runs tool calls, and what else is around the loop.
    pub engine: Rc<S>,
    /// The tools offered, sorted by name.
    pub definitions: Vec<ToolDefinition>,
    /// The conversation; a listener of `emitter`, changed by nothing else.
    pub session: Rc<RefCell<Session>>,
    /// Where every fact is told.
    pub emitter: Rc<Emitter>,
    /// Keeps the state of the session, where it has a journal.
    pub state_saver: Option<StateSaver>,
    /// What requests begin with.
    pub prefix: RefCell<PromptPrefix>,
    /// What the last request was about.
    pub digest: RefCell<ConversationDigest>,
    /// The clock.
    pub source: Rc<Clock>,
    /// Fires when the person asks to stop.
    pub interrupt: CancellationToken,
    /// The agent's name, for hooks.
    pub name: String,
    /// The task in words, for hooks.
    pub task: String,
    /// Whether answers are streamed.
    pub stream: bool,
    /// When this run began, on the clock of `source`.
    pub started_at: Duration,
}

impl<S> Agent<S> {
    /// The model in use.
    pub fn llm(&self) -> &dyn LlmClient {
        self.models.at(self.session.borrow().model_in_use()).as_ref()
    }
}

/// The session as a listener: the only way it changes.
pub struct SessionSink(pub Rc<RefCell<Session>>);

impl EventSink for SessionSink {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        self.0.borrow_mut().apply(&record.event);
        Ok(())
    }
}
