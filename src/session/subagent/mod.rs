//! Subagents: agents that the model starts for a part of the work, each in its own session, within the budget of the run.

mod event_forwarder;
mod host;
mod shared_budget;
mod tool;

pub use host::{SubagentContext, SubagentHost, SubagentModel, SubagentRequest, SubagentSetup};
pub use tool::{DispatchSubagent, SubagentType};
