//! Settings of Codex: approvals, sandbox and MCP servers of `config.toml`.

use super::{Counterpart, ForeignSetting, mcp_servers};
use crate::error::ConfigError;
use agent_messages as messages;
use serde_json::{Map, Value};

/// Settings file in the project, and in the home directory.
pub const FILE: &str = ".codex/config.toml";

/// Efforts that both programs name alike.
const EFFORTS: [&str; 5] = ["minimal", "low", "medium", "high", "xhigh"];

/// Returns the settings in `text`, the content of the settings file `file`.
///
/// # Errors
/// Fails for a text that is not TOML.
pub fn settings(file: &str, text: &str) -> Result<Vec<ForeignSetting>, ConfigError> {
    let all: Map<String, Value> = toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(0, |before| before.lines().count().max(1));
        let line = u64::try_from(line).unwrap_or(0);
        ConfigError::new(format!("not valid TOML: {}", error.message())).file(file).line(line)
    })?;
    let mut found = Vec::new();
    let mut add = |name: String, counterpart: Result<Vec<Counterpart>, &str>| {
        let name = format!("{file}: {name}");
        match counterpart {
            Ok(parts) => {
                found.extend(parts.into_iter().map(|part| ForeignSetting::new(name.clone(), Ok(part))));
            }
            Err(why) => found.push(ForeignSetting::new(name, Err(why.to_owned()))),
        }
    };
    for (key, value) in &all {
        match (key.as_str(), value) {
            ("mcp_servers", Value::Object(_)) => {}
            ("hooks", _) => add(key.clone(), Err(messages::IMPORT_CODEX_HOOKS)),
            ("sandbox_workspace_write", Value::Object(options)) => {
                // They count only in this mode; elsewhere they would permit more than there.
                let counts = all.get("sandbox_mode").and_then(Value::as_str) == Some("workspace-write");
                for (name, value) in options {
                    let option =
                        if counts { sandbox_option(name, value) } else { Err(messages::IMPORT_NOT_IN_MODE) };
                    add(format!("{key}.{name}"), option);
                }
            }
            (_, Value::String(word)) => add(format!("{key} = \"{word}\""), word_setting(key, word)),
            _ => add(key.clone(), Err(messages::IMPORT_NO_KEY)),
        }
    }
    if let Some(Value::Object(servers)) = all.get("mcp_servers") {
        found.extend(mcp_servers::settings(file, servers));
    }
    Ok(found)
}

fn word_setting(key: &str, word: &str) -> Result<Vec<Counterpart>, &'static str> {
    let mode = || Counterpart::new("mode", "confirm-sensitive");
    match (key, word) {
        ("approval_policy", "untrusted") => {
            Ok(vec![mode(), Counterpart::new("commands.trust_sandbox", false)])
        }
        ("approval_policy", "on-request" | "on-failure") => Ok(vec![mode()]),
        ("approval_policy", _) => Err(messages::IMPORT_MODE),
        ("sandbox_mode", "workspace-write") => Ok(Vec::new()),
        ("sandbox_mode", "read-only") => Err(messages::IMPORT_READ_ONLY),
        ("sandbox_mode", _) => Err(messages::IMPORT_NO_SANDBOX),
        ("model_reasoning_effort", effort) if EFFORTS.contains(&effort) => {
            Ok(vec![Counterpart::new("llm.effort", effort)])
        }
        ("model" | "model_provider", _) => Err(messages::IMPORT_MODEL),
        _ => Err(messages::IMPORT_NO_KEY),
    }
}

fn sandbox_option(name: &str, value: &Value) -> Result<Vec<Counterpart>, &'static str> {
    match (name, value) {
        ("network_access", Value::Bool(network)) => Ok(vec![Counterpart::new("sandbox.network", *network)]),
        ("writable_roots", Value::Array(directories)) => {
            let directory = |path: &Value| Counterpart::new("sandbox.writable", path.clone());
            Ok(directories.iter().map(directory).collect())
        }
        _ => Err(messages::IMPORT_NO_KEY),
    }
}
