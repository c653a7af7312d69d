//! Settings: the schema of every key, its layers and where each value came from, and the agents.

pub mod agents;
pub mod check;
pub mod context;
pub mod environment;
pub mod error;
pub mod evaluation;
pub mod file;
pub mod flags;
pub mod instructions;
pub mod layers;
pub mod load;
pub mod project;
pub mod rule;
pub mod run_loop;
pub mod schema;
pub mod settings;
pub mod shelf;
pub mod subagents;
pub mod trust;
pub mod yaml;
