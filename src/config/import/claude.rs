//! Settings of Claude Code: permissions, hooks and MCP servers of `.claude/settings.json` and `.mcp.json`.

use super::{Counterpart, ForeignSetting, Target, claude_hooks, claude_permissions, mcp_servers};
use crate::error::ConfigError;
use agent_engine::rules::PolicyRule;
use agent_messages as messages;
use serde_json::{Map, Value};

/// Settings files in the project, and in the home directory.
pub const PROJECT_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];
/// Settings file in the home directory.
pub const USER_FILE: &str = ".claude/settings.json";
/// File with the MCP servers of the project.
pub const MCP_FILE: &str = ".mcp.json";

/// Returns the settings in `text`, the content of the settings file `file`.
///
/// # Errors
/// Fails for a text that is not a JSON object.
pub fn settings(file: &str, text: &str, target: Target) -> Result<Vec<ForeignSetting>, ConfigError> {
    let mut found = Vec::new();
    let all = object(file, text)?;
    let hooks_off = all.get("disableAllHooks") == Some(&Value::Bool(true));
    for (key, value) in &all {
        match key.as_str() {
            "$schema" | "disableAllHooks" => {}
            "permissions" => permissions(file, value, target, &mut found),
            "hooks" if hooks_off => {
                found.push(ForeignSetting::skipped(file, key, messages::IMPORT_HOOKS_OFF));
            }
            "hooks" => found.extend(claude_hooks::settings(file, value)),
            "env" => found.push(ForeignSetting::skipped(file, key, messages::IMPORT_ENVIRONMENT)),
            "model" => found.push(ForeignSetting::skipped(file, key, messages::IMPORT_MODEL)),
            "enabledMcpjsonServers" | "disabledMcpjsonServers" | "enableAllProjectMcpServers" => {
                found.push(ForeignSetting::skipped(file, key, messages::IMPORT_MCP_ENABLED));
            }
            _ => found.push(ForeignSetting::skipped(file, key, messages::IMPORT_NO_KEY)),
        }
    }
    Ok(found)
}

/// What a permission rule means here.
#[derive(Debug, PartialEq, Eq)]
pub enum Permission {
    /// An entry of `policy.rules`.
    Rule(Box<PolicyRule>),
    /// An entry of `guardrails.blocked_commands`.
    BlockedCommand(String),
    /// An entry of `guardrails.protected_files`.
    ProtectedFile(String),
}

/// Returns the counterpart of a permission rule in the list `action` (`allow`, `ask` or `deny`).
///
/// # Errors
/// Fails with the reason why there is none.
pub fn permission(action: &str, rule: &str) -> Result<Permission, String> {
    let Counterpart { key, value, .. } = claude_permissions::counterpart(action, rule, Target::Project)?;
    match (key, value) {
        ("guardrails.blocked_commands", Value::String(pattern)) => Ok(Permission::BlockedCommand(pattern)),
        ("guardrails.protected_files", Value::String(pattern)) => Ok(Permission::ProtectedFile(pattern)),
        ("policy.rules", rule) => {
            serde_json::from_value(rule).map(Permission::Rule).map_err(|error| error.to_string())
        }
        _ => Err(messages::IMPORT_MALFORMED.to_owned()),
    }
}

/// Returns the MCP servers in `text`, the content of `.mcp.json`.
///
/// # Errors
/// Fails for a text that is not a JSON object.
pub fn mcp_servers(file: &str, text: &str) -> Result<Vec<ForeignSetting>, ConfigError> {
    let all = object(file, text)?;
    let servers = all.get("mcpServers").and_then(Value::as_object);
    Ok(servers.map(|servers| mcp_servers::settings(file, servers)).unwrap_or_default())
}

fn permissions(file: &str, value: &Value, target: Target, found: &mut Vec<ForeignSetting>) {
    let Some(permissions) = value.as_object() else {
        return found.push(ForeignSetting::skipped(file, "permissions", messages::IMPORT_MALFORMED));
    };
    for (key, value) in permissions {
        let key_name = format!("permissions.{key}");
        match (key.as_str(), value) {
            ("allow" | "ask" | "deny", Value::Array(rules)) => {
                for rule in rules {
                    let counterpart = match rule.as_str() {
                        Some(rule) => claude_permissions::counterpart(key, rule, target),
                        None => Err(messages::IMPORT_MALFORMED.to_owned()),
                    };
                    let shown = rule.as_str().map_or_else(|| rule.to_string(), str::to_owned);
                    let restricts = key != "allow" && (rule.is_string() && shown.trim().starts_with("Bash"));
                    let setting = ForeignSetting::new(format!("{file}: {key_name} {shown}"), counterpart);
                    found.push(setting.restricting_commands(restricts));
                }
            }
            ("ask" | "deny", _) => {
                let setting = ForeignSetting::skipped(file, &key_name, messages::IMPORT_MALFORMED);
                found.push(setting.restricting_commands(true));
            }
            ("defaultMode", Value::String(mode)) if mode == "default" => {}
            ("defaultMode", _) => {
                found.push(ForeignSetting::skipped(
                    file,
                    &format!("{key_name} {value}"),
                    messages::IMPORT_MODE,
                ));
            }
            ("additionalDirectories", _) => {
                found.push(ForeignSetting::skipped(file, &key_name, messages::IMPORT_DIRECTORIES));
            }
            _ => found.push(ForeignSetting::skipped(file, &key_name, messages::IMPORT_NO_KEY)),
        }
    }
}

fn object(file: &str, text: &str) -> Result<Map<String, Value>, ConfigError> {
    serde_json::from_str(text).map_err(|error| {
        let line = u64::try_from(error.line()).unwrap_or(0);
        ConfigError::new(format!("not a JSON object: {error}")).file(file).line(line)
    })
}
