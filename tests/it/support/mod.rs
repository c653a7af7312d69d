//! What the black-box tests share.

pub mod calls;
pub mod claude_client;
pub mod collector;
pub mod dialect;
pub mod extent;
pub mod hub;
pub mod kernel;
pub mod killed_workers;
pub mod long_run;
pub mod mcp;
pub mod mcp_client;
pub mod mcp_service;
pub mod random;
pub mod rpc_client;
pub mod run;
pub mod schema;
pub mod server;
pub mod site;
pub mod sleepers;
pub mod syscall_faults;
pub mod terminal;
pub mod tree;
pub mod wire_server;
pub mod work;
