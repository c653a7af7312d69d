//! A server of a run: starts in the background, is called when its tools are checked, and is started once more after a crash.

use super::connection::{CallError, Connection, Listing};
use super::{ServerSpec, Transport};
use agent_process::protected::ProtectedChange;
use agent_process::server_process::ServerEnding;
use futures_util::future::join_all;
use rmcp::model::{CallToolResult, JsonObject};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Number of times that a server is started anew after it ended by itself.
const MAX_RESTARTS: u32 = 1;

/// A started server with its tools.
#[derive(Debug)]
pub struct StartedServer {
    /// The connection.
    pub connection: Connection,
    /// Its tools.
    pub listing: Listing,
}

/// The state of the start: `None` while it lasts, then the started server or why it failed.
type StartState = Option<Result<Arc<StartedServer>, String>>;

/// A server of a run.
#[derive(Debug)]
pub struct Server {
    /// What it is and how it is reached.
    pub spec: ServerSpec,
    state: watch::Sender<StartState>,
    starting: RefCell<Option<JoinHandle<()>>>,
    restarts: Cell<u32>,
}

impl Server {
    /// Starts the server in the background. Must be called inside a tokio runtime.
    pub fn start(spec: ServerSpec) -> Self {
        let server = Self::with_state(spec, None);
        server.begin();
        server
    }

    /// Creates a server that is not started; calls of its tools fail.
    pub fn not_started(spec: ServerSpec) -> Self {
        Self::with_state(spec, Some(Err("no server is started".to_owned())))
    }

    fn with_state(spec: ServerSpec, state: StartState) -> Self {
        let (state, _) = watch::channel(state);
        Self { spec, state, starting: RefCell::default(), restarts: Cell::default() }
    }

    /// Returns the started server, or why it failed; `None` while it starts.
    pub fn state(&self) -> Option<Result<Arc<StartedServer>, String>> {
        self.state.borrow().clone()
    }

    fn begin(&self) {
        self.state.send_replace(None);
        let (spec, state) = (self.spec.clone(), self.state.clone());
        let task = tokio::spawn(async move {
            let started = tokio::time::timeout(spec.start_timeout, open(&spec)).await;
            let started = started.unwrap_or_else(|_| {
                Err(format!("it did not list its tools within {} s", spec.start_timeout.as_secs()))
            });
            state.send_replace(Some(started.map(Arc::new)));
        });
        self.starting.replace(Some(task));
    }

    /// Waits until the server has listed its tools or failed.
    ///
    /// # Errors
    /// Why it failed.
    pub async fn started(&self) -> Result<Arc<StartedServer>, String> {
        let mut state = self.state.subscribe();
        match state.wait_for(Option::is_some).await {
            Ok(state) => state.clone().unwrap_or_else(|| Err(String::new())),
            Err(_) => Err("its start was abandoned".to_owned()),
        }
    }

    /// Calls the tool `name`, whose definition must have the hash `accepted`.
    ///
    /// # Errors
    /// A description of the failure for the model.
    pub async fn call(
        &self,
        name: &str,
        accepted: &str,
        arguments: JsonObject,
    ) -> Result<CallToolResult, String> {
        let server = &self.spec.name;
        let unusable = |why: String| format!("The MCP server `{server}` is not usable: {why}");
        let started = self.started().await.map_err(unusable)?;
        match started.listing.tools.iter().find(|tool| tool.name == name) {
            None => return Err(format!("The MCP server `{server}` no longer has this tool.")),
            Some(tool) if tool.hash() != accepted => {
                return Err(format!(
                    "The definition of this tool has changed since the user accepted it, so it is withheld. The user can \
                     check and accept it with `agent mcp pin {server}`. Continue without it."
                ));
            }
            Some(_) => {}
        }
        let limit = self.spec.call_timeout;
        match tokio::time::timeout(limit, started.connection.call(name, arguments)).await {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(CallError::Failed(why))) => Err(self.failed(&started, &why)),
            Ok(Err(CallError::Unreadable(why))) => Err(format!(
                "The MCP server `{server}` answered, but its answer cannot be read: {why}. The call may have had its effect: \
                 check that before you repeat it."
            )),
            Err(_) => Err(timed_out(server, limit)),
        }
    }

    /// Removes the tokens for this server from what it says.
    pub fn redact(&self, text: String) -> String {
        match &self.spec.transport {
            Transport::Stdio(_) | Transport::Hosted(_) => text,
            Transport::Http(server) => server.redact(&text),
        }
    }

    /// Describes a failed call, and starts the server anew if it has ended.
    fn failed(&self, started: &Arc<StartedServer>, why: &str) -> String {
        let server = &self.spec.name;
        if !started.connection.is_closed() {
            return format!("The call to the MCP server `{server}` failed: {why}");
        }
        let is_current = matches!(&*self.state.borrow(), Some(Ok(current)) if Arc::ptr_eq(current, started));
        if is_current && self.restarts.get() < MAX_RESTARTS {
            self.restarts.set(self.restarts.get() + 1);
            self.begin();
        } else if is_current {
            self.state.send_replace(Some(Err(format!("it ended twice. {why}"))));
        } else {
            return format!("The MCP server `{server}` ended during the call: {why}");
        }
        let next = match &*self.state.borrow() {
            None => "It is being started again.",
            Some(_) => "It is not started again.",
        };
        format!("The MCP server `{server}` ended during the call: {why}\n{next}")
    }

    /// Ends the server and waits until its processes are gone. Returns the protected files that it changed.
    pub async fn stop(&self) -> Vec<ProtectedChange> {
        if let Some(task) = self.starting.take() {
            task.abort();
        }
        let started = self.state.send_replace(Some(Err("it was stopped".to_owned())));
        if let Some(Ok(started)) = started {
            started.connection.close().await;
        }
        let Transport::Stdio(program) = &self.spec.transport else { return Vec::new() };
        let endings = std::mem::take(&mut *program.endings.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = join_all(endings.into_iter().map(ServerEnding::end)).await;
        ended.into_iter().flat_map(|end| end.protected_changes).collect()
    }
}

fn timed_out(server: &str, limit: Duration) -> String {
    let seconds = limit.as_secs();
    format!("The MCP server `{server}` did not answer within {seconds} s; the call was cancelled.")
}

async fn open(spec: &ServerSpec) -> Result<StartedServer, String> {
    let connection = Connection::open(spec).await?;
    let listing = connection.list().await?.screened(&spec.redactor);
    Ok(StartedServer { connection, listing })
}
