//! Settings that a request or the environment sets in place of the files, each as a layer.

use super::environment::Environment;
use super::error::ConfigError;
use super::key_rules::KeyRule;
use super::layers::{LayerKind, Layers};
use super::schema::SandboxMode;
use super::trust::TrustFlag;
use super::validate;
use agent_core::evaluation::EvaluationMode;
use agent_core::secret::Secret;
use agent_engine::approver::NoApprover;
use agent_engine::policy::Mode;
use agent_llm::effort::Effort;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Settings of the command line, or of a program that requests a run. They precede the settings of files and of the environment.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Overrides {
    /// `--config`: a file with precedence over those of user and project.
    pub config: Option<PathBuf>,
    /// `--workspace`: the project directory.
    pub workspace: Option<PathBuf>,
    /// `--agent`: name of the agent.
    pub agent: Option<String>,
    /// `--mode`: how much the agent may do without asking.
    pub mode: Option<Mode>,
    /// The mode of the agent `build` where nothing else is configured: a conversation has its own default.
    #[serde(default)]
    pub default_mode: Option<Mode>,
    /// `--approvals`: what happens to a call when no user can approve it.
    pub approvals: Option<NoApprover>,
    /// `--model`: the language model.
    pub model: Option<String>,
    /// `--fallback-model`: the fallback models, in order; empty: as configured.
    pub fallback: Vec<String>,
    /// `--api-base`: the server's base URL.
    pub api_base: Option<String>,
    /// `--api-key`: the API key, which is stored nowhere.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// `--effort`: the reasoning effort of the model.
    pub effort: Option<Effort>,
    /// `--cache` and `--no-cache`: whether answers are stored and reused.
    pub cache: Option<bool>,
    /// `--no-stream`: answers are not streamed; also set for `--json` and `--quiet`.
    pub no_stream: bool,
    /// `--max-steps`: maximum number of model calls.
    pub max_steps: Option<u32>,
    /// `--timeout`: time limit of the whole run in seconds.
    pub timeout: Option<u64>,
    /// `--step-timeout`: time limit of one step in seconds.
    pub step_timeout: Option<u64>,
    /// `--tool-timeout`: time limit of one tool call in seconds.
    pub tool_timeout: Option<u64>,
    /// `--budget`: maximum cost of the run in US dollars.
    pub budget: Option<f64>,
    /// `--max-tokens`: maximum number of tokens of the run.
    pub max_tokens: Option<u64>,
    /// `--self-eval`: whether answers are evaluated.
    pub self_eval: Option<EvaluationMode>,
    /// `--allow-commands`: enables the tool `run_command`.
    pub allow_commands: bool,
    /// `--no-commands`: disables it; takes precedence.
    pub no_commands: bool,
    /// `--sandbox auto|require`: what happens when commands cannot be fully confined.
    pub sandbox: Option<SandboxMode>,
    /// `--sandbox off`: commands are not confined.
    pub sandbox_off: bool,
    /// `--allow-net`: commands reach the network.
    pub allow_net: bool,
    /// `--allow-host`: hosts that commands reach through the proxy.
    pub allow_host: Vec<String>,
    /// `--allow-write`: directories that commands may write to.
    pub allow_write: Vec<PathBuf>,
    /// `--trust-workspace`: whether settings of the project that need trust take effect.
    pub trust: TrustFlag,
    /// `--mcp-config`: a file with MCP servers.
    pub mcp_config: Option<PathBuf>,
    /// MCP servers of a client that drives the run: the section `mcp`, as JSON.
    pub mcp_servers: Option<String>,
    /// `--disable-mcp`: no MCP server is used.
    pub disable_mcp: bool,
    /// `--review`: the changes are reviewed before the run counts as done.
    pub review: bool,
    /// `--health`: the code is measured before and after the run.
    pub health: bool,
    /// `--log-file`: the path of the JSON log.
    pub log_file: Option<PathBuf>,
    /// Settings of the definition of an agent of a Hub, by key.
    pub definition: Vec<(String, Value)>,
}

