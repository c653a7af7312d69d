//! A session of a client: its workspace and settings, what the client has chosen, and its prompt.

use super::files::SessionFiles;
use super::prompt::{Prompt, PromptEnd, prompt_end};
use super::questions::{ask, ask_unsaved};
use super::servers::{client_servers, secrets};
use super::updates::{UpdateStream, send_update};
use crate::json_rpc::error_for;
use crate::json_rpc::message::{failed, invalid_params, invalid_request};
use crate::json_rpc::outbox::Outbox;
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandsUpdate, Error, McpServer, RequestId, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectOption, SessionMode, SessionModeState, SessionUpdate,
    StopReason,
};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::event::Record;
use agent_engine::policy::Mode;
use agent_llm::effort::Effort;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::client::{RunBounds, RunClient};
use agent_run::perform::run_for_client;
use agent_run::request::{RunRequest, Task};
use agent_run::session::session_store;
use agent_run::user_commands::UserCommands;
use std::cell::RefCell;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use strum::VariantArray;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Ids of the options.
const MODE: &str = "mode";
const AGENT: &str = "agent";
const EFFORT: &str = "effort";
/// Value of the effort that is configured.
const CONFIGURED: &str = "configured";

/// What the client has chosen for the next prompts.
#[derive(Debug, Clone)]
struct Choices {
    mode: Mode,
    /// `None`: that of the session, else the default one.
    agent: Option<String>,
    effort: Option<Effort>,
}

/// A session of a client.
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its settings, before the choices of the client.
    pub settings: Settings,
    /// Its files.
    pub files: Rc<SessionFiles>,
    /// The slash commands of the user.
    commands: UserCommands,
    /// Names of the client's MCP servers that are not used.
    ignored_servers: Vec<String>,
    app: App,
    request: RunRequest,
    choices: RefCell<Choices>,
    /// The request of the running prompt, and what interrupts it.
    prompt: RefCell<Option<(RequestId, CancellationToken)>>,
}

impl Session {
    /// Opens the session `id` in the directory `cwd`, with the request of this server and the MCP servers of the client.
    ///
    /// # Errors
    /// When the directory is not the one of `--workspace`, or the configuration is invalid.
    pub fn open(
        app: &App,
        request: &RunRequest,
        id: String,
        cwd: &Path,
        servers: &[McpServer],
    ) -> Result<Self, Error> {
        let app = app.with_client_secrets(secrets(servers));
        let mut request = request.clone();
        request.overrides.workspace = Some(workspace(request.overrides.workspace.as_deref(), cwd)?);
        let load = |request: &RunRequest| {
            app.load(&request.effective_overrides()).map_err(|error| error_for(&app, &error))
        };
        let mut loaded = load(&request)?;
        let configured = &loaded.settings.mcp.servers;
        let added = client_servers(servers, |name| configured.contains_key(name))?;
        let mut ignored_servers = Vec::new();
        if let Some(added) = added {
            request.overrides.mcp_servers = Some(added.section);
            ignored_servers = added.ignored;
            loaded = load(&request)?;
        }
        let settings = loaded.settings.clone();
        let files = SessionFiles::open(&app, &settings).map_err(|error| failed(&error))?;
        let choices = Choices { mode: settings.policy.mode, agent: None, effort: None };
        Ok(Self {
            id,
            files: Rc::new(files),
            commands: UserCommands::find(&app, &loaded),
            ignored_servers,
            settings,
            app,
            request,
            choices: RefCell::new(choices),
            prompt: RefCell::default(),
        })
    }

    /// Checks whether a prompt is running.
    pub fn is_busy(&self) -> bool {
        self.prompt.borrow().is_some()
    }

    /// Interrupts the prompt.
    pub fn cancel(&self) {
        if let Some((_, interrupt)) = &*self.prompt.borrow() {
            interrupt.cancel();
        }
    }

    /// Interrupts the prompt if it is the request `id`.
    pub fn cancel_request(&self, id: &RequestId) {
        if self.prompt.borrow().as_ref().is_some_and(|(running, _)| running == id) {
            self.cancel();
        }
    }

    /// Returns the modes, up to that of this server's own flags and configuration.
    pub fn modes(&self) -> SessionModeState {
        let modes = self.offered_modes().map(|mode| SessionMode::new(mode.name(), mode.name()));
        SessionModeState::new(self.mode().name(), modes.collect())
    }

