//! `agent run` and `agent resume`: from the words of the command line to the verdict.

use crate::agent::context_window::result_tokens;
use crate::agent::output_schema::OutputSchema;
use crate::agent::run;
use crate::agent::session::Session;
use crate::agent::session_state::{SessionInfo, SessionState};
use crate::agent::state_saver::StateSaver;
use crate::agent::{Agent, SessionSink};
use crate::cli::commands::report::RequestedReport;
use crate::cli::commands::run_args::{ResumeArgs, RunArgs, RunOptions};
use crate::cli::compose::app::App;
use crate::cli::compose::costs;
use crate::cli::compose::directories;
use crate::cli::compose::input_history;
use crate::cli::compose::interrupted_calls::InterruptedCalls;
use crate::cli::compose::model_chain::ModelChain;
use crate::cli::compose::notices;
use crate::cli::compose::output_schema;
use crate::cli::compose::preparation::Preparation;
use crate::cli::compose::prompt::read_prompt;
use crate::cli::compose::session::{LockedSession, session_store, verify_approvals};
use crate::cli::compose::startup::RunStartup;
use crate::cli::compose::subagents;
use crate::cli::compose::system_message::{SystemMessage, build_system_message};
use crate::cli::compose::undo_store::UndoStore;
use crate::cli::compose::{self, EngineParts, InteractionOptions};
use crate::cli::error::{CliError, CliResult};
use crate::cli::exit_code::ExitCode;
use crate::config::load::LoadedConfig;
use crate::config::settings::Settings;
use crate::core::evaluation::EvaluationMode;
use crate::core::event::{Event, EventSink, MessageOrigin, NoticeLevel};
use crate::core::failure::FailureKind;
use crate::core::limits::{Limits, RunLimits, SpendingCaps};
use crate::core::message::HistoryMessage;
use crate::core::run_result::RunResult;
use crate::core::stop_reason::Status;
use crate::engine::git::delete_references;
use crate::journal::approvals::Approvals;
use crate::journal::retention::remove_expired;
use crate::journal::session_store::SessionStore;
use crate::llm::prompt_prefix::PromptPrefix;
use crate::messages;
use crate::redactor::Redactor;
use crate::report::human_log::AnswerShown;
use crate::report::{self, EventSinks, OutputFormat, ReportOptions};
use crate::runtime::emitter::{EmitError, Emitter};
use crate::tools::Access;
use crate::workspace::executables;
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What is to be done.
enum Task {
    /// A new session, after what was said in an earlier conversation.
    New { prompt: String, history: Option<PathBuf>, preparation: Preparation },
    /// An earlier session, the newest without an id.
    Resume { id: Option<String>, prompt: Option<String> },
}

/// `agent run`.
pub fn run(app: &App, args: RunArgs) -> u8 {
    let history = args.history;
    let preparation = Preparation { plan: args.mixed, git_diff: args.context_git_diff };
    let task =
        read_prompt(&app.terminal, args.prompt).map(|prompt| Task::New { prompt, history, preparation });
    run_task(app, &args.options, task)
}

/// `agent resume`.
pub fn resume(app: &App, args: ResumeArgs) -> u8 {
    let (id, words) = match (args.last, args.id, args.prompt) {
        (true, prompt, None) => (None, prompt),
        (true, Some(_), Some(_)) => {
            let error = CliError::new(FailureKind::Usage, "either an id or `--last`, not both");
            return run_task(app, &args.options, Err(error));
        }
        (false, None, _) => {
            let message = "which session? `agent resume ID`, or `agent resume --last`; `agent sessions list` shows those there are";
            return run_task(app, &args.options, Err(CliError::new(FailureKind::Usage, message)));
        }
        (_, id, prompt) => (id, prompt),
    };
    let words = words.map(|words| read_prompt(&app.terminal, Some(words))).transpose();
    run_task(app, &args.options, words.map(|prompt| Task::Resume { id, prompt }))
}

/// A run that has ended.
struct FinishedRun {
    result: RunResult,
    shown: AnswerShown,
    settings: Settings,
}

