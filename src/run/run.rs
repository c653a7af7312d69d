//! One run: prepared from a request, performed, and ended with an outcome.

use crate::app::App;
use crate::approver::InteractionOptions;
use crate::ask_user;
use crate::assemble::{self, EngineParts};
use crate::change_review::ReviewSetup;
use crate::client::ClientSink;
use crate::code_health::MeasuredBefore;
use crate::costs;
use crate::directories;
use crate::error::{AppError, AppResult};
use crate::exit_code::exit_code;
use crate::file_diff;
use crate::input_history;
use crate::input_images::InputImages;
use crate::interrupted_calls::InterruptedCalls;
use crate::mcp::{McpOptions, McpServers};
use crate::memory::{self, store_corrections};
use crate::model_chain::ModelChain;
use crate::notices;
use crate::output_schema;
use crate::request::{AnswerSchema, RunRequest, Task};
use crate::session::{LockedSession, session_store, use_state_with, verify_approvals};
use crate::skills::{self, OfferedSkills};
use crate::startup;
use crate::subagents;
use crate::system_message::{emit_system_message, outdated_instructions};
use crate::toolbox::{self, permitted, toolbox_for};
use crate::undo_store::UndoStore;
use agent_config::load::LoadedConfig;
use agent_config::settings::Settings;
use agent_core::evaluation::EvaluationMode;
use agent_core::event::{Event, MessageOrigin, NoticeLevel};
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::image::Image;
use agent_core::limits::{FallbackChain, Limits, RunLimits, SpendingCaps};
use agent_core::message::HistoryMessage;
use agent_core::price::Usd;
use agent_core::review::REVIEW_SCHEMA;
use agent_core::run_result::RunResult;
use agent_core::skill::Skill;
use agent_engine::Engine;
use agent_journal::images::ImageDir;
use agent_journal::offered_tools::ToolChanges;
use agent_journal::played_turns::PlayedTurns;
use agent_journal::retention::remove_expired;
use agent_llm::LlmClient;
use agent_llm::prompt_prefix::PromptPrefix;
use agent_mcp::tool::McpTool;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_process::sandbox::repositories;
use agent_redactor::Redactor;
use agent_report::OutputFormat;
use agent_report::chat_log::ChatMemory;
use agent_runtime::emitter::{EmitError, Emitter};
use agent_session::Agent;
use agent_session::agent_loop;
use agent_session::context_window::result_tokens;
use agent_session::output_schema::OutputSchema;
use agent_session::session::Session;
use agent_session::session::SessionSink;
use agent_session::session_state::{SessionState, session_state};
use agent_session::subagent::SubagentHost;
use agent_tools::todo::Todo;
use agent_tools::toolbox::Toolbox;
use agent_tools::use_skill::UseSkill;
use agent_tools::{Access, Tool};
use agent_workspace::git::delete_references;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::cell::{OnceCell, RefCell};
use std::future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a run ended.
pub struct RunOutcome {
    /// Its result.
    pub result: RunResult,
    /// Whether a limit ended the run and its output is the model's closing summary.
    pub has_summary: bool,
    /// The settings that were in force.
    pub settings: Settings,
    /// What the run may have cost: the known costs, and the highest possible ones of unreported calls.
    pub spent: Usd,
    /// Steps of the session before the run.
    pub first_step: u32,
}

impl RunOutcome {
    /// Returns the exit code of a program whose work was this run.
    pub fn exit_code(&self) -> std::process::ExitCode {
        exit_code(&self.result, None).into()
    }
}

/// A run that can begin: its settings are loaded, its models connected, its tools built, and the session to resume is locked.
pub struct Run<'a> {
    app: &'a App,
    request: &'a RunRequest,
    started_at: Duration,
    settings: Settings,
    redactor: Arc<Redactor>,
    /// Warnings at the start of the run.
    notices: Vec<String>,
    resumed: Option<LockedSession>,
    schema: Option<Rc<OutputSchema>>,
    input_history: Vec<HistoryMessage>,
    images: InputImages,
    launcher: Rc<Launcher>,
    interrupt: CancellationToken,
    clients: FallbackChain<Rc<dyn LlmClient>>,
    /// The smallest context window of the models, in tokens.
    window: Option<u64>,
    limits: Limits,
    review: ReviewSetup,
    /// Runs subagents, once the agent exists.
    host: Rc<OnceCell<SubagentHost>>,
    toolbox: Toolbox,
    mcp: McpServers,
    skills: OfferedSkills,
    sinks: Vec<Box<dyn EventSink>>,
}

