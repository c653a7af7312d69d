//! Compiles the JSON Schema of the configuration into rules, for the file that the program embeds.

use super::key_rules::{EmbeddedSchema, Format, KeyRule, Kind, Merge, Scope, Stricter};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Compiles the schema that schemars generates for the types of the configuration.
pub fn compile(schema: &str) -> EmbeddedSchema {
    let root: Schema = serde_json::from_str(schema).unwrap();
    let rules = Definitions { schemas: &root.definitions }.rule(&root, Scope::Anywhere);
    EmbeddedSchema { rules, defaults: root.default }
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
    #[serde(rename = "x-stricter")]
    stricter: Option<Stricter>,
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

/// The definitions for references.
struct Definitions<'a> {
    schemas: &'a BTreeMap<String, Schema>,
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
            stricter: schema.get(|schema| schema.stricter.as_ref()).copied(),
            merge: schema.get(|schema| schema.merge.as_ref()).copied().unwrap_or_default(),
            format: schema.get(|schema| schema.format.as_ref()).copied(),
            description: schema.get(|schema| schema.description.as_ref()).cloned().unwrap_or_default(),
            unit: schema.get(|schema| schema.unit.as_ref()).cloned(),
        }
    }

    /// Returns the type, and whether `null` is allowed.
    fn kind(&self, schema: ResolvedSchema<'a>, scope: Scope) -> (Kind, bool) {
        let nullable = schema.is("null") || self.branches(schema).any(|branch| branch.is("null"));
        let bounds = || {
            let [low, high] =
                [schema.get(|schema| schema.minimum.as_ref()), schema.get(|schema| schema.maximum.as_ref())];
            (*low.expect("a number has a minimum"), *high.expect("a number has a maximum"))
        };
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
            Kind::Map(Box::new(values))
        } else if let Some(items) = schema.get(|schema| schema.items.as_deref()) {
            Kind::List(Box::new(self.rule(items, scope)))
        } else if schema.is("boolean") {
            Kind::Bool
        } else if schema.is("integer") {
            let (low, high) = bounds();
            Kind::Integer(low, high)
        } else if schema.is("number") {
            let (low, high) = bounds();
            Kind::Number(low, high)
        } else {
            Kind::Text
        };
        (kind, nullable)
    }
}
