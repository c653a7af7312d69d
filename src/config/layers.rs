//! Layers of settings: merging, the origin of each value, and restrictions on what a project may set.

use super::error::ConfigError;
use super::key_rules::{KeyRule, Merge, Scope};
use super::validate::Leaf;
use agent_engine::policy::Mode;
use agent_redactor::url_credentials;
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The layers, from lowest to highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerKind {
    /// `config/default.yaml` and `config/agents/*.md`, embedded in the program.
    BuiltIn,
    /// The user's own files.
    User,
    /// The project's files.
    Project,
    /// The file of `-c` or `AGENT_CONFIG`.
    File,
    /// Environment variables.
    Environment,
    /// Command-line flags.
    Flag,
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The layer.
    pub level: LayerKind,
    /// The file, variable or flag.
    pub source: String,
    /// The line in the file; 0 when there is none.
    pub line: u64,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if self.line > 0 { write!(f, ":{}", self.line) } else { Ok(()) }
    }
}

/// One value as set by one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerValue {
    /// The value.
    pub value: Value,
    /// Where it was set.
    pub origin: Origin,
    /// How the value is combined with those of other layers: it replaces them, or the lists are joined.
    pub merge: Merge,
}

/// Values by dotted key, of one layer or of several merged layers. A key whose values replace each other has exactly one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layers(BTreeMap<String, Vec<LayerValue>>);

/// One effective key, for `agent config show`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, dotted.
    pub key: String,
    /// Its value as JSON; likely secrets are masked.
    pub value: String,
    /// Where it was set; several locations when lists were joined.
    pub origin: String,
}

impl Layers {
    /// Creates a layer from the leaves of one file, variable or flag.
    pub fn from_leaves(rules: &KeyRule, level: LayerKind, source: &str, leaves: Vec<Leaf>) -> Self {
        let layer_value = |leaf: Leaf| {
            let origin = Origin { level, source: source.to_owned(), line: leaf.line };
            let merge = rules.find(&leaf.key).map(|rule| rule.merge).unwrap_or_default();
            (leaf.key, vec![LayerValue { value: leaf.value, origin, merge }])
        };
        Self(leaves.into_iter().map(layer_value).collect())
    }

    /// Returns these values overridden by those of `higher`. An MCP server that both define is that of `higher` alone, so that no
    /// program gets secrets or permissions that were meant for another one.
    #[must_use]
    pub fn overridden_by(mut self, higher: Self) -> Self {
        for server in self.defined_servers().intersection(&higher.defined_servers()) {
            let group = format!("{SERVERS}{server}.");
            self.0.retain(|key, _| !key.starts_with(&group));
        }
        for (key, layer_values) in higher.0 {
            let adds = layer_values.iter().all(|layer_value| layer_value.merge != Merge::Replace);
            match self.0.get_mut(&key) {
                Some(lower) if adds => lower.extend(layer_values),
                _ => {
                    self.0.insert(key, layer_values);
                }
            }
        }
        self
    }

    /// Returns the value in force for a key, with its origin; the last one where lists are joined.
    pub fn get(&self, key: &str) -> Option<&LayerValue> {
        self.0.get(key).and_then(|layer_values| layer_values.last())
    }

    /// Returns the value in force, with the lists of all layers joined and without duplicates.
    pub fn value(&self, key: &str) -> Option<Value> {
        self.0.get(key).and_then(|layer_values| merged_value(layer_values))
    }

    /// Returns the value of `field` (`mode` or `max_steps`) in force for an agent: that of the higher layer; within
    /// one layer, the agent's own takes precedence over the general one.
    pub fn for_agent(&self, agent: &str, field: &str) -> Option<&LayerValue> {
        let set = |key: &str| self.get(key).filter(|layer_value| !layer_value.value.is_null());
        match (set(&format!("agents.{agent}.{field}")), set(field)) {
            (Some(own), Some(general)) if general.origin.level > own.origin.level => Some(general),
            (own, general) => own.or(general),
        }
    }

    /// Adds to `error` the key, and where it or the first key of its group was set.
    pub fn locate(&self, error: ConfigError, key: &str) -> ConfigError {
        let group = format!("{key}.");
        let first = self.0.iter().find(|(name, _)| *name == key || name.starts_with(&group));
        match first.and_then(|(_, layer_values)| layer_values.last()) {
            Some(LayerValue { origin, .. }) => error.key(key).file(&origin.source).line(origin.line),
            None => error.key(key),
        }
    }

