//! The MCP servers of a run: builds them from the settings, starts them, and offers their tools.

use crate::app::App;
use crate::assemble::sandbox_settings;
use crate::server_questions;
use agent_config::fact_cache::FactCache;
use agent_config::mcp::{Elicitation, McpServer, ToolListing, ValueSource};
use agent_config::settings::Settings;
use agent_core::secret::Secret;
use agent_http::own_origin;
use agent_mcp::client::Answers;
use agent_mcp::definition::{ListedTool, hash_of_all, name_for_model};
use agent_mcp::hosted::HostedServer;
use agent_mcp::http::HttpServer;
use agent_mcp::login_store::LoginStore;
use agent_mcp::npx::{unpinned_package, without_version};
use agent_mcp::pins::{PinChanges, Pins};
use agent_mcp::search::{CallTool, FindableTool, ToolSearch};
use agent_mcp::server::Server;
use agent_mcp::tool::McpTool;
use agent_mcp::{ServerSpec, StdioServer, Transport};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_process::sandbox::confinement::Confinement;
use agent_process::sandbox::settings::{SandboxSettings, WorkspaceAccess};
use agent_redactor::Redactor;
use agent_terminal::Style;
use agent_tools::toolbox::Toolbox;
use agent_tools::{Access, Tool};
use futures_util::future::join_all;
use globset::Glob;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// File in the state directory of the workspace with the accepted tools of each server.
const PINS_FILE: &str = "mcp-tools.json";

/// Bytes of definitions up to which `mcp.listing: auto` lists each tool in the requests.
const LISTED_BYTES: usize = 4 * 1024;

/// How the servers of a run are used.
#[derive(Debug, Clone)]
pub struct McpOptions {
    /// Whether no server is started: tools that were accepted before are offered, and their calls simulated.
    pub dry_run: bool,
    /// Cancels questions to the user; `None` if no user can be asked.
    pub ask_until: Option<CancellationToken>,
    /// Servers in the program that drives the run.
    pub hosted: Vec<HostedServer>,
}

/// The servers of a run, and notices about them.
#[derive(Default)]
pub struct McpServers {
    servers: Vec<UsedServer>,
    /// The tools that the run offers, for its subagents.
    pub tools: Vec<McpTool>,
    /// Notices for the user.
    pub notices: Vec<String>,
    /// Those about servers that could not be started.
    pub unusable: Vec<String>,
}

/// A server of a run.
struct UsedServer {
    server: Rc<Server>,
    settings: McpServer,
    /// The accepted tools; `None` if there are none yet.
    pins: Option<Pins>,
    /// Whether the user was notified that the server lists other tools.
    has_reported: Cell<bool>,
}

impl UsedServer {
    /// Starts to use a server in the program that drives the run. That program may change its tools, so they are not compared
    /// with those of earlier runs.
    fn hosted(server: HostedServer, answers: Answers, redactor: Arc<Redactor>) -> Self {
        let settings = McpServer { workspace: WorkspaceAccess::None, ..McpServer::default() };
        let spec = ServerSpec {
            name: server.name.clone(),
            transport: Transport::Hosted(server),
            fingerprint: String::new(),
            start_timeout: Duration::from_secs(settings.start_timeout_seconds),
            call_timeout: Duration::from_secs(settings.call_timeout_seconds),
            answers,
            protocol: None,
            redactor,
        };
        Self { server: Rc::new(Server::start(spec)), settings, pins: None, has_reported: Cell::default() }
    }

    /// Returns the notice about changed tools; `None` without changes, and when the user has it already.
    fn changed(&self, changes: &PinChanges) -> Option<String> {
        let is_new = !changes.is_empty() && !self.has_reported.replace(true);
        is_new.then(|| messages::mcp_tools_changed(&self.server.spec.name, &describe(changes)))
    }
}

/// Returns the storage of the accepted tools.
fn pin_store(settings: &Settings) -> FactCache<'_> {
    FactCache { state: &settings.state, workspace: &settings.workspace, name: PINS_FILE }
}

