//! Puts the parts of a run together out of the settings.

use crate::agent::known::Known;
use crate::agent::session::Session;
use crate::cli::app::App;
use crate::cli::approver::AtTerminal;
use crate::cli::costs::measured;
use crate::cli::error::{CliError, CliResult, ConfinedTooLittle};
use crate::cli::kept::{self, Kept};
use crate::cli::secrets;
use crate::config::load::{USER_AGENTS, USER_FILE};
use crate::config::schema::{SandboxMode, Web};
use crate::config::settings::Settings;
use crate::emit::Emitter;
use crate::engine::approve::{Approver, Nobody, Unanswered};
use crate::engine::command_class::CommandOptions;
use crate::engine::guardrails::Guardrails;
use crate::engine::hooks::Hooks;
use crate::engine::policy::{Policy, PolicyOptions, literal_pattern};
use crate::engine::rules::{Action, PolicyRule};
use crate::engine::{Engine, EngineOptions};
use crate::failure::ErrorKind;
use crate::fetch::Fetcher;
use crate::fetch::target::HostPattern;
use crate::http::Deadlines;
use crate::interrupt::{Interrupt, Reactions};
use crate::journal::approvals::Approvals;
use crate::language::Language;
use crate::limits::{Caps, Chain, Limits, Terms};
use crate::llm::connect::{ModelOptions, connect};
use crate::llm::edit_format::EditFormat;
use crate::llm::response_cache::{self, CachedModel};
use crate::llm::{LlmClient, ToolDefinition};
use crate::messages;
use crate::process;
use crate::process::environment::child_environment;
use crate::process::launch::{Launcher, Tier};
use crate::process::limits::CommandLimits;
use crate::process::sandbox::confinement::Confinement;
use crate::process::sandbox::ground::Ground;
use crate::process::sandbox::places;
use crate::secret::Secret;
use crate::terminal::Style;
use crate::tools::Tool;
use crate::tools::command_output::CommandOutput;
use crate::tools::ledger::Ledger;
use crate::tools::outputs::Outputs;
use crate::tools::run_command::{RunCommand, RunCommandOptions};
use crate::tools::stop_command::StopCommand;
use crate::tools::toolbox::{ToolOptions, Toolbox};
use crate::tools::web_fetch::WebFetch;
use crate::workspace::Workspace;
use crate::workspace::baseline::Baseline;
use crate::workspace::transaction::Recovered;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How the engine of a run behaves towards people.
pub struct Manner {
    /// Who is asked: the person at the terminal until the token fires, or nobody.
    pub asked: Option<CancellationToken>,
    /// What becomes of a call that nobody can be asked about.
    pub unanswered: Unanswered,
    /// What was asked and answered between runs.
    pub approvals: Approvals,
    /// Reads run, everything else is only described.
    pub dry_run: bool,
}

impl Manner {
    /// Of a call outside of any session: it cannot wait for an answer.
    pub fn of_one_call(asked: Option<CancellationToken>) -> Self {
        Self { asked, unanswered: Unanswered::Refuse, approvals: Approvals::default(), dry_run: false }
    }
}

/// What a run's engine stands on.
pub struct Bench {
    /// Starts children.
    pub launcher: Rc<Launcher>,
    /// Where every fact is told.
    pub emitter: Rc<Emitter>,
    /// Where long outputs go.
    pub outputs: PathBuf,
    /// Where it is kept what the files were; nothing where there is no session that could undo changes.
    pub kept: Option<Kept>,
    /// The tools.
    pub toolbox: Toolbox,
}

/// The starter of children, with an environment free of keys, as firm as the settings demand.
///
/// # Errors
/// When the confinement that is required is not to be had, or cannot be found out.
pub fn launcher(app: &App, settings: &Settings) -> CliResult<Rc<Launcher>> {
    let launcher = unsettled(app, settings).settled().map_err(|error| unfound(&error))?;
    let tier = launcher.tier();
    if !settings.sandbox_off && settings.sandbox.mode == SandboxMode::Require && !tier.has_own_view() {
        return Err(CliError { kind: ErrorKind::Config, cause: ConfinedTooLittle { found: tier }.into() });
    }
    Ok(Rc::new(launcher))
}

/// The starter of children, held by what works here today.
///
/// # Errors
/// When that cannot be found out.
pub fn launcher_as_tried(app: &App, settings: &Settings) -> CliResult<Launcher> {
    unsettled(app, settings).settled_anew().map_err(|error| unfound(&error))
}

fn unfound(error: &std::io::Error) -> CliError {
    CliError::new(ErrorKind::Config, messages::confinement_not_found(error))
}