/// The session of a run, restored or created, whose events go to the journal and to the sinks.
struct OpenSession {
    id: String,
    /// The state before the run, without the conversation.
    state: SessionState,
    conversation: Rc<RefCell<Session>>,
    emitter: Rc<Emitter>,
    /// The calls that were running when the previous run was killed.
    interrupted: InterruptedCalls,
    /// The images of the first message.
    images: Vec<Image>,
}

impl<'a> Run<'a> {
    /// Loads the settings, locks the session to resume, connects the models and builds the tools.
    ///
    /// # Errors
    /// Fails for a configuration, a session or a model that is unusable.
    pub fn prepare(app: &'a App, request: &'a RunRequest) -> LocalBoxFuture<'a, AppResult<Self>> {
        async move {
            let (started_at, host) = (app.source.next_event_time(), Rc::default());
            let (LoadedConfig { mut settings, mut notices, .. }, resumed) = load(app, request)?;
            // From here on, errors are reported without the secrets of these settings.
            let redactor = app.redactor(&settings);
            let schema = answer_schema(request)?;
            let images = input_images(request)?;
            let input_history = input_history(&request.task)?;
            directories::prepare(&settings)?;
            let launcher = assemble::launcher(app, &settings)?;
            let interrupt = interrupt(app, request, &launcher, &settings)?;
            clear_answer_cache(request, &settings)?;
            let (models, caps, review) = connect_models(app, &settings, &host, resumed.as_ref()).await?;
            notices.extend(images.check_models(&models.clients)?);
            notices.extend(costs::ineffective_warning(&caps, &models.terms.first));
            let window = models.smallest_window();
            let context = &mut settings.context;
            context.max_tool_result_tokens = result_tokens(context.max_tool_result_tokens, window);
            let delegate = subagents::dispatch_tool(&settings, &host);
            let toolbox = toolbox_for(&settings, &models.terms.first.model)?.with(delegate);
            let last_run = resumed.as_ref().and_then(|it| it.about.last_run.as_ref());
            let skills = skills::offered(&settings, &toolbox, last_run);
            notices.extend(skills.warnings.iter().cloned());
            let toolbox = with_own_tools(app, request, &settings, &interrupt, toolbox, &skills);
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
                app,
                request,
                started_at,
                settings,
                redactor,
                notices,
                resumed,
                schema,
                input_history,
                images,
                launcher,
                interrupt,
                clients: models.clients,
                window,
                limits,
                review,
                host,
                toolbox,
                mcp,
                skills,
                sinks: request.client.iter().map(ClientSink::boxed).collect(),
            })
        }
        .boxed_local()
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns what removes secrets from everything that is reported.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Returns the id of the session that is resumed; a new session emits its id.
    pub fn resumed_id(&self) -> Option<&str> {
        self.resumed.as_ref().map(|session| session.id.as_str())
    }

    /// Adds a warning at the start of the run.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.notices.push(text.into());
    }

    /// Adds a receiver of the events of the run.
    pub fn add_sink(&mut self, sink: Box<dyn EventSink>) {
        self.sinks.push(sink);
    }

    /// Performs the run.
    ///
    /// # Errors
    /// Fails when the session cannot be created or written before the work begins; a run that ends early is no error.
    pub fn perform(mut self) -> LocalBoxFuture<'a, AppResult<RunOutcome>> {
        async move {
            let mut session = self.open_session()?;
            let first_message = self.first_message(&session)?;
            let agent = self.agent(&mut session, first_message.clone().unwrap_or_default())?;
            subagents::install_host(self.app, &self.settings, &agent, &self.mcp.tools, &self.host);
            let first_step = session.state.history.last_step();
            let work = Box::pin(self.run_session(&agent, session, first_message));
            let result = with_server_notices(&agent, &self.mcp, work).await;
            self.mcp.finish_and_notify(self.app, &self.settings).await;
            let (spent, has_summary) = {
                let session = agent.session.borrow();
                (session.spent_in_run(), session.has_summary_at_limit())
            };
            Ok(RunOutcome { result, has_summary, settings: self.settings, spent, first_step })
        }
        .boxed_local()
    }

    /// Restores the resumed session or creates a new one, and adds notices on it.
    fn open_session(&mut self) -> AppResult<OpenSession> {
        let (app, store) = (self.app, session_store(&self.settings));
        let create = || LockedSession::create(app, &store, self.request.session_id.clone());
        let LockedSession { id, journal, contents, about } = self.resumed.take().map_or_else(create, Ok)?;
        let tools = self.toolbox.names();
        let found =
            notices::startup_notices(&self.settings, &self.launcher, &self.limits, self.window, tools);
        self.notices.extend(found);
        let mut state = session_state(contents, self.limits.clone());
        self.notices.extend(notices::journal_problems(&state));
        let conversation = std::mem::take(&mut state.session).with_output_schema(self.schema.clone());
        let conversation = Rc::new(RefCell::new(conversation));
        let mut sinks: Vec<Box<dyn EventSink>> =
            vec![Box::new(journal), Box::new(SessionSink(Rc::clone(&conversation)))];
        sinks.append(&mut self.sinks);
        let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), about.next_seq, sinks);
        let unfinished = std::mem::take(&mut state.unfinished);
        let interrupted = InterruptedCalls::new(unfinished, store.baseline_path(&id)?);
        let images = self.images.store_in(&ImageDir::new(store.images_dir(&id)?))?;
        Ok(OpenSession {
            id,
            state,
            conversation,
            emitter: Rc::new(emitter.with_redactor(Arc::clone(&self.redactor))),
            interrupted,
            images,
        })
    }

    /// Returns the first user message of the run; `None` when a session resumes in the middle of its work.
    fn first_message(&self, session: &OpenSession) -> AppResult<Option<String>> {
        let (id, conversation) = (&session.id, session.conversation.borrow());
        match &self.request.task {
            Task::New { prompt, .. } | Task::Resume { prompt: Some(prompt), .. } => Ok(Some(prompt.clone())),
            Task::Resume { prompt: None, .. } if !conversation.has_task() => {
                let message = format!(
                    "session {id} ended before it had a task: give it one with `agent resume {id} \"…\"`"
                );
                Err(AppError::new(FailureKind::Session, message))
            }
            Task::Resume { prompt: None, .. } => {
                Ok(conversation.needs_user_message().then(|| messages::RESUME_MESSAGE.to_owned()))
            }
        }
    }

    /// Builds the agent of the run on its session; `task` is its first user message.
    fn agent(&mut self, session: &mut OpenSession, task: String) -> AppResult<Agent> {
        let toolbox = std::mem::take(&mut self.toolbox);
        let (app, settings) = (self.app, &self.settings);
        let engine = self.engine(session, toolbox)?;
        assemble::restore_engine_state(&engine, &session.state, &session.conversation.borrow());
        Ok(Agent {
            models: self.clients.clone(),
            definitions: assemble::allowed_tool_definitions(&engine),
            engine: Rc::new(engine),
            prefix: RefCell::new(PromptPrefix::new(session.conversation.borrow().prefix().cloned())),
            session: Rc::clone(&session.conversation),
            emitter: Rc::clone(&session.emitter),
            total_budget: self.request.total_budget.as_ref().map(|total| total.join(&session.conversation)),
            digest: RefCell::default(),
            source: Rc::clone(&app.source),
            interrupt: self.interrupt.clone(),
            name: settings.agent.name.clone(),
            task,
            stream: settings.llm.stream,
            started_at: self.started_at,
        })
    }

    fn engine(&self, session: &OpenSession, toolbox: Toolbox) -> AppResult<Engine> {
        let (app, settings, request) = (self.app, &self.settings, self.request);
        let (store, conversation) = (session_store(settings), session.conversation.borrow());
        let interaction = InteractionOptions {
            ask_until: (request.format == OutputFormat::Text).then(|| self.interrupt.clone()),
            client: request.client.clone(),
            no_approver: settings.approvals,
            // Those that the user has answered since the last run of the session.
            approvals: verify_approvals(settings, &session.id, conversation.approvals().clone())?,
            dry_run: request.dry_run,
            queue: request.queue.clone(),
            grants: request.allowed.clone().unwrap_or_default(),
            foreground: request.foreground.clone(),
        };
        let parts = EngineParts {
            kept: toolbox::kept_results(settings, &toolbox, &app.source),
            launcher: Rc::clone(&self.launcher),
            emitter: Rc::clone(&session.emitter),
            outputs: store.outputs_dir(&session.id)?,
            images: Some(Rc::new(ImageDir::new(store.images_dir(&session.id)?))),
            undo_store: Some(UndoStore::new(app, settings, &session.id, &session.state.history)?),
            toolbox,
            skills: skills::restore(&self.skills.skills, &session.id, &conversation),
        };
        let reviewer = self.review.reviewer(app, settings, &request.earlier_sessions, &session.id)?;
        Ok(Engine { reviewer, ..assemble::engine(app, settings, parts, interaction)? })
    }

    /// Emits the start of the run, does its work, emits its end, and returns its result, also when writing the journal fails.
    async fn run_session(
        &self,
        agent: &Agent,
        session: OpenSession,
        first_message: Option<String>,
    ) -> RunResult {
        let (app, settings) = (self.app, &self.settings);
        let started_at = app.source.unix_time();
        let mut measured_before = None;
        agent.engine.set_scan_outdated().await;
        let verdict = match self.emit_start(agent, session, first_message) {
            Ok(()) => {
                measured_before = MeasuredBefore::of_run(app, settings, agent).await;
                let preparation = self.request.task.preparation().run(agent, &self.host);
                Box::pin(agent_loop::run_to_end(agent, preparation)).await
            }
            Err(error) => Err(error),
        };
        if let Some(contents) = agent.engine.workspace.content_store() {
            contents.prune();
        }
        if let Some(days) = settings.sessions.cleanup_after_days {
            self.remove_expired_sessions(agent, days).await;
        }
        let mut result = match verdict {
            Ok(verdict) => agent.session.borrow().result(verdict, agent.elapsed()),
            Err(error) => return agent.end_without_journal(&error),
        };
        file_diff::count_changed_lines(
            &agent.engine.workspace,
            &mut result.files_modified,
            &agent.session.borrow().tally().contents_before,
        );
        if may_have_changed_files(agent, settings) {
            result.executables = agent.engine.executables_changed_since(started_at);
        }
        if let Some(before) = measured_before {
            result.health = before.compare(settings, agent).await;
        }
        let emitted = agent.emit_run_end(result).and_then(|result| agent.emitter.sync().map(|()| result));
        emitted.unwrap_or_else(|error| agent.end_without_journal(&error))
    }

    /// Emits the events at the start of the run: session, run, task, system message and notices.
    fn emit_start(
        &self,
        agent: &Agent,
        session: OpenSession,
        first_message: Option<String>,
    ) -> Result<(), EmitError> {
        let OpenSession { id, state, interrupted, images, .. } = session;
        let (emitter, settings, about) = (&agent.emitter, &self.settings, &state.about);
        let labelled = session_store(settings)
            .change_labels(&id, |labels| labels.branch = repositories::branch(&settings.workspace));
        let start = startup::start_event(agent, settings, about, self.recorded_limits(), &self.mcp.tools);
        let tools = ToolChanges::since(&state.offered, &start);
        let change_notices = startup::change_notices(about.last_run.as_ref(), &start, tools.as_ref());
        if about.next_seq == 0 {
            emitter.emit(Event::SessionStart {
                session_id: id,
                workspace: settings.workspace.to_string_lossy().into_owned(),
                program: format!("agent {}", env!("CARGO_PKG_VERSION")),
                imported_from: None,
                work_id: self.request.work_id.clone(),
            })?;
        }
        emitter.emit(start)?;
        if !agent.engine.options.dry_run {
            for text in assemble::recover_transactions(&agent.engine.workspace) {
                warn(agent, text)?;
            }
        }
        interrupted.emit_results(agent)?;
        for text in startup::model_messages(agent, &state, tools.as_ref()) {
            emitter.emit(Event::user_message(text, MessageOrigin::Background))?;
        }
        if !self.input_history.is_empty() {
            emitter.emit(Event::History { messages: self.input_history.clone() })?;
        }
        // The task is saved before anything that takes time: a session without a task cannot be resumed. The session, a sink of the
        // emitter, adds the task to the conversation.
        let task = agent.session.borrow().with_schema(first_message.clone());
        if let Some(text) = task {
            emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Prompt, images })?;
        }
        let found = self.emit_system_message(agent, &state)?;
        let unlabelled = labelled.err().map(|error| error.to_string());
        let models = agent.models.iter().flat_map(|model| model.warnings().to_vec());
        // In a conversation the user has made these changes a moment ago.
        let is_known = self.request.chat.as_ref().is_some_and(ChatMemory::has_run);
        let (known, unknown) =
            if is_known { (change_notices, Vec::new()) } else { (Vec::new(), change_notices) };
        for text in models.chain(unknown).chain(self.notices.iter().cloned()).chain(found).chain(unlabelled) {
            warn(agent, text)?;
        }
        for text in self.skills.new_skills.iter().cloned().chain(known) {
            emitter.emit(Event::Notice { level: NoticeLevel::Info, text })?;
        }
        // After the system message: the next session is the first to read it.
        let typed =
            first_message.filter(|text| !self.request.prompt_is_data && text != messages::RESUME_MESSAGE);
        store_corrections(settings, agent, typed.as_deref().unwrap_or_default())
    }

    /// Emits the system message of a new session or of another agent; one that is reused keeps the cached prompt prefix valid.
    /// Returns warnings on it and on the workspace.
    fn emit_system_message(&self, agent: &Agent, state: &SessionState) -> Result<Vec<String>, EmitError> {
        let (app, settings, about) = (self.app, &self.settings, &state.about);
        let last_agent = match &about.last_run {
            Some(Event::RunStart { agent, .. }) => Some(agent),
            _ => None,
        };
        let mut warnings = Vec::new();
        if about.has_system && last_agent == Some(&settings.agent.name) {
            let outdated = outdated_instructions(settings, &agent.session.borrow());
            warnings.extend(outdated.filter(|text| is_first_report(app, agent, text)));
        } else {
            let listed: &[Skill] = if self.skills.has_tool { &self.skills.skills } else { &[] };
            warnings = emit_system_message(app, settings, agent, listed, self.request.has_person)?;
        }
        let began_in = about.workspace.as_ref();
        if let Some(before) = began_in.filter(|path| **path != settings.workspace.to_string_lossy()) {
            let text = messages::workspace_renamed(before);
            warnings.extend(Some(text).filter(|text| is_first_report(app, agent, text)));
        }
        Ok(warnings)
    }

    /// Returns the limits of the run in the form that is recorded for a replay.
    fn recorded_limits(&self) -> RunLimits {
        let began_us = u64::try_from(self.started_at.as_micros()).unwrap_or(u64::MAX);
        let schema = self.schema.as_deref().map(|schema| schema.text().to_owned());
        RunLimits { began_us, limits: self.limits.clone(), schema }
    }

    /// Removes the sessions without activity for `days`; failures do not change the run's result.
    async fn remove_expired_sessions(&self, agent: &Agent, days: u32) {
        let engine = &agent.engine;
        // `agent sessions cleanup` reports the reasons of a failure.
        let cleaned = remove_expired(&session_store(&self.settings), days, self.app.source.unix_time());
        let Ok(cleaned) = cleaned else { return };
        if let Err(reason) =
            delete_references(&engine.launcher, engine.workspace.root(), &cleaned.checkpoints).await
        {
            // A broken journal is reported when the run ends.
            let _reported_then = warn(agent, messages::checkpoints_stay(&reason));
        }
    }
}

