//! First step of `agent run` and `agent resume`: prepares settings, models, tools and limits, and locks the session to resume.

use crate::app::App;
use crate::assemble;
use crate::change_review::ReviewSetup;
use crate::costs;
use crate::directories;
use crate::error::{CliError, CliResult};
use crate::input_history;
use crate::input_images::InputImages;
use crate::mcp::{McpOptions, McpServers};
use crate::memory;
use crate::model_chain::ModelChain;
use crate::output_schema;
use crate::request::{AnswerSchema, RunRequest, Task};
use crate::session::{LockedSession, use_state_with};
use crate::skills::{self, OfferedSkills};
use crate::subagents;
use crate::toolbox::{permitted, toolbox_for};
use agent_config::load::LoadedConfig;
use agent_config::settings::Settings;
use agent_core::evaluation::EvaluationMode;
use agent_core::failure::FailureKind;
use agent_core::limits::{FallbackChain, Limits, SpendingCaps};
use agent_core::message::HistoryMessage;
use agent_core::review::REVIEW_SCHEMA;
use agent_core::skill::Skill;
use agent_journal::played_turns::PlayedTurns;
use agent_llm::LlmClient;
use agent_mcp::tool::McpTool;
use agent_process::launch::Launcher;
use agent_redactor::Redactor;
use agent_report::OutputFormat;
use agent_session::context_window::result_tokens;
use agent_session::output_schema::OutputSchema;
use agent_session::subagent::SubagentHost;
use agent_tools::hub::HubAccess;
use agent_tools::toolbox::Toolbox;
use agent_tools::use_skill::UseSkill;
use agent_tools::{Access, Tool};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The prepared parts of a run, before its session is restored or created.
pub struct RunSetup {
    /// When the run started.
    pub started_at: Duration,
    /// The host of subagents, which is installed after the agent is built.
    pub host: Rc<OnceCell<SubagentHost>>,
    /// The settings in force.
    pub settings: Settings,
    /// Notices for the user.
    pub notices: Vec<String>,
    /// The locked session to resume.
    pub resumed_session: Option<LockedSession>,
    /// Removes secrets from everything that is reported.
    pub redactor: Arc<Redactor>,
    /// The schema of the answer.
    pub schema: Option<Rc<OutputSchema>>,
    /// The messages of `--history`.
    pub input_history: Vec<HistoryMessage>,
    /// The images of the first message.
    pub images: InputImages,
    /// Starts child processes.
    pub launcher: Rc<Launcher>,
    /// Cancelled by a signal.
    pub interrupt: CancellationToken,
    /// The models of the run.
    pub clients: FallbackChain<Rc<dyn LlmClient>>,
    /// The review of the run's changes.
    pub review: ReviewSetup,
    /// The smallest context window of the models, in tokens.
    pub window: Option<u64>,
    /// The MCP servers, whose tools are among those of `toolbox`.
    pub mcp: McpServers,
    /// The tools.
    pub toolbox: Toolbox,
    /// The skills that the run offers.
    pub skills: Vec<Skill>,
    /// Notices about skills that no run before has offered.
    pub new_skills: Vec<String>,
    /// Whether the model can load a skill itself.
    pub has_skill_tool: bool,
    /// The limits of the run.
    pub limits: Limits,
}

