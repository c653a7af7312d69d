//! Every configuration key: its type, range, meaning, unit and scope. The JSON Schema, the checks, the comments of
//! `config/default.yaml` and the table of the manual all come from these types.
//!
//! `x-scope`: who may set a key; absent is `anywhere`. `x-tightens`: values that even an untrusted project may set,
//! because they only take permission away; `x-lowers`: so may it a lower number. `x-merge: add`: lists of all layers are joined; `first`: so that what was said
//! on a higher layer comes first, and what a project says last. `x-format`: what a text,
//! the items of a list or the keys of a map must be (`rule::Format`). `x-unit`: what a number counts.

use super::context::Context;
use super::evaluation::EvaluationSettings;
use crate::config::run_loop::RunLoop;
use crate::config::subagents::Subagents;
use crate::core::language::Language;
use crate::engine::approver::NoApprover;
use crate::engine::guardrails::GuardrailSettings;
use crate::engine::hooks::{HookEvent, HookRule};
use crate::engine::policy::Mode;
use crate::engine::rules::PolicyRule;
use crate::engine::{Parallelism, ResultFormat};
use crate::llm::edit_format::EditFormat;
use crate::llm::effort::Effort;
use crate::llm::provider_table::{Provider, ProviderOverrides};
use crate::workspace::index::{INDEX_ENTRIES, INDEX_TIME, IndexOptions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// How much the agent may do without asking; absent: the agent's own mode.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["confirm-all"]))]
    pub mode: Option<Mode>,
    /// In which language the log is told, calls are refused and runs close.
    pub language: Language,
    /// Model calls a run may take; absent: the agent's own limit.
    #[schemars(range(min = 1, max = 10_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub max_steps: Option<u32>,
    /// Wall time of a whole run; absent: no limit.
    #[schemars(range(min = 1, max = 604_800), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub timeout_seconds: Option<u64>,
    /// Wall time of one step; absent: no limit of its own.
    #[schemars(range(min = 1, max = 86_400), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub step_timeout_seconds: Option<u64>,
    /// The language model.
    pub llm: Llm,
    /// Agents by name: overrides of existing ones, key by key, or new ones.
    #[serde(default)]
    #[schemars(extend("x-format" = "agent-name"))]
    pub agents: BTreeMap<String, AgentOverride>,
    /// The project directory.
    pub workspace: WorkspaceSettings,
    /// The overview of the project in the system message.
    pub indexer: Indexer,
    /// Commits of what a session makes of files.
    pub checkpoints: CheckpointSettings,
    /// What the model reads.
    pub context: Context,
    /// How tool calls run and answer.
    pub tools: Tools,
    /// Agents that the model may ask to do a part of the work.
    pub subagents: Subagents,
    /// The tool `run_command`.
    pub commands: Commands,
    /// What commands and hooks can reach.
    pub sandbox: Sandbox,
    /// The tool `web_fetch`.
    pub web: Web,
    /// Programs that run around tools and model calls.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub hooks: Hooks,
    /// Limits that hold for every call and every text, in every mode (`agent help guardrails`).
    pub guardrails: GuardrailSettings,
    /// What may run, besides what modes and guardrails say.
    pub policy: PolicySettings,
    /// What the loop does at its limits.
    #[serde(rename = "loop")]
    pub run_loop: RunLoop,
    /// Whether the model judges its own answer before a run counts as done (`agent help evaluation`).
    pub evaluation: EvaluationSettings,
    /// What a run may cost.
    pub costs: Costs,
    /// What is logged.
    pub logging: Logging,
    /// What is kept of earlier runs.
    pub sessions: Sessions,
}

