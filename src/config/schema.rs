//! Types of every configuration key, with range, unit and scope: source of the JSON Schema, the checks and the manual's table.
//! `config/default.yaml` takes its comments from here too.
//!
//! `x-scope`: who may set a key; absent means `anywhere`. `x-tightens`: values that even an untrusted project may set,
//! because they only remove permissions. `x-stricter`: the values that are stricter than the one in force, which an untrusted
//! project may set too (`key_rules::Stricter`). A key that could raise the cost of a run or loosen a limit of the user needs trust.
//! `x-merge: add`: the lists of all layers are joined; `first`: joined with the highest layer first and the project's
//! list last. `x-format`: the required format of a text, of
//! the items of a list or of the keys of a map (`key_rules::Format`). `x-unit`: what a number counts.

use super::auto_review::AutoReviewSettings;
use super::context::Context;
use super::evaluation::EvaluationSettings;
use crate::chat::ChatSettings;
use crate::fleet::FleetSettings;
use crate::health::HealthSettings;
use crate::hub::HubSettings;
use crate::mcp::McpSettings;
use crate::memory::MemorySettings;
use crate::parallel::ParallelSettings;
use crate::ralph::RalphSettings;
use crate::run_loop::RunLoop;
use crate::skills::SkillSettings;
use crate::subagents::Subagents;
use crate::telemetry::TelemetrySettings;
use crate::verbosity::Verbosity;
use crate::web::Web;
use agent_core::language::Language;
use agent_engine::approver::NoApprover;
use agent_engine::guardrails::GuardrailSettings;
use agent_engine::hooks::{HookEvent, HookRule};
use agent_engine::policy::Mode;
use agent_engine::rules::PolicyRule;
use agent_engine::{Parallelism, ResultFormat};
use agent_llm::edit_format::EditFormat;
use agent_llm::effort::Effort;
use agent_llm::provider_table::{Provider, ProviderOverrides};
use agent_workspace::index::{INDEX_ENTRIES, INDEX_TIME, IndexOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// How much the agent may do without asking; absent: the mode of the agent.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["confirm-all"]))]
    pub mode: Option<Mode>,
    /// Language of the log, of refusals and of the closing text of a run.
    pub language: Language,
    /// Maximum number of model calls per run; absent: the agent's own limit.
    #[schemars(range(min = 1, max = 10_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub max_steps: Option<u32>,
    /// Time limit of a whole run; absent: no limit.
    #[schemars(range(min = 1, max = 604_800), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub timeout_seconds: Option<u64>,
    /// Time limit of one step; absent: no separate limit.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub step_timeout_seconds: Option<u64>,
    /// The language model.
    pub llm: Llm,
    /// Agents by name: overrides of existing agents, key by key, or new agents.
    #[serde(default)]
    #[schemars(extend("x-format" = "agent-name"))]
    pub agents: BTreeMap<String, AgentOverride>,
    /// The project directory.
    pub workspace: WorkspaceSettings,
    /// The project overview in the system message.
    pub indexer: Indexer,
    /// Facts and corrections that are kept for later sessions of the workspace.
    pub memory: MemorySettings,
    /// Skills: instructions for kinds of tasks that the model loads when it needs them.
    pub skills: SkillSettings,
    /// Git commits of the changes that a session makes to files.
    pub checkpoints: CheckpointSettings,
    /// Size of the model's input and its compaction.
    pub context: Context,
    /// How tool calls run and how their results are formatted.
    pub tools: Tools,
    /// Subagents: agents to which the model can delegate a part of the work.
    pub subagents: Subagents,
    /// The tool `run_command`.
    pub commands: Commands,
    /// Confinement of commands and hooks.
    pub sandbox: Sandbox,
    /// The tools `web_fetch` and `web_search`.
    pub web: Web,
    /// MCP servers: programs and services whose tools the model can call (`agent help mcp`).
    pub mcp: McpSettings,
    /// `agent chat`.
    pub chat: ChatSettings,
    /// `agent loop`.
    pub ralph: RalphSettings,
    /// Several tasks at the same time.
    pub parallel: ParallelSettings,
    /// The queue of tasks.
    pub fleet: FleetSettings,
    /// A Hub, whose agents are activated by workers.
    pub hub: HubSettings,
    /// Programs that run before and after tool calls and model calls.
    #[serde(default)]
    #[schemars(with = "Hooks", default = "Hooks::default", extend("x-scope" = "needs-trust"))]
    pub hooks: BTreeMap<HookEvent, Vec<HookRule>>,
    /// Limits on every call and every text, in every mode (`agent help guardrails`).
    pub guardrails: GuardrailSettings,
    /// Rules on what may run, in addition to modes and guardrails.
    pub policy: PolicySettings,
    /// Behaviour of the agent loop at its limits.
    #[serde(rename = "loop")]
    pub run_loop: RunLoop,
    /// Whether the model judges its own answer before a run counts as done (`agent help evaluation`).
    pub evaluation: EvaluationSettings,
    /// Review of a run's changes by the agent `review` before the run counts as done (`agent help review`).
    pub auto_review: AutoReviewSettings,
    /// Spending limits of a run.
    pub costs: Costs,
    /// Logging.
    pub logging: Logging,
    /// Storage of earlier sessions.
    pub sessions: Sessions,
    /// Export of spans for OpenTelemetry, at the end of a run (`agent help telemetry`).
    pub telemetry: TelemetrySettings,
    /// Figures on the code: length and complexity of functions, repeated blocks (`agent help health`).
    pub health: HealthSettings,
}

