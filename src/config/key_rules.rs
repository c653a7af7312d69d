//! The configuration schema compiled into rules: the allowed values of each key, and who may set it.

use super::error::ConfigError;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The schema of the configuration with every default, generated from the types (`config::schema`) and
/// `config/default.yaml`. It is embedded because generating it or parsing the YAML would slow down every start.
pub const SCHEMA: &str = include_str!("../../config/schema/config.json");

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
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

/// How the values of several layers are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Fixed keys.
    Group(BTreeMap<String, KeyRule>),
    /// Keys chosen by the user; the rule's format applies to the keys.
    Map(Arc<KeyRule>),
    /// A list.
    List(Arc<KeyRule>),
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
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRule {
    /// Its type.
    pub kind: Kind,
    /// Whether `null` is allowed.
    pub nullable: bool,
    /// Required keys of a group.
    pub required: Vec<String>,
    /// Who may set it.
    pub scope: Scope,
    /// Values that an untrusted project may set despite the scope.
    pub tightens: Vec<Value>,
    /// Whether an untrusted project may lower the number in force, or set any number if there is none.
    pub may_lower: bool,
    /// How the lists of several layers are combined.
    pub merge: Merge,
    /// The required format of the text.
    pub format: Option<Format>,
    /// The description for the user.
    pub description: String,
    /// The unit of a number.
    pub unit: Option<String>,
}

/// The contents of the embedded schema: every rule, and the default of every key.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedSchema {
    /// The rules.
    pub rules: KeyRule,
    /// Every key with its default.
    pub defaults: Value,
}

/// Returns the rules and the defaults of the configuration.
///
/// # Errors
/// Only if the embedded schema is broken, which a test excludes.
pub fn embedded_schema() -> Result<&'static EmbeddedSchema, ConfigError> {
    static DOCUMENT: LazyLock<Result<EmbeddedSchema, ConfigError>> = LazyLock::new(|| parse_schema(SCHEMA));
    DOCUMENT.as_ref().map_err(Clone::clone)
}

/// Parses the rules and defaults of a schema in the format of [`SCHEMA`].
///
/// # Errors
/// A schema in a form that schemars does not generate for our types.
pub fn parse_schema(text: &str) -> Result<EmbeddedSchema, ConfigError> {
    let broken = |error| ConfigError::new(format!("not the schema of the configuration: {error}"));
    let root: Schema = serde_json::from_str(text).map_err(broken)?;
    let definitions = Definitions { schemas: &root.definitions, items: RefCell::default() };
    let rules = definitions.rule(&root, Scope::Anywhere);
    Ok(EmbeddedSchema { rules, defaults: root.default })
}

/// A JSON Schema, limited to what schemars generates for our types.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "$defs")]
    definitions: BTreeMap<String, Schema>,
    description: Option<String>,
    default: Value,
    #[serde(rename = "type")]
    types: Option<Types>,
    properties: Option<BTreeMap<String, Schema>>,
    required: Option<Vec<String>>,
    #[serde(rename = "additionalProperties")]
    additional_properties: Option<AdditionalProperties>,
    items: Option<Box<Schema>>,
    #[serde(rename = "enum")]
    enum_values: Option<Vec<Value>>,
    #[serde(rename = "const")]
    const_value: Option<String>,
    #[serde(rename = "oneOf")]
    one_of: Option<Vec<Schema>>,
    #[serde(rename = "anyOf")]
    any_of: Option<Vec<Schema>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    #[serde(rename = "x-scope")]
    scope: Option<Scope>,
    #[serde(rename = "x-tightens")]
    tightens: Option<Vec<Value>>,
    #[serde(rename = "x-lowers")]
    lowers: Option<bool>,
    #[serde(rename = "x-merge")]
    merge: Option<Merge>,
    #[serde(rename = "x-format")]
    format: Option<Format>,
    #[serde(rename = "x-unit")]
    unit: Option<String>,
}

/// The types of a value.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Types {
    One(String),
    Several(Vec<String>),
}

/// The schema of keys that are not listed.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AdditionalProperties {
    Allowed(#[expect(dead_code, reason = "a boolean only has to parse")] bool),
    Values(Box<Schema>),
}

/// The definitions for references, and a cache of the rules for list items: many lists have the same item type.
struct Definitions<'a> {
    schemas: &'a BTreeMap<String, Schema>,
    items: RefCell<BTreeMap<(String, Scope), Arc<KeyRule>>>,
}

/// A schema together with the definition it refers to.
#[derive(Clone, Copy)]
struct ResolvedSchema<'a> {
    own: &'a Schema,
    target: Option<&'a Schema>,
}

impl<'a> ResolvedSchema<'a> {
    /// Returns a field of the schema, else of the definition it refers to.
    fn get<T: ?Sized>(self, field: impl Fn(&'a Schema) -> Option<&'a T>) -> Option<&'a T> {
        field(self.own).or_else(|| self.target.and_then(field))
    }