/// The language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// `provider/model`, a bare model name, `local/…` or `scripted:FILE`.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub model: Option<String>,
    /// Models that take over, in order, for the rest of a run, when the one before cannot be used (`agent help errors`).
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "filled"))]
    pub fallback: Vec<String>,
    /// Base URL of the server, without `/chat/completions`; absent: the provider's.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "url"))]
    pub api_base: Option<String>,
    /// Name of the environment variable that holds the key; absent: the provider's usual one.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "variable"))]
    pub api_key_env: Option<String>,
    /// Servers of your own, and changes of the built-in ones, by name: the rows of `agent help providers`.
    #[serde(default)]
    #[schemars(
        with = "BTreeMap<String, Provider>",
        extend("x-scope" = "never-from-project", "x-format" = "provider-name")
    )]
    pub providers: ProviderOverrides,
    /// Sampling temperature; absent: the server's default.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// How hard the model thinks before it answers; absent: its own default. `agent help thinking` says who takes what.
    pub effort: Option<Effort>,
    /// Whether servers are helped to cache prompts: marks for Anthropic's models, the name of the session for OpenAI.
    pub prompt_caching: bool,
    /// Longest answer; absent: the server's default (Anthropic wants a figure: 32000).
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "tokens"))]
    pub max_output_tokens: Option<u32>,
    /// What the model may hold, prompt and answer together; absent: what its server or the table of models says.
    #[schemars(range(min = 256, max = 100_000_000), extend("x-unit" = "tokens"))]
    pub context_window: Option<u32>,
    /// How often a failed request is repeated.
    #[schemars(range(min = 0, max = 10), extend("x-unit" = "times"))]
    pub retries: u32,
    /// Longest `Retry-After` that is waited for; a longer one ends the run and is named. 0: never wait.
    #[schemars(range(min = 0, max = 86_400), extend("x-unit" = "seconds"))]
    pub max_retry_after: u64,
    /// Whether answers arrive piece by piece; off under `--no-stream`, `--json` and `--quiet`.
    pub stream: bool,
    /// How long to wait for the server.
    pub timeouts: Timeouts,
    /// Answers kept for development: the same request is answered again without the model.
    pub cache: AnswerCache,
}

/// Answers kept for development: the same request is answered again without the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerCache {
    /// Whether answers are kept and used.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub enabled: bool,
    /// The directory they are kept in; absent: `answers` below the cache directory.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub dir: Option<String>,
    /// How long an answer is used.
    #[schemars(range(min = 1, max = 8_760), extend("x-scope" = "never-from-project", "x-unit" = "hours"))]
    pub ttl_hours: u32,
}

/// How long to wait for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeouts {
    /// Until a connection stands.
    #[schemars(range(min = 1, max = 600), extend("x-unit" = "seconds"))]
    pub connect_seconds: u64,
    /// Until the first byte of an answer. One that is not streamed has at least two minutes, that of a thinking model the whole call.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub first_byte_seconds: u64,
    /// Longest time between two complete events of a streamed answer.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub silence_seconds: u64,
    /// A whole model call, retries and waits included.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub call_seconds: u64,
}

/// What a configuration says about one agent; absent keys keep what the agent had.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOverride {
    /// One line for lists.
    pub description: Option<String>,
    /// Its instructions; a new agent must have them. A project may set them for agents of its own only.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub system_prompt: Option<String>,
    /// The tools it may use; empty: all. A project may set them for agents of its own, and narrow those of others.
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub allowed_tools: Option<Vec<String>>,
    /// How much it may do without asking.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["confirm-all"]))]
    pub mode: Option<Mode>,
    /// Model calls a run of it may take.
    #[schemars(range(min = 1, max = 10_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub max_steps: Option<u32>,
    /// Whether other agents may ask it to do a part of their work (`agent help subagents`).
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub subagent: Option<bool>,
}

/// The project directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceSettings {
    /// The directory to work in; absent: the current one.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub root: Option<String>,
    /// Whether the tool `delete_file` works.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub allow_delete: bool,
}

/// The overview of the project in the system message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Indexer {
    /// Whether there is one.
    pub enabled: bool,
    /// Larger files are left out.
    #[schemars(range(min = 1, max = 100_000_000), extend("x-unit" = "bytes"))]
    pub max_file_size: u64,
    /// Globs on names of directories to leave out, besides the usual ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub exclude_dirs: Vec<String>,
    /// Globs on file names to leave out, besides the usual ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "glob"))]
    pub exclude_patterns: Vec<String>,
}