/// Does the task, tells the result, says the exit code.
fn run_task(app: &App, options: &RunOptions, task: CliResult<Task>) -> u8 {
    let format = options.format();
    let report = RequestedReport::from_options(app, options);
    let done = task.and_then(|task| catch_panic(|| app.block_on(run_session(app, options, task))));
    let (result, shown, settings, code) = match done {
        Ok(FinishedRun { result, shown, settings }) => {
            let code = exit_code(&result, options.exit_code_on_partial);
            (result, shown, Some(settings), code)
        }
        Err(error) => {
            app.report_error(&error);
            let mut failure = error.failure();
            failure.message = app.redact(&failure.message);
            let sandbox = error.sandbox().map(str::to_owned);
            let result = RunResult { sandbox, ..report::json::not_started(failure, None) };
            (result, AnswerShown::default(), None, error.exit_code().code())
        }
    };
    if let Some(report) = report {
        // A bug in it has been told, and the run has ended as it has.
        let _told = catch_panic(|| {
            report.write(app, settings.as_ref(), &result);
            Ok(())
        });
    }
    match report::write_result(&app.terminal, format, &result, &shown) {
        Err(_) if code == 0 => ExitCode::Failed.code(),
        _ => code,
    }
}

/// Turns a panic, which has been told on standard error, into an error: a bug has an exit code and a document too.
fn catch_panic<T>(work: impl FnOnce() -> CliResult<T>) -> CliResult<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in agent ended the run; what was done stands, and the session can be resumed";
        Err(CliError::new(FailureKind::Internal, message))
    })
}

fn exit_code(result: &RunResult, on_partial: Option<u8>) -> u8 {
    let code =
        result.stop_reason.map_or(ExitCode::Failed, |reason| ExitCode::for_result(reason, result.status));
    match (code, on_partial) {
        (ExitCode::Partial, Some(other)) if result.status == Status::Partial => other,
        (code, _) => code.code(),
    }
}

/// Settings, model and session, and then the run.
async fn run_session(app: &App, options: &RunOptions, task: Task) -> CliResult<FinishedRun> {
    let (began, host) = (app.source.next_event_time(), Rc::default());
    let (LoadedConfig { mut settings, mut notices, .. }, resumed_session) = load(app, options, &task)?;
    // From here on errors are told without the secrets of these settings.
    let redactor = app.redactor(&settings);
    let schema = output_schema::read_output_schema(options.output_schema.as_deref())?;
    let (input_history, preparation) = (input_history(&task)?, preparation(&task));
    directories::prepare(&settings)?;
    let launcher = compose::launcher(app, &settings)?;
    let interrupt = compose::install_interrupt(app, &launcher, settings.language)?.token().clone();
    clear_answer_cache(options, &settings)?;
    let (models, caps) = connect_models(app, &settings).await?;
    notices.extend(costs::ineffective_warning(&caps, &models.terms.first));
    let window = models.smallest_window();
    settings.context.max_tool_result_tokens = result_tokens(settings.context.max_tool_result_tokens, window);
    let toolbox = subagents::toolbox(&settings, &models.terms.first.model, &host)?;
    let limits = compose::limits(&settings, caps, models.terms, toolbox.definitions());
    let EventSinks { sinks, answer_shown, stream_end: _before_the_result } =
        build_sinks(app, options, &settings, resumed_session.as_ref())?;
    let LockedSession { id, journal, opened, about } =
        resumed_session.map_or_else(|| LockedSession::create(app, &session_store(&settings)), Ok)?;
    let state_problem = opened.problem.as_deref().map(messages::state_unusable);
    let keeper = StateSaver::new(session_store(&settings).journal_path(&id)?, &opened);
    let bounds = bounds(began, &limits, schema.as_deref());
    notices.extend(notices::startup_notices(&settings, &launcher, &limits, window));
    let mut known = opened.into_state(limits);
    notices.extend(journal_problems(&known));
    let session = Rc::new(RefCell::new(std::mem::take(&mut known.session).with_output_schema(schema)));
    let first: [Box<dyn EventSink>; 2] = [Box::new(journal), Box::new(SessionSink(Rc::clone(&session)))];
    let emitter = emitter(app, redactor, first.into_iter().chain(sinks).collect(), about.next_seq);
    let undo_store = UndoStore::new(app, &settings, &id, &known.history)?;
    let interrupted_calls =
        InterruptedCalls::new(std::mem::take(&mut known.unfinished), undo_store.baseline.clone());
    let outputs = session_store(&settings).outputs_dir(&id)?;
    let parts = EngineParts {
        launcher,
        emitter: Rc::clone(&emitter),
        outputs,
        undo_store: Some(undo_store),
        toolbox,
    };
    let interaction = interaction(options, &settings, &interrupt, (&id, session.borrow().approvals()));
    let engine = compose::engine(app, &settings, parts, interaction?)?;
    compose::restore_engine_state(&engine, &known, &session.borrow());
    let (first_message, prefix) =
        (first_message(task, &id, &session.borrow())?, session.borrow().prefix().cloned());
    let agent = Agent {
        models: models.clients,
        definitions: compose::allowed_tool_definitions(&engine),
        engine: Rc::new(engine),
        session,
        emitter,
        state_saver: Some(keeper),
        prefix: RefCell::new(PromptPrefix::new(prefix)),
        digest: RefCell::default(),
        source: Rc::clone(&app.source),
        interrupt,
        name: settings.agent.name.clone(),
        task: first_message.clone().unwrap_or_default(),
        stream: settings.llm.stream,
        started_at: began,
    };
    subagents::install_host(app, &settings, &agent, &host);
    let startup = RunStartup::new(&agent, &settings, &known, bounds);
    let has_system = has_system(&about, &settings.agent.name);
    let start = StartupEvents {
        id,
        startup,
        input_history,
        first_message,
        notices,
        state_problem,
        interrupted_calls,
        has_system,
    };
    let result = Box::pin(run_agent(app, &settings, &agent, start, preparation.run(&agent, &host))).await;
    Ok(FinishedRun { result, shown: answer_shown, settings })
}

