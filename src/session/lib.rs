//! The agent: the session as a state machine, the loop that executes its actions, and what they need.

pub mod agent_loop;
pub mod breakers;
pub mod compaction;
pub mod context_window;
pub mod conversation_digest;
pub mod conversation_images;
pub mod evaluation;
pub mod limit_check;
pub mod loop_services;
pub mod model_call;
pub mod output_schema;
pub mod prefix_audit;
pub mod replay;
pub mod review_reply;
pub mod run_end;
pub mod session;
pub mod session_state;
#[cfg(test)]
#[path = "../../tests/simulation/mod.rs"]
mod simulation;
pub mod spending;
pub mod subagent;
pub mod system_prompt;
pub mod tally;
mod text_guardrails;
pub mod total_budget;
mod volatile;

use crate::conversation_digest::ConversationDigest;
use crate::session::Session;
use crate::total_budget::TotalShare;
use agent_core::limits::FallbackChain;
use agent_engine::Engine;
use agent_llm::prompt_prefix::PromptPrefix;
use agent_llm::{LlmClient, ToolDefinition};
use agent_runtime::clock::Clock;
use agent_runtime::emitter::Emitter;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Everything that one run needs, assembled by a run or, from a journal, by a replay.
pub struct Agent<S = Engine> {
    /// The models, including fallbacks; the session selects the one in use.
    pub models: FallbackChain<Rc<dyn LlmClient>>,
    /// Runs tool calls and the other services of the loop.
    pub engine: Rc<S>,
    /// The tools offered, sorted by name.
    pub definitions: Vec<ToolDefinition>,
    /// The session; a sink of `emitter`, changed by nothing else.
    pub session: Rc<RefCell<Session>>,
    /// Emits all events.
    pub emitter: Rc<Emitter>,
    /// The prefix of the requests.
    pub prefix: RefCell<PromptPrefix>,
    /// The hash of the last request's conversation.
    pub digest: RefCell<ConversationDigest>,
    /// The budget that the run shares with other runs.
    pub total_budget: Option<TotalShare>,
    /// The clock.
    pub source: Rc<Clock>,
    /// Fires when the user interrupts the run.
    pub interrupt: CancellationToken,
    /// Name of the agent, for hooks.
    pub name: String,
    /// Text of the task, for hooks, skills and the planner; the conversation has it as a message.
    pub task: String,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Start of this run on the clock of `source`.
    pub started_at: Duration,
}

impl<S> Agent<S> {
    /// Returns the client of the model in use.
    pub fn llm(&self) -> &dyn LlmClient {
        self.models.at(self.session.borrow().model_in_use()).as_ref()
    }
}
