//! One run: from its request to its result.

use crate::app::App;
use crate::approver::InteractionOptions;
use crate::assemble::{self, EngineParts};
use crate::code_health::MeasuredBefore;
use crate::error::{CliError, CliResult};
use crate::interrupted_calls::InterruptedCalls;
use crate::mcp::McpServers;
use crate::memory::store_corrections;
use crate::message_queue::with_queue;
use crate::opened_session::OpenedSession;
use crate::request::{RunRequest, Task};
use crate::run_setup::RunSetup;
use crate::run_sinks;
use crate::session::{session_store, verify_approvals};
use crate::skills;
use crate::startup::RunStartup;
use crate::subagents;
use crate::system_message::{emit_system_message, outdated_instructions};
use crate::toolbox;
use agent_config::settings::Settings;
use agent_core::budget_share::BudgetCap;
use agent_core::event::{Event, MessageOrigin, NoticeLevel};
use agent_core::failure::FailureKind;
use agent_core::image::Image;
use agent_core::message::HistoryMessage;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::skill::Skill;
use agent_engine::Engine;
use agent_engine::git::delete_references;
use agent_journal::retention::remove_expired;
use agent_journal::session_store::SessionStore;
use agent_llm::prompt_prefix::PromptPrefix;
use agent_messages as messages;
use agent_report::answer_shown::AnswerShown;
use agent_report::telemetry::Telemetry;
use agent_report::{EventSinks, OutputFormat};
use agent_runtime::emitter::EmitError;
use agent_session::Agent;
use agent_session::run;
use agent_session::session::Session;
use agent_session::session_state::SessionInfo;
use agent_tools::Access;
use futures_util::FutureExt;
use std::cell::RefCell;
use std::future;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// A run that has ended.
pub struct FinishedRun {
    /// Its result.
    pub result: RunResult,
    /// Whether a limit ended the run and its output is the model's closing summary.
    pub has_summary: bool,
    /// Whether the answer was already shown.
    pub shown: AnswerShown,
    /// The settings that were in force.
    pub settings: Settings,
    /// What the run may have cost: the known costs, and the highest possible ones of unreported calls.
    pub spent: Usd,
    /// Steps of the session before the run.
    pub first_step: u32,
    /// Its spans, to be exported after the result is written.
    pub telemetry: Option<Telemetry>,
}

/// Turns a panic, which the panic hook has reported, into an error, so that it gets an exit code and a result document.
///
/// # Errors
/// Fails with the error of `work`, and after a panic.
pub fn catch_panic<T>(work: impl FnOnce() -> CliResult<T>) -> CliResult<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in agent ended the run; what was done stands, and the session can be resumed";
        Err(CliError::new(FailureKind::Internal, message))
    })
}

/// Exports the spans of a run whose result is written.
pub fn export_telemetry(app: &App, telemetry: Option<Telemetry>) {
    let Some(telemetry) = telemetry else { return };
    let export = async {
        telemetry.export(&app.terminal).await;
        Ok(())
    };
    // A panic in it has been reported and does not change the result of the run.
    let _reported = catch_panic(|| app.block_on(export));
}

