//! `agent run` and `agent resume`: from the words of the command line to the verdict.

use crate::agent::context::result_tokens;
use crate::agent::keeper::Keeper;
use crate::agent::known::{About, Known};
use crate::agent::run;
use crate::agent::session::Session;
use crate::agent::structured::OutputSchema;
use crate::agent::{Agent, Fold};
use crate::cli::app::App;
use crate::cli::beginning::Beginning;
use crate::cli::briefing::{Briefing, briefing};
use crate::cli::chain::Models;
use crate::cli::compose::{self, Bench, Manner};
use crate::cli::costs;
use crate::cli::cut_off::CutOffs;
use crate::cli::earlier::{Earlier, store, verified};
use crate::cli::error::{CliError, CliResult};
use crate::cli::exit_code::ExitCode;
use crate::cli::given_history;
use crate::cli::home;
use crate::cli::kept::Kept;
use crate::cli::notices;
use crate::cli::preparation::Wanted;
use crate::cli::prompt::prompt;
use crate::cli::report::Wish;
use crate::cli::structured;
use crate::cli::subagents;
use crate::cli::work_args::{ResumeArgs, RunArgs, WorkArgs};
use crate::config::load::Loaded;
use crate::config::settings::Settings;
use crate::emit::{EmitError, Emitter};
use crate::engine::git::forget;
use crate::evaluation::EvaluationMode;
use crate::event::{Event, EventSink, Level, Origin};
use crate::failure::ErrorKind;
use crate::journal::approvals::Approvals;
use crate::journal::retention::clean;
use crate::journal::store::Store;
use crate::limits::{Bounds, Caps, Limits};
use crate::llm::prefix::Prefix;
use crate::message::Said;
use crate::messages;
use crate::redactor::Redactor;
use crate::report::human::AnswerShown;
use crate::report::{self, Format, Listeners, ReportOptions};
use crate::result::RunResult;
use crate::stop_reason::Status;
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
    New { prompt: String, history: Option<PathBuf>, wanted: Wanted },
    /// An earlier session, the newest without an id.
    Resume { id: Option<String>, prompt: Option<String> },
}

/// `agent run`.
pub fn run(app: &App, args: RunArgs) -> u8 {
    let history = args.history;
    let wanted = Wanted { plan: args.mixed, git_diff: args.context_git_diff };
    let task = prompt(&app.terminal, args.prompt).map(|prompt| Task::New { prompt, history, wanted });
    work(app, &args.options, task)
}

/// `agent resume`.
pub fn resume(app: &App, args: ResumeArgs) -> u8 {
    let (id, words) = match (args.last, args.id, args.prompt) {
        (true, prompt, None) => (None, prompt),
        (true, Some(_), Some(_)) => {
            let error = CliError::new(ErrorKind::Usage, "either an id or `--last`, not both");
            return work(app, &args.options, Err(error));
        }
        (false, None, _) => {
            let message = "which session? `agent resume ID`, or `agent resume --last`; `agent sessions list` shows those there are";
            return work(app, &args.options, Err(CliError::new(ErrorKind::Usage, message)));
        }
        (_, id, prompt) => (id, prompt),
    };
    let words = words.map(|words| prompt(&app.terminal, Some(words))).transpose();
    work(app, &args.options, words.map(|prompt| Task::Resume { id, prompt }))
}

/// A run that has ended.
struct Done {
    result: RunResult,
    shown: AnswerShown,
    settings: Settings,
}

/// Does the task, tells the result, says the exit code.
fn work(app: &App, options: &WorkArgs, task: CliResult<Task>) -> u8 {
    let format = options.format();
    let report = Wish::of(app, options);
    let done = task.and_then(|task| contained(|| app.block_on(begin(app, options, task))));
    let (result, shown, settings, code) = match done {
        Ok(Done { result, shown, settings }) => {
            let code = exit_code(&result, options.exit_code_on_partial);
            (result, shown, Some(settings), code)
        }
        Err(error) => {
            app.complain(&error);
            let mut failure = error.failure();
            failure.message = app.without_secrets(&failure.message);
            let sandbox = error.sandbox().map(str::to_owned);
            let result = RunResult { sandbox, ..report::json::not_started(failure, None) };
            (result, AnswerShown::default(), None, error.exit_code().code())
        }
    };
    if let Some(report) = report {
        // A bug in it has been told, and the run has ended as it has.
        let _told = contained(|| {
            report.fulfil(app, settings.as_ref(), &result);
            Ok(())
        });
    }
    match report::deliver(&app.terminal, format, &result, &shown) {
        Err(_) if code == 0 => ExitCode::Failed.code(),
        _ => code,
    }
}