impl McpServers {
    /// Starts the configured servers. Waits only for those whose tools the user has not seen yet.
    pub async fn start(app: &App, settings: &Settings, launcher: &Launcher, options: McpOptions) -> Self {
        let mut this = Self::default();
        if settings.mcp.enabled().next().is_none() && options.hosted.is_empty() {
            return this;
        }
        let mut all_pins: BTreeMap<String, Pins> = match pin_store(settings).load() {
            Ok(stored) => stored.unwrap_or_default(),
            Err(error) => {
                this.notices.push(messages::mcp_pins_unreadable(&settings.state.join(PINS_FILE), &error));
                return this;
            }
        };
        let answers = answers(app, settings, options.ask_until);
        for (name, server) in settings.mcp.enabled() {
            let package = server.command.as_ref().and_then(|command| unpinned_package(command, &server.args));
            this.notices.extend(
                package
                    .map(|package| messages::mcp_unpinned_package(name, package, without_version(package))),
            );
            let spec = match spec(app, settings, launcher, name, server, answers.clone()) {
                Ok(spec) => spec,
                Err(why) => {
                    this.unusable.push(messages::mcp_server_left_out(name, &why));
                    continue;
                }
            };
            let pins = all_pins.get(name).filter(|pins| pins.fingerprint == spec.fingerprint).cloned();
            let spec = ServerSpec { protocol: pins.as_ref().map(|pins| pins.protocol.clone()), ..spec };
            let server_of_run = if options.dry_run { Server::not_started(spec) } else { Server::start(spec) };
            this.servers.push(UsedServer {
                server: Rc::new(server_of_run),
                settings: server.clone(),
                pins,
                has_reported: Cell::default(),
            });
        }
        for server in options.hosted {
            let server = UsedServer::hosted(server, answers.clone(), app.redactor(settings));
            this.servers.push(server);
        }
        if !options.dry_run {
            this.contact_new(settings, &mut all_pins).await;
        }
        this
    }

    /// Waits for the servers without accepted tools, and accepts those that they list.
    async fn contact_new(&mut self, settings: &Settings, all_pins: &mut BTreeMap<String, Pins>) {
        let new = self.servers.iter_mut().filter(|used| used.pins.is_none());
        let contacted = join_all(new.map(|used| async {
            let started = used.server.started().await;
            (used, started)
        }))
        .await;
        let mut has_changed = false;
        for (used, started) in contacted {
            let name = used.server.spec.name.clone();
            match started {
                Ok(started) => {
                    let warnings = started.listing.warnings.iter();
                    self.notices.extend(warnings.map(|why| messages::mcp_server_warning(&name, why)));
                    let tools = &started.listing.tools;
                    let hash = hash_of_all(tools);
                    let is_other = used.settings.pin.as_ref().is_some_and(|pin| *pin != hash);
                    if is_other {
                        self.notices.push(messages::mcp_pin_differs(&name, &hash));
                        continue;
                    }
                    let pins = Pins::accept(&used.server.spec, &started.connection.protocol, tools);
                    if let Transport::Hosted(_) = used.server.spec.transport {
                        used.pins = Some(pins);
                        continue;
                    }
                    self.notices.push(messages::mcp_first_contact(&name, tools.len(), &hash));
                    all_pins.insert(name, pins.clone());
                    used.pins = Some(pins);
                    has_changed = true;
                }
                Err(why) => self.unusable.push(messages::mcp_server_left_out(&name, &why)),
            }
        }
        if has_changed && let Err(error) = pin_store(settings).store(all_pins.clone()) {
            self.notices.push(messages::mcp_pins_not_stored(&error));
        }
    }

    /// Adds the tools of the servers to `toolbox`.
    pub fn add_to(&mut self, toolbox: Toolbox, settings: &Settings, redactor: &Redactor) -> Toolbox {
        self.tools = self.offered(redactor);
        with_tools(toolbox, self.tools.clone(), settings.mcp.listing)
    }

