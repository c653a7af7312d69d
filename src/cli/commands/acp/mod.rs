//! `agent acp`: this program as an agent of editors, over the Agent Client Protocol, version 1, on standard input and output
//! (<https://agentclientprotocol.com>). Each prompt is a run.

mod files;
mod history;
mod message;
mod outbox;
mod prompt;
mod questions;
mod servers;
mod session;
mod updates;

use crate::cli::commands::client_run::check_options;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::compose::app::App;
use crate::cli::compose::client_input::{Input, end_runs};
use crate::cli::compose::client_lines::{Line, LineReader, MAX_LINE_BYTES};
use crate::cli::error::CliResult;
use crate::runtime::interrupt::SignalHandlers;
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AvailableCommandsUpdate, CancelNotification, CancelRequestNotification,
    CloseSessionRequest, ConfigOptionUpdate, CurrentModeUpdate, Error, Implementation, InitializeRequest,
    InitializeResponse, ListSessionsRequest, LoadSessionRequest, McpCapabilities, McpServer,
    NewSessionRequest, PromptCapabilities, PromptRequest, RequestId, ResumeSessionRequest,
    SessionCapabilities, SessionCloseCapabilities, SessionConfigOptionValue, SessionListCapabilities,
    SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use message::{Malformed, Message, invalid_params, invalid_request, parameters};
use outbox::Outbox;
use serde_json::{Value, json};
use session::Session;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Sessions that a client has open.
const MAX_SESSIONS: usize = 64;
/// Time to write what was sent last.
const FLUSH_TIME: Duration = Duration::from_millis(50);

/// Serves until the input ends or a signal arrives; then the runs are interrupted.
///
/// # Errors
/// Fails for options that cannot be honoured, and when the signal handlers cannot be installed.
pub fn serve(app: &App, options: RunOptions) -> CliResult<()> {
    check_options(&options)?;
    app.block_on(async {
        let interrupt = app.interrupt()?.arm(SignalHandlers::silent());
        let input = Input { stdin: tokio::io::stdin(), ended: interrupt.clone() };
        let mut lines = LineReader::new(input, MAX_LINE_BYTES);
        let (outbox, writer) = Outbox::start(interrupt.clone());
        let mut server = Server {
            app,
            options,
            outbox,
            interrupt: interrupt.clone(),
            is_editor: None,
            sessions: HashMap::new(),
        };
        let mut running = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = interrupt.cancelled() => break,
                Some(()) = running.next(), if !running.is_empty() => {}
                line = lines.next() => match line {
                    Some(Line::Complete(line)) => running.extend(server.receive(&line)),
                    Some(Line::TooLong) => server.refuse_line(),
                    None => break,
                },
            }
        }
        drop(server);
        end_runs(running, &interrupt).await;
        let _written = tokio::time::timeout(FLUSH_TIME, writer).await;
        Ok(())
    })
}

/// The server and the sessions that its client has open.
struct Server<'a> {
    app: &'a App,
    options: RunOptions,
    outbox: Rc<Outbox>,
    interrupt: CancellationToken,
    /// Whether the client returns texts of its files; absent before `initialize`.
    is_editor: Option<bool>,
    sessions: HashMap<String, Rc<Session>>,
}

/// What a request leads to.
enum Reply {
    /// The result.
    Result(Value),
    /// The result, and updates after it.
    Opened(Value, Rc<Session>),
    /// Work that responds itself.
    Work(LocalBoxFuture<'static, ()>),
}

impl Server<'_> {
    fn refuse_line(&self) {
        let error = invalid_request(&format!("a line has at most {MAX_LINE_BYTES} bytes"));
        self.outbox.respond(&RequestId::Null, Err(error));
    }