fn warn(agent: &Agent, text: String) -> Result<(), EmitError> {
    agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }).map(drop)
}

/// Checks whether this process reports `text` for the first time for the session of `agent`.
fn is_first_report(app: &App, agent: &Agent, text: &str) -> bool {
    app.is_first_report(&format!("{} {text}", agent.session.borrow().id()))
}

/// Performs `run`, and emits a notice when an MCP server lists other tools than the accepted ones.
async fn with_server_notices(
    agent: &Agent,
    servers: &McpServers,
    run: impl Future<Output = RunResult>,
) -> RunResult {
    // A journal that cannot be written ends the run by its own events.
    let report = |text| drop(warn(agent, text));
    let notices = async {
        servers.report_changes(report).await;
        future::pending().await
    };
    tokio::select! {
        biased;
        result = run => result,
        result = notices => result,
    }
}

/// Checks whether files may have changed: through a call of the session that is not read-only, or through a hook.
fn may_have_changed_files(agent: &Agent, settings: &Settings) -> bool {
    let engine = &agent.engine;
    let acts = |name: &str| engine.toolbox.get(name).is_ok_and(|tool| tool.access() != Access::Read);
    let called = agent.session.borrow().tally().tools_used.iter().any(|used| acts(&used.name));
    !engine.options.dry_run && (called || !settings.hooks.is_empty())
}