/// Prepares settings, models and session, and runs the agent.
///
/// # Errors
/// Fails when the configuration, the session or the model is unusable; a run that ends early is no error.
pub async fn run_session(app: &App, request: &RunRequest) -> CliResult<FinishedRun> {
    let mut setup = Box::pin(RunSetup::prepare(app, request)).await?;
    let telemetry = run_sinks::telemetry(app, &mut setup);
    let EventSinks { sinks, answer_shown, stream_end: _before_the_result } =
        run_sinks::build(app, request, &setup, telemetry.clone())?;
    let opened = OpenedSession::open(app, request, &mut setup, sinks)?;
    let (settings, preparation) = (setup.settings, request.task.preparation());
    let interaction = interaction(request, &settings, &setup.interrupt, &opened)?;
    let reviewer = setup.review.reviewer(app, &settings, (&request.earlier_sessions, &opened.id))?;
    let parts = EngineParts {
        kept: toolbox::kept_results(&settings, &setup.toolbox, &app.source),
        launcher: setup.launcher,
        emitter: Rc::clone(&opened.emitter),
        outputs: opened.outputs,
        images: Some(Rc::new(opened.image_dir)),
        undo_store: Some(opened.undo_store),
        toolbox: setup.toolbox,
        skills: skills::restore(&setup.skills, &opened.id, &opened.session.borrow()),
    };
    let engine = Engine { reviewer, ..assemble::engine(app, &settings, parts, interaction)? };
    assemble::restore_engine_state(&engine, &opened.state, &opened.session.borrow());
    let first_message = first_message(&request.task, &opened.id, &opened.session.borrow())?;
    let agent = Agent {
        models: setup.clients,
        definitions: assemble::allowed_tool_definitions(&engine),
        engine: Rc::new(engine),
        prefix: RefCell::new(PromptPrefix::new(opened.session.borrow().prefix().cloned())),
        session: Rc::clone(&opened.session),
        emitter: opened.emitter,
        state_saver: Some(opened.state_saver),
        total_budget: request.total_budget.as_ref().map(|total| total.join(&opened.session)),
        digest: RefCell::default(),
        source: Rc::clone(&app.source),
        interrupt: setup.interrupt,
        name: settings.agent.name.clone(),
        task: first_message.clone().unwrap_or_default(),
        stream: settings.llm.stream,
        started_at: setup.started_at,
    };
    subagents::install_host(app, &settings, &agent, &setup.mcp.tools, &setup.host);
    let start = StartupEvents {
        startup: RunStartup::new(&agent, &settings, &opened.state, opened.bounds, &setup.mcp.tools),
        has_system: has_system(&opened.about, &settings.agent.name),
        began_in: opened.about.workspace.clone(),
        request,
        listed_skills: if setup.has_skill_tool { setup.skills } else { Vec::new() },
        id: opened.id,
        input_history: setup.input_history,
        first_message,
        images: opened.images,
        notices: setup.notices,
        infos: setup.new_skills.into_iter().chain(opened.state_problem).collect(),
        interrupted_calls: opened.interrupted_calls,
    };
    let run = Box::pin(run_agent(app, &settings, &agent, start, preparation.run(&agent, &setup.host)));
    let result = with_messages_and_notices(app, request, &settings, (&agent, setup.mcp), run).await;
    let (first_step, session) = (opened.state.history.last_step(), agent.session.borrow());
    let (spent, has_summary) = (session.spent_in_run(), session.has_summary_at_limit());
    Ok(FinishedRun { result, has_summary, shown: answer_shown, settings, spent, first_step, telemetry })
}

/// Performs `run` with the messages that the user of a chat types meanwhile, and with the notices of MCP servers, which it ends.
async fn with_messages_and_notices(
    app: &App,
    request: &RunRequest,
    settings: &Settings,
    (agent, servers): (&Agent, McpServers),
    run: impl Future<Output = RunResult>,
) -> RunResult {
    let queue = request.chat.as_ref().map(|_| (&request.queue, settings.chat.queue));
    let result = with_queue(app, queue, Box::pin(with_server_notices(agent, &servers, run))).await;
    servers.finish_and_notify(app, settings).await;
    result
}

/// Performs `run`, and emits a notice when an MCP server lists other tools than the accepted ones.
async fn with_server_notices(
    agent: &Agent,
    servers: &McpServers,
    run: impl Future<Output = RunResult>,
) -> RunResult {
    // A journal that cannot be written ends the run by its own events.
    let report = |text| drop(agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }));
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

/// Returns the first user message of the run; `None` when a session resumes in the middle of its work.
fn first_message(task: &Task, id: &str, session: &Session) -> CliResult<Option<String>> {
    match task {
        Task::New { prompt, .. } | Task::Resume { prompt: Some(prompt), .. } => Ok(Some(prompt.clone())),
        Task::Resume { prompt: None, .. } if !session.has_task() => {
            let message = format!(
                "session {id} ended before it had a task: give it one with `agent resume {id} \"…\"`"
            );
            Err(CliError::new(FailureKind::Session, message))
        }
        Task::Resume { prompt: None, .. } => {
            Ok(session.needs_user_message().then(|| messages::RESUME_MESSAGE.to_owned()))
        }
    }
}