    /// Checks whether a layer above the built-in one set a key that starts with `prefix`.
    pub fn is_overridden(&self, prefix: &str) -> bool {
        let set = self.0.iter().filter(|(key, _)| key.starts_with(prefix));
        set.flat_map(|(_, layer_values)| layer_values)
            .any(|layer_value| layer_value.origin.level > LayerKind::BuiltIn)
    }

    /// Returns every key in force with its value and origin.
    pub fn entries(&self) -> Vec<Entry> {
        self.0.iter().map(|(key, layer_values)| entry(key, layer_values)).collect()
    }

    /// Returns the value in force as text for the user, complete: a text without quotes, everything else as JSON. Likely secrets are masked.
    pub fn shown_value(&self, key: &str) -> Option<String> {
        self.0.get(key).map(|layer_values| shown_value(key, &merged_value(layer_values).unwrap_or_default()))
    }

    /// Returns all values as one nested object.
    pub fn to_json(&self) -> Value {
        let mut root = Map::new();
        for (key, layer_values) in &self.0 {
            let mut names = key.split('.').collect::<Vec<_>>();
            let last = names.pop().unwrap_or_default();
            let group = names.into_iter().try_fold(&mut root, |group, name| {
                group.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
            });
            if let (Some(group), Some(value)) = (group, merged_value(layer_values)) {
                group.insert(last.to_owned(), value);
            }
        }
        Value::Object(root)
    }

    /// Checks whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all values with their keys.
    pub fn layer_values(&self) -> impl Iterator<Item = (&str, &LayerValue)> {
        self.0.iter().flat_map(|(key, all)| all.iter().map(move |layer_value| (key.as_str(), layer_value)))
    }

    /// Returns the names of the MCP servers for which a key is set that says what runs or what it gets.
    fn defined_servers(&self) -> BTreeSet<String> {
        let keys = self.0.keys().filter_map(|key| key.strip_prefix(SERVERS)?.split_once('.'));
        let defining = keys.filter(|(_, key)| {
            let field = key.split('.').next().unwrap_or_default();
            SERVER_DEFINITION.contains(&field)
        });
        defining.map(|(name, _)| name.to_owned()).collect()
    }

    fn set(&mut self, key: &str, layer_values: Vec<LayerValue>) {
        if !layer_values.is_empty() {
            self.0.insert(key.to_owned(), layer_values);
        }
    }

    /// Removes and returns the settings that an untrusted project may not set on top of `below`.
    pub fn take_restricted(&mut self, rules: &KeyRule, below: &Self) -> RestrictedSettings {
        let mut out = RestrictedSettings::default();
        for (key, layer_values) in std::mem::take(&mut self.0) {
            let rule = rules.find(&key);
            let scope = rule.map_or(Scope::Anywhere, |rule| rule.scope);
            if key == RULES {
                self.set(&key, rules_with_action(&layer_values, |action| action != "allow"));
                out.never_from_project
                    .set(&key, rules_with_action(&layer_values, |action| action == "allow"));
                continue;
            }
            let current = below.value(&key);
            let allowed =
                |value: &Value| rule.is_some_and(|rule| rule.allows_untrusted(value, current.as_ref()));
            let harmless = |value: &Value| allowed(value) || tightens_agent(&key, value, below);
            let is_harmless = layer_values.iter().all(|layer_value| harmless(&layer_value.value));
            let target = match scope {
                Scope::Anywhere => &mut *self,
                Scope::NeedsTrust | Scope::NeverFromProject if is_harmless => &mut *self,
                Scope::NeedsTrust => &mut out.needs_trust,
                Scope::NeverFromProject => &mut out.never_from_project,
            };
            target.0.insert(key, layer_values);
        }
        out
    }
}

/// Settings of a project that have no effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RestrictedSettings {
    /// Settings that take effect in a trusted workspace.
    pub needs_trust: Layers,
    /// Settings that never take effect from a project.
    pub never_from_project: Layers,
}

/// The mode of an agent without a configured mode.
pub const DEFAULT_MODE: Mode = Mode::ConfirmSensitive;
/// The step limit of an agent without a configured limit.
pub const DEFAULT_MAX_STEPS: u32 = 20;

/// Start of the keys of MCP servers.
const SERVERS: &str = "mcp.servers.";

/// Keys of an MCP server that say what runs and what it gets.
const SERVER_DEFINITION: [&str; 8] =
    ["command", "args", "env", "cwd", "url", "token_env", "headers", "oauth"];

/// The key of the rules on tool calls; a project may only set rules that remove permissions.
const RULES: &str = "policy.rules";