/// The models of the run, and what it may spend on them.
async fn connect_models(app: &App, settings: &Settings) -> CliResult<(ModelChain, SpendingCaps)> {
    let (caps, prices) = (costs::caps(settings)?, costs::user_prices(&settings.costs)?);
    Ok((ModelChain::connect(app, settings, &caps, &prices).await?, caps))
}

/// Tells `sinks`, the journal first, of every fact from record number `next` on.
fn emitter(app: &App, redactor: Arc<Redactor>, sinks: Vec<Box<dyn EventSink>>, next: u64) -> Rc<Emitter> {
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), next, sinks);
    Rc::new(emitter.with_redactor(redactor))
}

/// Who is told what happens.
fn build_sinks(
    app: &App,
    options: &RunOptions,
    settings: &Settings,
    resumed_session: Option<&LockedSession>,
) -> CliResult<EventSinks> {
    let report = ReportOptions {
        format: options.format(),
        language: settings.language,
        detail: options.detail(settings),
        log_file: settings.logging.file.as_ref().map(Into::into),
        dry_run: options.dry_run,
        show_costs: options.show_costs,
        session_id: resumed_session.map(|resumed_session| resumed_session.id.clone()),
    };
    report::build_sinks(&app.terminal, report)
        .map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })
}

/// What the run is held to, as a replay needs it.
fn bounds(began: Duration, limits: &Limits, schema: Option<&OutputSchema>) -> RunLimits {
    let began_us = u64::try_from(began.as_micros()).unwrap_or(u64::MAX);
    RunLimits { began_us, limits: limits.clone(), schema: schema.map(|schema| schema.text().to_owned()) }
}

/// Removes the kept answers when that is wanted.
fn clear_answer_cache(options: &RunOptions, settings: &Settings) -> CliResult<()> {
    if !options.cache_clear {
        return Ok(());
    }
    compose::open_answer_cache(settings)?.clear().map_err(|error| {
        CliError::new(FailureKind::Config, format!("--cache-clear: cannot remove a kept answer: {error}"))
    })
}