/// Returns the interaction options, with the approvals that the user has answered since the last run of the session.
fn interaction(
    request: &RunRequest,
    settings: &Settings,
    interrupt: &CancellationToken,
    opened: &OpenedSession,
) -> CliResult<InteractionOptions> {
    let approvals = verify_approvals(settings, &opened.id, opened.session.borrow().approvals().clone())?;
    let ask_until = (request.format == OutputFormat::Text).then(|| interrupt.clone());
    let queue = request.queue.only_if(settings.chat.queue);
    let no_approver = settings.approvals;
    let client = request.client.clone();
    Ok(InteractionOptions { ask_until, client, no_approver, approvals, dry_run: request.dry_run, queue })
}

/// The data of the first events of a run.
struct StartupEvents<'a> {
    request: &'a RunRequest,
    id: String,
    startup: RunStartup,
    /// The messages of `--history`.
    input_history: Vec<HistoryMessage>,
    first_message: Option<String>,
    images: Vec<Image>,
    notices: Vec<String>,
    /// Notices of the level `info`.
    infos: Vec<String>,
    /// The calls that were running when the previous run was killed.
    interrupted_calls: InterruptedCalls,
    /// Whether the system message of the session is reused, which keeps the cached prompt prefix valid.
    has_system: bool,
    /// The workspace in which the session began.
    began_in: Option<String>,
    /// The skills in the system message.
    listed_skills: Vec<Skill>,
}

/// Removes the sessions without activity for `days`; failures do not change the run's result.
async fn remove_expired_sessions(app: &App, agent: &Agent, store: &SessionStore, days: u32) {
    let engine = &agent.engine;
    // `agent sessions cleanup` reports the reasons of a failure.
    let Ok(cleaned) = remove_expired(store, days, app.source.unix_time()) else { return };
    if let Err(reason) =
        delete_references(&engine.launcher, engine.workspace.root(), &cleaned.checkpoints).await
    {
        let text = messages::checkpoints_stay(&reason);
        // A broken journal is reported when the run ends.
        let _ = agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text });
    }
}

/// Runs the agent and returns its result, also when writing the journal fails.
async fn run_agent(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    start: StartupEvents<'_>,
    preparation: impl Future<Output = Result<(), EmitError>>,
) -> RunResult {
    let started_at = app.source.unix_time();
    let mut measured_before = None;
    agent.engine.set_scan_outdated().await;
    let verdict = match emit_startup_events(app, settings, agent, start) {
        Ok(()) => {
            measured_before = MeasuredBefore::of_run(settings, agent).await;
            run::run(agent, preparation).await
        }
        Err(error) => Err(error),
    };
    if let Some(contents) = agent.engine.workspace.content_store() {
        contents.prune();
    }
    if let Some(days) = settings.sessions.cleanup_after_days {
        remove_expired_sessions(app, agent, &session_store(settings), days).await;
    }
    let mut result = match verdict {
        Ok(verdict) => agent.session.borrow().result(verdict, agent.elapsed()),
        Err(error) => return agent.end_without_journal(&error),
    };
    if may_have_changed_files(agent, settings) {
        result.executables = agent.engine.executables_changed_since(started_at);
    }
    if let Some(before) = measured_before {
        result.health = before.compare(settings, agent).await;
    }
    let emitted = agent.emit_run_end(result).and_then(|result| agent.emitter.sync().map(|()| result));
    emitted.unwrap_or_else(|error| agent.end_without_journal(&error))
}

/// Checks whether files may have changed: through a call of the session that is not read-only, or through a hook.
fn may_have_changed_files(agent: &Agent, settings: &Settings) -> bool {
    let engine = &agent.engine;
    let acts = |name: &str| engine.toolbox.get(name).is_ok_and(|tool| tool.access() != Access::Read);
    let called = agent.session.borrow().tally().tools_used.iter().any(|used| acts(&used.name));
    !engine.options.dry_run && (called || !settings.hooks.is_empty())
}