    /// Returns the tools of all servers. Of two with the same name the first counts.
    fn offered(&mut self, redactor: &Redactor) -> Vec<McpTool> {
        let (mut tools, mut names) = (Vec::new(), BTreeSet::new());
        for used in &self.servers {
            let name = &used.server.spec.name;
            let Some(pins) = &used.pins else { continue };
            if used.settings.pin.as_ref().is_some_and(|pin| *pin != pins.hash()) {
                self.notices.push(messages::mcp_pin_differs(name, &pins.hash()));
                continue;
            }
            if !pins.withheld.is_empty() {
                let withheld: Vec<&str> = pins.withheld.iter().map(String::as_str).collect();
                self.notices.push(messages::mcp_tools_withheld(name, &withheld.join(", ")));
            }
            let wanted = pins.offered().filter(|listed| is_wanted(&used.settings, listed));
            let (wanted, forbidden): (Vec<_>, Vec<_>) = wanted.partition(|listed| listed.takes_object());
            self.notices.extend(forbidden.iter().map(|listed| messages::mcp_no_object(name, &listed.name)));
            // A secret may be known now that was not when the tools were accepted.
            for listed in wanted.into_iter().filter_map(|listed| listed.clone().screened(redactor)) {
                if names.insert(name_for_model(name, &listed.name)) {
                    let access = access(&used.settings, &listed);
                    tools.push(McpTool::new(Rc::clone(&used.server), listed, access));
                } else {
                    self.notices.push(messages::mcp_name_taken(name, &listed.name));
                }
            }
        }
        tools
    }

    /// Waits until the servers have listed their tools, and passes a notice to `report` for each whose tools are not the accepted
    /// ones.
    pub async fn report_changes(&self, report: impl Fn(String)) {
        let checks = self.servers.iter().map(|used| async {
            if let (Some(pins), Ok(started)) = (&used.pins, used.server.started().await) {
                used.changed(&pins.changes(&started.listing.tools)).into_iter().for_each(&report);
            }
        });
        join_all(checks).await;
    }

    /// Compares what the servers list with what was accepted, ends them, and returns notices for the user.
    pub async fn finish(self, settings: &Settings) -> Vec<String> {
        let mut notices = Vec::new();
        let mut all_pins: Option<BTreeMap<String, Pins>> = None;
        for used in &self.servers {
            let (Some(pins), Some(state)) = (&used.pins, used.server.state()) else { continue };
            let name = &used.server.spec.name;
            let started = match state {
                Ok(started) => started,
                Err(why) => {
                    notices.push(messages::mcp_server_left_out(name, &why));
                    continue;
                }
            };
            let changes = pins.changes(&started.listing.tools);
            let withheld: BTreeSet<String> =
                changes.changed.iter().chain(&changes.removed).cloned().collect();
            if withheld != pins.withheld {
                let stored = all_pins
                    .get_or_insert_with(|| pin_store(settings).load().ok().flatten().unwrap_or_default());
                stored.insert(name.clone(), Pins { withheld, ..pins.clone() });
            }
            notices.extend(used.changed(&changes));
        }
        if let Some(Err(error)) = all_pins.map(|pins| pin_store(settings).store(pins)) {
            notices.push(messages::mcp_pins_not_stored(&error));
        }
        let changed = join_all(self.servers.iter().map(|used| used.server.stop())).await;
        for (used, changes) in self.servers.iter().zip(changed) {
            let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
            if !paths.is_empty() {
                notices.push(messages::mcp_changed_protected(&used.server.spec.name, &paths.join(", ")));
            }
        }
        notices
    }

    /// Returns the notices so far for the log of a run. One that `is_quiet`, such as each of those at the same time, omits notices, so
    /// servers that could not be started are reported here.
    pub fn take_notices(&mut self, app: &App, is_quiet: bool) -> Vec<String> {
        for text in self.unusable.iter().filter(|_| is_quiet) {
            app.notify(Style::Warning, &app.redact(text));
        }
        self.unusable.drain(..).chain(self.notices.drain(..)).collect()
    }

    /// Shows the notices so far.
    pub fn show_notices(&mut self, app: &App) {
        for text in self.take_notices(app, false) {
            app.notify(Style::Warning, &app.redact(&text));
        }
    }

    /// Ends the servers and shows the notices about them.
    pub async fn finish_and_notify(mut self, app: &App, settings: &Settings) {
        self.show_notices(app);
        for text in self.finish(settings).await {
            app.notify(Style::Warning, &app.redact(&text));
        }
    }
}