/// The language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// `provider/model`, a bare model name, `local/…` or `scripted:FILE`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub model: Option<String>,
    /// Fallback models, in order: each replaces an unusable predecessor for the rest of the run (`agent help errors`).
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub fallback: Vec<String>,
    /// Base URL of the server, without `/chat/completions`; absent: that of the provider.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "url"))]
    pub api_base: Option<String>,
    /// Name of the environment variable that holds the API key; absent: the provider's usual one.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "variable"))]
    pub api_key_env: Option<String>,
    /// Your own servers, and changes to the built-in providers, by name (the fields are in `agent help providers`).
    #[serde(default)]
    #[schemars(
        with = "BTreeMap<String, Provider>",
        extend("x-scope" = "never-from-project", "x-format" = "provider-name")
    )]
    pub providers: ProviderOverrides,
    /// Sampling temperature; absent: the server's default.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Reasoning effort of the model; absent: the model's default. `agent help thinking` lists what each model accepts.
    #[schemars(extend("x-scope" = "needs-trust", "x-stricter" = "lower-than-set"))]
    pub effort: Option<Effort>,
    /// Whether prompt caching is requested: cache breakpoints for Anthropic's models, the session's name as cache key for OpenAI.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub prompt_caching: bool,
    /// Maximum length of an answer; absent: the server's default (32000 for Anthropic, which requires a value).
    #[schemars(range(min = 1, max = 1_000_000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-than-set", "x-unit" = "tokens"))]
    pub max_output_tokens: Option<u32>,
    /// Context window of the model, prompt and answer together; absent: the value from the server or the model table.
    #[schemars(range(min = 256, max = 100_000_000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-than-set", "x-unit" = "tokens"))]
    pub context_window: Option<u32>,
    /// Whether the model accepts images; absent: as in the model table, true for a model that it does not list.
    pub images: Option<bool>,
    /// How often a failed request is retried.
    #[schemars(range(min = 0, max = 10), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "times"))]
    pub retries: u32,
    /// Longest `Retry-After` to wait for; a longer one ends the run with an error. 0: never wait.
    #[schemars(range(min = 0, max = 86_400), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "seconds"))]
    pub max_retry_after: u64,
    /// Whether answers are streamed; off under `--no-stream`, `--json` and `--quiet`.
    pub stream: bool,
    /// Time limits of a model call.
    pub timeouts: Timeouts,
    /// Cache of answers for development: a repeated request is answered without the model.
    pub cache: AnswerCache,
}

/// Cache of answers for development: a repeated request is answered without the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerCache {
    /// Whether answers are stored and reused.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub enabled: bool,
    /// Directory of the stored answers; absent: `answers` in the cache directory.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub dir: Option<String>,
    /// How long a stored answer may be reused.
    #[schemars(range(min = 1, max = 8_760), extend("x-scope" = "never-from-project", "x-unit" = "hours"))]
    pub ttl_hours: u32,
}

/// Time limits of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// Until a connection is established.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "seconds"))]
    pub connect_seconds: u64,
    /// Until the first byte of an answer; at least two minutes without streaming, the whole call for a reasoning model.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub first_byte_seconds: u64,
    /// Longest time between two complete events of a streamed answer.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub silence_seconds: u64,
    /// A whole model call, including retries and waiting.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "seconds"))]
    pub call_seconds: u64,
}

/// The settings of one agent; absent keys leave the agent's own values unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOverride {
    /// One line for lists.
    pub description: Option<String>,
    /// Its instructions; required for a new agent. A project may set them only for its own agents.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub system_prompt: Option<String>,
    /// The tools it may use; empty: all. A project may set them for its own agents, and remove tools from other agents.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub allowed_tools: Option<Vec<String>>,
    /// How much it may do without asking.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["confirm-all"]))]
    pub mode: Option<Mode>,
    /// Maximum number of model calls per run of this agent.
    #[schemars(range(min = 1, max = 10_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub max_steps: Option<u32>,
    /// Whether other agents may use it as a subagent (`agent help subagents`).
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub subagent: Option<bool>,
}

