//! `agent acp`: this program as an agent of editors, over the Agent Client Protocol, version 1, on standard input and output
//! (<https://agentclientprotocol.com>). Each prompt is a run.
//! Fields that the schema of the protocol does not name are ignored, because it allows additional properties.

mod files;
mod history;
mod prompt;
mod questions;
mod servers;
mod session;
mod updates;

use crate::json_rpc::message::{OtherFields, invalid_params, invalid_request, parameters};
use crate::json_rpc::outbox::Outbox;
use crate::json_rpc::{self, Protocol, Reply};
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, CancelNotification, CancelRequestNotification, CloseSessionRequest,
    ConfigOptionUpdate, CurrentModeUpdate, Error, Implementation, InitializeRequest, InitializeResponse,
    ListSessionsRequest, LoadSessionRequest, McpCapabilities, McpServer, NewSessionRequest,
    PromptCapabilities, PromptRequest, RequestId, ResumeSessionRequest, SessionCapabilities,
    SessionCloseCapabilities, SessionConfigOptionValue, SessionListCapabilities, SessionResumeCapabilities,
    SessionUpdate, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use agent_config::settings::Settings;
use agent_llm::model_table;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::request::RunRequest;
use agent_run::session::use_state_with;
use futures_util::FutureExt;
use prompt::Prompt;
use serde_json::{Value, json};
use session::Session;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;
use updates::send_update;

/// Sessions that a client has open.
const MAX_SESSIONS: usize = 64;

/// Serves until the input ends or a signal arrives; then the runs are interrupted. Each run is `request` with a task.
///
/// # Errors
/// Fails when the signal handlers cannot be installed.
pub fn serve(app: &App, request: RunRequest) -> AppResult<()> {
    json_rpc::serve(app, |outbox, interrupt| Server {
        app,
        request,
        outbox,
        interrupt,
        is_editor: None,
        sessions: HashMap::new(),
    })
}

/// The server and the sessions that its client has open.
struct Server<'a> {
    app: &'a App,
    request: RunRequest,
    outbox: Rc<Outbox>,
    interrupt: CancellationToken,
    /// Whether the client returns texts of its files; absent before `initialize`.
    is_editor: Option<bool>,
    sessions: HashMap<String, Rc<Session>>,
}

impl<'a> Protocol<'a> for Server<'_> {
    const OTHER_FIELDS: OtherFields = OtherFields::Ignored;

    fn notified(&mut self, method: &str, params: Value) {
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

    fn requested(&mut self, id: &RequestId, method: &str, params: Value) -> Result<Reply<'a>, Error> {
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
}

impl Server<'_> {
    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.is_editor = Some(request.client_capabilities.fs.read_text_file);
        let mut prompts = PromptCapabilities::new();
        prompts.embedded_context = true;
        prompts.image = self
            .app
            .load(&self.request.effective_overrides())
            .is_ok_and(|loaded| accepts_images(&loaded.settings));
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

    fn new_session(&mut self, place: &Place) -> Result<Reply<'static>, Error> {
        let session = self.open(self.app.source.session_id(), place)?;
        let mut about = state(&session);
        about["sessionId"] = json!(session.id);
        Ok(self.opened(about, session))
    }

    /// Opens a session that is on disk; with `is_shown`, sends its earlier messages.
    fn reopen(&mut self, id: &str, place: &Place, is_shown: bool) -> Result<Reply<'static>, Error> {
        if self.sessions.get(id).is_some_and(|session| session.is_busy()) {
            return Err(invalid_request("a prompt of this session is running"));
        }
        let mut session = self.open(id.to_owned(), place)?;
        use_state_with(&mut session.settings, Some(id));
        history::reopen(&session, is_shown.then_some(&self.outbox))?;
        Ok(self.opened(state(&session), session))
    }

    fn open(&self, id: String, place: &Place) -> Result<Session, Error> {
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&id) {
            return Err(invalid_request(&format!("at most {MAX_SESSIONS} sessions are open; close one")));
        }
        Session::open(self.app, &self.request, id, &place.cwd, &place.servers)
    }

    /// Keeps a session that was opened; its client receives `about`, then its commands.
    fn opened(&mut self, about: Value, session: Session) -> Reply<'static> {
        let (session, outbox) = (Rc::new(session), Rc::clone(&self.outbox));
        self.sessions.insert(session.id.clone(), Rc::clone(&session));
        let introduce = async move { session.introduce(&outbox) };
        Reply::Begun(about, introduce.boxed_local())
    }

    fn session(&self, id: &str) -> Result<&Rc<Session>, Error> {
        self.sessions.get(id).ok_or_else(|| Error::session_not_found(id.to_owned()))
    }

    fn list(&self, request: ListSessionsRequest) -> Result<Reply<'static>, Error> {
        let mut flags = self.request.effective_overrides();
        if let Some(cwd) = request.cwd {
            flags.workspace = Some(session::workspace(flags.workspace.as_deref(), &cwd)?);
        }
        Ok(Reply::Result(json!(history::list(self.app, &flags, request.cursor.as_deref())?)))
    }

    fn close(&mut self, request: &CloseSessionRequest) -> Result<Reply<'static>, Error> {
        self.session(&request.session_id.0)?.cancel();
        self.sessions.remove(&*request.session_id.0);
        Ok(Reply::Result(json!({})))
    }

    fn prompt(&self, id: RequestId, request: &PromptRequest) -> Result<Reply<'static>, Error> {
        let session = Rc::clone(self.session(&request.session_id.0)?);
        let prompt = Prompt::parse(&request.prompt)?;
        let prompt = Prompt { text: session.expand(prompt.text)?, ..prompt };
        let interrupt = session.begin(id.clone(), &self.interrupt)?;
        let (outbox, is_editor) = (Rc::clone(&self.outbox), self.is_editor == Some(true));
        let work = async move {
            let done = session.run(&outbox, is_editor, interrupt, prompt).await;
            session.end();
            outbox.respond(&id, done.map(|reason| json!({ "stopReason": reason })));
        };
        Ok(Reply::Work(work.boxed_local()))
    }

    fn set_mode(&self, request: &SetSessionModeRequest) -> Result<Reply<'static>, Error> {
        let session = self.session(&request.session_id.0)?;
        session.choose("mode", &request.mode_id.0)?;
        let options = ConfigOptionUpdate::new(session.config_options());
        send_update(&self.outbox, &session.id, SessionUpdate::ConfigOptionUpdate(options));
        Ok(Reply::Result(json!({})))
    }

    fn set_option(&self, request: &SetSessionConfigOptionRequest) -> Result<Reply<'static>, Error> {
        let session = self.session(&request.session_id.0)?;
        let SessionConfigOptionValue::ValueId { value } = &request.value else {
            return Err(invalid_params("the value of an option is one of its texts"));
        };
        let before = session.mode();
        session.choose(&request.config_id.0, &value.0)?;
        if session.mode() != before {
            let mode = CurrentModeUpdate::new(session.mode().name());
            send_update(&self.outbox, &session.id, SessionUpdate::CurrentModeUpdate(mode));
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

/// Checks whether the configured model accepts images, as far as that is known before it is connected.
fn accepts_images(settings: &Settings) -> bool {
    let model = settings.llm.model.as_deref();
    settings.llm.images.unwrap_or_else(|| model.is_none_or(model_table::accepts_images))
}

/// Returns the modes and options of a session.
fn state(session: &Session) -> Value {
    json!({ "modes": session.modes(), "configOptions": session.config_options() })
}
