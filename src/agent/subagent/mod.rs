//! Subagents: agents that the model asks to do a part of the work, each in a session of its own, out of the same purse.

mod host;
mod nested;
mod purses;
mod tool;

pub use host::{Ask, Equipped, Host, Memory};
pub use tool::{DispatchSubagent, Kind};
