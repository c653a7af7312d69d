//! Builds the parts of a run from the settings: launcher, sandbox, model, tools, policy and engine.

use crate::app::App;
use crate::approver::InteractionOptions;
use crate::costs::definitions_size;
use crate::error::{AppError, AppResult, InsufficientSandbox};
use crate::toolbox::max_result_tokens;
use crate::undo_store::{self, UndoStore};
use crate::{secrets, system_message, toolbox};
use agent_config::load::{USER_AGENTS, USER_FILE};
use agent_config::schema::SandboxMode;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::image::ImageStore;
use agent_core::language::Language;
use agent_core::limits::{FallbackChain, Limits, ModelTerms, SpendingCaps};
use agent_core::secret::Secret;
use agent_engine::approver::NoApprover;
use agent_engine::command_class::{BlockedPatternError, CommandOptions};
use agent_engine::guardrails::Guardrails;
use agent_engine::hooks::Hooks;
use agent_engine::nested_instructions::NestedInstructions;
use agent_engine::policy::{AutoScope, Policy, PolicyOptions, literal_pattern};
use agent_engine::skill_set::SkillSet;
use agent_engine::{Engine, EngineOptions};
use agent_http::Deadlines;
use agent_journal::kept_results::KeptResults;
use agent_journal::played_turns::PlayedTurns;
use agent_llm::connect::connect;
use agent_llm::model_options::ModelOptions;
use agent_llm::response_cache::{self, CachedModel};
use agent_llm::{LlmClient, ToolDefinition};
use agent_messages as messages;
use agent_process as process;
use agent_process::environment::child_environment;
use agent_process::launch::{Launcher, Tier};
use agent_process::limits::CommandLimits;
use agent_process::sandbox::confinement::Confinement;
use agent_process::sandbox::policy;
use agent_process::sandbox::repositories::is_in_own_work_tree;
use agent_process::sandbox::settings::{SandboxSettings, WorkspaceAccess};
use agent_runtime::emitter::Emitter;
use agent_runtime::interrupt::SignalHandlers;
use agent_runtime::private_file::check_directory;
use agent_session::session::Session;
use agent_session::session_state::SessionState;
use agent_terminal::Style;
use agent_tools::observed_files::ObservedFiles;
use agent_tools::outputs::Outputs;
use agent_tools::toolbox::Toolbox;
use agent_workspace::baseline::Baseline;
use agent_workspace::transaction::Recovery;
use agent_workspace::{FileProtection, Workspace};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The directory for the temporary directories of runs, in the state directory of a workspace.
const TEMPORARY: &str = "tmp";

/// The number of the system's error for too many open files (EMFILE), as it stands in the texts of errors.
const TOO_MANY_FILES: &str = "(os error 24)";

/// The parts from which an engine is built.
pub struct EngineParts {
    /// Starts child processes.
    pub launcher: Rc<Launcher>,
    /// Emits the events.
    pub emitter: Rc<Emitter>,
    /// The directory for long outputs.
    pub outputs: PathBuf,
    /// Stores images; `None` without a session.
    pub images: Option<Rc<dyn ImageStore>>,
    /// Storage for undo; `None` without a session that could undo changes.
    pub undo_store: Option<UndoStore>,
    /// The tools.
    pub toolbox: Toolbox,
    /// The skills that the run offers.
    pub skills: SkillSet,
    /// Results of earlier sessions.
    pub kept: Option<Arc<KeptResults>>,
}

/// Creates the launcher of child processes, with an environment without API keys and with the configured confinement.
///
/// # Errors
/// Fails when the required confinement is unavailable, or its availability cannot be determined.
pub fn launcher(app: &App, settings: &Settings) -> AppResult<Rc<Launcher>> {
    let launcher =
        new_launcher(app, settings).with_detected_tier().map_err(|error| launcher_error(settings, &error))?;
    let tier = launcher.tier();
    if !settings.sandbox_off && settings.sandbox.mode == SandboxMode::Require && !tier.has_own_view() {
        return Err(AppError {
            kind: FailureKind::Config,
            cause: InsufficientSandbox { found: tier }.into(),
        });
    }
    if needs_proxy(settings) && !tier.has_own_view() {
        let tier = if settings.sandbox_off { Tier::Group } else { tier };
        return Err(AppError::new(FailureKind::Config, messages::allowed_hosts_need_sandbox(tier.name())));
    }
    Ok(Rc::new(launcher))
}