    fn is(self, wanted: &str) -> bool {
        self.get(|schema| schema.types.as_ref()).is_some_and(|types| match types {
            Types::One(one) => one == wanted,
            Types::Several(several) => several.iter().any(|one| one == wanted),
        })
    }
}

impl<'a> Definitions<'a> {
    fn resolve(&self, own: &'a Schema) -> ResolvedSchema<'a> {
        let name = own.reference.as_deref().and_then(|path| path.strip_prefix("#/$defs/"));
        ResolvedSchema { own, target: name.and_then(|name| self.schemas.get(name)) }
    }

    fn branches(&self, schema: ResolvedSchema<'a>) -> impl Iterator<Item = ResolvedSchema<'a>> {
        let one_of = schema.get(|schema| schema.one_of.as_ref());
        let any_of = schema.get(|schema| schema.any_of.as_ref());
        one_of.into_iter().chain(any_of).flatten().map(|branch| self.resolve(branch))
    }

    /// Returns the values of an enumeration, in each form that schemars generates.
    fn words(&self, schema: ResolvedSchema<'a>) -> Vec<String> {
        let listed = schema.get(|schema| schema.enum_values.as_ref()).into_iter().flatten();
        let own = listed.filter_map(Value::as_str).chain(schema.get(|schema| schema.const_value.as_deref()));
        let of_branches = self.branches(schema).flat_map(|branch| self.words(branch));
        own.map(str::to_owned).chain(of_branches).collect()
    }

    /// Returns the rule for the items of a list.
    fn items(&self, items: &'a Schema, scope: Scope) -> Arc<KeyRule> {
        let only_refers = items.description.is_none() && items.scope.is_none() && items.format.is_none();
        let name = items.reference.as_ref().filter(|_| only_refers);
        let Some(name) = name else { return Arc::new(self.rule(items, scope)) };
        let key = (name.clone(), scope);
        let known = self.items.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let compiled = Arc::new(self.rule(items, scope));
            self.items.borrow_mut().insert(key, Arc::clone(&compiled));
            compiled
        })
    }

    /// Compiles one schema; `inherited` is the scope of the enclosing group.
    fn rule(&self, schema: &'a Schema, inherited: Scope) -> KeyRule {
        let schema = self.resolve(schema);
        let scope = schema.get(|schema| schema.scope.as_ref()).copied().unwrap_or(inherited);
        let (kind, nullable) = self.kind(schema, scope);
        KeyRule {
            kind,
            nullable,
            required: schema.get(|schema| schema.required.as_ref()).cloned().unwrap_or_default(),
            scope,
            tightens: schema.get(|schema| schema.tightens.as_ref()).cloned().unwrap_or_default(),
            may_lower: schema.get(|schema| schema.lowers.as_ref()) == Some(&true),
            merge: schema.get(|schema| schema.merge.as_ref()).copied().unwrap_or_default(),
            format: schema.get(|schema| schema.format.as_ref()).copied(),
            description: schema.get(|schema| schema.description.as_ref()).cloned().unwrap_or_default(),
            unit: schema.get(|schema| schema.unit.as_ref()).cloned(),
        }
    }

    /// Returns the type, and whether `null` is allowed.
    fn kind(&self, schema: ResolvedSchema<'a>, scope: Scope) -> (Kind, bool) {
        let nullable = schema.is("null") || self.branches(schema).any(|branch| branch.is("null"));
        let low = schema.get(|schema| schema.minimum.as_ref()).copied().unwrap_or(f64::NEG_INFINITY);
        let high = schema.get(|schema| schema.maximum.as_ref()).copied().unwrap_or(f64::INFINITY);
        let words = self.words(schema);
        let kind = if !words.is_empty() {
            Kind::Choice(words)
        } else if let Some(properties) = schema.get(|schema| schema.properties.as_ref()) {
            let compiled =
                |(name, property): (&String, &'a Schema)| (name.clone(), self.rule(property, scope));
            Kind::Group(properties.iter().map(compiled).collect())
        } else if let Some(AdditionalProperties::Values(values)) =
            schema.get(|schema| schema.additional_properties.as_ref())
        {
            let mut values = self.rule(values, scope);
            if values.description.is_empty() {
                let about = schema.get(|schema| schema.description.as_ref());
                values.description = about.cloned().unwrap_or_default();
            }
            Kind::Map(Arc::new(values))
        } else if let Some(items) = schema.get(|schema| schema.items.as_deref()) {
            Kind::List(self.items(items, scope))
        } else if schema.is("boolean") {
            Kind::Bool
        } else if schema.is("integer") {
            Kind::Integer(low, high)
        } else if schema.is("number") {
            Kind::Number(low, high)
        } else {
            Kind::Text
        };
        (kind, nullable)
    }
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
            may_lower: false,
            merge: Merge::default(),
            format: None,
            description: String::new(),
            unit: None,
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
