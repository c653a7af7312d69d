//! Commands of several runs.

pub mod chain;
pub mod consolidate;
pub mod eval;
pub mod loop_command;
pub mod parallel;
pub mod pipeline_command;
pub mod work;