fn unsettled(app: &App, settings: &Settings) -> Launcher {
    let known = secrets::known(&app.environment, settings);
    // They have been read; what is started from here on need not find them.
    process::hide(known.iter().map(|known| &known.value));
    let secrets = known.into_iter().filter(|known| secrets::is_whole(&app.environment, known));
    let secrets: Vec<Secret> = secrets.map(|known| known.value).collect();
    let environment =
        child_environment(app.environment.variables(), &settings.commands.env, &settings.workspace, &secrets);
    let limits = CommandLimits {
        processes: settings.commands.max_processes,
        memory_bytes: settings.commands.max_memory_mib.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
    };
    let launcher = Launcher::new(environment, secrets).limited(limits);
    let state = &settings.directories.state;
    if settings.sandbox_off {
        launcher.remembering(&state.join("sandbox-off.json"))
    } else {
        launcher.confined(Confinement::new(ground(app, settings))).remembering(&state.join("sandbox.json"))
    }
}

/// What a person should know about the confinement of this run, when it is not the usual one.
pub fn about_sandbox(settings: &Settings, launcher: &Launcher) -> Vec<String> {
    let tier = launcher.tier();
    let held = match (settings.sandbox_off, tier.confines()) {
        (true, _) => Some(messages::SANDBOX_OFF.to_owned()),
        (false, false) => Some(messages::not_confined(tier.meaning())),
        (false, true) => settings.sandbox.network.then(|| messages::NETWORK_ON.to_owned()),
    };
    let absent = settings.sandbox.writable.iter().filter(|place| !Path::new(place).is_dir());
    let absent = absent.map(|place| messages::nothing_to_write(place));
    held.into_iter().chain(absent).chain(launcher.narrowed().map(messages::around_hidden)).collect()
}

/// What commands and hooks reach.
fn ground(app: &App, settings: &Settings) -> Ground {
    let (sandbox, state) = (&settings.sandbox, &settings.directories.state);
    let hidden = sandbox.hidden.iter().map(PathBuf::from);
    let config = &settings.directories.config;
    let config = config.canonicalize().unwrap_or_else(|_| config.clone());
    Ground {
        workspace: settings.workspace.clone(),
        home: app.environment.home().map(Path::to_owned),
        variables: app.environment.variables().clone(),
        writable: sandbox.writable.iter().map(PathBuf::from).collect(),
        hidden: hidden.chain([state.clone(), kept_answers(settings)]).collect(),
        trusted: settings.trusted_files.clone(),
        settled: [USER_FILE, USER_AGENTS].map(|name| config.join(name)).to_vec(),
        protected: settings.policy.protected_files.clone(),
        network: sandbox.network,
        caches: settings.directories.cache_of(&settings.workspace),
        temporary: settings.state.join("tmp"),
        quarantine: settings.state.join("quarantine"),
    }
}

/// What of the workspace commands do not see.
pub fn unseen(app: &App, settings: &Settings) -> BTreeSet<PathBuf> {
    places::unseen(&ground(app, settings))
}

/// What the policy is made from: the settings, what holds commands here, and for tools what commands do not see or change.
fn policy_options(app: &App, settings: &Settings, tier: Tier) -> PolicyOptions {
    let mut options = settings.policy.clone();
    options.contained = settings.commands.trust_sandbox && tier.confines();
    let ground = ground(app, settings);
    let pattern = |path: &Path| Some(literal_pattern(path.strip_prefix(&ground.workspace).ok()?.to_str()?));
    options.sensitive_files.extend(places::unseen(&ground).iter().filter_map(|path| pattern(path)));
    options.protected_files.extend(places::startup(&ground).filter_map(|path| pattern(&path)));
    options
}

/// Signals from now on cancel the run; a second one ends every child and the process.
///
/// # Errors
/// When the system does not let us listen.
pub fn listen(app: &App, launcher: &Launcher, language: Language) -> CliResult<Interrupt> {
    let terminal = Arc::clone(&app.terminal);
    let running = launcher.running();
    let reactions = Reactions {
        first: Box::new(move || drop(terminal.say(Style::Caution, messages::interrupting(language)))),
        second: Box::new(move || running.kill_all()),
    };
    Interrupt::install(reactions)
        .map_err(|error| CliError::new(ErrorKind::Internal, format!("cannot listen for signals: {error}")))
}

/// The model.
///
/// # Errors
/// When none is chosen or found, or its key is missing.
pub async fn model(app: &App, settings: &Settings) -> CliResult<Box<dyn LlmClient>> {
    let options = model_options(app, settings);
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let connected = connect(&options, &variable, Rc::clone(&app.source)).await;
    let model = connected.map_err(|error| CliError { kind: error.kind, cause: error.into() })?;
    if !settings.llm.cache.enabled {
        return Ok(model);
    }
    let redactor = app.redactor(settings);
    Ok(Box::new(CachedModel::new(model, answers(settings)?, Rc::clone(&app.source), redactor)))
}