impl RunSetup {
    /// Loads the settings, locks the session to resume, connects the models and builds the tools.
    ///
    /// # Errors
    /// Fails for a configuration, a session or a model that is unusable.
    pub async fn prepare(app: &App, request: &RunRequest) -> CliResult<Self> {
        let (started_at, host) = (app.source.next_event_time(), Rc::default());
        let (LoadedConfig { mut settings, mut notices, .. }, resumed_session) = load(app, request)?;
        // From here on, errors are reported without the secrets of these settings.
        let redactor = app.redactor(&settings);
        let schema = output_schema(request)?;
        let images = input_images(request)?;
        let input_history = input_history(&request.task)?;
        directories::prepare(&settings)?;
        let launcher = assemble::launcher(app, &settings)?;
        let interrupt = interrupt(app, request, &launcher, &settings)?;
        clear_answer_cache(request, &settings)?;
        let (models, caps, review) = connect_models(app, &settings, &host, resumed_session.as_ref()).await?;
        notices.extend(images.check_models(&models.clients)?);
        notices.extend(costs::ineffective_warning(&caps, &models.terms.first));
        let window = models.smallest_window();
        let context = &mut settings.context;
        context.max_tool_result_tokens = result_tokens(context.max_tool_result_tokens, window);
        let toolbox = toolbox_for(&settings, &models.terms.first.model)?;
        let toolbox = toolbox.with(subagents::dispatch_tool(&settings, &host));
        let last_run = resumed_session.as_ref().and_then(|it| it.about.last_run.as_ref());
        let OfferedSkills { skills, has_tool, warnings, new_skills } =
            skills::offered(&settings, &toolbox, last_run);
        notices.extend(warnings);
        let tool = has_tool.then(|| Box::new(UseSkill { skills: skills.clone() }) as Box<dyn Tool>);
        let own = memory::tools(&settings, &app.source).into_iter().chain(hub_tools(request));
        let toolbox = own.fold(toolbox.with(tool), |toolbox, tool| toolbox.with(Some(tool)));
        let mcp_options = McpOptions {
            dry_run: request.dry_run,
            ask_until: (request.format == OutputFormat::Text).then(|| interrupt.clone()),
            hosted: request.client.as_ref().map(|client| client.servers.clone()).unwrap_or_default(),
        };
        let mut mcp = McpServers::start(app, &settings, &launcher, mcp_options).await;
        let toolbox = permitted(mcp.add_to(toolbox, &settings, &redactor), &settings);
        refuse_without_grants(request, &mcp.tools, &mut settings);
        notices.extend(mcp.take_notices(app, request.quiet));
        let limits = assemble::limits(&settings, caps, models.terms, toolbox.definitions());
        Ok(Self {
            started_at,
            host,
            settings,
            notices,
            resumed_session,
            redactor,
            schema,
            input_history,
            images,
            launcher,
            interrupt,
            clients: models.clients,
            review,
            window,
            mcp,
            toolbox,
            skills,
            new_skills,
            has_skill_tool: has_tool,
            limits,
        })
    }
}

/// Returns the tools for the Hub on which the agent may act.
fn hub_tools(request: &RunRequest) -> impl Iterator<Item = Box<dyn Tool>> {
    request.hub.iter().flat_map(HubAccess::tools)
}

/// Refuses the calls of tools of MCP servers for which an agent of a Hub has no grant.
fn refuse_without_grants(request: &RunRequest, tools: &[McpTool], settings: &mut Settings) {
    let Some(grants) = &request.grants else { return };
    let needed = tools.iter().map(|tool| (tool.name().to_owned(), needed_grant(settings, tool)));
    settings.policy.missing_grants = needed.filter(|(_, grant)| !grants.has(grant)).collect();
}

/// Returns the grant that a tool of an MCP server needs. The configuration names it as the server or as the model does.
fn needed_grant(settings: &Settings, tool: &McpTool) -> String {
    let (server, own_name) = tool.origin();
    let named = settings.mcp.servers.get(server).map(|about| &about.grants);
    let named = named.and_then(|grants| grants.get(own_name).or_else(|| grants.get(tool.name())));
    let is_read = matches!(tool.access(), Access::Read | Access::McpWrite { is_read_only: true });
    named.cloned().unwrap_or_else(|| format!("{server}:{}", if is_read { "read" } else { "write" }))
}