impl Indexer {
    /// How far the overview looks; `None` when there is none.
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

/// Commits of what a session makes of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointSettings {
    /// Whether they are made, under `refs/agent` of the repository.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// How many steps lie between two; the end of a run makes one too.
    #[schemars(range(min = 1, max = 50), extend("x-unit" = "steps"))]
    pub every_n_steps: u32,
}

/// How tool calls run and answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Which calls of one answer run at the same time.
    pub parallel: Parallelism,
    /// The form of a result for the model.
    pub result_format: ResultFormat,
    /// The form in which the model writes changes, and so which tools for them it is offered; absent: its table's.
    pub edit_format: Option<EditFormat>,
    /// Time for one call, whatever the tool; absent: each tool's own limit.
    #[schemars(range(min = 1, max = 86_400), extend("x-unit" = "seconds"))]
    pub timeout_seconds: Option<u64>,
}

/// The tool `run_command`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Whether the tool exists.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Time limit of a command that names none.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub default_timeout: u64,
    /// How long a command may write nothing before it is ended; without a number as long as it runs.
    #[schemars(range(min = 1, max = 600), extend("x-scope" = "needs-trust", "x-unit" = "seconds"))]
    pub idle_timeout: Option<u64>,
    /// How many processes and threads a command may have at the same time.
    #[schemars(range(min = 16, max = 100_000), extend("x-scope" = "needs-trust", "x-unit" = "processes"))]
    pub max_processes: u64,
    /// How much memory a command may take; without a number 80 % of what is free when it begins.
    #[schemars(range(min = 16, max = 10_000_000), extend("x-scope" = "needs-trust", "x-unit" = "MiB"))]
    pub max_memory_mib: Option<u64>,
    /// Longer output is cut for the model and kept.
    #[schemars(range(min = 10, max = 5_000), extend("x-scope" = "needs-trust", "x-unit" = "lines"))]
    pub max_output_lines: usize,
    /// Refuses every command that is neither known to be safe nor a development command.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [true]))]
    pub allowed_only: bool,
    /// Whether commands that build and test run unasked in mode `confirm-sensitive` while the sandbox holds them.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = [false]))]
    pub trust_sandbox: bool,
    /// Regular expressions of commands that never run, besides the built-in ones.
    #[schemars(extend("x-merge" = "add", "x-format" = "regex"))]
    pub blocked_patterns: Vec<String>,
    /// Beginnings of commands that are safe, besides the built-in ones.
    #[schemars(extend("x-scope" = "needs-trust", "x-merge" = "add"))]
    pub safe_commands: Vec<String>,
    /// Environment variables for every command.
    #[serde(default)]
    #[schemars(extend("x-scope" = "needs-trust", "x-format" = "variable"))]
    pub env: BTreeMap<String, String>,
}

/// What commands and hooks can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What happens where the kernel cannot hold them: the run goes on and says so, or it does not begin.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub mode: SandboxMode,
    /// Whether they reach the network; without it they have one of their own, on which nobody else is.
    #[schemars(extend("x-scope" = "never-from-project", "x-tightens" = [false]))]
    pub network: bool,
    /// Directories that they may change besides the workspace and a temporary directory of their own.
    #[schemars(extend("x-scope" = "never-from-project", "x-merge" = "add"))]
    pub writable: Vec<String>,
    /// Files and directories that they do not see, besides those that hold keys.
    #[schemars(extend("x-merge" = "add"))]
    pub hidden: Vec<String>,
}

/// What happens where the kernel cannot confine commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    /// The strongest confinement there is, which is said.
    Auto,
    /// Nothing but the full one: otherwise the run does not begin.
    Require,
}

impl SandboxMode {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Require => "require",
        }
    }
}