/// The settings, and the session to go on with; such a session says which agent and model it had.
fn load(app: &App, options: &RunOptions, task: &Task) -> CliResult<(LoadedConfig, Option<LockedSession>)> {
    let mut loaded = app.load(&options.flags())?;
    let mut resumed_session = None;
    if let Task::Resume { id, .. } = task {
        let session = LockedSession::open(&loaded.settings, id.as_deref())?;
        loaded = app.load(&session.with_session_defaults(options.flags(), &loaded))?;
        resumed_session = Some(session);
    }
    loaded.settings.guardrails.set_gates(&options.check, options.dry_run);
    if options.dry_run {
        loaded.settings.evaluation.mode = EvaluationMode::Off;
    }
    Ok((loaded, resumed_session))
}

/// What was said before a new session.
fn input_history(task: &Task) -> CliResult<Vec<HistoryMessage>> {
    match task {
        Task::New { history: Some(file), .. } => input_history::read(file),
        Task::New { history: None, .. } | Task::Resume { .. } => Ok(Vec::new()),
    }
}

/// What is wanted before a new session begins to work.
fn preparation(task: &Task) -> Preparation {
    match task {
        Task::New { preparation, .. } => preparation.clone(),
        Task::Resume { .. } => Preparation::default(),
    }
}

/// What is said to the model first; nothing when a session goes on in the middle of its work.
fn first_message(task: Task, id: &str, session: &Session) -> CliResult<Option<String>> {
    match task {
        Task::New { prompt, .. } | Task::Resume { prompt: Some(prompt), .. } => Ok(Some(prompt)),
        Task::Resume { prompt: None, .. } if !session.has_task() => {
            let message =
                format!("session {id} ended before it had a task: give it one, `agent resume {id} \"…\"`");
            Err(CliError::new(FailureKind::Session, message))
        }
        Task::Resume { prompt: None, .. } => {
            Ok(session.needs_user_message().then(|| messages::RESUME_MESSAGE.to_owned()))
        }
    }
}

/// How the run behaves towards people, with what they have answered since the last run of the session, if they have.
fn interaction(
    options: &RunOptions,
    settings: &Settings,
    interrupt: &CancellationToken,
    (id, approvals): (&str, &Approvals),
) -> CliResult<InteractionOptions> {
    let approvals = verify_approvals(settings, id, approvals.clone())?;
    let ask_until = (options.format() == OutputFormat::Text).then(|| interrupt.clone());
    Ok(InteractionOptions { ask_until, no_approver: settings.approvals, approvals, dry_run: options.dry_run })
}

/// What the first events of a run tell.
struct StartupEvents {
    id: String,
    startup: RunStartup,
    /// What was said before the session.
    input_history: Vec<HistoryMessage>,
    first_message: Option<String>,
    notices: Vec<String>,
    /// Why the state that was kept of the session is of no use.
    state_problem: Option<String>,
    /// The calls that were under way when the run before was killed.
    interrupted_calls: InterruptedCalls,
    /// Its system message stays: a prefix that stays is one that is cached.
    has_system: bool,
}

/// Removes the sessions in which nothing has happened for `days`; the run's verdict does not depend on it.
async fn clean_up(app: &App, agent: &Agent, store: &SessionStore, days: u32) {
    let engine = &agent.engine;
    // What is in the way is told by `agent sessions cleanup`.
    let Ok(cleaned) = remove_expired(store, days, app.source.unix_time()) else { return };
    if let Err(reason) =
        delete_references(&engine.launcher, engine.workspace.root(), &cleaned.checkpoints).await
    {
        let text = messages::checkpoints_stay(&reason);
        // A journal that broke is told when the run ends.
        let _ = agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text });
    }
}