/// Turns a panic, which has been told on standard error, into an error: a bug has an exit code and a document too.
fn contained<T>(work: impl FnOnce() -> CliResult<T>) -> CliResult<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in agent ended the run; what was done stands, and the session can be resumed";
        Err(CliError::new(ErrorKind::Internal, message))
    })
}

fn exit_code(result: &RunResult, on_partial: Option<u8>) -> u8 {
    let code =
        result.stop_reason.map_or(ExitCode::Failed, |reason| ExitCode::of_result(reason, result.status));
    match (code, on_partial) {
        (ExitCode::Partial, Some(other)) if result.status == Status::Partial => other,
        (code, _) => code.code(),
    }
}

/// Settings, model and session, and then the run.
async fn begin(app: &App, options: &WorkArgs, task: Task) -> CliResult<Done> {
    let (began, host) = (app.source.stamp(), Rc::default());
    let (Loaded { mut settings, mut notices, .. }, earlier) = load(app, options, &task)?;
    // From here on errors are told without the secrets of these settings.
    let redactor = app.redactor(&settings);
    let schema = structured::output_schema(options.output_schema.as_deref())?;
    let (given, wanted) = (given(&task)?, wanted(&task));
    home::prepare(&settings)?;
    let launcher = compose::launcher(app, &settings)?;
    let interrupt = compose::listen(app, &launcher, settings.language)?.token().clone();
    clear_answers(options, &settings)?;
    let (models, caps) = connected(app, &settings).await?;
    notices.extend(costs::without_effect(&caps, &models.terms.first));
    let window = models.smallest_window();
    settings.context.max_tool_result_tokens = result_tokens(settings.context.max_tool_result_tokens, window);
    let toolbox = subagents::toolbox(&settings, &models.terms.first.model, &host)?;
    let limits = compose::limits(&settings, caps, models.terms, toolbox.definitions());
    let Listeners { sinks, answer_shown, stream_end: _before_the_result } =
        listeners(app, options, &settings, earlier.as_ref())?;
    let Earlier { id, journal, opened, about } =
        earlier.map_or_else(|| Earlier::create(app, &store(&settings)), Ok)?;
    let aside = opened.problem.as_deref().map(messages::state_unusable);
    let keeper = Keeper::new(store(&settings).journal_path(&id)?, &opened);
    let bounds = bounds(began, &limits, schema.as_deref());
    notices.extend(notices::before_run(&settings, &launcher, &limits, window));
    let mut known = opened.known(limits);
    notices.extend(damage(&known));
    let session = Rc::new(RefCell::new(std::mem::take(&mut known.session).demanding(schema)));
    let first: [Box<dyn EventSink>; 2] = [Box::new(journal), Box::new(Fold(Rc::clone(&session)))];
    let emitter = emitter(app, redactor, first.into_iter().chain(sinks).collect(), about.next_seq);
    let kept = Kept::of(app, &settings, &id, &known.history)?;
    let cut_off = CutOffs::of(std::mem::take(&mut known.unfinished), kept.baseline.clone());
    let outputs = store(&settings).outputs_dir(&id)?;
    let bench = Bench { launcher, emitter: Rc::clone(&emitter), outputs, kept: Some(kept), toolbox };
    let manner = manner(options, &settings, &interrupt, (&id, session.borrow().approvals()));
    let engine = compose::engine(app, &settings, bench, manner?)?;
    compose::restore(&engine, &known, &session.borrow());
    let (words, prefix) = (words(task, &id, &session.borrow())?, session.borrow().prefix().cloned());
    let agent = Agent {
        models: models.clients,
        definitions: compose::definitions(&engine),
        engine: Rc::new(engine),
        session,
        emitter,
        keeper: Some(keeper),
        prefix: RefCell::new(Prefix::new(prefix)),
        digest: RefCell::default(),
        source: Rc::clone(&app.source),
        interrupt,
        name: settings.agent.name.clone(),
        task: words.clone().unwrap_or_default(),
        stream: settings.llm.stream,
        began,
    };
    subagents::host(app, &settings, &agent, &host);
    let beginning = Beginning::of(&agent, &settings, &known, bounds);
    let has_system = has_system(&about, &settings.agent.name);
    let start = Start { id, beginning, given, words, notices, aside, cut_off, has_system };
    let result = Box::pin(drive(app, &settings, &agent, start, wanted.give(&agent, &host))).await;
    Ok(Done { result, shown: answer_shown, settings })
}

/// The models of the run, and what it may spend on them.
async fn connected(app: &App, settings: &Settings) -> CliResult<(Models, Caps)> {
    let (caps, prices) = (costs::caps(settings)?, costs::own_prices(&settings.costs)?);
    Ok((Models::connect(app, settings, &caps, &prices).await?, caps))
}

