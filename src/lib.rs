//! A terminal coding agent: you give it a task and a workspace; it reads, edits, runs and checks code with a
//! language model until the task is done or a limit says stop, and tells the truth about which of the two happened.
//!
//! Read `src/ARCHITECTURE.md` first, then `agent/run.rs`, `agent/session.rs`, `tools/mod.rs`, `llm/mod.rs` and
//! `cli/exit_code.rs`. The modules below stand in layer order: each uses only those above it.

// L0: vocabulary and pure text
pub mod approval;
pub mod change;
pub mod compaction;
pub mod decision;
pub mod evaluation;
pub mod event;
pub mod failure;
pub mod finish_reason;
pub mod gate;
pub mod guardrail;
pub mod language;
pub mod limits;
pub mod message;
pub mod messages;
pub mod origin;
pub mod price;
pub mod purse;
pub mod redactor;
pub mod result;
pub mod secret;
pub mod stop_reason;
pub mod text;
pub mod usage;

// L1: edges, where every effect has one address
pub mod emit;
pub mod fetch;
pub mod http;
pub mod interrupt;
pub mod process;
pub mod source;
pub mod terminal;
pub mod workspace;

// L2: capabilities
pub mod journal;
pub mod llm;
pub mod tools;

// L3: the order of one tool call
pub mod engine;

// L4: the loop
pub mod agent;

// L5: settings and listeners
pub mod config;
pub mod report;

// L6: the command line
pub mod cli;
