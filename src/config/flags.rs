//! Settings from outside of files: command-line flags and environment variables, each a layer.

use super::environment::Environment;
use super::error::ConfigError;
use super::key_rules::KeyRule;
use super::layers::{LayerKind, Layers};
use super::schema::SandboxMode;
use super::trust::TrustFlag;
use super::validate;
use crate::core::evaluation::EvaluationMode;
use crate::core::secret::Secret;
use crate::engine::approver::NoApprover;
use crate::engine::policy::Mode;
use crate::llm::effort::Effort;
use serde_json::Value;
use std::path::PathBuf;

/// What the command line says about the settings.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`: a file above user and project.
    pub config: Option<PathBuf>,
    /// `--workspace`: the project directory.
    pub workspace: Option<PathBuf>,
    /// `--agent`: its name.
    pub agent: Option<String>,
    /// `--mode`: how much is asked.
    pub mode: Option<Mode>,
    /// `--approvals`: what becomes of a call that nobody can be asked about.
    pub approvals: Option<NoApprover>,
    /// `--model`: the language model.
    pub model: Option<String>,
    /// `--fallback-model`: the models that take over, in order; empty: as configured.
    pub fallback: Vec<String>,
    /// `--api-base`: the server's base URL.
    pub api_base: Option<String>,
    /// `--api-key`: the key itself.
    pub api_key: Option<Secret>,
    /// `--effort`: how hard the model thinks.
    pub effort: Option<Effort>,
    /// `--cache` and `--no-cache`: whether answers are kept and used.
    pub cache: Option<bool>,
    /// `--no-stream`: answers arrive whole; set it for `--json` and `--quiet` too.
    pub no_stream: bool,
    /// `--max-steps`: model calls.
    pub max_steps: Option<u32>,
    /// `--timeout`: seconds of the whole run.
    pub timeout: Option<u64>,
    /// `--step-timeout`: seconds of one step.
    pub step_timeout: Option<u64>,
    /// `--tool-timeout`: seconds of one tool call.
    pub tool_timeout: Option<u64>,
    /// `--budget`: US dollars of the whole run.
    pub budget: Option<f64>,
    /// `--self-eval`: whether answers are evaluated.
    pub self_eval: Option<EvaluationMode>,
    /// `--allow-commands`: the tool `run_command` exists.
    pub allow_commands: bool,
    /// `--no-commands`: it does not; wins.
    pub no_commands: bool,
    /// `--sandbox auto|require`: what happens where commands cannot be confined.
    pub sandbox: Option<SandboxMode>,
    /// `--sandbox off`: they are not.
    pub sandbox_off: bool,
    /// `--allow-net`: they reach the network.
    pub allow_net: bool,
    /// `--allow-write`: directories that they may change.
    pub allow_write: Vec<PathBuf>,
    /// `--trust-workspace`: whether what the project asks for has an effect.
    pub trust: TrustFlag,
    /// `--log-level`: how much is shown.
    pub log_level: Option<String>,
    /// `--log-file`: where the JSON log goes.
    pub log_file: Option<PathBuf>,
}

/// The layer of the environment variables that are settings.
///
/// # Errors
/// A value that is not valid, named by its variable.
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

/// The layer of the flags.
///
/// # Errors
/// A value that is not valid, named by its flag.
pub fn flags_layer(rules: &KeyRule, flags: &Flags) -> Result<Layers, ConfigError> {
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
        ("--max-steps", "max_steps", flags.max_steps.map(Value::from)),
        ("--timeout", "timeout_seconds", flags.timeout.map(Value::from)),
        ("--step-timeout", "step_timeout_seconds", flags.step_timeout.map(Value::from)),
        ("--tool-timeout", "tools.timeout_seconds", flags.tool_timeout.map(Value::from)),
        ("--budget", "costs.budget_usd", flags.budget.map(Value::from)),
        ("--self-eval", "evaluation.mode", flags.self_eval.map(|mode| mode.name().into())),
        ("--sandbox", "sandbox.mode", flags.sandbox.map(|mode| mode.name().into())),
        ("--allow-net", "sandbox.network", flags.allow_net.then(|| true.into())),
        (
            "--allow-write",
            "sandbox.writable",
            (!flags.allow_write.is_empty()).then(|| flags.allow_write.iter().map(path).collect()),
        ),
        (commands.map_or("", |(flag, _)| flag), "commands.enabled", commands.map(|(_, on)| on.into())),
        ("--log-level", "logging.level", flags.log_level.as_ref().map(|level| level.to_lowercase().into())),
        ("--log-file", "logging.file", flags.log_file.as_ref().map(path)),
    ];
    let mut layer = Layers::default();
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
    place: &str,
    key: &str,
    value: &Value,
) -> Result<Layers, ConfigError> {
    let leaf = validate::leaf_for_key(rules, key, value).map_err(|error| error.file(place))?;
    Ok(Layers::from_leaves(rules, level, place, vec![leaf]))
}