/// Returns what interrupts the run: the program that drives it, or a signal.
fn interrupt(
    app: &App,
    request: &RunRequest,
    launcher: &Launcher,
    settings: &Settings,
) -> CliResult<CancellationToken> {
    match &request.client {
        Some(client) => Ok(client.interrupt.clone()),
        None => assemble::arm_interrupt(app, Some(launcher), settings.language),
    }
}

/// Connects the models of the run and that of its reviewer, which `host` will run, and returns them with the spending caps.
async fn connect_models(
    app: &App,
    settings: &Settings,
    host: &Rc<OnceCell<SubagentHost>>,
    resumed_session: Option<&LockedSession>,
) -> CliResult<(ModelChain, SpendingCaps, ReviewSetup)> {
    let played = resumed_session.map_or_else(PlayedTurns::default, |it| it.about.played_turns.clone());
    let played = &played;
    let (caps, prices) = (costs::caps(settings)?, costs::user_prices(&settings.costs)?);
    let models = ModelChain::connect(app, settings, &caps, &prices, played).await?;
    let review = ReviewSetup::connect(app, settings, (&caps, &prices), host, played).await?;
    Ok((models, caps, review))
}

/// Empties the answer cache if `--cache-clear` is set.
fn clear_answer_cache(request: &RunRequest, settings: &Settings) -> CliResult<()> {
    if !request.clear_cache {
        return Ok(());
    }
    assemble::open_answer_cache(settings)?.clear().map_err(|error| {
        CliError::new(FailureKind::Config, format!("--cache-clear: cannot remove a stored answer: {error}"))
    })
}

/// Loads the settings and the session to resume, whose agent and model become the defaults.
fn load(app: &App, request: &RunRequest) -> CliResult<(LoadedConfig, Option<LockedSession>)> {
    let mut loaded = app.load(&request.flags())?;
    let mut resumed_session = None;
    if let Task::Resume { id, .. } = &request.task {
        use_state_with(&mut loaded.settings, id.as_deref());
        let session = LockedSession::open(&loaded.settings, id.as_deref())?;
        let state = loaded.settings.state.clone();
        loaded = app.load(&session.with_session_defaults(request.flags(), &loaded))?;
        loaded.settings.state = state;
        resumed_session = Some(session);
    }
    request.bounds.apply(&mut loaded.settings);
    loaded.settings.guardrails.set_gates(&request.checks, request.dry_run);
    if request.dry_run {
        loaded.settings.evaluation.mode = EvaluationMode::Off;
    }
    // Both change nothing.
    loaded.settings.auto_review.enabled &= !request.dry_run && !request.is_review();
    Ok((loaded, resumed_session))
}

/// Reads the messages of `--history` for a new session.
fn input_history(task: &Task) -> CliResult<Vec<HistoryMessage>> {
    match task {
        Task::New { history: Some(file), .. } => input_history::read(file),
        Task::New { history: None, .. } | Task::Resume { .. } => Ok(Vec::new()),
    }
}

/// Reads the images of the first message.
fn input_images(request: &RunRequest) -> CliResult<InputImages> {
    if matches!(request.task, Task::Resume { prompt: None, .. }) && !request.images.is_empty() {
        return Err(CliError::new(
            FailureKind::Usage,
            "--image needs a prompt, whose message contains the image",
        ));
    }
    match &request.client {
        Some(client) if request.images.is_empty() => Ok(client.images.clone()),
        _ => InputImages::read(&request.images),
    }
}

/// Returns the schema of the answer: of a review, of a client, or of `--output-schema`.
fn output_schema(request: &RunRequest) -> CliResult<Option<Rc<OutputSchema>>> {
    match &request.schema {
        Some(AnswerSchema::Review) => output_schema::built_in(REVIEW_SCHEMA).map(Some),
        Some(AnswerSchema::Text(text)) => output_schema::given(text).map(Some),
        Some(AnswerSchema::File(file)) => output_schema::read_output_schema(file).map(Some),
        None => Ok(None),
    }
}