/// Emits the events at the start of a run: session, run, task, system message and notices.
fn emit_startup_events(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    start: StartupEvents<'_>,
) -> Result<(), EmitError> {
    let StartupEvents {
        request,
        id,
        startup: RunStartup { start_event, model_messages, change_notices },
        input_history,
        first_message,
        images,
        mut notices,
        infos,
        has_system,
        began_in,
        listed_skills,
        interrupted_calls,
    } = start;
    let emitter = &agent.emitter;
    if matches!(start_event, Event::RunStart { resumed: false, .. }) {
        emitter.emit(Event::SessionStart {
            session_id: id,
            workspace: settings.workspace.to_string_lossy().into_owned(),
            program: format!("agent {}", env!("CARGO_PKG_VERSION")),
            imported_from: None,
            work_id: request.work_id.clone(),
        })?;
    }
    emitter.emit(start_event)?;
    if !agent.engine.options.dry_run {
        for text in assemble::recover_transactions(&agent.engine.workspace) {
            emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
        }
    }
    interrupted_calls.emit_results(agent)?;
    for text in model_messages {
        emitter.emit(Event::user_message(text, MessageOrigin::Background))?;
    }
    if !input_history.is_empty() {
        emitter.emit(Event::History { messages: input_history })?;
    }
    // The task is saved before anything that takes time: a session without a task cannot be resumed.
    let prompt =
        first_message.clone().filter(|text| !request.prompt_is_data && text != messages::RESUME_MESSAGE);
    let first_message = agent.session.borrow().with_schema(first_message);
    if let Some(text) = first_message {
        emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Prompt, images })?;
    }
    if !has_system {
        notices.extend(emit_system_message(app, settings, agent, &listed_skills, request.chat.is_some())?);
    } else if let Some(text) = outdated_instructions(settings, &agent.session.borrow()) {
        notices.extend(reported_once(app, agent, text));
    }
    if let Some(before) = began_in.filter(|path| *path != settings.workspace.to_string_lossy()) {
        notices.extend(reported_once(app, agent, messages::workspace_renamed(&before)));
    }
    for text in
        agent.models.iter().flat_map(|model| model.warnings().to_vec()).chain(change_notices).chain(notices)
    {
        emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
    }
    for text in infos {
        emitter.emit(Event::Notice { level: NoticeLevel::Info, text })?;
    }
    // After the system message: the next session is the first to read it.
    store_corrections(settings, agent, prompt.as_deref().unwrap_or_default())
}

/// Returns `text` if this process has not reported it for this session.
fn reported_once(app: &App, agent: &Agent, text: String) -> Option<String> {
    app.is_first_report(&format!("{} {text}", agent.session.borrow().id())).then_some(text)
}

/// Checks whether the session has a system message of `agent`.
fn has_system(about: &SessionInfo, agent: &str) -> bool {
    let last = matches!(&about.last_run, Some(Event::RunStart { agent: last, .. }) if last == agent);
    about.has_system && last
}

/// Runs the task within the budget that is left for all runs, exports its telemetry and returns how it ended.
///
/// # Errors
/// Fails when the run cannot start, or nothing is left of the budget; a run that ends early is no error. A panic, which the panic
/// hook has reported, is one.
pub async fn run_for_client(app: &App, request: &RunRequest) -> CliResult<FinishedRun> {
    let Some(total) = &request.total_budget else {
        return run_and_export(app, request).await?;
    };
    if total.is_used_up() {
        return Err(CliError::new(FailureKind::Quota, messages::TOTAL_BUDGET_USED));
    }
    let mut request = request.clone();
    let BudgetCap { usd, tokens } = total.at_most();
    request.bounds.budget = request.bounds.budget.into_iter().chain(usd).min();
    request.bounds.tokens = request.bounds.tokens.into_iter().chain(tokens).min();
    run_and_export(app, &request).await?
}

/// Runs the task and exports its telemetry. The outer error is a panic, the inner one a run that cannot start.
async fn run_and_export(app: &App, request: &RunRequest) -> CliResult<CliResult<FinishedRun>> {
    let run = async {
        let mut finished = Box::pin(run_session(app, request)).await?;
        if let Some(telemetry) = finished.telemetry.take() {
            telemetry.export(&app.terminal).await;
        }
        Ok(finished)
    };
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .map_err(|_| CliError::new(FailureKind::Internal, "a bug in agent ended the run"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::ExitCode;

    #[test]
    fn a_panic_is_an_internal_error_that_exits_1() {
        let error = catch_panic::<()>(|| panic!("a bug")).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Failed);
    }
}