/// Tells `sinks`, the journal first, of every fact from record number `next` on.
fn emitter(app: &App, redactor: Arc<Redactor>, sinks: Vec<Box<dyn EventSink>>, next: u64) -> Rc<Emitter> {
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), next, sinks);
    Rc::new(emitter.redacting(redactor))
}

/// Who is told what happens.
fn listeners(
    app: &App,
    options: &WorkArgs,
    settings: &Settings,
    earlier: Option<&Earlier>,
) -> CliResult<Listeners> {
    let report = ReportOptions {
        format: options.format(),
        language: settings.language,
        detail: options.detail(settings),
        log_file: settings.logging.file.as_ref().map(Into::into),
        dry_run: options.dry_run,
        show_costs: options.show_costs,
        session_id: earlier.map(|earlier| earlier.id.clone()),
    };
    report::listeners(&app.terminal, report)
        .map_err(|error| CliError { kind: ErrorKind::Config, cause: error.into() })
}

/// What the run is held to, as a replay needs it.
fn bounds(began: Duration, limits: &Limits, schema: Option<&OutputSchema>) -> Bounds {
    let began_us = u64::try_from(began.as_micros()).unwrap_or(u64::MAX);
    Bounds { began_us, limits: limits.clone(), schema: schema.map(|schema| schema.text().to_owned()) }
}

/// Removes the kept answers when that is wanted.
fn clear_answers(options: &WorkArgs, settings: &Settings) -> CliResult<()> {
    if !options.cache_clear {
        return Ok(());
    }
    compose::answers(settings)?.clear().map_err(|error| {
        CliError::new(ErrorKind::Config, format!("--cache-clear: cannot remove a kept answer: {error}"))
    })
}

/// The settings, and the session to go on with; such a session says which agent and model it had.
fn load(app: &App, options: &WorkArgs, task: &Task) -> CliResult<(Loaded, Option<Earlier>)> {
    let mut loaded = app.load(&options.flags())?;
    let mut earlier = None;
    if let Task::Resume { id, .. } = task {
        let session = Earlier::open(&loaded.settings, id.as_deref())?;
        loaded = app.load(&session.complete(options.flags(), &loaded))?;
        earlier = Some(session);
    }
    loaded.settings.guardrails.gated_by(&options.check, options.dry_run);
    if options.dry_run {
        loaded.settings.evaluation.mode = EvaluationMode::Off;
    }
    Ok((loaded, earlier))
}

/// What was said before a new session.
fn given(task: &Task) -> CliResult<Vec<Said>> {
    match task {
        Task::New { history: Some(file), .. } => given_history::read(file),
        Task::New { history: None, .. } | Task::Resume { .. } => Ok(Vec::new()),
    }
}

/// What is wanted before a new session begins to work.
fn wanted(task: &Task) -> Wanted {
    match task {
        Task::New { wanted, .. } => wanted.clone(),
        Task::Resume { .. } => Wanted::default(),
    }
}

/// What is said to the model first; nothing when a session goes on in the middle of its work.
fn words(task: Task, id: &str, session: &Session) -> CliResult<Option<String>> {
    match task {
        Task::New { prompt, .. } | Task::Resume { prompt: Some(prompt), .. } => Ok(Some(prompt)),
        Task::Resume { prompt: None, .. } if !session.has_task() => {
            let message =
                format!("session {id} ended before it had a task: give it one, `agent resume {id} \"…\"`");
            Err(CliError::new(ErrorKind::Session, message))
        }
        Task::Resume { prompt: None, .. } => {
            Ok(session.waits_for_words().then(|| messages::GO_ON.to_owned()))
        }
    }
}

/// How the run behaves towards people, with what they have answered since the last run of the session, if they have.
fn manner(
    options: &WorkArgs,
    settings: &Settings,
    interrupt: &CancellationToken,
    (id, approvals): (&str, &Approvals),
) -> CliResult<Manner> {
    let approvals = verified(settings, id, approvals.clone())?;
    let asked = (options.format() == Format::Text).then(|| interrupt.clone());
    Ok(Manner { asked, unanswered: settings.approvals, approvals, dry_run: options.dry_run })
}

/// What the first events of a run tell.
struct Start {
    id: String,
    beginning: Beginning,
    /// What was said before the session.
    given: Vec<Said>,
    words: Option<String>,
    notices: Vec<String>,
    /// Why the state that was kept of the session is of no use.
    aside: Option<String>,
    /// The calls that were under way when the run before was killed.
    cut_off: CutOffs,
    /// Its system message stays: a prefix that stays is one that is cached.
    has_system: bool,
}

