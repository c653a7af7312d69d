//! The effective settings of a run, validated and complete.

use super::agents::{self, Agent};
use super::auto_review::AutoReviewSettings;
use super::chat::ChatSettings;
use super::context::Context;
use super::environment::{Directories, Environment};
use super::error::{ConfigError, did_you_mean, sanitize};
use super::evaluation::EvaluationSettings;
use super::fleet::FleetSettings;
use super::health::HealthSettings;
use super::hub::HubSettings;
use super::layers::Layers;
use super::mcp::McpSettings;
use super::memory::MemorySettings;
use super::overrides::Overrides;
use super::parallel::ParallelSettings;
use super::ralph::RalphSettings;
use super::run_loop::RunLoop;
use super::schema::{
    AnswerCache, CheckpointSettings, Commands, Costs, Document, Indexer, Llm, Logging, Sandbox, Sessions,
    Tools,
};
use super::skills::SkillSettings;
use super::subagents::Subagents;
use super::telemetry::TelemetrySettings;
use super::web::Web;
use agent_core::language::Language;
use agent_core::message::MCP_PREFIX;
use agent_core::secret::Secret;
use agent_engine::approver::NoApprover;
use agent_engine::guardrails::GuardrailSettings;
use agent_engine::hooks::{HookEvent, HookRule};
use agent_engine::policy::{self, AutoScope, PolicyOptions};
use agent_llm::provider_table::{self, ProviderTableError};
use agent_tools::toolbox;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The settings of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The project directory, canonical.
    pub workspace: PathBuf,
    /// The user's directories.
    pub directories: Directories,
    /// The state directory of this workspace, for sessions and logs.
    pub state: PathBuf,
    /// The agent that runs.
    pub agent: Agent,
    /// All agents, by name.
    pub agents: Vec<Agent>,
    /// Language of the log, of refusals and of the closing text of a run.
    pub language: Language,
    /// The language model.
    pub llm: Llm,
    /// The API key from the command line.
    pub api_key: Option<Secret>,
    /// Time limit of the run.
    pub timeout: Option<Duration>,
    /// Time limit of one step.
    pub step_timeout: Option<Duration>,
    /// Whether `delete_file` is available.
    pub allow_delete: bool,
    /// The project overview in the system message.
    pub indexer: Indexer,
    /// Whether a memory is used.
    pub memory: MemorySettings,
    /// Skills that the run offers.
    pub skills: SkillSettings,
    /// Git commits of the changes that a session makes to files.
    pub checkpoints: CheckpointSettings,
    /// Size of the model's input and its compaction.
    pub context: Context,
    /// How tool calls run.
    pub tools: Tools,
    /// The agents to which the model can delegate work.
    pub subagents: Subagents,
    /// The tool `run_command`.
    pub commands: Commands,
    /// Confinement of commands and hooks; its paths are absolute.
    pub sandbox: Sandbox,
    /// Absolute paths of files that commands and hooks cannot change, because the trust in the project depends on their content.
    pub trusted_files: Vec<PathBuf>,
    /// Whether commands are not confined at all; only a flag can set this.
    pub sandbox_off: bool,
    /// Limits of a program that drives the run.
    pub client_limits: ClientLimits,
    /// The tools `web_fetch` and `web_search`.
    pub web: Web,
    /// MCP servers; none with `--disable-mcp`.
    pub mcp: McpSettings,
    /// `agent chat`.
    pub chat: ChatSettings,
    /// `agent loop`.
    pub ralph: RalphSettings,
    /// `agent parallel`.
    pub parallel: ParallelSettings,
    /// The queue of tasks.
    pub fleet: FleetSettings,
    /// The Hub.
    pub hub: HubSettings,
    /// The key of `web_search`.
    pub search_key: Option<Secret>,
    /// Hooks by event.
    pub hooks: BTreeMap<HookEvent, Vec<HookRule>>,
    /// The options of the policy on tool calls.
    pub policy: PolicyOptions,
    /// What happens to a call when no user can approve it.
    pub approvals: NoApprover,
    /// The guardrails: limits on every call and every text.
    pub guardrails: GuardrailSettings,
    /// Behaviour of the agent loop at its limits.
    pub run_loop: RunLoop,
    /// Whether answers are evaluated.
    pub evaluation: EvaluationSettings,
    /// Review of a run's changes.
    pub auto_review: AutoReviewSettings,
    /// Spending limits; the file is absolute.
    pub costs: Costs,
    /// Logging; the file is absolute.
    pub logging: Logging,
    /// Storage of earlier sessions.
    pub sessions: Sessions,
    /// Export of spans; the file is absolute.
    pub telemetry: TelemetrySettings,
    /// Figures on the code.
    pub health: HealthSettings,
}