/// Checks whether commands reach no network.
pub fn is_offline(settings: &Settings) -> bool {
    !settings.sandbox.network && settings.sandbox.allowed_hosts.is_empty()
}

/// Checks whether commands reach some hosts, and no others.
fn needs_proxy(settings: &Settings) -> bool {
    !settings.sandbox.network && !settings.sandbox.allowed_hosts.is_empty()
}

/// Creates a launcher and probes the sandbox anew instead of using cached results.
///
/// # Errors
/// Fails when the sandbox cannot be probed.
pub fn freshly_probed_launcher(app: &App, settings: &Settings) -> AppResult<Launcher> {
    new_launcher(app, settings).with_probed_tier().map_err(|error| launcher_error(settings, &error))
}

/// Returns the cause of a launcher that could not be created: the limit on open files, the state directory, or the sandbox.
fn launcher_error(settings: &Settings, error: &std::io::Error) -> AppError {
    let state = &settings.state.join(TEMPORARY);
    let text = if error.to_string().contains(TOO_MANY_FILES) {
        messages::too_many_open_files(error)
    } else if let Err(problem) = check_directory(state) {
        messages::state_directory_unusable(state, &problem)
    } else if settings.sandbox_off {
        messages::commands_not_startable(error)
    } else {
        messages::sandbox_probe_failed(error)
    };
    AppError::new(FailureKind::Config, text)
}

fn new_launcher(app: &App, settings: &Settings) -> Launcher {
    let known = secrets::known(&app.environment, settings);
    // The secrets have been read; child processes need not find them.
    process::scrub_secrets(known.iter().map(|known| &known.value));
    let secrets = known.into_iter().filter(|known| secrets::is_whole_variable(&app.environment, known));
    let secrets: Vec<Secret> = secrets.map(|known| known.value).collect();
    let environment =
        child_environment(app.environment.variables(), &settings.commands.env, &settings.workspace, &secrets);
    let limits = CommandLimits {
        processes: settings.commands.max_processes,
        memory_bytes: settings.commands.max_memory_mib.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
    };
    let mut launcher = Launcher::new(environment, secrets).with_limits(limits);
    if let Some(program) = &app.launcher {
        launcher = launcher.with_executable(program.clone());
    }
    if needs_proxy(settings) {
        launcher = launcher.with_proxy(toolbox::command_proxy(settings));
    }
    let state = &settings.directories.state;
    if settings.sandbox_off {
        launcher.with_tier_cache(&state.join("sandbox-off.json"))
    } else {
        launcher
            .with_confinement(Confinement::new(sandbox_settings(app, settings)))
            .with_tier_cache(&state.join("sandbox.json"))
    }
}

/// Returns notices on the confinement of this run if it is weaker than usual.
pub fn sandbox_notices(settings: &Settings, launcher: &Launcher) -> Vec<String> {
    let tier = launcher.tier();
    let notice = match (settings.sandbox_off, tier.confines()) {
        (true, _) => Some(messages::SANDBOX_OFF.to_owned()),
        (false, false) => Some(messages::not_confined(tier.meaning())),
        (false, true) if settings.sandbox.network => Some(messages::NETWORK_ALLOWED.to_owned()),
        (false, true) => {
            needs_proxy(settings).then(|| messages::hosts_allowed(&settings.sandbox.allowed_hosts.join(", ")))
        }
    };
    let absent = settings.sandbox.writable.iter().filter(|directory| !Path::new(directory).is_dir());
    let absent = absent.map(|directory| messages::writable_dir_missing(directory));
    notice
        .into_iter()
        .chain(absent)
        .chain(launcher.unlistable_root().map(messages::hidden_directory_notice))
        .collect()
}

/// Returns the sandbox settings of commands and hooks.
pub(crate) fn sandbox_settings(app: &App, settings: &Settings) -> SandboxSettings {
    let (sandbox, state) = (&settings.sandbox, &settings.directories.state);
    let hidden = sandbox.hidden.iter().map(PathBuf::from);
    let config = &settings.directories.config;
    let config = config.canonicalize().unwrap_or_else(|_| config.clone());
    SandboxSettings {
        workspace: settings.workspace.clone(),
        access: if settings.client_limits.read_only { WorkspaceAccess::Read } else { WorkspaceAccess::Write },
        home: app.environment.home().map(Path::to_owned),
        variables: app.environment.variables().clone(),
        writable: sandbox.writable.iter().map(PathBuf::from).collect(),
        hidden: hidden.chain([state.clone(), default_answer_cache_dir(settings)]).collect(),
        trusted: settings.trusted_files.clone(),
        own_configuration: [USER_FILE, USER_AGENTS].map(|name| config.join(name)).to_vec(),
        protected: settings.policy.protected_files.clone(),
        sensitive: settings.policy.sensitive_files.clone(),
        network: sandbox.network,
        has_proxy: needs_proxy(settings),
        caches: settings.directories.workspace_cache(&settings.workspace),
        temporary: settings.state.join(TEMPORARY),
        quarantine: settings.state.join("quarantine"),
    }
}

