//! A terminal coding agent: reads, edits, runs and checks code with a language model until a task is done or a limit is reached.
//!
//! Read `src/ARCHITECTURE.md` first, then `agent/run.rs`, `agent/session/mod.rs`, `tools/mod.rs`, `llm/mod.rs` and
//! `cli/exit_code.rs`. The modules below are in layer order: each uses only those above it.

// L0: data types and pure text
pub use agent_core as core;
pub use agent_health as health;
pub use agent_messages as messages;
pub use agent_redactor as redactor;
pub use agent_text as text;

// L1: edges; each kind of side effect has one module
pub use agent_fetch as fetch;
pub use agent_http as http;
pub use agent_process as process;
pub use agent_runtime as runtime;
pub use agent_terminal as terminal;
pub use agent_workspace as workspace;

// L2: capabilities
pub use agent_fleet as fleet;
pub use agent_hub as hub;
pub use agent_journal as journal;
pub use agent_llm as llm;
pub use agent_mcp as mcp;
pub use agent_tools as tools;

// L3: the steps of one tool call
pub use agent_engine as engine;

// L4: the loop
pub use agent_session as agent;

// L5: configuration and event listeners
pub use agent_config as config;
pub use agent_report as report;
pub use agent_run as run;

// L6: the command line
pub mod cli;
