//! One tool call in its fixed order: look up, plan, decide, hooks, approve, execute, hooks.

pub mod command_class;
pub mod hooks;
pub mod policy;
