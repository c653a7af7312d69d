//! One connection to a server: the handshake, the list of its tools, and calls.

use super::client::{self, Client};
use super::definition::{ListedTool, MAX_LISTING_BYTES, MAX_TOOLS, harmless};
use super::hosted::{HostedServer, HostedTransport};
use super::http::{self, CLOSE_TIME, HttpServer};
use super::line_filter::{LineFilter, Violation};
use super::result::LenientTransport;
use super::{ServerSpec, StdioServer, Transport};
use agent_process::launch::CommandSpec;
use agent_process::sandbox::SHARED_TEMP_DIRS;
use agent_process::server_process::ServerHandle;
use agent_redactor::Redactor;
use agent_text::lines::{QUOTE_CHARS, one_line};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, JsonObject, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientServiceExt, Peer, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientLifecycleMode, ErrorData};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::RwLock;

/// Maximum pages of a list of tools.
const MAX_PAGES: usize = 64;

/// Maximum characters of the standard error of a server in a message.
const STDERR_CHARS: usize = 1_000;

/// Part of the start timeout for the newest protocol, before a server that does not answer is started anew with the older one.
const PROBE_PART: u32 = 2;

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    server: String,
    peer: Peer<RoleClient>,
    /// Read by calls, written by the end of the connection.
    service: RwLock<RunningService<RoleClient, Client>>,
    /// The program that the agent started, if it did.
    program: Option<Program>,
    /// The protocol version that both speak.
    pub protocol: String,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The server answered, but not in the form of the protocol; a description of the answer.
    Unreadable(String),
    /// Any other failure; a description.
    Failed(String),
}

/// The program of a server.
#[derive(Debug)]
struct Program {
    process: ServerHandle,
    violation: Violation,
    /// A file in its command line that its sandbox does not show.
    hidden: Option<String>,
}

/// The tools of a server.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The tools, sorted by name.
    pub tools: Vec<ListedTool>,
    /// Descriptions of the tools that were left out, each one line.
    pub warnings: Vec<String>,
}

