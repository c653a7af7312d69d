//! Ways for other programs to drive the agent: the Agent Client Protocol, the protocol of `agent serve`, an MCP server, and the command lines of
//! Codex and Claude Code.

pub mod acp;
pub mod claude;
mod client_input;
mod client_lines;
mod client_model;
mod client_output;
pub mod exec;
mod json_rpc;
pub mod mcp_serve;
pub mod serve;