/// Runs the agent to its verdict, which stands even when the journal breaks on the way.
async fn run_agent(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    start: StartupEvents,
    preparation: impl Future<Output = Result<(), EmitError>>,
) -> RunResult {
    let began = app.source.unix_time();
    let verdict = match emit_startup_events(app, settings, agent, start) {
        Ok(()) => run::run(agent, preparation).await,
        Err(error) => Err(error),
    };
    if let Some(contents) = agent.engine.workspace.content_store() {
        contents.prune();
    }
    if let Some(days) = settings.sessions.cleanup_after_days {
        clean_up(app, agent, &session_store(settings), days).await;
    }
    let mut result = match verdict {
        Ok(verdict) => agent.session.borrow().result(verdict, agent.elapsed()),
        Err(error) => return agent.end_without_journal(&error),
    };
    if may_have_changed_files(agent, settings) {
        result.executables = executables::executables_changed_since(&settings.workspace, began);
    }
    let told = agent.emit_run_end(result).and_then(|told| agent.emitter.sync().map(|()| told));
    told.unwrap_or_else(|error| agent.end_without_journal(&error))
}

/// Whether anything may have changed files: a call of the session that does more than read, or a hook.
fn may_have_changed_files(agent: &Agent, settings: &Settings) -> bool {
    let engine = &agent.engine;
    let acts = |name: &str| engine.toolbox.get(name).is_ok_and(|tool| tool.access() != Access::Read);
    let called = agent.session.borrow().tally().tools_used.iter().any(|used| acts(&used.name));
    !engine.options.dry_run && (called || !settings.hooks.is_empty())
}

/// Tells how the run begins: the session, the run, the task, the system message.
fn emit_startup_events(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    start: StartupEvents,
) -> Result<(), EmitError> {
    let StartupEvents {
        id,
        startup,
        input_history,
        first_message,
        mut notices,
        state_problem,
        has_system,
        interrupted_calls,
    } = start;
    let RunStartup { start_event, model_messages, change_notices } = startup;
    let emitter = &agent.emitter;
    if matches!(start_event, Event::RunStart { resumed: false, .. }) {
        emitter.emit(Event::SessionStart {
            session_id: id,
            workspace: settings.workspace.to_string_lossy().into_owned(),
            program: format!("agent {}", env!("CARGO_PKG_VERSION")),
            brought_from: None,
        })?;
    }
    emitter.emit(start_event)?;
    if !agent.engine.options.dry_run {
        for text in compose::recover_transactions(&agent.engine.workspace) {
            emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
        }
    }
    interrupted_calls.emit_results(agent)?;
    for text in model_messages {
        emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Background })?;
    }
    if !input_history.is_empty() {
        emitter.emit(Event::History { messages: input_history })?;
    }
    // The task is saved before anything that takes time: a session without one cannot be gone on with.
    let told = agent.session.borrow().with_schema(first_message);
    if let Some(text) = told {
        emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Prompt })?;
    }
    if !has_system {
        let SystemMessage { system, instructions, problems } = build_system_message(app, settings);
        notices.extend(problems);
        emitter.emit(Event::System { text: system })?;
        if let Some(file) = instructions {
            emitter.emit(Event::Instructions { file })?;
        }
    }
    for text in
        agent.models.iter().flat_map(|model| model.warnings().to_vec()).chain(change_notices).chain(notices)
    {
        emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
    }
    if let Some(text) = state_problem {
        emitter.emit(Event::Notice { level: NoticeLevel::Info, text })?;
    }
    Ok(())
}

/// Whether the session has a system message, and it is that of `agent`.
fn has_system(about: &SessionInfo, agent: &str) -> bool {
    let last = matches!(&about.last_run, Some(Event::RunStart { agent: last, .. }) if last == agent);
    about.has_system && last
}

/// What could not be read of the journal, in words.
fn journal_problems(known: &SessionState) -> impl Iterator<Item = String> {
    let damaged = (!known.damaged.is_empty()).then(|| messages::journal_damaged(&known.damaged));
    let incomplete = (!known.incomplete.is_empty()).then(|| messages::journal_incomplete(&known.incomplete));
    damaged.into_iter().chain(incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_that_exits_1() {
        let error = catch_panic::<()>(|| panic!("a bug")).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Failed);
    }
}