impl Connection {
    /// Connects: with the protocol of the last contact; else with the newest one, and if the server does not understand or
    /// answer that, anew with the older one (2025-11-25).
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn open(spec: &ServerSpec) -> Result<Self, String> {
        let legacy = ClientLifecycleMode::Initialize;
        let auto = client::newest_or_older();
        let is_known_legacy =
            spec.protocol.as_deref().is_some_and(|version| version != ProtocolVersion::LATEST.as_str());
        if is_known_legacy {
            return match Self::attempt(spec, legacy).await {
                Ok(connection) => Ok(connection),
                Err(_changed) => Self::attempt(spec, auto).await,
            };
        }
        if let Transport::Http(_) | Transport::Hosted(_) = spec.transport {
            return Self::attempt(spec, auto).await;
        }
        let probe = tokio::time::timeout(spec.start_timeout / PROBE_PART, Self::attempt(spec, auto)).await;
        match probe {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(_)) | Err(_) => Self::attempt(spec, legacy).await,
        }
    }

    async fn attempt(spec: &ServerSpec, lifecycle: ClientLifecycleMode) -> Result<Self, String> {
        let client = Client { server: spec.name.clone(), answers: spec.answers.clone() };
        match &spec.transport {
            Transport::Stdio(program) => Self::over_stdio(client, program, lifecycle).await,
            Transport::Http(server) => Self::over_http(client, server, lifecycle).await,
            Transport::Hosted(server) => Self::to_hosted(client, server).await,
        }
    }

    async fn to_hosted(client: Client, server: &HostedServer) -> Result<Self, String> {
        let transport = LenientTransport(HostedTransport::new(server.clone()));
        match client.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await {
            Ok(service) => Self::new(service, None),
            Err(ClientInitializeError::JsonRpcError(error)) => Err(answered(&error)),
            Err(error) => Err(short(&error)),
        }
    }

    async fn over_http(
        client: Client,
        server: &HttpServer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, String> {
        Self::new(server.open(client, lifecycle).await?, None)
    }

    /// Fails with a description when the server speaks a version of the protocol that is not known here.
    fn new(service: RunningService<RoleClient, Client>, program: Option<Program>) -> Result<Self, String> {
        let peer = service.peer().clone();
        let version = peer.peer_info().map(|info| info.protocol_version.clone()).unwrap_or_default();
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) {
            let version = one_line(&harmless(version.as_str()), QUOTE_CHARS);
            return Err(format!("it speaks version {version} of the protocol, which is not supported"));
        }
        let server = service.service().server.clone();
        Ok(Self { server, peer, service: RwLock::new(service), program, protocol: version.to_string() })
    }

    async fn over_stdio(
        client: Client,
        program: &StdioServer,
        lifecycle: ClientLifecycleMode,
    ) -> Result<Self, String> {
        let StdioServer { argv, cwd, env, launcher, endings } = program.clone();
        let hidden = launcher.tier().has_own_view().then(|| file_in_shared_tmp(&argv, &cwd)).flatten();
        let spec = CommandSpec { argv, cwd, env: BTreeMap::new(), stdin: Vec::new(), timeout: Duration::MAX };
        // Preparing the sandbox reads directories.
        let started = tokio::task::spawn_blocking(move || launcher.start_server(spec, env)).await;
        let process = started.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        endings.lock().unwrap_or_else(PoisonError::into_inner).push(process.handle.ending());
        let (output, violation) = LineFilter::new(process.stdout);
        let transport = LenientTransport(AsyncRwTransport::new_client(output, process.stdin));
        let program = Program { process: process.handle, violation, hidden };
        match client.serve_with_lifecycle(transport, lifecycle).await {
            Ok(service) => Self::new(service, Some(program)),
            Err(ClientInitializeError::JsonRpcError(error)) => Err(program.failure(&answered(&error), None)),
            Err(
                error @ (ClientInitializeError::ConnectionClosed(_)
                | ClientInitializeError::TransportError { .. }),
            ) => Err(program.explain(&short(&error)).await),
            Err(error) => Err(program.failure(&short(&error), None)),
        }
    }

    /// Lists the tools, within the limits of [`MAX_TOOLS`] and [`MAX_LISTING_BYTES`]. Of two with the same name the first counts.
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn list(&self) -> Result<Listing, String> {
        let (mut listing, mut bytes, mut cursor) = (Listing::default(), 0, None);
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = match http::retried(|| self.peer.list_tools(Some(page.clone()))).await {
                Ok(page) => page,
                Err(error) => return Err(self.explain(&error).await),
            };
            for tool in page.tools {
                let tool = ListedTool {
                    name: tool.name.into_owned(),
                    description: tool.description.unwrap_or_default().into_owned(),
                    schema: Value::Object(tool.input_schema.as_ref().clone()),
                };
                bytes += tool.bytes();
                if listing.tools.len() >= MAX_TOOLS || bytes > MAX_LISTING_BYTES {
                    let kibibytes = MAX_LISTING_BYTES >> 10;
                    listing.warnings.push(format!(
                        "it lists more than {MAX_TOOLS} tools or {kibibytes} KiB; those after the first {} are left out",
                        listing.tools.len()
                    ));
                    return Ok(listing.sorted());
                }
                listing.add(tool);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(listing.sorted());
            }
        }
        listing.warnings.push(format!("its list of tools does not end after {MAX_PAGES} pages"));
        Ok(listing.sorted())
    }

    /// Calls a tool. Dropping the future cancels the call at the server.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(&self, tool: &str, arguments: JsonObject) -> Result<CallToolResult, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        // The service also answers what the server asks during the call.
        let service = self.service.read().await;
        match http::retried(|| service.call_tool(params.clone())).await {
            Ok(result) => Ok(result),
            Err(error) => {
                let was_answered =
                    matches!(error, ServiceError::UnexpectedResponse) || http::is_unreadable_answer(&error);
                let why = self.explain(&error).await;
                Err(if was_answered { CallError::Unreadable(why) } else { CallError::Failed(why) })
            }
        }
    }

    /// Checks whether the server is gone.
    pub fn is_closed(&self) -> bool {
        let has_ended = |program: &Program| program.process.end_state().is_some();
        self.peer.is_transport_closed() || self.program.as_ref().is_some_and(has_ended)
    }

    /// Ends the connection: asks the program to end, or tells the server over HTTP that the session has ended.
    pub async fn close(&self) {
        self.service.read().await.cancellation_token().cancel();
        match &self.program {
            Some(program) => program.process.stop(),
            None => drop(self.service.write().await.close_with_timeout(CLOSE_TIME).await),
        }
    }

    /// Describes an error of the protocol, with what the program has reported.
    async fn explain(&self, error: &ServiceError) -> String {
        if let ServiceError::McpError(error) = error {
            return answered(error);
        }
        if matches!(error, ServiceError::UnexpectedResponse) {
            return UNEXPECTED.to_owned();
        }
        match &self.program {
            Some(program) => program.explain(&short(error)).await,
            None => http::explain(&self.server, error).unwrap_or_else(|| short(error)),
        }
    }
}