/// What the settings say about the model.
pub fn model_options(app: &App, settings: &Settings) -> ModelOptions {
    let llm = &settings.llm;
    ModelOptions {
        model: llm.model.clone(),
        api_base: llm.api_base.clone(),
        api_key: settings.api_key.clone(),
        api_key_env: llm.api_key_env.clone(),
        temperature: llm.temperature,
        window: llm.context_window,
        effort: llm.effort,
        prompt_caching: llm.prompt_caching,
        retries: llm.retries,
        max_retry_after: Duration::from_secs(llm.max_retry_after),
        deadlines: Deadlines {
            connect: Duration::from_secs(llm.timeouts.connect_seconds),
            first_byte: Duration::from_secs(llm.timeouts.first_byte_seconds),
            silence: Duration::from_secs(llm.timeouts.silence_seconds),
            whole: Duration::from_secs(llm.timeouts.call_seconds),
        },
        // On a terminal only: a person sees what was found, in a script nothing is guessed.
        probe_local: app.terminal.can_ask(),
        own: llm.providers.clone(),
    }
}

/// Where answers are kept unless the configuration says otherwise.
fn kept_answers(settings: &Settings) -> PathBuf {
    settings.directories.cache.join("answers")
}

/// Where answers are kept: never where the model could put some of its own.
///
/// # Errors
/// When the directory is part of the workspace or cannot be made.
pub fn answers(settings: &Settings) -> CliResult<response_cache::store::Store> {
    let cache = &settings.llm.cache;
    let own = kept_answers(settings);
    let dir = cache.dir.as_ref().map_or_else(|| own.clone(), PathBuf::from);
    let real = dir.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    if dir != own && real.is_some_and(|real| real.starts_with(&settings.workspace)) {
        let message =
            "llm.cache.dir is a part of the workspace, where the model could write answers of its own";
        return Err(CliError::new(ErrorKind::Config, message));
    }
    let ttl = Duration::from_hours(cache.ttl_hours.into());
    response_cache::store::Store::open(dir.clone(), ttl).map_err(|error| {
        let message = format!("llm.cache.dir: cannot make {}: {error}", dir.display());
        CliError::new(ErrorKind::Config, message)
    })
}

/// The limits of a run whose requests offer `tools`.
pub fn limits(settings: &Settings, caps: Caps, models: Chain<Terms>, tools: &[ToolDefinition]) -> Limits {
    let (tools_tokens, tools_bytes) = measured(tools);
    Limits {
        max_steps: settings.agent.max_steps,
        timeout: settings.timeout,
        step_timeout: settings.step_timeout,
        on_limit: settings.run_loop.on_limit,
        max_continuations: settings.run_loop.max_continuations,
        max_malformed: settings.run_loop.max_malformed,
        breakers: settings.run_loop.breakers(),
        tells_what_is_left: settings.run_loop.tell_what_is_left,
        language: settings.language,
        caps: Caps { tools_tokens, ..caps },
        models,
        tools_bytes,
        gate_rounds: (!settings.guardrails.quality_gates.is_empty())
            .then_some(settings.guardrails.max_gate_rounds),
        compaction: settings.context.compaction(),
        evaluation: settings.evaluation.limits(),
    }
}

/// The tools there are.
pub fn toolbox(settings: &Settings) -> Toolbox {
    let options =
        ToolOptions { allow_delete: settings.allow_delete, max_result_tokens: max_result_tokens(settings) };
    let mut more: Vec<Box<dyn Tool>> = Vec::new();
    if settings.commands.enabled {
        more.push(Box::new(RunCommand::new(RunCommandOptions {
            default_timeout: Duration::from_secs(settings.commands.default_timeout),
            max_output_lines: settings.commands.max_output_lines,
            idle_timeout: settings.commands.idle_timeout.map(Duration::from_secs),
        })));
        more.push(Box::new(CommandOutput));
        more.push(Box::new(StopCommand));
    }
    if settings.web.enabled {
        more.push(Box::new(WebFetch { fetcher: fetcher(&settings.web, &settings.policy.rules) }));
    }
    Toolbox::standard(options, more)
}

/// The tools that the model called `name` is offered.
///
/// # Errors
/// When the embedded table of edit formats is not well-formed, which a test rules out.
pub fn toolbox_for(settings: &Settings, name: &str) -> CliResult<Toolbox> {
    let format = match settings.tools.edit_format {
        Some(format) => format,
        None => EditFormat::of(name)
            .map_err(|error| CliError { kind: ErrorKind::Internal, cause: error.into() })?,
    };
    Ok(toolbox(settings).restricted(|tool| format.offers(tool)))
}

