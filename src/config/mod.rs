//! Settings: the schema of every key, the layers and the origin of each value, and the agents.

pub mod agents;
pub mod chat;
pub mod context;
pub mod environment;
pub mod error;
pub mod evaluation;
pub mod fact_cache;
pub mod flags;
pub mod front_matter;
pub mod instructions;
pub mod key_rules;
pub mod layers;
pub mod load;
pub mod memory;
pub mod presets;
pub mod project;
pub mod run_loop;
pub mod schema;
pub mod settings;
pub mod skills;
pub mod subagents;
pub mod text_file;
pub mod trust;
pub mod validate;
pub mod web;
pub mod yaml;
