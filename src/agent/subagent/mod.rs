//! Subagents: agents that the model asks to do a part of the work, each in a session of its own, out of the same purse.

mod event_forwarder;
mod host;
mod shared_budget;
mod tool;

pub use host::{SubagentContext, SubagentHost, SubagentRequest, SubagentSetup};
pub use tool::{DispatchSubagent, SubagentType};