    /// Handles a line; returns the work that it starts.
    fn receive(&mut self, line: &[u8]) -> Option<LocalBoxFuture<'static, ()>> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        match Message::parse(line) {
            Err(malformed) => {
                let Malformed { id, error } = *malformed;
                self.outbox.respond(&id, Err(error));
            }
            Ok(Message::Response { id, result }) => self.outbox.resolve(&id, result),
            Ok(Message::Notification { method, params }) => self.notified(&method, params),
            Ok(Message::Request { id, method, params }) => match self.requested(&id, &method, params) {
                Ok(Reply::Result(result)) => self.outbox.respond(&id, Ok(result)),
                Ok(Reply::Opened(result, session)) => {
                    self.outbox.respond(&id, Ok(result));
                    let commands = AvailableCommandsUpdate::new(session.available_commands());
                    self.outbox.update(&session.id, SessionUpdate::AvailableCommandsUpdate(commands));
                    session.introduce(&self.outbox);
                }
                Ok(Reply::Work(work)) => return Some(work),
                Err(error) => self.outbox.respond(&id, Err(error)),
            },
        }
        None
    }

    /// Handles a notification; one that is unknown has no effect.
    fn notified(&self, method: &str, params: Value) {
        if method == "session/cancel" {
            if let Ok(CancelNotification { session_id, .. }) = parameters(params)
                && let Some(session) = self.sessions.get(&*session_id.0)
            {
                session.cancel();
            }
        } else if method == "$/cancel_request"
            && let Ok(CancelRequestNotification { request_id, .. }) = parameters(params)
        {
            self.sessions.values().for_each(|session| session.cancel_request(&request_id));
        }
    }

    fn requested(&mut self, id: &RequestId, method: &str, params: Value) -> Result<Reply, Error> {
        if method != "initialize" && self.is_editor.is_none() {
            return Err(invalid_request("the first request is `initialize`"));
        }
        match method {
            "initialize" => Ok(Reply::Result(json!(self.initialize(&parameters(params)?)))),
            "session/new" => {
                let NewSessionRequest { cwd, mcp_servers, additional_directories, .. } = parameters(params)?;
                self.new_session(&Place::new(cwd, mcp_servers, &additional_directories)?)
            }
            "session/load" => {
                let LoadSessionRequest { session_id, cwd, mcp_servers, additional_directories, .. } =
                    parameters(params)?;
                self.reopen(&session_id.0, &Place::new(cwd, mcp_servers, &additional_directories)?, true)
            }
            "session/resume" => {
                let ResumeSessionRequest { session_id, cwd, mcp_servers, additional_directories, .. } =
                    parameters(params)?;
                self.reopen(&session_id.0, &Place::new(cwd, mcp_servers, &additional_directories)?, false)
            }
            "session/list" => self.list(parameters(params)?),
            "session/close" => self.close(&parameters(params)?),
            "session/prompt" => self.prompt(id.clone(), &parameters(params)?),
            "session/set_mode" => self.set_mode(&parameters(params)?),
            "session/set_config_option" => self.set_option(&parameters(params)?),
            _ => Err(Error::method_not_found()),
        }
    }

    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.is_editor = Some(request.client_capabilities.fs.read_text_file);
        let mut prompts = PromptCapabilities::new();
        prompts.embedded_context = true;
        let mut servers = McpCapabilities::new();
        servers.http = true;
        let mut sessions = SessionCapabilities::new();
        sessions.list = Some(SessionListCapabilities::new());
        sessions.resume = Some(SessionResumeCapabilities::new());
        sessions.close = Some(SessionCloseCapabilities::new());
        let mut capabilities = AgentCapabilities::new();
        capabilities.load_session = true;
        capabilities.prompt_capabilities = prompts;
        capabilities.mcp_capabilities = servers;
        capabilities.session_capabilities = sessions;
        let mut response = InitializeResponse::new(ProtocolVersion::V1);
        response.agent_capabilities = capabilities;
        response.agent_info = Some(Implementation::new("agent", env!("CARGO_PKG_VERSION")));
        response
    }

    fn new_session(&mut self, place: &Place) -> Result<Reply, Error> {
        let session = self.open(self.app.source.session_id(), place)?;
        let mut about = state(&session);
        about["sessionId"] = json!(session.id);
        Ok(Reply::Opened(about, self.insert(session)))
    }

    /// Opens a session that is on disk; with `is_shown`, sends its earlier messages.
    fn reopen(&mut self, id: &str, place: &Place, is_shown: bool) -> Result<Reply, Error> {
        if self.sessions.get(id).is_some_and(|session| session.is_busy()) {
            return Err(invalid_request("a prompt of this session is running"));
        }
        let session = self.open(id.to_owned(), place)?;
        history::reopen(&session, is_shown.then_some(&self.outbox))?;
        Ok(Reply::Opened(state(&session), self.insert(session)))
    }

    fn open(&self, id: String, place: &Place) -> Result<Session, Error> {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&id) {
            return Err(invalid_request(&format!("at most {MAX_SESSIONS} sessions are open; close one")));
        }
        Session::open(self.app, &self.options, id, &place.cwd, &place.servers)
    }

    fn insert(&mut self, session: Session) -> Rc<Session> {
        let session = Rc::new(session);
        self.sessions.insert(session.id.clone(), Rc::clone(&session));
        session
    }

    fn session(&self, id: &str) -> Result<&Rc<Session>, Error> {
        self.sessions.get(id).ok_or_else(|| Error::session_not_found(id.to_owned()))
    }

    fn list(&self, request: ListSessionsRequest) -> Result<Reply, Error> {
        let mut flags = self.options.flags();
        if let Some(cwd) = request.cwd {
            flags.workspace = Some(session::workspace(flags.workspace.as_deref(), &cwd)?);
        }
        Ok(Reply::Result(json!(history::list(self.app, &flags, request.cursor.as_deref())?)))
    }

    fn close(&mut self, request: &CloseSessionRequest) -> Result<Reply, Error> {
        self.session(&request.session_id.0)?.cancel();
        self.sessions.remove(&*request.session_id.0);
        Ok(Reply::Result(json!({})))
    }

    fn prompt(&self, id: RequestId, request: &PromptRequest) -> Result<Reply, Error> {
        let session = Rc::clone(self.session(&request.session_id.0)?);
        let text = session.expand(prompt::prompt_text(&request.prompt)?)?;
        let interrupt = session.begin(id.clone(), &self.interrupt)?;
        let (outbox, is_editor) = (Rc::clone(&self.outbox), self.is_editor == Some(true));
        let work = async move {
            let done = session.run(&outbox, is_editor, interrupt, text).await;
            session.end();
            outbox.respond(&id, done.map(|reason| json!({ "stopReason": reason })));
        };
        Ok(Reply::Work(work.boxed_local()))
    }

    fn set_mode(&self, request: &SetSessionModeRequest) -> Result<Reply, Error> {
        let session = self.session(&request.session_id.0)?;
        session.choose("mode", &request.mode_id.0)?;
        let options = ConfigOptionUpdate::new(session.config_options());
        self.outbox.update(&session.id, SessionUpdate::ConfigOptionUpdate(options));
        Ok(Reply::Result(json!({})))
    }

    fn set_option(&self, request: &SetSessionConfigOptionRequest) -> Result<Reply, Error> {
        let session = self.session(&request.session_id.0)?;
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(invalid_params("the value of an option is one of its texts"));
        };
        let before = session.mode();
        session.choose(&request.config_id.0, &value.0)?;
        if session.mode() != before {
            let mode = CurrentModeUpdate::new(session.mode().name());
            self.outbox.update(&session.id, SessionUpdate::CurrentModeUpdate(mode));
        }
        Ok(Reply::Result(json!({ "configOptions": session.config_options() })))
    }
}

/// Where a session works: the directory and the MCP servers that the client names.
struct Place {
    cwd: PathBuf,
    servers: Vec<McpServer>,
}

impl Place {
    fn new(cwd: PathBuf, servers: Vec<McpServer>, more: &[PathBuf]) -> Result<Self, Error> {
        if !more.is_empty() {
            return Err(invalid_params("a session has one directory"));
        }
        Ok(Self { cwd, servers })
    }
}

/// Returns the modes and options of a session.
fn state(session: &Session) -> Value {
    json!({ "modes": session.modes(), "configOptions": session.config_options() })
}