/// Deserializes the merged layers.
fn document(layers: &Layers) -> Result<Document, ConfigError> {
    serde_json::from_value(layers.to_json())
        .map_err(|error| ConfigError::new(format!("the settings are inconsistent: {error}")))
}

impl Settings {
    /// Creates the settings from merged layers.
    ///
    /// # Errors
    /// Fails for an unknown agent, an agent without instructions or an invalid provider.
    pub fn resolve(
        layers: &Layers,
        flags: &Overrides,
        environment: &Environment,
        directories: Directories,
        workspace: PathBuf,
    ) -> Result<Self, ConfigError> {
        let document = document(layers)?;
        check(&document, layers)?;
        check_writable_dirs(&flags.allow_write, environment)?;
        let agents = agents::resolve_agents(layers, document.agents.clone().into_iter())?;
        let agent = agents::select(&agents, flags.agent.as_deref().unwrap_or(agents::DEFAULT_AGENT))?.clone();
        let guardrails = document.guardrails.clone().if_enabled();
        let mut policy = Self::policy(&document, &guardrails, &agent, &workspace);
        policy.protected_files =
            protect_own_directories(&guardrails.protected_files, &directories, &workspace);
        let absolute = |file: String| environment.absolute(&file).to_string_lossy().into_owned();
        let telemetry = document.telemetry;
        Ok(Self {
            state: directories.workspace_state(&workspace),
            workspace,
            directories,
            agent,
            agents,
            language: document.language,
            llm: Llm {
                cache: AnswerCache { dir: document.llm.cache.dir.map(absolute), ..document.llm.cache },
                ..document.llm
            },
            api_key: flags.api_key.clone(),
            timeout: document.timeout_seconds.map(Duration::from_secs),
            step_timeout: document.step_timeout_seconds.map(Duration::from_secs),
            allow_delete: document.workspace.allow_delete,
            indexer: document.indexer,
            memory: document.memory,
            skills: document.skills,
            checkpoints: document.checkpoints,
            context: document.context,
            tools: document.tools,
            subagents: document.subagents,
            commands: document.commands,
            sandbox: document.sandbox.map_paths(absolute),
            trusted_files: Vec::new(),
            sandbox_off: flags.sandbox_off,
            client_limits: ClientLimits::default(),
            search_key: document.web.search.key(environment),
            web: document.web,
            mcp: document.mcp.unless(flags.disable_mcp),
            chat: document.chat,
            ralph: document.ralph,
            parallel: document.parallel,
            fleet: document.fleet,
            hub: document.hub,
            hooks: document.hooks.into_iter().filter(|(_, rules)| !rules.is_empty()).collect(),
            policy,
            approvals: document.policy.approvals,
            guardrails,
            run_loop: document.run_loop,
            evaluation: document.evaluation,
            auto_review: document.auto_review,
            costs: Costs { prices_file: document.costs.prices_file.map(absolute), ..document.costs },
            logging: Logging { file: document.logging.file.map(absolute), ..document.logging },
            sessions: document.sessions,
            telemetry: TelemetrySettings { file: telemetry.file.map(absolute), ..telemetry },
            health: document.health,
        })
    }

    /// Returns the options of the policy, without the protected files.
    fn policy(
        document: &Document,
        guardrails: &GuardrailSettings,
        agent: &Agent,
        workspace: &Path,
    ) -> PolicyOptions {
        PolicyOptions {
            mode: agent.mode,
            agent: agent.name.clone(),
            allowed_tools: agent.allowed_tools.clone(),
            protected_files: Vec::new(),
            sensitive_files: guardrails.sensitive_files.clone(),
            blocked_commands: guardrails.blocked_commands.clone(),
            allowed_only: document.commands.allowed_only,
            trusts_sandbox: false,
            auto: AutoScope::default(),
            rules: document.policy.rules.clone(),
            missing_grants: BTreeMap::new(),
            root: workspace.to_string_lossy().into_owned(),
            language: document.language,
        }
    }