/// Adds `tools` of servers to `toolbox`: each, or the tools that search and call them.
pub fn with_tools(toolbox: Toolbox, tools: Vec<McpTool>, listing: ToolListing) -> Toolbox {
    if tools.is_empty() {
        return toolbox;
    }
    let bytes: usize = tools.iter().map(definition_bytes).sum();
    let lists_all = match listing {
        ToolListing::All => true,
        ToolListing::Search => false,
        ToolListing::Auto => bytes <= LISTED_BYTES,
    };
    let boxed = |tool: McpTool| Box::new(tool) as Box<dyn Tool>;
    if lists_all {
        return tools.into_iter().fold(toolbox, |toolbox, tool| toolbox.with(Some(boxed(tool))));
    }
    let findable = tools.iter().map(|tool| FindableTool {
        name: tool.name().to_owned(),
        description: tool.description().to_owned(),
        schema: tool.parameters(),
    });
    let search: Box<dyn Tool> = Box::new(ToolSearch::new(findable.collect()));
    let toolbox = toolbox.with(Some(search)).with(Some(Box::new(CallTool)));
    toolbox.with_unlisted(tools.into_iter().map(boxed).collect())
}

/// Accepts the tools that a started server lists, instead of those that were accepted before.
///
/// # Errors
/// Fails when they cannot be stored.
pub fn accept(
    settings: &Settings,
    server: &Server,
    protocol: &str,
    tools: &[ListedTool],
) -> std::io::Result<Pins> {
    let mut all: BTreeMap<String, Pins> = pin_store(settings).load()?.unwrap_or_default();
    let pins = Pins::accept(&server.spec, protocol, tools);
    all.insert(server.spec.name.clone(), pins.clone());
    pin_store(settings).store(all)?;
    Ok(pins)
}

/// Returns the accepted tools of the server, if its configuration is the same.
///
/// # Errors
/// Fails when the storage cannot be read.
pub fn accepted(settings: &Settings, spec: &ServerSpec) -> std::io::Result<Option<Pins>> {
    let all: BTreeMap<String, Pins> = pin_store(settings).load()?.unwrap_or_default();
    Ok(all.get(&spec.name).filter(|pins| pins.fingerprint == spec.fingerprint).cloned())
}

