//! MCP client: servers that the agent starts and whose tools the model can call.
//!
//! A [`server::Server`] starts in the background, lists its tools and is called by [`tool::McpTool`]. Everything that it says is
//! data: names and descriptions are made harmless ([`definition`]), results too ([`result`]), and tools that changed since the
//! user saw them are withheld ([`pins`]). Schemas that model servers would refuse are repaired ([`schema_repair`]). The protocol is that of the crate `rmcp`. A server is a program that the agent starts, or a
//! service that it reaches over HTTP ([`http`]), for which the user may log in ([`login`]).

pub mod client;
pub mod connection;
pub mod definition;
pub mod elicitation;
pub mod hosted;
pub mod http;
pub mod line_filter;
pub mod login;
pub mod login_store;
pub mod npx;
pub mod pins;
pub mod result;
pub mod schema_repair;
pub mod search;
pub mod server;
pub mod tool;

use agent_process::launch::Launcher;
use agent_process::server_process::ServerEnding;
use agent_redactor::Redactor;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The program of a server.
#[derive(Debug, Clone)]
pub struct StdioServer {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its variables besides those of all child processes.
    pub env: BTreeMap<String, String>,
    /// Starts it, with a confinement of its own.
    pub launcher: Launcher,
    /// The ends of all processes of it that were started: of handshakes that failed, of the present one, and of those before.
    pub endings: Arc<Mutex<Vec<ServerEnding>>>,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Transport {
    /// A program that the agent starts, which speaks over standard input and output.
    Stdio(StdioServer),
    /// A service.
    Http(http::HttpServer),
    /// In the program that drives the run.
    Hosted(hosted::HostedServer),
}

/// Everything that is needed to use a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name in the configuration.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// Hash of its configuration: tools that were pinned for another configuration do not count.
    pub fingerprint: String,
    /// Time until it has listed its tools.
    pub start_timeout: Duration,
    /// Time limit of a call.
    pub call_timeout: Duration,
    /// How its questions are answered.
    pub answers: client::Answers,
    /// The protocol version that it spoke last time; absent: unknown.
    pub protocol: Option<String>,
    /// Finds secrets in its tools.
    pub redactor: Arc<Redactor>,
}
