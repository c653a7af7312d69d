//! Reads the file of `--mcp-config`: the section `mcp` of the configuration, or the JSON with `mcpServers` that other agents use.

use super::error::{ConfigError, quoted, sanitize};
use super::key_rules::KeyRule;
use super::layers::{LayerKind, Layers};
use super::validate;
use super::yaml::{self, Content, Entry, Node};
use serde_json::Value;
use std::collections::BTreeMap;

/// Key of the servers in the files of other agents.
const FOREIGN_SERVERS: &str = "mcpServers";

/// Keys of a server in such a file.
const FOREIGN_KEYS: [&str; 9] =
    ["type", "command", "args", "env", "cwd", "url", "headers", "disabled", "description"];

/// Values of `type` for servers over HTTP.
pub(super) const HTTP_TYPES: [&str; 3] = ["http", "streamable-http", "streamableHttp"];

/// Creates the layer of the file `source` with this text. JSON is a subset of YAML, so one parser reads both.
///
/// # Errors
/// Fails at the first problem, with file and line.
pub fn layer(rules: &KeyRule, source: &str, text: &str) -> Result<Layers, ConfigError> {
    let located = |error: ConfigError| error.file(source);
    let node = yaml::parse(text).and_then(as_configuration).map_err(located)?;
    let leaves = validate::leaves(rules, &node).map_err(located)?;
    Ok(Layers::from_leaves(rules, LayerKind::Flag, source, leaves))
}

/// Returns the document as a configuration that contains only the section `mcp`.
fn as_configuration(node: Node) -> Result<Node, ConfigError> {
    let Content::Map(entries) = &node.content else {
        return Err(ConfigError::new(expected_forms()).line(node.line));
    };
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    match names.as_slice() {
        ["mcp"] => Ok(node),
        [FOREIGN_SERVERS] => {
            let servers = entries.first().map(|entry| from_foreign(&entry.node)).transpose()?;
            Ok(group("mcp", group("servers", servers.unwrap_or(node))))
        }
        _ if names.contains(&"servers") => Ok(group("mcp", node)),
        _ => Err(ConfigError::new(expected_forms()).line(node.line)),
    }
}

fn expected_forms() -> String {
    format!("must contain `mcp:`, or `{FOREIGN_SERVERS}` as other agents write it")
}

fn group(name: &str, node: Node) -> Node {
    let line = node.line;
    Node { content: Content::Map(vec![entry(name, line, node)]), line, column: 0 }
}

fn entry(name: &str, line: u64, node: Node) -> Entry {
    Entry { name: name.to_owned(), line, column: 0, node }
}

fn entries<'a>(node: &'a Node, key: &str) -> Result<&'a [Entry], ConfigError> {
    match &node.content {
        Content::Map(entries) => Ok(entries),
        _ => Err(ConfigError::new("must be keys and values").key(key).line(node.line)),
    }
}

/// Converts the servers of another agent's file.
fn from_foreign(node: &Node) -> Result<Node, ConfigError> {
    let mut names: BTreeMap<String, &str> = BTreeMap::new();
    let mut servers = Vec::new();
    for server in entries(node, FOREIGN_SERVERS)? {
        let name = own_name(&server.name);
        if let Some(other) = names.insert(name.clone(), &server.name) {
            let both = format!("{} and {}", quoted(other), quoted(&server.name));
            return Err(ConfigError::new(format!("{both} become the same name, {name}: rename one"))
                .key(FOREIGN_SERVERS)
                .line(server.line));
        }
        let key = format!("{FOREIGN_SERVERS}.{}", sanitize(&server.name));
        servers.push(entry(&name, server.line, foreign_server(&server.node, &key)?));
    }
    Ok(Node { content: Content::Map(servers), line: node.line, column: 0 })
}

/// Returns the name here of another agent's server.
pub(super) fn own_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

/// Converts one server.
fn foreign_server(node: &Node, key: &str) -> Result<Node, ConfigError> {
    let mut keys = Vec::new();
    for field in entries(node, key)? {
        let key = format!("{key}.{}", sanitize(&field.name));
        let text = match &field.node.content {
            Content::Scalar(Value::String(text)) => text.as_str(),
            _ => "",
        };
        match field.name.as_str() {
            "description" => {}
            "type" if text == "stdio" || HTTP_TYPES.contains(&text) => {}
            "type" => {
                let why =
                    "must be stdio or http: the agent does not use the older transport `sse`, nor others";
                return Err(ConfigError::new(why).key(key).line(field.line));
            }
            "command" | "args" | "cwd" | "url" => keys.push(field.clone()),
            "headers" => keys.extend(foreign_headers(field, &key)?),
            "disabled" => {
                let enabled = match field.node.content {
                    Content::Scalar(Value::Bool(disabled)) => Content::Scalar(Value::Bool(!disabled)),
                    ref other => other.clone(),
                };
                keys.push(entry(
                    "enabled",
                    field.line,
                    Node { content: enabled, line: field.node.line, column: 0 },
                ));
            }
            "env" => keys.push(foreign_values(field, &key)?.0),
            _ => {
                let known = FOREIGN_KEYS.join(", ");
                let error = ConfigError::new("unknown key").key(key).line(field.line);
                return Err(error.hint(format!("known keys here: {known}")));
            }
        }
    }
    Ok(Node { content: Content::Map(keys), line: node.line, column: 0 })
}

/// Converts headers: `Authorization: Bearer ${NAME}` becomes `token_env`.
fn foreign_headers(field: &Entry, key: &str) -> Result<Vec<Entry>, ConfigError> {
    let (headers, token) = foreign_values(field, key)?;
    let token = token.map(|name| {
        let node = Node { content: Content::Scalar(name.into()), line: field.line, column: 0 };
        entry("token_env", field.line, node)
    });
    Ok(std::iter::once(headers).chain(token).collect())
}

/// Converts variables or headers, whose values are texts: `${NAME}` refers to a variable of the user. Returns the variable of a
/// bearer token separately.
fn foreign_values(field: &Entry, key: &str) -> Result<(Entry, Option<String>), ConfigError> {
    let (mut values, mut token) = (Vec::new(), None);
    for item in entries(&field.node, key)? {
        let line = item.line;
        let key = format!("{key}.{}", sanitize(&item.name));
        let Content::Scalar(Value::String(value)) = &item.node.content else {
            return Err(ConfigError::new("must be text").key(key).line(line));
        };
        let bearer = value.strip_prefix("Bearer ").and_then(variable);
        if let Some(name) = bearer.filter(|_| item.name.eq_ignore_ascii_case("authorization")) {
            token = Some(name.to_owned());
            continue;
        }
        let (name, text) = match variable(value) {
            Some(name) => ("from", name),
            None if value.contains("${") => {
                let why = "a variable must be the whole value, as `${NAME}`";
                return Err(ConfigError::new(why).key(key).line(line));
            }
            None => ("value", value.as_str()),
        };
        let source = entry(name, line, Node { content: Content::Scalar(text.into()), line, column: 0 });
        values.push(entry(&item.name, line, Node { content: Content::Map(vec![source]), line, column: 0 }));
    }
    Ok((
        entry(&field.name, field.line, Node { content: Content::Map(values), line: field.line, column: 0 }),
        token,
    ))
}

/// Returns the name in `${NAME}`.
pub(super) fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then_some(name)
}