    /// Protects `files` (paths from the root of the workspace) from changes, so that only their trusted content runs.
    pub fn protect_trusted_files<'a>(&mut self, files: impl Iterator<Item = &'a Path>) {
        // No tool and no command writes outside the workspace.
        for file in files.filter(|file| !file.starts_with("..")) {
            self.policy.protected_files.push(policy::literal_pattern(&file.to_string_lossy()));
            self.trusted_files.push(self.workspace.join(file));
        }
    }
}

/// Creates the error for an invalid provider, with the location of its setting.
fn provider_error(error: &ProviderTableError, layers: &Layers) -> ConfigError {
    let ProviderTableError::InvalidOverride { name, problem } = error else {
        return ConfigError::new(error.to_string());
    };
    layers.locate(ConfigError::new(problem.clone()), &format!("llm.providers.{name}"))
}

/// Checks what the rules of single keys cannot check.
fn check(document: &Document, layers: &Layers) -> Result<(), ConfigError> {
    if !document.llm.providers.is_empty() {
        provider_table::load(&document.llm.providers).map_err(|error| provider_error(&error, layers))?;
    }
    let search = document.web.search.service();
    search.map_err(|why| layers.locate(ConfigError::new(why), "web.search.provider"))?;
    document.mcp.check(layers)?;
    check_kept_tools(&document.tools, layers)
}

/// Checks that the tools whose results are kept exist.
fn check_kept_tools(tools: &Tools, layers: &Layers) -> Result<(), ConfigError> {
    let known = toolbox::KEEPABLE;
    match tools.keep_results.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let key = format!("tools.keep_results.{}", sanitize(name));
            let mut error = ConfigError::new(format!("results are kept of {}", known.join(", ")));
            error.hint = did_you_mean(name, known.into_iter());
            Err(layers.locate(error, &key))
        }
    }
}

/// Limits of a program that drives the run; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// Whether neither tools nor commands may change a file of the workspace.
    pub read_only: bool,
    /// The tools that are left.
    pub tools: OfferedTools,
}

/// The tools that are left of those that there are; by default all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTools {
    /// The tools of this program; `None`: all. Those of MCP servers are not affected.
    pub only: Option<Vec<String>>,
    /// Tools that are left out; `NAME*` stands for all that begin so.
    pub except: Vec<String>,
}

impl OfferedTools {
    /// Checks whether the tool `name` is left.
    pub fn permits(&self, name: &str) -> bool {
        let fits = |entry: &String| match entry.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => entry == name,
        };
        let is_selected = |only: &Vec<String>| only.iter().any(|entry| entry == name);
        let is_of_server = name.starts_with(MCP_PREFIX);
        (is_of_server || self.only.as_ref().is_none_or(is_selected)) && !self.except.iter().any(fits)
    }
}

/// Protects the user's own directories if the workspace contains them, for example when it is the home directory.
fn protect_own_directories(patterns: &[String], own: &Directories, workspace: &Path) -> Vec<String> {
    let mut patterns = patterns.to_vec();
    for directory in [&own.config, &own.state, &own.cache] {
        let real = directory.canonicalize().unwrap_or_else(|_| directory.clone());
        match real.strip_prefix(workspace) {
            Ok(relative) if relative.components().next().is_some() => {
                patterns.push(policy::literal_pattern(&relative.to_string_lossy()));
            }
            _ => {}
        }
    }
    patterns
}

/// Checks that the directories of `--allow-write` exist: otherwise a typo would only show when a write fails.
fn check_writable_dirs(directories: &[PathBuf], environment: &Environment) -> Result<(), ConfigError> {
    match directories.iter().find(|directory| !environment.current_dir().join(directory).is_dir()) {
        None => Ok(()),
        Some(directory) => {
            let message =
                format!("{} is not a directory, so commands cannot write there", directory.display());
            Err(ConfigError::new(message).file("--allow-write"))
        }
    }
}