/// The project directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSettings {
    /// The directory to work in; absent: the current directory.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub root: Option<String>,
    /// Whether the tool `delete_file` is available.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub allow_delete: bool,
}

/// The project overview in the system message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Indexer {
    /// Whether the system message contains a project overview.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Maximum size of a file in the overview; larger files are left out.
    #[schemars(range(min = 1, max = 100_000_000), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "bytes"))]
    pub max_file_size: u64,
    /// Globs on names of directories to leave out, in addition to the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub exclude_dirs: Vec<String>,
    /// Globs on names of files to leave out, in addition to the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub exclude_patterns: Vec<String>,
}

impl Indexer {
    /// Returns the options of the project overview; `None` when it is disabled.
    pub fn options(&self) -> Option<IndexOptions> {
        self.enabled.then(|| IndexOptions {
            max_file_size: self.max_file_size,
            exclude_dirs: self.exclude_dirs.clone(),
            exclude_patterns: self.exclude_patterns.clone(),
            time: INDEX_TIME,
            entries: INDEX_ENTRIES,
        })
    }
}

/// Git commits of the changes that a session makes to files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Whether checkpoints are created, under `refs/agent` of the repository.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Number of steps between two checkpoints; the end of a run also creates one.
    #[schemars(range(min = 1, max = 50), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "steps"))]
    pub every_n_steps: u32,
}

/// How tool calls run and how their results are formatted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Which calls of one answer run at the same time: none, reads (up to 4), or all (up to 8).
    #[schemars(extend("x-scope" = "needs-trust", "x-stricter" = "lower"))]
    pub parallel: Parallelism,
    /// The format of tool results for the model.
    pub result_format: ResultFormat,
    /// The edit format of the model, which selects the editing tools it is offered; absent: that of the model table.
    pub edit_format: Option<EditFormat>,
    /// Time limit of one call of any tool; absent: each tool's own limit.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "seconds"))]
    pub timeout_seconds: Option<u64>,
    /// Whether the model can keep a list of the steps of a task (tool `todo`).
    pub todo: bool,
    /// Tools whose results later sessions of the workspace may read, with the hours for which they are kept. Calls that failed
    /// or changed something are not kept.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub keep_results: BTreeMap<String, KeepHours>,
}

/// For how long the results of a tool are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct KeepHours(#[schemars(range(min = 1, max = 8_760), extend("x-unit" = "hours"))] pub u32);

/// The tool `run_command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Whether the tool exists.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Time limit of a command that does not set one.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub default_timeout: u64,
    /// A command without output for this long is ended; absent: no such limit.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub idle_timeout: Option<u64>,
    /// Maximum number of processes and threads of a command at the same time.
    #[schemars(range(min = 16, max = 100_000), extend("x-scope" = "needs-trust", "x-unit" = "processes"))]
    pub max_processes: u64,
    /// Maximum memory of a command; absent: 80 % of the memory that is free when it starts.
    #[schemars(range(min = 16, max = 10_000_000), extend("x-scope" = "needs-trust", "x-unit" = "MiB"))]
    pub max_memory_mib: Option<u64>,
    /// Maximum number of output lines for the model; longer output is cut and stored in full.
    #[schemars(range(min = 10, max = 5_000), extend("x-scope" = "needs-trust", "x-unit" = "lines"))]
    pub max_output_lines: usize,
    /// Refuses every command that is neither known to be safe nor a development command.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub allowed_only: bool,
    /// Whether build and test commands run without asking in mode `confirm-sensitive` when they are sandboxed.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub trust_sandbox: bool,
    /// Regular expressions of commands that never run, in addition to the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "regex"))]
    pub blocked_patterns: Vec<String>,
    /// Prefixes of commands that are safe, in addition to the built-in ones.
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add"))]
    pub safe_commands: Vec<String>,
    /// Environment variables for every command.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub env: BTreeMap<String, String>,
}

/// Confinement of commands and hooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What happens without full kernel support: `auto` continues with a notice, `require` does not start the run.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub mode: SandboxMode,
    /// Whether commands reach the network; otherwise they get an isolated network without other hosts.
    #[schemars(extend("x-scope" = "never-from-project", "x-tightens" = [false]))]
    pub network: bool,
    /// Hosts that commands reach through a proxy although the network is off: `example.org` (ports 80 and 443), `*.example.org`,
    /// `example.org:8443`; empty: none.
    #[schemars(extend("x-scope" = "never-from-project", "x-merge" = "add", "x-format" = "host-port"))]
    pub allowed_hosts: Vec<String>,
    /// Directories that commands may write to, besides the workspace and their own temporary directory.
    #[schemars(extend("x-scope" = "never-from-project", "x-merge" = "add"))]
    pub writable: Vec<String>,
    /// Files and directories that commands cannot see, besides those that hold keys.
    #[schemars(extend("x-merge" = "add"))]
    pub hidden: Vec<String>,
}