    /// Returns the chosen mode.
    pub fn mode(&self) -> Mode {
        self.choices.borrow().mode
    }

    fn offered_modes(&self) -> impl Iterator<Item = Mode> {
        let bound = self.settings.policy.mode;
        Mode::ALL.into_iter().filter(move |mode| *mode <= bound)
    }

    /// Returns the names of the agents; those that only work for others are not offered.
    fn agents(&self) -> impl Iterator<Item = &str> {
        let chosen = &self.settings.agent.name;
        let agents = self.settings.agents.iter().map(|agent| agent.name.as_str());
        agents.filter(move |name| self.request.overrides.agent.is_none() || name == chosen)
    }

    fn efforts(&self) -> impl Iterator<Item = &'static str> {
        let levels: &[Effort] = if self.request.overrides.effort.is_none() { Effort::VARIANTS } else { &[] };
        std::iter::once(CONFIGURED).chain(levels.iter().map(|effort| effort.name()))
    }

    /// Returns the options that the client can set, with their values.
    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        let choices = self.choices.borrow();
        let select = |id: &'static str, name, value: &str, values: Vec<&str>, category| {
            let values = values.into_iter().map(|name| SessionConfigSelectOption::new(name.to_owned(), name));
            let values: Vec<SessionConfigSelectOption> = values.collect();
            let mut option = SessionConfigOption::select(id, name, value.to_owned(), values);
            option.category = category;
            option
        };
        let modes = self.offered_modes().map(Mode::name).collect();
        let agent = choices.agent.as_ref().unwrap_or(&self.settings.agent.name);
        let effort = choices.effort.map_or(CONFIGURED, Effort::name);
        vec![
            select(MODE, "Mode", choices.mode.name(), modes, Some(SessionConfigOptionCategory::Mode)),
            select(AGENT, "Agent", agent, self.agents().collect(), None),
            select(
                EFFORT,
                "Effort",
                effort,
                self.efforts().collect(),
                Some(SessionConfigOptionCategory::ThoughtLevel),
            ),
        ]
    }

    /// Sets an option for the next prompts.
    ///
    /// # Errors
    /// When there is no such option, or it does not offer the value.
    pub fn choose(&self, option: &str, value: &str) -> Result<(), Error> {
        let not_offered = || invalid_params(&format!("the option `{option}` does not offer this value"));
        let mut choices = self.choices.borrow_mut();
        match option {
            MODE => {
                choices.mode =
                    self.offered_modes().find(|mode| mode.name() == value).ok_or_else(not_offered)?;
            }
            AGENT => {
                choices.agent =
                    Some(self.agents().find(|name| *name == value).ok_or_else(not_offered)?.to_owned());
            }
            EFFORT => {
                self.efforts().find(|name| *name == value).ok_or_else(not_offered)?;
                choices.effort = Effort::VARIANTS.iter().copied().find(|effort| effort.name() == value);
            }
            _ => return Err(invalid_params("there is no such option")),
        }
        Ok(())
    }

    /// Takes over the agent of the session's last run, if it is offered.
    pub fn keep_agent(&self, name: &str) {
        if self.agents().any(|offered| offered == name) {
            self.choices.borrow_mut().agent = Some(name.to_owned());
        }
    }

    /// Replaces a slash command by its text.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn expand(&self, text: String) -> Result<String, Error> {
        let Some(command) = text.strip_prefix('/') else { return Ok(text) };
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match self.commands.message(name, arguments.trim()) {
            None => Ok(text),
            Some(message) => message.map_err(|error| failed(&self.app.redact(&error.to_string()))),
        }
    }

    /// Starts the prompt of the request `id`, which `interrupt` ends too.
    ///
    /// # Errors
    /// When one is running.
    pub fn begin(&self, id: RequestId, interrupt: &CancellationToken) -> Result<CancellationToken, Error> {
        let mut prompt = self.prompt.borrow_mut();
        if prompt.is_some() {
            return Err(invalid_request("a prompt of this session is running"));
        }
        let (_, interrupt) = prompt.insert((id, interrupt.child_token()));
        Ok(interrupt.clone())
    }

    /// Runs a prompt that [`begin`](Self::begin) has started: the first one creates the session on disk.
    ///
    /// # Errors
    /// When the run cannot start, or failed.
    pub async fn run(
        &self,
        outbox: &Rc<Outbox>,
        is_editor: bool,
        interrupt: CancellationToken,
        prompt: Prompt,
    ) -> Result<StopReason, Error> {
        let updates = Rc::new(self.updates(outbox));
        let (client, mut asked) = RunClient::new(interrupt.clone());
        let (unsaved, mut files) = mpsc::unbounded_channel();
        let listener = Rc::clone(&updates);
        let client = RunClient {
            listener: Rc::new(move |record: &Record| listener.live(record)),
            unsaved: is_editor.then_some(unsaved),
            takes_deltas: true,
            images: prompt.images,
            ..client
        };
        let (request, language) = (self.run_request(client, prompt.text), self.settings.language);
        let work = run_for_client(&self.app, &request);
        let permissions = async {
            while let Some(question) = asked.recv().await {
                ask(outbox, &self.id, &updates, language, question).await;
            }
        };
        let unsaved_files = async {
            while let Some(question) = files.recv().await {
                ask_unsaved(outbox, &self.id, &self.files, question).await;
            }
        };
        let answers = async {
            tokio::join!(permissions, unsaved_files);
            std::future::pending::<Infallible>().await
        };
        let done = tokio::select! {
            done = work => done,
            never = answers => match never {},
        };
        let result = match done {
            Ok(finished) => finished.outcome.result,
            Err(_) if interrupt.is_cancelled() => return Ok(StopReason::Cancelled),
            Err(error) => return Err(error_for(&self.app, &error)),
        };
        let PromptEnd { reason, message } = prompt_end(&result, interrupt.is_cancelled(), language)?;
        if let Some(message) = message {
            updates.message(&self.app.redact(&message));
        }
        Ok(reason)
    }

    /// Marks the prompt as ended.
    pub fn end(&self) {
        *self.prompt.borrow_mut() = None;
    }

    /// Returns the stream of updates to the client.
    pub fn updates(&self, outbox: &Rc<Outbox>) -> UpdateStream {
        let (id, files) = (self.id.clone(), Rc::clone(&self.files));
        UpdateStream::new(id, Rc::clone(outbox), files, self.settings.language, self.mode().name())
    }

    /// Sends the slash commands, and a message for each MCP server of the client that this session does not use.
    pub fn introduce(&self, outbox: &Rc<Outbox>) {
        let commands = self.commands.names().map(|name| AvailableCommand::new(name, format!("/{name}")));
        let commands = AvailableCommandsUpdate::new(commands.collect());
        send_update(outbox, &self.id, SessionUpdate::AvailableCommandsUpdate(commands));
        let updates = self.updates(outbox);
        for name in &self.ignored_servers {
            updates.message(&messages::client_server_ignored(name, self.settings.language));
        }
    }

    fn run_request(&self, client: RunClient, prompt: String) -> RunRequest {
        let choices = self.choices.borrow().clone();
        let own = &self.request.overrides;
        let (agent, effort) = (choices.agent.or_else(|| own.agent.clone()), choices.effort.or(own.effort));
        RunRequest {
            overrides: Overrides { agent, effort, ..own.clone() },
            bounds: RunBounds { mode: Some(choices.mode), ..self.request.bounds.clone() },
            client: Some(client),
            has_person: true,
            session_id: Some(self.id.clone()),
            ..self.request.with_task(self.task(prompt))
        }
    }

    fn task(&self, prompt: String) -> Task {
        let exists = session_store(&self.settings).journal_path(&self.id).is_ok();
        if exists { Task::resume(&self.id, prompt) } else { Task::new(prompt) }
    }
}

/// Returns the workspace of a session: the directory of the client, which must be that of `--workspace` if there is one.
pub fn workspace(own: Option<&Path>, cwd: &Path) -> Result<PathBuf, Error> {
    if !cwd.is_absolute() {
        return Err(invalid_params("`cwd` must be an absolute path"));
    }
    let wanted =
        cwd.canonicalize().map_err(|error| invalid_params(&format!("`cwd` cannot be opened: {error}")))?;
    match own {
        Some(own) if own.canonicalize().ok().as_ref() != Some(&wanted) => {
            Err(invalid_params(&format!("this server works in {} only", own.display())))
        }
        _ => Ok(wanted),
    }
}