/// Returns the paths in the workspace that are hidden from commands.
pub fn hidden_in_workspace(app: &App, settings: &Settings) -> BTreeSet<PathBuf> {
    policy::hidden_in_workspace(&sandbox_settings(app, settings))
}

/// Opens the workspace and compiles the policy, whose file rules the workspace applies.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern or rule of the configuration is invalid.
pub fn guarded_workspace(app: &App, settings: &Settings, tier: Tier) -> AppResult<(Workspace, Arc<Policy>)> {
    let wrong = |error: anyhow::Error| AppError { kind: FailureKind::Config, cause: error };
    let workspace = Workspace::open(&settings.workspace).map_err(|error| wrong(error.into()))?;
    let policy = policy_options(app, settings, tier);
    let policy = Arc::new(Policy::new(policy).map_err(|error| wrong(error.into()))?);
    workspace.protect_files(Policy::file_guard(&policy));
    Ok((workspace, policy))
}

/// Opens the workspace for undoing what file tools changed: the files that they may not change are not restored either.
///
/// # Errors
/// Fails like [`guarded_workspace`].
pub fn workspace_for_undo(app: &App, settings: &Settings) -> AppResult<Workspace> {
    let wrong = |error: anyhow::Error| AppError { kind: FailureKind::Config, cause: error };
    let workspace = Workspace::open(&settings.workspace).map_err(|error| wrong(error.into()))?;
    let policy = Policy::new(policy_options(app, settings, Tier::default()));
    let guard = Policy::file_guard(&Arc::new(policy.map_err(|error| wrong(error.into()))?));
    workspace.protect_files(FileProtection { sensitive: Arc::new(|_| false), ..guard });
    Ok(workspace)
}

/// Returns the policy options from the settings, the sandbox tier, and the paths that are hidden or protected for tools.
fn policy_options(app: &App, settings: &Settings, tier: Tier) -> PolicyOptions {
    let mut options = settings.policy.clone();
    options.trusts_sandbox = settings.commands.trust_sandbox && tier.confines();
    options.auto =
        AutoScope { edits: is_in_own_work_tree(&settings.workspace), commands: is_offline(settings) };
    let sandbox_settings = sandbox_settings(app, settings);
    let pattern =
        |path: &Path| Some(literal_pattern(path.strip_prefix(&sandbox_settings.workspace).ok()?.to_str()?));
    options
        .sensitive_files
        .extend(policy::hidden_in_workspace(&sandbox_settings).iter().filter_map(|path| pattern(path)));
    options
        .protected_files
        .extend(policy::startup_files(&sandbox_settings).filter_map(|path| pattern(&path)));
    options
}

/// Like [`arm_interrupt`], without a word about it.
///
/// # Errors
/// Fails when the system refuses the signal handlers.
pub fn arm_silently(app: &App, launcher: &Launcher) -> AppResult<CancellationToken> {
    let running = launcher.registry();
    let on_second_signal = Box::new(move || running.kill_all());
    Ok(app.interrupt()?.arm(SignalHandlers { on_first_signal: Box::new(|| ()), on_second_signal }))
}

/// Returns a token that the next signal cancels; a second signal ends every child process of `launcher` and this process, with which
/// the launchers of runs end theirs.
///
/// # Errors
/// Fails when the system refuses the signal handlers.
pub fn arm_interrupt(
    app: &App,
    launcher: Option<&Launcher>,
    language: Language,
) -> AppResult<CancellationToken> {
    let terminal = Arc::clone(&app.terminal);
    let running = launcher.map(Launcher::registry);
    Ok(app.interrupt()?.arm(SignalHandlers {
        on_first_signal: Box::new(move || {
            drop(terminal.eprintln(Style::Warning, messages::interrupting(language)));
        }),
        on_second_signal: Box::new(move || {
            if let Some(running) = &running {
                running.kill_all();
            }
        }),
    }))
}