impl Sandbox {
    /// Returns the settings with each path replaced by `map`.
    #[must_use]
    pub fn map_paths(mut self, map: impl Fn(String) -> String) -> Self {
        for path in self.writable.iter_mut().chain(&mut self.hidden) {
            *path = map(std::mem::take(path));
        }
        self
    }
}

/// What happens when the kernel cannot fully confine commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SandboxMode {
    /// Uses the strongest confinement available and reports it.
    Auto,
    /// Requires full confinement: otherwise the run does not start.
    Require,
}

agent_core::impl_name!(SandboxMode);

/// Programs that run before and after tool calls and model calls, by event.
// Only the schema of `Document::hooks`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hooks {
    /// Before a tool call; can block it.
    #[schemars(extend("x-merge" = "add"))]
    pub pre_tool_use: Vec<HookRule>,
    /// After a tool call.
    #[schemars(extend("x-merge" = "add"))]
    pub post_tool_use: Vec<HookRule>,
    /// After a tool call that changed a file.
    #[schemars(extend("x-merge" = "add"))]
    pub post_edit: Vec<HookRule>,
    /// Before a model call.
    #[schemars(extend("x-merge" = "add"))]
    pub pre_llm_call: Vec<HookRule>,
    /// After a model call.
    #[schemars(extend("x-merge" = "add"))]
    pub post_llm_call: Vec<HookRule>,
    /// Before the first step of a run.
    #[schemars(extend("x-merge" = "add"))]
    pub session_start: Vec<HookRule>,
    /// After the last step of a run.
    #[schemars(extend("x-merge" = "add"))]
    pub session_end: Vec<HookRule>,
    /// After a tool call that failed.
    #[schemars(extend("x-merge" = "add"))]
    pub on_error: Vec<HookRule>,
    /// When the model reports that the task is done.
    #[schemars(extend("x-merge" = "add"))]
    pub agent_complete: Vec<HookRule>,
    /// When the cost of the run reaches `costs.warn_at_usd`.
    #[schemars(extend("x-merge" = "add"))]
    pub budget_warning: Vec<HookRule>,
    /// Before the conversation is compacted because the context window is almost full.
    #[schemars(extend("x-merge" = "add"))]
    pub context_compress: Vec<HookRule>,
}

/// Rules on what may run, in addition to modes and guardrails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// Rules on tool calls; the first match decides (`agent help permissions`). A project may only add `ask` and `deny` rules.
    #[schemars(extend("x-scope" = "never-from-project", "x-merge" = "first"))]
    pub rules: Vec<PolicyRule>,
    /// What happens to a call when no user can approve it: it is refused, or the run pauses (`agent help approvals`).
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub approvals: NoApprover,
}

/// Spending limits of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// Maximum cost of a run in US dollars, closing summary included; absent: no limit. A call that could exceed it is not made.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-scope" = "needs-trust", "x-unit" = "US dollars"))]
    pub budget_usd: Option<f64>,
    /// Maximum number of tokens of a run, prompts and answers together; absent: no limit.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-scope" = "needs-trust", "x-unit" = "tokens"))]
    pub max_tokens: Option<u64>,
    /// Maximum number of tool calls of a run; absent: no limit.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-scope" = "needs-trust", "x-unit" = "calls"))]
    pub max_tool_calls: Option<u32>,
    /// Cost at which a run emits one warning and runs the hooks of `budget_warning`; absent: never.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-scope" = "needs-trust", "x-stricter" = "lower", "x-unit" = "US dollars"))]
    pub warn_at_usd: Option<f64>,
    /// A file of prices, in the format shown in `agent help costs`; absent: only the built-in price table.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub prices_file: Option<String>,
}

/// Storage of earlier sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Sessions of this workspace without activity for this long are removed at the end of a run; absent: none is removed.
    #[schemars(range(min = 1, max = 36_500), extend("x-scope" = "never-from-project", "x-unit" = "days"))]
    pub cleanup_after_days: Option<u32>,
}

/// Logging.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logging {
    /// Log level on standard error. A project cannot hide warnings about its own settings.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["debug", "info", "human"]))]
    pub level: Verbosity,
    /// A file for the log as JSON lines; absent: none.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub file: Option<String>,
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
