//! MCP servers of other agents: how they are started or reached. Values of variables and headers may be secret, so they are listed.

use super::{Counterpart, ForeignSetting, SERVERS};
use crate::mcp::McpServer;
use crate::mcp_file::{HTTP_TYPES, own_name, variable};
use agent_mcp::definition::name_prefix;
use agent_messages as messages;
use serde_json::{Map, Value, json};

/// Keys there, and those here with the same values.
const KEYS: [(&str, &str); 9] = [
    ("command", "command"),
    ("args", "args"),
    ("cwd", "cwd"),
    ("url", "url"),
    ("enabled", "enabled"),
    ("enabled_tools", "tools"),
    ("bearer_token_env_var", "token_env"),
    ("startup_timeout_sec", "start_timeout_seconds"),
    ("tool_timeout_sec", "call_timeout_seconds"),
];

/// Returns the settings of `servers`, which `file` contains by name.
pub(super) fn settings(file: &str, servers: &Map<String, Value>) -> Vec<ForeignSetting> {
    servers.iter().flat_map(|(name, server)| server_settings(file, name, server)).collect()
}

fn server_settings(file: &str, foreign_name: &str, server: &Value) -> Vec<ForeignSetting> {
    let (name, shown) = (own_name(foreign_name), format!("MCP server {foreign_name}"));
    let Some(fields) = server.as_object() else {
        return vec![ForeignSetting::skipped(file, &shown, messages::IMPORT_MALFORMED)];
    };
    let (mut own, mut found) = (Map::new(), Vec::new());
    for (key, value) in fields {
        if let Some((_, ours)) = KEYS.iter().find(|(theirs, _)| theirs == key) {
            own.insert((*ours).to_owned(), value.clone());
            continue;
        }
        match (key.as_str(), value) {
            ("type", Value::String(kind)) if kind == "stdio" || HTTP_TYPES.contains(&kind.as_str()) => {}
            ("type", _) => {
                let what = format!("{shown}: {key} {value}");
                return vec![ForeignSetting::skipped(file, &what, messages::IMPORT_MCP_TYPE)];
            }
            ("disabled", Value::Bool(is_disabled)) => {
                own.insert("enabled".to_owned(), (!is_disabled).into());
            }
            ("env" | "headers" | "http_headers", Value::Object(values)) => {
                let group = if key == "env" { "env" } else { "headers" };
                let (mapped, listed) = sources(values);
                own.extend((!mapped.is_empty()).then(|| (group.to_owned(), mapped.into())));
                found.extend(listed.into_iter().map(|value| {
                    let why = messages::import_mcp_value(&name, group, value);
                    ForeignSetting::skipped(file, &format!("{shown}: {key} {value}"), &why)
                }));
            }
            ("disabled_tools", Value::Array(tools)) => {
                found.extend(tools.iter().filter_map(Value::as_str).map(|tool| {
                    let rule = Counterpart::rule("deny", "tool", &format!("{}{tool}", name_prefix(&name)));
                    ForeignSetting::new(format!("{file}: {shown}: {key} {tool}"), Ok(rule))
                }));
            }
            _ => {
                found.push(ForeignSetting::skipped(
                    file,
                    &format!("{shown}: {key}"),
                    messages::IMPORT_MCP_KEY,
                ));
            }
        }
    }
    let is_program = own.contains_key("command");
    let counterpart = checked(own).map(|own| Counterpart::new(SERVERS, json!({ name: own })));
    let counterpart =
        counterpart.map(|part| if is_program { part.with_note(messages::IMPORT_MCP_CHECK) } else { part });
    found.insert(0, ForeignSetting::new(format!("{file}: {shown}"), counterpart));
    found
}

/// Returns the values that are variables of the user, as sources, and the names of the others.
fn sources(values: &Map<String, Value>) -> (Map<String, Value>, Vec<&String>) {
    let (mut mapped, mut listed) = (Map::new(), Vec::new());
    for (name, value) in values {
        match value.as_str().and_then(variable) {
            Some(source) => drop(mapped.insert(name.clone(), json!({ "from": source }))),
            None => listed.push(name),
        }
    }
    (mapped, listed)
}

/// Checks that a server is complete; else returns the reason.
fn checked(server: Map<String, Value>) -> Result<Value, String> {
    let server = Value::Object(server);
    let parsed: McpServer = serde_json::from_value(server.clone())
        .map_err(|error| messages::import_invalid(&error.to_string()))?;
    match parsed.check() {
        Ok(()) => Ok(server),
        Err((key, why)) => Err(messages::import_invalid(&format!("{} {why}", key.trim_start_matches('.')))),
    }
}