/// The tool `web_fetch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Whether the tool exists. It asks public addresses only, and modes that ask show the whole address.
    #[schemars(extend("x-scope" = "never-from-project", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Hosts it may ask: `example.org`, `*.example.org` for all below, `*` for every one; empty: none.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "host"))]
    pub allowed_hosts: Vec<String>,
    /// Addresses with a port, such as `127.0.0.1:8080`, that it may ask although they are not public.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "socket"))]
    pub allowed_private: Vec<String>,
}

/// Programs that run around tools and model calls, by event.
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
    /// When the model says that it is done.
    #[schemars(extend("x-merge" = "add"))]
    pub agent_complete: Vec<HookRule>,
    /// When the run has cost `costs.warn_at_usd`.
    #[schemars(extend("x-merge" = "add"))]
    pub budget_warning: Vec<HookRule>,
    /// Before the conversation is made shorter because it fills the window.
    #[schemars(extend("x-merge" = "add"))]
    pub context_compress: Vec<HookRule>,
}

impl Hooks {
    /// The rules by event; events without one are absent.
    pub fn by_event(self) -> BTreeMap<HookEvent, Vec<HookRule>> {
        let pairs = [
            (HookEvent::PreToolUse, self.pre_tool_use),
            (HookEvent::PostToolUse, self.post_tool_use),
            (HookEvent::PostEdit, self.post_edit),
            (HookEvent::PreLlmCall, self.pre_llm_call),
            (HookEvent::PostLlmCall, self.post_llm_call),
            (HookEvent::SessionStart, self.session_start),
            (HookEvent::SessionEnd, self.session_end),
            (HookEvent::OnError, self.on_error),
            (HookEvent::AgentComplete, self.agent_complete),
            (HookEvent::BudgetWarning, self.budget_warning),
            (HookEvent::ContextCompress, self.context_compress),
        ];
        pairs.into_iter().filter(|(_, rules)| !rules.is_empty()).collect()
    }
}

/// What may run, besides what modes and guardrails say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySettings {
    /// Rules about tool calls; the first that matches decides (`agent help permissions`). A project may ask and deny.
    #[schemars(extend("x-scope" = "never-from-project", "x-merge" = "first"))]
    pub rules: Vec<PolicyRule>,
    /// What becomes of a call that nobody can be asked about: refused, or the run pauses (`agent help approvals`).
    #[schemars(extend("x-scope" = "needs-trust"))]
    pub approvals: NoApprover,
}

/// What a run may cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// US dollars a run may cost, the closing summary included; absent: no limit. A call that could exceed it is not made.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-scope" = "needs-trust", "x-unit" = "US dollars"))]
    pub budget_usd: Option<f64>,
    /// Tokens a run may use, prompts and answers together; absent: no limit.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64), extend("x-scope" = "needs-trust", "x-unit" = "tokens"))]
    pub max_tokens: Option<u64>,
    /// Tool calls a run may make; absent: no limit.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-scope" = "needs-trust", "x-unit" = "calls"))]
    pub max_tool_calls: Option<u32>,
    /// Cost of a run at which it is said once, and the hooks of `budget_warning` run; absent: never.
    #[schemars(range(min = 0.0, max = 1_000_000.0), extend("x-unit" = "US dollars"))]
    pub warn_at_usd: Option<f64>,
    /// A file of prices, in the form that `agent help costs` shows; absent: the built-in table alone.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub prices_file: Option<String>,
}

/// What is kept of earlier runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sessions {
    /// Sessions of this workspace in which nothing happened for so long go at the end of a run; absent: none goes by itself.
    #[schemars(range(min = 1, max = 36_500), extend("x-scope" = "never-from-project", "x-unit" = "days"))]
    pub cleanup_after_days: Option<u32>,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Logging {
    /// How much is shown on standard error. A project must not silence what is said about it.
    #[schemars(extend("x-scope" = "needs-trust", "x-tightens" = ["debug", "info", "human"]))]
    pub level: LogLevel,
    /// A file for the log as JSON lines; absent: none.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub file: Option<String>,
}

/// How much is shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// The human log and details.
    Info,
    /// What the agent does, for a person.
    Human,
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
