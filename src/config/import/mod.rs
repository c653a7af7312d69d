//! Import of the settings of other agents. Nothing becomes more permissive: what has no counterpart is listed with the reason.

pub mod claude;
mod claude_hooks;
mod claude_permissions;
pub mod codex;
pub mod instructions;
mod mcp_servers;

use super::error::ConfigError;
use super::key_rules::embedded_schema;
use super::layers::{LayerKind, Layers};
use super::project::{MAX_CONFIG_BYTES, text_layer};
use agent_messages as messages;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Maximum number of settings of all files; a real project has fewer than a hundred, and a configuration holds more than these.
const MAX_SETTINGS: usize = 1_000;

/// Key of the MCP servers.
const SERVERS: &str = "mcp.servers";

/// The configuration file to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The project's.
    Project,
    /// The user's own.
    User,
}

/// A setting of another agent and its counterpart here.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignSetting {
    /// The setting as its file names it.
    pub name: String,
    /// Its counterpart, or the reason why it has none.
    pub counterpart: Result<Counterpart, String>,
    /// Whether it may refuse commands there that a rule `allow` permits.
    restricts_commands: bool,
}

impl ForeignSetting {
    fn new(name: String, counterpart: Result<Counterpart, String>) -> Self {
        Self { name, counterpart, restricts_commands: false }
    }

    /// Returns the setting `what` of `file`, which is not carried over because of `why`.
    fn skipped(file: &str, what: &str, why: &str) -> Self {
        Self::new(format!("{file}: {what}"), Err(why.to_owned()))
    }

    fn restricting_commands(self, restricts_commands: bool) -> Self {
        Self { restricts_commands, ..self }
    }
}

/// A key with its value; of a list, one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Counterpart {
    key: &'static str,
    value: Value,
    /// A difference that the user should check.
    note: Option<&'static str>,
}

impl Counterpart {
    fn new(key: &'static str, value: impl Into<Value>) -> Self {
        Self { key, value: value.into(), note: None }
    }

    /// A rule of `policy.rules` with one condition.
    fn rule(action: &str, condition: &str, value: &str) -> Self {
        Self::new("policy.rules", json!({"action": action, condition: value}))
    }

    fn with_note(self, note: &'static str) -> Self {
        Self { note: Some(note), ..self }
    }

