//! Subagents: agents that the model asks to do a part of the work, each in a session of its own, out of the same purse.

mod host;
mod nested;
mod purses;
mod tool;

pub use host::{SubagentContext, SubagentHost, SubagentRequest, SubagentSetup};
pub use tool::{DispatchSubagent, SubagentType};
