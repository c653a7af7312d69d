//! The schema as rules that a check can follow: what each key may hold, and who may set it.

use super::error::ConfigError;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The schema of the configuration with every default, generated from the types (`config::schema`) and from
/// `config/default.yaml`. It is read instead of being generated anew, and instead of the YAML, because every start waits for it.
pub const SCHEMA: &str = include_str!("../../config/schema/config.json");

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every layer.
    #[default]
    Anywhere,
    /// Not an untrusted project.
    NeedsTrust,
    /// Not a project, trusted or not.
    NeverFromProject,
}

/// What becomes of a value that several layers set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Merge {
    /// The highest layer's holds.
    #[default]
    Replace,
    /// Lists are joined, the lowest layer first.
    Add,
    /// Lists are joined, the highest layer first, and what a project says after all others: where the first word
    /// counts, a project has the last.
    First,
}

/// What the text of a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A regular expression.
    Regex,
    /// A file pattern.
    Glob,
    /// An http or https address.
    Url,
    /// The name of an agent.
    AgentName,
    /// The name of an environment variable.
    Variable,
    /// A regular expression, or `*`.
    Matcher,
    /// Text that is not blank.
    Filled,
    /// The name of a provider of models.
    ProviderName,
    /// The path of a request.
    Path,
    /// Hosts of the web.
    Host,
    /// An address of the internet with a port.
    Socket,
}

/// What a key may hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Fixed keys.
    Group(BTreeMap<String, KeyRule>),
    /// Keys of the user's choosing; the rule's format is that of the keys.
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

/// Everything the schema says about one key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRule {
    /// What it may hold.
    pub kind: Kind,
    /// Whether `null` is a value.
    pub nullable: bool,
    /// Keys of a group that must be there.
    pub required: Vec<String>,
    /// Who may set it.
    pub scope: Scope,
    /// Values that an untrusted project may set nevertheless.
    pub tightens: Vec<Value>,
    /// Whether it may set a lower number than what holds without it, or any where nothing does.
    pub may_lower: bool,
    /// What becomes of a list that several layers set.
    pub merge: Merge,
    /// What the text must be.
    pub format: Option<Format>,
    /// What it means.
    pub description: String,
    /// What a number counts.
    pub unit: Option<String>,
}

/// What the embedded schema says: every rule, and the default of every key.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedSchema {
    /// The rules.
    pub rules: KeyRule,
    /// Every key with its default.
    pub defaults: Value,
}

/// The rules of the configuration and its defaults.
///
/// # Errors
/// Only if the embedded schema is broken, which a test excludes.
pub fn embedded_schema() -> Result<&'static EmbeddedSchema, ConfigError> {
    static DOCUMENT: LazyLock<Result<EmbeddedSchema, ConfigError>> = LazyLock::new(|| parse_schema(SCHEMA));
    DOCUMENT.as_ref().map_err(Clone::clone)
}

/// The rules and defaults of a schema as [`SCHEMA`] is one.
///
/// # Errors
/// What is not as it is written by schemars.
pub fn parse_schema(text: &str) -> Result<EmbeddedSchema, ConfigError> {
    let broken = |error| ConfigError::new(format!("not the schema of the configuration: {error}"));
    let root: Schema = serde_json::from_str(text).map_err(broken)?;
    let definitions = Definitions { schemas: &root.definitions, items: RefCell::default() };
    let rules = definitions.rule(&root, Scope::Anywhere);
    Ok(EmbeddedSchema { rules, defaults: root.default })
}

/// A JSON Schema, as far as schemars writes it for our types.
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

/// What holds for keys that are not listed.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AdditionalProperties {
    Allowed(#[expect(dead_code, reason = "it is only told from a schema")] bool),
    Values(Box<Schema>),
}

/// What schemas refer to, and the rules of what lists hold: many lists hold the same.
struct Definitions<'a> {
    schemas: &'a BTreeMap<String, Schema>,
    items: RefCell<BTreeMap<(String, Scope), Arc<KeyRule>>>,
}

/// A schema together with what it refers to.
#[derive(Clone, Copy)]
struct ResolvedSchema<'a> {
    own: &'a Schema,
    target: Option<&'a Schema>,
}

impl<'a> ResolvedSchema<'a> {
    /// What it says, else what it refers to says.
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

    /// The words of an enumeration, however schemars wrote it.
    fn words(&self, schema: ResolvedSchema<'a>) -> Vec<String> {
        let listed = schema.get(|schema| schema.enum_values.as_ref()).into_iter().flatten();
        let own = listed.filter_map(Value::as_str).chain(schema.get(|schema| schema.const_value.as_deref()));
        let of_branches = self.branches(schema).flat_map(|branch| self.words(branch));
        own.map(str::to_owned).chain(of_branches).collect()
    }

    /// The rule for what a list holds.
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

    /// Compiles one schema; `inherited` is the scope of the group around it.
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

    /// What the schema allows, and whether it allows `null`.
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
    /// Of a group with these keys, about which nothing else is said.
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

    /// The rule for a dotted key.
    pub fn find(&self, key: &str) -> Option<&KeyRule> {
        key.split('.').try_fold(self, |rule, name| match &rule.kind {
            Kind::Group(rules) => rules.get(name),
            Kind::Map(values) => Some(values.as_ref()),
            _ => None,
        })
    }

    /// Every key that can be set, dotted, with its rule; `NAME` stands for a key of the user's choosing.
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