fn short(error: &impl std::error::Error) -> String {
    one_line(&harmless(&error.to_string()), QUOTE_CHARS)
}

/// Describes an answer that is no result of the request.
const UNEXPECTED: &str = "it does not have the form that MCP requires";

/// Describes an error that a server has answered with.
fn answered(error: &ErrorData) -> String {
    let message = one_line(&harmless(&error.message), STDERR_CHARS);
    format!("it answered with error {}: {message}", error.code.0)
}

/// Time to wait for the report of a program that has closed its output.
const END_GRACE: Duration = Duration::from_secs(1);

impl Program {
    /// Describes why the connection ended, when the program may have ended too.
    async fn explain(&self, error: &str) -> String {
        let ended = tokio::time::timeout(END_GRACE, self.process.wait()).await.ok();
        self.failure(error, ended.map(|end| end.reason))
    }

    /// Describes a failure: the exceeded limit, or how the program ended, or the error, with its cause on one line; below it the end of the
    /// program's standard error.
    fn failure(&self, error: &str, ended: Option<String>) -> String {
        let violation = self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut text = match (violation, ended) {
            (Some(violation), _) => format!("it {violation}"),
            (None, Some(ended)) if !ended.is_empty() => ended,
            _ => error.to_owned(),
        };
        let stderr = harmless(&self.process.stderr());
        let stderr = stderr.trim();
        let cause = cause_in(stderr).map(|cause| one_line(cause, QUOTE_CHARS)).unwrap_or_default();
        if !cause.is_empty() {
            text.extend([": ", &cause]);
        }
        if let Some(file) = &self.hidden {
            text.extend([
                "; its sandbox does not show files below /tmp such as ",
                file,
                ": put it elsewhere",
            ]);
        }
        let skipped = stderr.chars().count().saturating_sub(STDERR_CHARS);
        let tail: String = stderr.chars().skip(skipped).collect();
        if tail != cause {
            text.extend(["\nThe end of its standard error:\n", &tail]);
        }
        text
    }
}

/// Returns the line of a program's standard error that names why it failed: the last one of a traceback of Python, else the first one.
fn cause_in(stderr: &str) -> Option<&str> {
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    if stderr.contains("Traceback (most recent call last)") { lines.next_back() } else { lines.next() }
}

/// Returns the first argument that names a file in a temporary directory of the machine, outside `workspace`.
fn file_in_shared_tmp(argv: &[String], workspace: &Path) -> Option<String> {
    let is_hidden = |path: &Path| {
        SHARED_TEMP_DIRS.iter().any(|dir| path.starts_with(dir))
            && !path.starts_with(workspace)
            && path.exists()
    };
    argv.iter()
        .find(|argument| is_hidden(Path::new(argument)))
        .map(|argument| one_line(argument, QUOTE_CHARS))
}

impl Listing {
    fn add(&mut self, tool: ListedTool) {
        if self.tools.iter().any(|known| known.name == tool.name) {
            let name = one_line(&harmless(&tool.name), QUOTE_CHARS);
            let warning = format!("it lists the tool `{name}` twice; the first one counts");
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        } else {
            self.tools.push(tool);
        }
    }

    /// Returns the list with harmless texts and without secrets. Tools whose names or keys contain such are left out.
    #[must_use]
    pub fn screened(self, redactor: &Redactor) -> Self {
        let (mut tools, mut left_out) = (Vec::new(), Vec::new());
        for tool in self.tools {
            let name = one_line(&redactor.text(&harmless(&tool.name)), QUOTE_CHARS);
            match tool.screened(redactor) {
                Some(tool) => tools.push(tool),
                None => left_out.push(name),
            }
        }
        let warning = left_out.first().map(|first| {
            format!(
                "{} of its tools are left out, because their names or argument names contain secrets or invisible \
                 characters; the first is `{first}`",
                left_out.len()
            )
        });
        Self { tools, warnings: self.warnings.into_iter().chain(warning).collect() }
    }

    fn sorted(mut self) -> Self {
        self.tools.sort_by(|a, b| a.name.cmp(&b.name));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault C5
    #[test]
    fn the_cause_of_a_failure_is_the_first_line_or_the_last_of_a_traceback() {
        let traceback = "Traceback (most recent call last):\n  File \"s.py\", line 1\nKeyError: 'TOKEN'\n";
        assert_eq!(cause_in(traceback), Some("KeyError: 'TOKEN'"));
        assert_eq!(cause_in("\nno token\nusage: s\n"), Some("no token"));
        assert_eq!(cause_in(" \n"), None);
    }
}