/// Removes the sessions in which nothing has happened for `days`; the run's verdict does not depend on it.
async fn clean_up(app: &App, agent: &Agent, store: &Store, days: u32) {
    let engine = &agent.engine;
    // What is in the way is told by `agent sessions cleanup`.
    let Ok(cleaned) = clean(store, days, app.source.wall()) else { return };
    if let Err(reason) = forget(&engine.launcher, engine.workspace.root(), &cleaned.checkpoints).await {
        let text = messages::checkpoints_stay(&reason);
        // A journal that broke is told when the run ends.
        let _ = agent.emitter.emit(Event::Notice { level: Level::Warn, text });
    }
}

/// Runs the agent to its verdict, which stands even when the journal breaks on the way.
async fn drive(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    start: Start,
    given: impl Future<Output = Result<(), EmitError>>,
) -> RunResult {
    let began = app.source.wall();
    let verdict = match open(app, settings, agent, start) {
        Ok(()) => run::run(agent, given).await,
        Err(error) => Err(error),
    };
    if let Some(contents) = agent.engine.workspace.displaced() {
        contents.prune();
    }
    if let Some(days) = settings.sessions.cleanup_after_days {
        clean_up(app, agent, &store(settings), days).await;
    }
    let mut result = match verdict {
        Ok(verdict) => agent.session.borrow().result(verdict, agent.elapsed()),
        Err(error) => return agent.broken(&error),
    };
    if acted(agent, settings) {
        result.executables = executables::changed_since(&settings.workspace, began);
    }
    let told = agent.tell_end(result).and_then(|told| agent.emitter.sync().map(|()| told));
    told.unwrap_or_else(|error| agent.broken(&error))
}

/// Whether anything may have changed files: a call of the session that does more than read, or a hook.
fn acted(agent: &Agent, settings: &Settings) -> bool {
    let engine = &agent.engine;
    let acts = |name: &str| engine.toolbox.get(name).is_ok_and(|tool| tool.access() != Access::Read);
    let called = agent.session.borrow().tally().tools_used.iter().any(|used| acts(&used.name));
    !engine.options.dry_run && (called || !settings.hooks.is_empty())
}

/// Tells how the run begins: the session, the run, the task, the system message.
fn open(app: &App, settings: &Settings, agent: &Agent, start: Start) -> Result<(), EmitError> {
    let Start { id, beginning, given, words, mut notices, aside, has_system, cut_off } = start;
    let Beginning { run, meanwhile, otherwise } = beginning;
    let emitter = &agent.emitter;
    if matches!(run, Event::RunStart { resumed: false, .. }) {
        emitter.emit(Event::SessionStart {
            session_id: id,
            workspace: settings.workspace.to_string_lossy().into_owned(),
            program: format!("agent {}", env!("CARGO_PKG_VERSION")),
            brought_from: None,
        })?;
    }
    emitter.emit(run)?;
    if !agent.engine.options.dry_run {
        for text in compose::recover(&agent.engine.workspace) {
            emitter.emit(Event::Notice { level: Level::Warn, text })?;
        }
    }
    cut_off.end(agent)?;
    for text in meanwhile {
        emitter.emit(Event::UserMessage { text, origin: Origin::Background })?;
    }
    if !given.is_empty() {
        emitter.emit(Event::History { messages: given })?;
    }
    // The task is saved before anything that takes time: a session without one cannot be gone on with.
    let told = agent.session.borrow().with_schema(words);
    if let Some(text) = told {
        emitter.emit(Event::UserMessage { text, origin: Origin::Prompt })?;
    }
    if !has_system {
        let Briefing { system, instructions, problems } = briefing(app, settings);
        notices.extend(problems);
        emitter.emit(Event::System { text: system })?;
        if let Some(file) = instructions {
            emitter.emit(Event::Instructions { file })?;
        }
    }
    for text in agent.models.iter().flat_map(|model| model.remarks().to_vec()).chain(otherwise).chain(notices)
    {
        emitter.emit(Event::Notice { level: Level::Warn, text })?;
    }
    if let Some(text) = aside {
        emitter.emit(Event::Notice { level: Level::Info, text })?;
    }
    Ok(())
}

/// Whether the session has a system message, and it is that of `agent`.
fn has_system(about: &About, agent: &str) -> bool {
    let last = matches!(&about.last_run, Some(Event::RunStart { agent: last, .. }) if last == agent);
    about.has_system && last
}

/// What could not be read of the journal, in words.
fn damage(known: &Known) -> impl Iterator<Item = String> {
    let damaged = (!known.damaged.is_empty()).then(|| messages::journal_damaged(&known.damaged));
    let incomplete = (!known.incomplete.is_empty()).then(|| messages::journal_incomplete(&known.incomplete));
    damaged.into_iter().chain(incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_that_exits_1() {
        let error = contained::<()>(|| panic!("a bug")).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Failed);
    }
}