/// Returns the values reduced to the rules whose action is `wanted`; values without such a rule are dropped.
fn rules_with_action(layer_values: &[LayerValue], wanted: impl Fn(&str) -> bool) -> Vec<LayerValue> {
    let is_wanted = |rule: &&Value| wanted(rule.get("action").and_then(Value::as_str).unwrap_or("allow"));
    let only = |layer_value: &LayerValue| {
        let rules: Vec<Value> = layer_value.value.as_array()?.iter().filter(is_wanted).cloned().collect();
        (!rules.is_empty()).then(|| LayerValue { value: Value::Array(rules), ..layer_value.clone() })
    };
    layer_values.iter().filter_map(only).collect()
}

/// Checks whether a setting of an agent defines a new agent, or only removes permissions that the agent has in
/// `below`.
fn tightens_agent(key: &str, value: &Value, below: &Layers) -> bool {
    let Some((agent, field)) = key.strip_prefix("agents.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let current = || below.for_agent(agent, field).map(|layer_value| &layer_value.value);
    match field {
        "mode" => {
            let rank = |mode: &Value| Mode::ALL.iter().position(|one| mode == one.name());
            let limit = current().map_or(Some(1), rank);
            rank(value).is_some_and(|wanted| limit.is_some_and(|limit| wanted <= limit))
        }
        "max_steps" => {
            let limit = current().and_then(Value::as_u64).unwrap_or(u64::from(DEFAULT_MAX_STEPS));
            value.as_u64().is_some_and(|wanted| wanted <= limit)
        }
        "system_prompt" => current().is_none(),
        "allowed_tools" => {
            let current = below.value(key);
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            let (limit, wanted) = (current.as_ref().map(list).unwrap_or_default(), list(value));
            limit.is_empty() || (!wanted.is_empty() && wanted.iter().all(|tool| limit.contains(tool)))
        }
        _ => false,
    }
}

/// Returns the value that results from the values of one key.
fn merged_value(layer_values: &[LayerValue]) -> Option<Value> {
    let last = layer_values.last()?;
    let mut ordered: Vec<&LayerValue> = layer_values.iter().collect();
    match last.merge {
        Merge::Replace => return Some(last.value.clone()),
        Merge::Add => {}
        Merge::First => {
            let level = |layer_value: &&LayerValue| layer_value.origin.level;
            ordered.sort_by_key(|layer_value| {
                (level(layer_value) == LayerKind::Project, Reverse(level(layer_value)))
            });
        }
    }
    let mut list: Vec<Value> = Vec::new();
    for item in ordered.into_iter().filter_map(|layer_value| layer_value.value.as_array()).flatten() {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
    Some(Value::Array(list))
}

/// Returns a value as text for the user: a text without quotes, everything else as JSON. Likely secrets are masked.
pub fn shown_value(key: &str, value: &Value) -> String {
    if is_secret(key) {
        return "[secret]".to_owned();
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    url_credentials::hide(&text).into_owned()
}

fn entry(key: &str, layer_values: &[LayerValue]) -> Entry {
    /// Maximum number of characters of a value that are shown; enough to recognise a prompt.
    const SHOWN: usize = 200;
    let empty = |layer_value: &&LayerValue| layer_value.value.as_array().is_some_and(Vec::is_empty);
    let mut origins: Vec<String> =
        layer_values.iter().filter(|layer_value| !empty(layer_value)).map(|s| s.origin.to_string()).collect();
    if origins.is_empty() {
        origins.extend(layer_values.last().map(|layer_value| layer_value.origin.to_string()));
    }
    let mut value = if is_secret(key) {
        "[secret]".to_owned()
    } else {
        let value = merged_value(layer_values).unwrap_or_default().to_string();
        url_credentials::hide(&value).into_owned()
    };
    if let Some((end, _)) = value.char_indices().nth(SHOWN) {
        value.truncate(end);
        value.push('…');
    }
    Entry { key: key.to_owned(), value, origin: origins.join(", ") }
}

/// Checks whether a key is an environment variable for commands with a name that suggests a secret.
fn is_secret(key: &str) -> bool {
    // Every header value of an MCP server counts as a secret.
    let of_server = key.starts_with(SERVERS);
    if of_server && key.contains(".headers.") && key.rsplit('.').next() == Some("value") {
        return true;
    }
    let is_variable = key.starts_with("commands.env.") || of_server && key.contains(".env.");
    let name = key.to_ascii_uppercase();
    is_variable
        && ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