/// Creates the layer of the environment variables that are settings.
///
/// # Errors
/// Fails for an invalid value; the error names the variable.
pub fn variables_layer(rules: &KeyRule, environment: &Environment) -> Result<Layers, ConfigError> {
    let variables = [
        ("AGENT_MODEL", "llm.model", false),
        ("AGENT_API_BASE", "llm.api_base", false),
        ("AGENT_SANDBOX", "sandbox.mode", true),
        ("AGENT_LANGUAGE", "language", true),
        ("AGENT_LOG_LEVEL", "logging.level", true),
        ("AGENT_WORKSPACE", "workspace.root", false),
    ];
    let mut layer = Layers::default();
    for (variable, key, is_word) in variables {
        let Some(value) = environment.get(variable) else { continue };
        let value = if is_word { value.to_lowercase() } else { value.to_owned() };
        layer =
            layer.overridden_by(single_layer(rules, LayerKind::Environment, variable, key, &value.into())?);
    }
    Ok(layer)
}

/// Creates the layer of the command-line flags.
///
/// # Errors
/// Fails for an invalid value; the error names the flag.
pub fn flags_layer(rules: &KeyRule, flags: &Overrides) -> Result<Layers, ConfigError> {
    let path = |path: &PathBuf| Value::from(path.to_string_lossy());
    let commands = match (flags.no_commands, flags.allow_commands) {
        (true, _) => Some(("--no-commands", false)),
        (false, true) => Some(("--allow-commands", true)),
        (false, false) => None,
    };
    let values = [
        ("--workspace", "workspace.root", flags.workspace.as_ref().map(path)),
        ("--mode", "mode", flags.mode.map(|mode| mode.name().into())),
        ("--approvals", "policy.approvals", flags.approvals.map(|approvals| approvals.name().into())),
        ("--model", "llm.model", flags.model.clone().map(Value::from)),
        (
            "--fallback-model",
            "llm.fallback",
            (!flags.fallback.is_empty()).then(|| flags.fallback.clone().into()),
        ),
        ("--api-base", "llm.api_base", flags.api_base.clone().map(Value::from)),
        ("--effort", "llm.effort", flags.effort.map(|effort| effort.name().into())),
        (
            if flags.cache == Some(true) { "--cache" } else { "--no-cache" },
            "llm.cache.enabled",
            flags.cache.map(Value::from),
        ),
        ("--no-stream", "llm.stream", flags.no_stream.then(|| false.into())),
        ("--max-tokens", "costs.max_tokens", flags.max_tokens.map(Value::from)),
        ("--max-steps", "max_steps", flags.max_steps.map(Value::from)),
        ("--timeout", "timeout_seconds", flags.timeout.map(Value::from)),
        ("--step-timeout", "step_timeout_seconds", flags.step_timeout.map(Value::from)),
        ("--tool-timeout", "tools.timeout_seconds", flags.tool_timeout.map(Value::from)),
        ("--budget", "costs.budget_usd", flags.budget.map(Value::from)),
        ("--self-eval", "evaluation.mode", flags.self_eval.map(|mode| mode.name().into())),
        ("--review", "auto_review.enabled", flags.review.then(|| true.into())),
        ("--sandbox", "sandbox.mode", flags.sandbox.map(|mode| mode.name().into())),
        ("--allow-net", "sandbox.network", flags.allow_net.then(|| true.into())),
        ("--allow-host", "sandbox.network", (!flags.allow_host.is_empty()).then(|| false.into())),
        (
            "--allow-host",
            "sandbox.allowed_hosts",
            (!flags.allow_host.is_empty()).then(|| flags.allow_host.clone().into()),
        ),
        (
            "--allow-write",
            "sandbox.writable",
            (!flags.allow_write.is_empty()).then(|| flags.allow_write.iter().map(path).collect()),
        ),
        (commands.map_or("", |(flag, _)| flag), "commands.enabled", commands.map(|(_, on)| on.into())),
        ("--health", "health.enabled", flags.health.then(|| true.into())),
        ("--log-file", "logging.file", flags.log_file.as_ref().map(path)),
    ];
    let mut layer = Layers::default();
    for (key, value) in &flags.definition {
        layer =
            layer.overridden_by(single_layer(rules, LayerKind::Flag, "definition of the agent", key, value)?);
    }
    for (flag, key, value) in values {
        if let Some(value) = value {
            layer = layer.overridden_by(single_layer(rules, LayerKind::Flag, flag, key, &value)?);
        }
    }
    Ok(layer)
}

fn single_layer(
    rules: &KeyRule,
    level: LayerKind,
    source: &str,
    key: &str,
    value: &Value,
) -> Result<Layers, ConfigError> {
    let leaf = validate::leaf_for_key(rules, key, value).map_err(|error| error.file(source))?;
    Ok(Layers::from_leaves(rules, level, source, vec![leaf]))
}