/// Connects the configured model; `played` are the turns that scripted models have played in the session.
///
/// # Errors
/// Fails when no model is configured or found, or its API key is missing.
pub async fn connect_model(
    app: &App,
    settings: &Settings,
    played: &PlayedTurns,
) -> AppResult<Box<dyn LlmClient>> {
    let played_turns = settings.llm.model.as_deref().map_or(0, |model| played.of(model));
    let options = ModelOptions { played_turns, ..model_options(app, settings) };
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let connected = connect(&options, &variable, Rc::clone(&app.source)).await;
    let model = connected.map_err(|error| AppError { kind: error.kind, cause: error.into() })?;
    if !settings.llm.cache.enabled {
        return Ok(model);
    }
    let redactor = app.redactor(settings);
    Ok(Box::new(CachedModel::new(model, open_answer_cache(settings)?, Rc::clone(&app.source), redactor)))
}

/// Returns the model options from the settings.
pub fn model_options(app: &App, settings: &Settings) -> ModelOptions {
    let llm = &settings.llm;
    ModelOptions {
        model: llm.model.clone(),
        api_base: llm.api_base.clone(),
        api_key: settings.api_key.clone(),
        api_key_env: llm.api_key_env.clone(),
        temperature: llm.temperature,
        window: llm.context_window,
        images: llm.images,
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
        // Only on a terminal, where the user sees the result; a script must not depend on guessing.
        probe_local: app.terminal.can_ask(),
        played_turns: 0,
        provider_overrides: llm.providers.clone(),
    }
}

/// Returns the default directory of cached answers.
fn default_answer_cache_dir(settings: &Settings) -> PathBuf {
    settings.directories.cache.join("answers")
}

/// Checks whether `path`, which need not exist, is in the workspace, whatever links lead to it.
pub fn is_in_workspace(path: &Path, settings: &Settings) -> bool {
    let real = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    real.is_some_and(|real| real.starts_with(&settings.workspace))
}

/// Opens the answer cache, which must be outside the workspace because the model could write answers there.
///
/// # Errors
/// Fails when the directory is inside the workspace or cannot be created.
pub fn open_answer_cache(settings: &Settings) -> AppResult<response_cache::store::ResponseStore> {
    let cache = &settings.llm.cache;
    let own = default_answer_cache_dir(settings);
    let dir = cache.dir.as_ref().map_or_else(|| own.clone(), PathBuf::from);
    if dir != own && is_in_workspace(&dir, settings) {
        let message = "llm.cache.dir is inside the workspace, where the model could write answers: choose another directory";
        return Err(AppError::new(FailureKind::Config, message));
    }
    let ttl = Duration::from_hours(cache.ttl_hours.into());
    response_cache::store::ResponseStore::open(dir.clone(), ttl).map_err(|error| {
        let message = format!("llm.cache.dir: cannot create {}: {error}", dir.display());
        AppError::new(FailureKind::Config, message)
    })
}

/// Returns the limits of a run whose requests offer `tools`.
pub fn limits(
    settings: &Settings,
    caps: SpendingCaps,
    models: FallbackChain<ModelTerms>,
    tools: &[ToolDefinition],
) -> Limits {
    let (tools_tokens, tools_bytes) = definitions_size(tools);
    Limits {
        max_steps: settings.agent.max_steps,
        timeout: settings.timeout,
        step_timeout: settings.step_timeout,
        on_limit: settings.run_loop.on_limit,
        max_continuations: settings.run_loop.max_continuations,
        max_malformed: settings.run_loop.max_malformed,
        breakers: settings.run_loop.breakers(),
        warns_when_low: settings.run_loop.warn_when_low,
        language: settings.language,
        caps: SpendingCaps { tools_tokens, ..caps },
        models,
        tools_bytes,
        gate_rounds: (!settings.guardrails.quality_gates.is_empty())
            .then_some(settings.guardrails.max_gate_rounds),
        compaction: settings.context.compaction(),
        evaluation: settings.evaluation.limits(),
        review_passes: settings.auto_review.enabled.then_some(settings.auto_review.max_fix_passes),
    }
}

fn command_options(app: &App, settings: &Settings) -> Result<CommandOptions, BlockedPatternError> {
    let commands = &settings.commands;
    let options = CommandOptions::new(&commands.blocked_patterns, &commands.safe_commands)?;
    Ok(options.with_roots(&settings.workspace, app.environment.home()))
}

