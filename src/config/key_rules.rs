//! The rules of the configuration: the allowed values of each key, and who may set it.

use super::error::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The rules and every default, generated from the JSON Schema of the configuration. They are read at every start, and compiling them
/// from the schema takes 1 ms more.
const RULES: &str = include_str!("../../config/rules.json");

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every layer.
    #[default]
    Anywhere,
    /// Every layer except an untrusted project.
    NeedsTrust,
    /// Every layer except a project, trusted or not.
    NeverFromProject,
}

/// The values that are stricter than the one in force: of a number, or of a choice, whose words count by their position. An equal
/// value is as strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stricter {
    /// Lower ones; where none is in force there is no limit, and every value is stricter.
    Lower,
    /// Lower ones, where one is in force; a default that is not known here may be lower than any of them.
    LowerThanSet,
    /// Lower ones, where one is in force, except 0, which means no limit.
    LowerNotZero,
    /// Higher ones, where one is in force.
    Higher,
}

/// How the values of several layers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The value of the highest layer applies.
    #[default]
    Replace,
    /// Lists are joined, the lowest layer first.
    Add,
    /// Lists are joined, the highest layer first, and the project's list last: where the first match
    /// counts, the project's entries have the lowest priority.
    First,
}

/// The required format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A regular expression.
    Regex,
    /// A file pattern.
    Glob,
    /// An http or https URL.
    Url,
    /// The name of an agent.
    AgentName,
    /// The name of an environment variable.
    Variable,
    /// A regular expression, or `*`.
    Matcher,
    /// Text that is not blank.
    Filled,
    /// The name of a model provider.
    ProviderName,
    /// The path of a URL.
    Path,
    /// Host names, or patterns of them.
    Host,
    /// An IP address with a port.
    Socket,
    /// A host with an optional port.
    HostPort,
    /// The name of an MCP server.
    ServerName,
}

/// The type of a key's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Fixed keys.
    Group(BTreeMap<String, KeyRule>),
    /// Keys chosen by the user; the rule's format applies to the keys.
    Map(Box<KeyRule>),
    /// A list.
    List(Box<KeyRule>),
    /// One of these words.
    Choice(Vec<String>),
    /// Text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number within these bounds.
    Integer(f64, f64),
    /// A number within these bounds.
    Number(f64, f64),
}

/// Everything the schema defines for one key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeyRule {
    /// Its type.
    pub kind: Kind,
    /// Whether `null` is allowed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nullable: bool,
    /// Required keys of a group.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: Vec<String>,
    /// Who may set it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: Scope,
    /// Values that an untrusted project may set despite the scope.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tightens: Vec<Value>,
    /// The values that an untrusted project may set despite the scope because they are stricter than the one in force.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stricter: Option<Stricter>,
    /// How the lists of several layers are combined.
    #[serde(default, skip_serializing_if = "is_default")]
    pub merge: Merge,
    /// The required format of the text.
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: Option<Format>,
    /// The description for the user.
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: String,
    /// The unit of a number.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unit: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is embedded: every rule, and the default of every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmbeddedSchema {
    /// The rules.
    pub rules: KeyRule,
    /// Every key with its default.
    pub defaults: Value,
}

/// Returns the rules and the defaults of the configuration.
///
/// # Errors
/// Only if the embedded rules are broken, which a test excludes.
pub fn embedded_schema() -> Result<&'static EmbeddedSchema, ConfigError> {
    static DOCUMENT: LazyLock<Result<EmbeddedSchema, ConfigError>> = LazyLock::new(|| {
        let broken = |error| ConfigError::new(format!("the rules of the configuration: {error}"));
        serde_json::from_str(RULES).map_err(broken)
    });
    DOCUMENT.as_ref().map_err(Clone::clone)
}

impl KeyRule {
    /// Creates the rule of a group with these keys and defaults for everything else.
    pub fn group(keys: BTreeMap<String, KeyRule>) -> Self {
        Self {
            kind: Kind::Group(keys),
            nullable: false,
            required: Vec::new(),
            scope: Scope::default(),
            tightens: Vec::new(),
            stricter: None,
            merge: Merge::default(),
            format: None,
            description: String::new(),
            unit: None,
        }
    }

    /// Checks whether the value is a duration in seconds.
    pub fn is_seconds(&self) -> bool {
        self.unit.as_deref() == Some("seconds")
    }

    /// Checks whether an untrusted project may set `value` in place of `current` despite the scope.
    pub fn allows_untrusted(&self, value: &Value, current: Option<&Value>) -> bool {
        self.tightens.contains(value) || self.stricter.is_some_and(|by| self.is_stricter(by, value, current))
    }

    fn is_stricter(&self, by: Stricter, value: &Value, current: Option<&Value>) -> bool {
        match (self.rank(value), current.and_then(|current| self.rank(current))) {
            (None, current) => current.is_none(),
            (Some(_), None) => by == Stricter::Lower,
            (Some(value), Some(current)) => match by {
                Stricter::Lower | Stricter::LowerThanSet => value <= current,
                Stricter::LowerNotZero => current == 0.0 || value != 0.0 && value <= current,
                Stricter::Higher => value >= current,
            },
        }
    }

    /// Returns the position of a value among those of the key; `None` for null.
    fn rank(&self, value: &Value) -> Option<f64> {
        match &self.kind {
            Kind::Choice(words) => {
                let position = words.iter().position(|word| value == word)?;
                u32::try_from(position).ok().map(f64::from)
            }
            _ => value.as_f64(),
        }
    }

    /// Returns the rule for a dotted key.
    pub fn find(&self, key: &str) -> Option<&KeyRule> {
        key.split('.').try_fold(self, |rule, name| match &rule.kind {
            Kind::Group(rules) => rules.get(name),
            Kind::Map(values) => Some(values.as_ref()),
            _ => None,
        })
    }

    /// Returns every key that can be set, dotted, with its rule; `NAME` stands for a key chosen by the user.
    pub fn keys(&self) -> Vec<(String, &KeyRule)> {
        let mut out = Vec::new();
        self.collect_keys("", &mut out);
        out
    }

    fn collect_keys<'a>(&'a self, key: &str, out: &mut Vec<(String, &'a KeyRule)>) {
        let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        match &self.kind {
            Kind::Group(rules) => rules.iter().for_each(|(name, rule)| rule.collect_keys(&join(name), out)),
            Kind::Map(values) => values.collect_keys(&join("NAME"), out),
            _ => out.push((key.to_owned(), self)),
        }
    }
}