/// Adds the tools that depend on the request, the skills and the settings: `ask_user`, `use_skill`, those for the memory, `todo`, and
/// the tools of the request.
fn with_own_tools(
    app: &App,
    request: &RunRequest,
    settings: &Settings,
    interrupt: &CancellationToken,
    toolbox: Toolbox,
    skills: &OfferedSkills,
) -> Toolbox {
    let use_skill = skills.has_tool.then(|| UseSkill { skills: skills.skills.clone() });
    let is_at_terminal = request.format == OutputFormat::Text && request.client.is_none();
    let asks = request.has_person && is_at_terminal;
    let toolbox = toolbox.with(asks.then(|| ask_user::tool(&app.terminal, interrupt)).flatten());
    let toolbox = toolbox.with(use_skill.map(|tool| Box::new(tool) as Box<dyn Tool>));
    let todo = settings.tools.todo.then(|| Box::new(Todo) as Box<dyn Tool>);
    memory::tools(settings, &app.source)
        .into_iter()
        .chain(todo)
        .chain(request.tools.make())
        .fold(toolbox, |toolbox, tool| toolbox.with(Some(tool)))
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
) -> AppResult<CancellationToken> {
    match &request.client {
        Some(client) => Ok(client.interrupt.clone()),
        // A conversation says itself that the message was interrupted.
        None if request.chat.is_some() => assemble::arm_silently(app, launcher),
        None => assemble::arm_interrupt(app, Some(launcher), settings.language),
    }
}