/// What may be fetched; entries that are none were refused when the configuration was read.
fn fetcher(web: &Web, rules: &[PolicyRule]) -> Fetcher {
    let ruled =
        rules.iter().filter(|rule| rule.action != Action::Allow).filter_map(|rule| rule.host.as_ref());
    Fetcher {
        ruled: ruled.filter_map(|text| HostPattern::parse(text).ok()).collect(),
        hosts: web.allowed_hosts.iter().filter_map(|text| HostPattern::parse(text).ok()).collect(),
        private: web.allowed_private.iter().filter_map(|text| text.parse().ok()).collect(),
        shown: web.allowed_hosts.join(", "),
    }
}

fn max_result_tokens(settings: &Settings) -> usize {
    usize::try_from(settings.context.max_tool_result_tokens).unwrap_or(usize::MAX)
}

/// The engine of a run.
///
/// # Errors
/// When the workspace cannot be opened, or a pattern or hook of the configuration is wrong.
pub fn engine(app: &App, settings: &Settings, bench: Bench, manner: Manner) -> CliResult<Engine> {
    let wrong = |error: anyhow::Error| CliError { kind: ErrorKind::Config, cause: error };
    let workspace = Workspace::open(&settings.workspace).map_err(|error| wrong(error.into()))?;
    let policy = policy_options(app, settings, bench.launcher.tier());
    let policy = Arc::new(Policy::new(policy).map_err(|error| wrong(error.into()))?);
    workspace.keep_from_tools(Policy::guard(&policy));
    workspace.keep_repositories(bench.launcher.repositories());
    workspace.keep_records_in(kept::records(settings));
    let (baseline, checkpoints) = match bench.kept {
        Some(Kept { contents, baseline, checkpoints }) => {
            workspace.keep_displaced(contents);
            (Some(baseline), checkpoints)
        }
        None => (None, None),
    };
    let commands = CommandOptions::new(&settings.commands.blocked_patterns, &settings.commands.safe_commands)
        .map_err(|error| wrong(error.into()))?;
    let root = settings.policy.root.clone();
    let guardrails = Guardrails::new(settings.guardrails.clone(), root, settings.language)
        .map_err(|error| wrong(error.into()))?;
    let hooks = Hooks::new(settings.hooks.clone(), &settings.workspace, &bench.launcher)
        .map_err(|error| wrong(error.into()))?;
    let approver: Rc<dyn Approver> = match manner.asked {
        Some(token) => Rc::new(AtTerminal::new(Arc::clone(&app.terminal), token, settings.language)),
        None => Rc::new(Nobody),
    };
    Ok(Engine {
        toolbox: bench.toolbox,
        policy,
        guardrails: Rc::new(guardrails),
        commands,
        hooks: Rc::new(hooks),
        gates: settings.guardrails.quality_gates.clone(),
        approver,
        granted: Rc::default(),
        approvals: manner.approvals,
        holds: Cell::new(false),
        source: Rc::clone(&app.source),
        baseline: Arc::new(Mutex::new(Baseline::new(workspace.clone(), baseline))),
        workspace: Rc::new(workspace),
        launcher: bench.launcher,
        ledger: Rc::new(Ledger::default()),
        background: Rc::default(),
        outputs: Rc::new(Outputs {
            dir: bench.outputs,
            above: None,
            redactor: Arc::clone(bench.emitter.redactor()),
        }),
        emitter: bench.emitter,
        options: EngineOptions {
            parallel: settings.tools.parallel,
            unanswered: manner.unanswered,
            dry_run: manner.dry_run,
            result_format: settings.tools.result_format,
            max_result_tokens: max_result_tokens(settings),
            timeout: settings.tools.timeout_seconds.map(Duration::from_secs),
        },
        stopped: Cell::new(false),
        checkpoints: checkpoints.filter(|_| !manner.dry_run),
        unwatched_told: Cell::new(false),
    })
}

/// The tools that the agent may use, as the model is told about them.
pub fn definitions(engine: &Engine) -> Vec<ToolDefinition> {
    let offered = engine.toolbox.definitions().iter().filter(|tool| engine.policy.offers(&tool.name));
    offered.cloned().collect()
}

/// What the model has seen in earlier runs of the session, by content, and what they count towards limits.
pub fn restore(engine: &Engine, known: &Known, session: &Session) {
    engine.guardrails.restore(known.counts.clone());
    for text in session.results() {
        engine.emitter.redactor().recall(text);
    }
    for (path, hash) in &known.seen {
        engine.ledger.note(path, hash);
    }
}

/// Undoes changes of several files that a process now dead did not end; says what became of them.
pub fn recover(workspace: &Workspace) -> Vec<String> {
    let Recovered { restored, left, unread } = workspace.recover();
    let restored = restored.iter().map(|path| messages::change_undone(path));
    let left = left.iter().map(|it| messages::change_left(&it.path, &it.record));
    let unread = unread.iter().map(|it| messages::change_unread(&it.path, &it.why));
    restored.chain(left).chain(unread).collect()
}