/// Builds the engine of a run.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern or hook of the configuration is invalid.
pub fn engine(
    app: &App,
    settings: &Settings,
    parts: EngineParts,
    interaction: InteractionOptions,
) -> AppResult<Engine> {
    let wrong = |error: anyhow::Error| AppError { kind: FailureKind::Config, cause: error };
    let (workspace, policy) = guarded_workspace(app, settings, parts.launcher.tier())?;
    workspace.set_repository_check(parts.launcher.repository_check());
    workspace.set_undo_log_dir(undo_store::transactions_dir(settings));
    let (baseline, checkpoints) = match parts.undo_store {
        Some(UndoStore { contents, baseline, checkpoints }) => {
            workspace.set_content_store(contents);
            (Some(baseline), checkpoints)
        }
        None => (None, None),
    };
    let commands = command_options(app, settings).map_err(|error| wrong(error.into()))?;
    let root = settings.policy.root.clone();
    let guardrails = Guardrails::new(settings.guardrails.clone(), root, settings.language)
        .map_err(|error| wrong(error.into()))?;
    let hooks = Hooks::new(settings.hooks.clone(), &settings.workspace, &parts.launcher)
        .map_err(|error| wrong(error.into()))?
        .with_client(interaction.client.as_ref().and_then(|client| client.hooks.clone()));
    let approver = interaction.approver(app, settings);
    Ok(Engine {
        toolbox: parts.toolbox,
        policy,
        guardrails: Rc::new(guardrails),
        commands,
        hooks: Rc::new(hooks),
        gates: settings.guardrails.quality_gates.clone(),
        reviewer: None,
        approver,
        grants: interaction.grants,
        approvals: interaction.approvals,
        has_pending_call: Cell::new(false),
        answering: Cell::default(),
        source: Rc::clone(&app.source),
        baseline: Arc::new(Mutex::new(Baseline::new(workspace.clone(), baseline))),
        workspace: Rc::new(workspace),
        launcher: parts.launcher,
        observed_files: Rc::new(ObservedFiles::default()),
        background: Rc::default(),
        foreground: interaction.foreground,
        instructions: Rc::new(NestedInstructions::new(
            system_message::comparison(&app.source, settings),
            parts.skills.delimiter().clone(),
        )),
        skills: Rc::new(parts.skills),
        queue: interaction.queue,
        images: parts.images,
        outputs: Rc::new(Outputs {
            dir: parts.outputs,
            parent: None,
            kept: parts.kept,
            redactor: Arc::clone(parts.emitter.redactor()),
        }),
        emitter: parts.emitter,
        options: engine_options(settings, interaction.no_approver, interaction.dry_run),
        is_stopped_by_hook: Cell::new(false),
        checkpoints: checkpoints.filter(|_| !interaction.dry_run),
        has_warned_unlisted: Cell::new(false),
        subagent: None,
    })
}

fn engine_options(settings: &Settings, no_approver: NoApprover, dry_run: bool) -> EngineOptions {
    EngineOptions {
        parallel: settings.tools.parallel,
        no_approver,
        dry_run,
        result_format: settings.tools.result_format,
        max_result_tokens: max_result_tokens(settings),
        timeout: settings.tools.timeout_seconds.map(Duration::from_secs),
    }
}

/// Returns the definitions of the tools that the agent may use.
pub fn allowed_tool_definitions(engine: &Engine) -> Vec<ToolDefinition> {
    let offered = engine.toolbox.definitions().iter().filter(|tool| engine.policy.allows_tool(&tool.name));
    offered.cloned().collect()
}

/// Restores the engine's state from earlier runs of the session: results and files that the model has read, and counted limits.
pub fn restore_engine_state(engine: &Engine, known: &SessionState, session: &Session) {
    engine.guardrails.restore(known.counts.clone());
    for text in session.results() {
        engine.emitter.redactor().remember_markers(text);
    }
    session.tally().instruction_files.iter().for_each(|file| engine.instructions.record(file));
    for (path, hash) in &known.seen {
        engine.observed_files.record(path, hash);
    }
}

/// Rolls back changes to several files that a killed process left incomplete; returns messages about the result.
pub fn recover_transactions(workspace: &Workspace) -> Vec<String> {
    let Recovery { restored, not_restored: left, unreadable: unread } = workspace.recover();
    let restored = restored.iter().map(|path| messages::transaction_undone(path));
    let left = left.iter().map(|it| messages::transaction_not_undone(&it.path, &it.record));
    let unread = unread.iter().map(|it| messages::transaction_unreadable(&it.path, &it.why));
    restored.chain(left).chain(unread).collect()
}