/// Connects the models of the run and the model of its reviewer, which `host` will run. Returns both with the spending caps.
async fn connect_models(
    app: &App,
    settings: &Settings,
    host: &Rc<OnceCell<SubagentHost>>,
    resumed_session: Option<&LockedSession>,
) -> AppResult<(ModelChain, SpendingCaps, ReviewSetup)> {
    let played = resumed_session.map_or_else(PlayedTurns::default, |it| it.about.played_turns.clone());
    let played = &played;
    let (caps, prices) = (costs::caps(settings)?, costs::user_prices(&settings.costs)?);
    let models = ModelChain::connect(app, settings, &caps, &prices, played).await?;
    let review = ReviewSetup::connect(app, settings, &caps, &prices, host, played).await?;
    Ok((models, caps, review))
}

/// Empties the answer cache if `--cache-clear` is set.
fn clear_answer_cache(request: &RunRequest, settings: &Settings) -> AppResult<()> {
    if !request.clear_cache {
        return Ok(());
    }
    assemble::open_answer_cache(settings)?.clear().map_err(|error| {
        AppError::new(FailureKind::Config, format!("--cache-clear: cannot remove a stored answer: {error}"))
    })
}

/// Loads the settings and the session to resume, whose agent and model become the defaults.
fn load(app: &App, request: &RunRequest) -> AppResult<(LoadedConfig, Option<LockedSession>)> {
    let mut loaded = app.load(&request.effective_overrides())?;
    let mut resumed_session = None;
    if let Task::Resume { id, .. } = &request.task {
        use_state_with(&mut loaded.settings, id.as_deref());
        let session = LockedSession::open(&loaded.settings, id.as_deref())?;
        let state = loaded.settings.state.clone();
        loaded = app.load(&session.with_session_defaults(request.effective_overrides(), &loaded))?;
        loaded.settings.state = state;
        resumed_session = Some(session);
    }
    request.bounds.apply(&mut loaded.settings);
    loaded.settings.guardrails.set_gates(&request.checks, request.dry_run);
    if request.dry_run {
        loaded.settings.evaluation.mode = EvaluationMode::Off;
    }
    // Both change nothing.
    loaded.settings.auto_review.enabled &= !request.dry_run && request.review().is_none();
    Ok((loaded, resumed_session))
}

/// Reads the messages of `--history` for a new session.
fn input_history(task: &Task) -> AppResult<Vec<HistoryMessage>> {
    match task {
        Task::New { history: Some(file), .. } => input_history::read(file),
        Task::New { history: None, .. } | Task::Resume { .. } => Ok(Vec::new()),
    }
}

/// Reads the images of the first message.
fn input_images(request: &RunRequest) -> AppResult<InputImages> {
    if matches!(request.task, Task::Resume { prompt: None, .. }) && !request.images.is_empty() {
        return Err(AppError::new(
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
fn answer_schema(request: &RunRequest) -> AppResult<Option<Rc<OutputSchema>>> {
    match &request.schema {
        Some(AnswerSchema::Review(_)) => output_schema::built_in(REVIEW_SCHEMA).map(Some),
        Some(AnswerSchema::Text(text)) => output_schema::given(text).map(Some),
        Some(AnswerSchema::File(file)) => output_schema::read_output_schema(file).map(Some),
        None => Ok(None),
    }
}