    /// Returns the action of a rule; empty for other settings.
    fn action(&self) -> &str {
        self.value.get("action").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the text of a configuration with only this setting.
    fn yaml(&self) -> String {
        let mut settings = Map::new();
        self.add_to(&mut settings);
        yaml(&settings)
    }

    /// Checks whether both are the MCP server of the same name.
    fn is_same_server(&self, other: &Self) -> bool {
        let name = |part: &Self| part.value.as_object().and_then(|servers| servers.keys().next().cloned());
        self.key == SERVERS && other.key == SERVERS && name(self) == name(other)
    }

    /// Adds the setting to nested settings; an item joins the list unless it is there already, and a server the other servers.
    fn add_to(&self, settings: &mut Map<String, Value>) {
        let (groups, last) = self.key.rsplit_once('.').unwrap_or(("", self.key));
        let group = groups
            .split('.')
            .filter(|name| !name.is_empty())
            .try_fold(settings, |group, name| group.entry(name).or_insert_with(|| json!({})).as_object_mut());
        let Some(group) = group else { return };
        if self.key == SERVERS {
            if let Some(servers) = group.entry(last).or_insert_with(|| json!({})).as_object_mut() {
                servers.extend(self.value.as_object().cloned().unwrap_or_default());
            }
        } else if !is_list(self.key) {
            group.insert(last.to_owned(), self.value.clone());
        } else if let Some(list) = group.entry(last).or_insert_with(|| json!([])).as_array_mut()
            && !list.contains(&self.value)
        {
            list.push(self.value.clone());
        }
    }
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// The text of the configuration; empty if nothing was carried over.
    pub config: String,
    /// Settings that were carried over with a difference to check: name and difference.
    pub notes: Vec<(String, String)>,
    /// Settings that were not carried over: name and reason.
    pub skipped: Vec<(String, String)>,
}

/// Combines the counterparts of `settings` into one configuration. `has_secret` checks for texts that must not be copied.
///
/// # Errors
/// Fails for too many settings, and if the configuration would be too large.
pub fn combine(
    settings: Vec<ForeignSetting>,
    target: Target,
    has_secret: impl Fn(&str) -> bool,
) -> Result<Imported, ConfigError> {
    if settings.len() > MAX_SETTINGS {
        return Err(ConfigError::new(messages::too_many_settings(settings.len(), MAX_SETTINGS)));
    }
    let (mut imported, mut accepted, mut may_allow) = (Imported::default(), Vec::new(), true);
    for ForeignSetting { name, counterpart, restricts_commands } in settings {
        let checked = counterpart.and_then(|counterpart| check(counterpart, target, &has_secret));
        match checked {
            Ok(counterpart) if accepted.iter().any(|(_, other)| counterpart.is_same_server(other)) => {
                imported.skipped.push((name, messages::IMPORT_SAME_SERVER.to_owned()));
            }
            Ok(counterpart) => {
                // A hook may refuse less here, because it gets another input.
                may_allow &= !(restricts_commands && counterpart.key.starts_with("hooks."));
                accepted.push((name, counterpart));
            }
            Err(why) => {
                may_allow &= !restricts_commands;
                imported.skipped.push((name, why));
            }
        }
    }
    // Without the settings that take precedence there, a rule `allow` would permit more here.
    let is_kept = |(_, counterpart): &(String, Counterpart)| may_allow || counterpart.action() != "allow";
    let (mut accepted, withheld): (Vec<_>, Vec<_>) = accepted.into_iter().partition(is_kept);
    let why = || messages::IMPORT_ALLOW_RESTRICTED.to_owned();
    imported.skipped.extend(withheld.into_iter().map(|(name, _)| (name, why())));
    for (name, counterpart) in &accepted {
        imported.notes.extend(counterpart.note.map(|note| (name.clone(), note.to_owned())));
    }
    // The first matching rule decides. In the files of other agents, the strictest one does.
    accepted.sort_by_key(|(_, counterpart)| {
        ["", "deny", "ask", "allow"].iter().position(|action| counterpart.action() == *action)
    });
    let mut config = Map::new();
    for (_, counterpart) in &accepted {
        counterpart.add_to(&mut config);
    }
    imported.config = yaml(&config);
    let rules = &embedded_schema()?.rules;
    text_layer(rules, LayerKind::Project, messages::IMPORT_CONFIGURATION, &imported.config)?;
    if imported.config.len() as u64 >= MAX_CONFIG_BYTES / 2 {
        return Err(ConfigError::new(messages::IMPORT_TOO_LARGE).file(messages::IMPORT_CONFIGURATION));
    }
    Ok(imported)
}

/// Checks that a setting is valid, may be set in the target, and contains no secret; else returns the reason.
fn check(
    counterpart: Counterpart,
    target: Target,
    has_secret: impl Fn(&str) -> bool,
) -> Result<Counterpart, String> {
    let text = counterpart.yaml();
    if has_secret(&text) {
        return Err(messages::IMPORT_SECRET.to_owned());
    }
    let schema = embedded_schema().map_err(|error| error.message)?;
    let layer = text_layer(&schema.rules, LayerKind::Project, "", &text);
    let mut layer = layer.map_err(|error| messages::import_invalid(&error.message))?;
    let restricted = layer.take_restricted(&schema.rules, &Layers::default());
    if target == Target::Project && !restricted.never_from_project.is_empty() {
        return Err(messages::import_own_configuration(&flow_line(&counterpart)));
    }
    Ok(counterpart)
}

/// Checks whether a key holds a list.
fn is_list(key: &str) -> bool {
    key.starts_with("hooks.")
        || ["policy.rules", "guardrails.sensitive_files", "guardrails.protected_files"].contains(&key)
        || ["guardrails.blocked_commands", "sandbox.writable"].contains(&key)
}

/// Returns a setting as one line of YAML.
fn flow_line(counterpart: &Counterpart) -> String {
    let value = flow(&counterpart.value);
    let value = if is_list(counterpart.key) { format!("[{value}]") } else { value };
    let mut groups = counterpart.key.split('.').rev();
    let last = groups.next().unwrap_or_default();
    groups.fold(format!("{last}: {value}"), |inner, group| format!("{group}: {{{inner}}}"))
}

/// Returns settings as YAML: groups and lists in lines of their own, items in one line each.
fn yaml(settings: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_yaml(settings, "", &mut text);
    text
}

fn write_yaml(settings: &Map<String, Value>, indent: &str, text: &mut String) {
    for (name, value) in settings {
        let name = flow_name(name);
        let _infallible = match value {
            Value::Object(_) | Value::Array(_) => writeln!(text, "{indent}{name}:"),
            scalar => writeln!(text, "{indent}{name}: {}", flow(scalar)),
        };
        match value {
            Value::Object(inner) => write_yaml(inner, &format!("{indent}  "), text),
            Value::Array(items) => {
                for item in items {
                    let _infallible = writeln!(text, "{indent}  - {}", flow(item));
                }
            }
            _ => {}
        }
    }
}

/// Returns the name of a key, quoted unless it is a plain word.
fn flow_name(name: &str) -> Cow<'_, str> {
    let is_word = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_word);
    if is_plain { name.into() } else { Value::from(name).to_string().into() }
}

/// Returns a value in one line; every text is quoted.
fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", flow_name(name), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
