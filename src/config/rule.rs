//! The schema as rules that a check can follow: what each key may hold, and who may set it.

use super::schema::Document;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    Group(BTreeMap<String, Rule>),
    /// Keys of the user's choosing; the rule's format is that of the keys.
    Map(Arc<Rule>),
    /// A list.
    List(Arc<Rule>),
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
pub struct Rule {
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
    pub lowers: bool,
    /// What becomes of a list that several layers set.
    pub merge: Merge,
    /// What the text must be.
    pub format: Option<Format>,
    /// What it means.
    pub description: String,
    /// What a number counts.
    pub unit: Option<String>,
}

/// The rules of the configuration.
pub fn document() -> Rule {
    rules_of::<Document>()
}

/// The rules of any type of settings.
pub fn rules_of<T: JsonSchema>() -> Rule {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let nothing = Map::new();
    let root = schema.as_object().unwrap_or(&nothing);
    let schemas = root.get("$defs").and_then(Value::as_object).unwrap_or(&nothing);
    let definitions = Definitions { schemas, items: RefCell::default() };
    rule(Schema::new(root, &definitions), Scope::Anywhere)
}

/// What schemas refer to, and the rules of what lists hold: many lists hold the same.
struct Definitions<'a> {
    schemas: &'a Map<String, Value>,
    items: RefCell<BTreeMap<(String, Scope), Arc<Rule>>>,
}

impl Definitions<'_> {
    /// The rule for what a list holds.
    fn items(&self, items: Schema<'_>, scope: Scope) -> Arc<Rule> {
        let only_name = items.name.filter(|_| items.own.len() == 1);
        let Some(name) = only_name else { return Arc::new(rule(items, scope)) };
        let key = (name.to_owned(), scope);
        let known = self.items.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let compiled = Arc::new(rule(items, scope));
            self.items.borrow_mut().insert(key, Arc::clone(&compiled));
            compiled
        })
    }
}

/// A schema object together with what it refers to.
#[derive(Clone, Copy)]
struct Schema<'a> {
    own: &'a Map<String, Value>,
    /// The name of what it refers to.
    name: Option<&'a str>,
    referred: Option<&'a Map<String, Value>>,
    definitions: &'a Definitions<'a>,
}

impl<'a> Schema<'a> {
    fn new(own: &'a Map<String, Value>, definitions: &'a Definitions<'a>) -> Self {
        let name = own.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix("#/$defs/"));
        let referred = name.and_then(|name| definitions.schemas.get(name)).and_then(Value::as_object);
        Self { own, name, referred, definitions }
    }

    /// What it says, else what it refers to says.
    fn get(self, name: &str) -> Option<&'a Value> {
        self.own.get(name).or_else(|| self.referred?.get(name))
    }

    fn text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    fn list(self, name: &str) -> &'a [Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn object(self, name: &str) -> Option<&'a Map<String, Value>> {
        self.get(name).and_then(Value::as_object)
    }

    fn nested(self, name: &str) -> Option<Self> {
        self.object(name).map(|schema| Self::new(schema, self.definitions))
    }

    fn branches(self) -> impl Iterator<Item = Self> {
        let all = ["oneOf", "anyOf"].into_iter().flat_map(move |name| self.list(name));
        all.filter_map(Value::as_object).map(move |schema| Self::new(schema, self.definitions))
    }

    /// The words of an enumeration, however schemars wrote it.
    fn words(self) -> Vec<String> {
        let listed = self.list("enum").iter().chain(self.get("const"));
        let own = listed.filter_map(Value::as_str).map(str::to_owned);
        own.chain(self.branches().flat_map(Self::words)).collect()
    }
}