/// Describes changes in one line.
pub fn describe(changes: &PinChanges) -> String {
    let part =
        |what: &str, names: &[String]| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
    let parts =
        [part("changed", &changes.changed), part("new", &changes.added), part("removed", &changes.removed)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn definition_bytes(tool: &McpTool) -> usize {
    tool.name().len() + tool.description().len() + tool.parameters().to_string().len()
}

/// Checks whether the configuration offers a tool.
fn is_wanted(server: &McpServer, listed: &ListedTool) -> bool {
    let fits =
        |glob: &String| Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(&listed.name));
    server.tools.is_empty() || server.tools.iter().any(fits)
}

fn access(server: &McpServer, listed: &ListedTool) -> Access {
    let is_read_only = server.read_only.contains(&listed.name);
    match server.workspace {
        WorkspaceAccess::Write => Access::McpWrite { is_read_only },
        _ if is_read_only => Access::Read,
        _ => Access::Mcp,
    }
}

/// Builds the specification of a server.
///
/// # Errors
/// A description of what is missing.
pub fn spec(
    app: &App,
    settings: &Settings,
    launcher: &Launcher,
    name: &str,
    server: &McpServer,
    answers: Answers,
) -> Result<ServerSpec, String> {
    let (transport, identity) = match (&server.command, &server.url) {
        (Some(command), _) => stdio(app, settings, launcher, command, server)?,
        (None, Some(url)) => {
            let server = http_server(app, settings, url, server)?;
            let mut names: Vec<&str> = server.headers.keys().map(HeaderName::as_str).collect();
            names.sort_unstable();
            let identity = json!([server.url.as_str(), names]);
            (Transport::Http(server), identity)
        }
        (None, None) => return Err("it has neither `command` nor `url`".to_owned()),
    };
    Ok(ServerSpec {
        name: name.to_owned(),
        transport,
        fingerprint: blake3::hash(identity.to_string().as_bytes()).to_hex().to_string(),
        start_timeout: Duration::from_secs(server.start_timeout_seconds),
        call_timeout: Duration::from_secs(server.call_timeout_seconds),
        answers,
        protocol: None,
        redactor: app.redactor(settings),
    })
}

/// Returns how a local server is reached, and what identifies its configuration.
fn stdio(
    app: &App,
    settings: &Settings,
    launcher: &Launcher,
    command: &String,
    server: &McpServer,
) -> Result<(Transport, Value), String> {
    let env = resolve(app, &server.env)?;
    let cwd = match (server.workspace, &server.cwd) {
        (_, Some(cwd)) => settings.workspace.join(cwd),
        (WorkspaceAccess::None, None) => "/".into(),
        (_, None) => settings.workspace.clone(),
    };
    let confinement = (!settings.sandbox_off).then(|| {
        Confinement::new(SandboxSettings {
            access: server.workspace,
            network: server.network,
            has_proxy: false,
            ..sandbox_settings(app, settings)
        })
    });
    let argv: Vec<String> = std::iter::once(command).chain(&server.args).cloned().collect();
    let names: Vec<&String> = server.env.keys().collect();
    // The tools that were accepted in a workspace are accepted in its worktrees.
    let place = cwd.strip_prefix(&settings.workspace).unwrap_or(&cwd);
    let identity = json!([argv, place, names]);
    let launcher = launcher.for_server(confinement);
    Ok((Transport::Stdio(StdioServer { argv, cwd, env, launcher, endings: Arc::default() }), identity))
}

/// Returns how a remote server is reached.
///
/// # Errors
/// A description of what is missing or invalid.
pub fn http_server(
    app: &App,
    settings: &Settings,
    url: &str,
    server: &McpServer,
) -> Result<HttpServer, String> {
    let invalid_header = |name: &str| format!("the header {name} has an invalid name or value");
    let headers = resolve(app, &server.headers)?.into_iter().map(|(name, value)| {
        let header = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(value).ok());
        let (header, mut value) = header.ok_or_else(|| invalid_header(&name))?;
        value.set_sensitive(true);
        Ok((header, value))
    });
    let headers = headers.collect::<Result<_, String>>()?;
    let token = server.token_env.as_ref().map(|variable| user_variable(app, variable)).transpose()?;
    let url = own_origin::address(url).map_err(|error| format!("its address {error}"))?;
    let login = LoginStore::new(&settings.directories.state, &url);
    Ok(HttpServer { url, token: token.map(Secret::new), headers, login })
}

/// Returns the value of a variable of the user.
///
/// # Errors
/// When it is not set.
pub fn user_variable<'a>(app: &'a App, variable: &str) -> Result<&'a str, String> {
    app.environment.get(variable).ok_or_else(|| format!("the environment variable {variable} is not set"))
}

/// Returns the values of variables.
fn resolve(app: &App, sources: &BTreeMap<String, ValueSource>) -> Result<BTreeMap<String, String>, String> {
    let value = |(name, source): (&String, &ValueSource)| {
        let value = match (&source.from, &source.value) {
            (Some(variable), _) => user_variable(app, variable)?.to_owned(),
            (None, value) => value.clone().unwrap_or_default(),
        };
        Ok((name.clone(), value))
    };
    sources.iter().map(value).collect()
}

/// Returns how questions of servers are answered. The announced capability depends on the setting alone, because some servers list
/// other tools for it; with `ask` and no terminal, the questions go to a closed channel, so that they are declined.
pub fn answers(app: &App, settings: &Settings, ask_until: Option<CancellationToken>) -> Answers {
    match (settings.mcp.elicitation, ask_until) {
        (Elicitation::Defaults, _) => Answers::Defaults,
        (Elicitation::Ask, Some(until)) if app.terminal.can_ask() => {
            Answers::Ask(server_questions::answer_in_background(app, settings.language, until))
        }
        (Elicitation::Ask, _) => Answers::Ask(mpsc::unbounded_channel().0),
        (Elicitation::Decline, _) => Answers::Decline,
    }
}
