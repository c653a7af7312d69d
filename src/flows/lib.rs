//! Commands of several runs: loop, parallel runs, pipeline, evaluation, chain and consolidation, and the records from which they go on.

pub mod chain;
pub mod consolidate;
pub mod eval;
pub mod loop_command;
pub mod parallel;
pub mod pipeline_command;
pub mod work;