/// Compiles one schema object; `inherited` is the scope of the group around it.
fn rule(schema: Schema<'_>, inherited: Scope) -> Rule {
    let scope = match schema.text("x-scope") {
        Some("needs-trust") => Scope::NeedsTrust,
        Some("never-from-project") => Scope::NeverFromProject,
        _ => inherited,
    };
    let format = match schema.text("x-format") {
        Some("regex") => Some(Format::Regex),
        Some("glob") => Some(Format::Glob),
        Some("url") => Some(Format::Url),
        Some("agent-name") => Some(Format::AgentName),
        Some("variable") => Some(Format::Variable),
        Some("matcher") => Some(Format::Matcher),
        Some("filled") => Some(Format::Filled),
        Some("provider-name") => Some(Format::ProviderName),
        Some("path") => Some(Format::Path),
        Some("host") => Some(Format::Host),
        Some("socket") => Some(Format::Socket),
        _ => None,
    };
    let (kind, nullable) = kind(schema, scope);
    let required = schema.list("required").iter().filter_map(Value::as_str);
    Rule {
        kind,
        nullable,
        required: required.map(str::to_owned).collect(),
        scope,
        tightens: schema.list("x-tightens").to_vec(),
        lowers: schema.get("x-lowers") == Some(&Value::Bool(true)),
        merge: match schema.text("x-merge") {
            Some("add") => Merge::Add,
            Some("first") => Merge::First,
            _ => Merge::Replace,
        },
        format,
        description: schema.text("description").unwrap_or_default().to_owned(),
        unit: schema.text("x-unit").map(str::to_owned),
    }
}

/// What the schema allows, and whether it allows `null`.
fn kind(schema: Schema<'_>, scope: Scope) -> (Kind, bool) {
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let words = schema.words();
    let nullable =
        types.contains(&"null") || schema.branches().any(|branch| branch.text("type") == Some("null"));
    let bound = |name: &str, open: f64| schema.get(name).and_then(Value::as_f64).unwrap_or(open);
    let bounds = || (bound("minimum", f64::NEG_INFINITY), bound("maximum", f64::INFINITY));
    let kind = if !words.is_empty() {
        Kind::Choice(words)
    } else if let Some(properties) = schema.object("properties") {
        let rules = properties.iter().filter_map(|(name, property)| Some((name, property.as_object()?)));
        let compiled = |property| rule(Schema::new(property, schema.definitions), scope);
        Kind::Group(rules.map(|(name, property)| (name.clone(), compiled(property))).collect())
    } else if let Some(values) = schema.nested("additionalProperties") {
        let mut values = rule(values, scope);
        if values.description.is_empty() {
            schema.text("description").unwrap_or_default().clone_into(&mut values.description);
        }
        Kind::Map(Arc::new(values))
    } else if let Some(items) = schema.nested("items") {
        Kind::List(schema.definitions.items(items, scope))
    } else if types.contains(&"boolean") {
        Kind::Bool
    } else if types.contains(&"integer") {
        let (low, high) = bounds();
        Kind::Integer(low, high)
    } else if types.contains(&"number") {
        let (low, high) = bounds();
        Kind::Number(low, high)
    } else {
        Kind::Text
    };
    (kind, nullable)
}

impl Rule {
    /// The rule for a dotted key.
    pub fn find(&self, key: &str) -> Option<&Rule> {
        key.split('.').try_fold(self, |rule, name| match &rule.kind {
            Kind::Group(rules) => rules.get(name),
            Kind::Map(values) => Some(values.as_ref()),
            _ => None,
        })
    }

    /// Every key that can be set, dotted, with its rule; `NAME` stands for a key of the user's choosing.
    pub fn keys(&self) -> Vec<(String, &Rule)> {
        let mut out = Vec::new();
        self.collect_keys("", &mut out);
        out
    }

    fn collect_keys<'a>(&'a self, key: &str, out: &mut Vec<(String, &'a Rule)>) {
        let join = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
        match &self.kind {
            Kind::Group(rules) => rules.iter().for_each(|(name, rule)| rule.collect_keys(&join(name), out)),
            Kind::Map(values) => values.collect_keys(&join("NAME"), out),
            _ => out.push((key.to_owned(), self)),
        }
    }
}
