//! Parses YAML into a tree with the position of every key and value.

use super::error::{ConfigError, sanitize};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_yaml::Spanned;
use serde_yaml::budget::BudgetBreach;
use std::fmt;

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The value.
    pub content: Content,
    /// Its line, from 1; 0 when unknown.
    pub line: u64,
    /// Its column in characters, from 1; 0 when unknown.
    pub column: u64,
}

impl Node {
    /// Creates a node for a value that does not come from a file.
    pub fn of(value: &Value) -> Self {
        let content = match value {
            Value::Array(items) => Content::List(items.iter().map(Self::of).collect()),
            Value::Object(keys) => {
                let entry = |(name, value): (&String, &Value)| Entry {
                    name: name.clone(),
                    line: 0,
                    column: 0,
                    node: Self::of(value),
                };
                Content::Map(keys.iter().map(entry).collect())
            }
            scalar => Content::Scalar(scalar.clone()),
        };
        Self { content, line: 0, column: 0 }
    }

    /// Returns the line of the last item of a list.
    pub fn last_item(&self) -> Option<u64> {
        let Content::List(items) = &self.content else { return None };
        items.last().map(|item| item.line)
    }

    /// Returns the value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.name.clone(), entry.node.to_json())).collect(),
            ),
        }
    }
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text, number, boolean or null.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in file order.
    Map(Vec<Entry>),
}

/// One key of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub name: String,
    /// Its line.
    pub line: u64,
    /// Its column in characters.
    pub column: u64,
    /// Its value.
    pub node: Node,
}

/// Maximum nesting depth of a document; the deepest key in the schema is at 5.
const MAX_DEPTH: usize = 16;
/// Maximum number of values in a document: far more than a real file has, and parsed within milliseconds.
const MAX_NODES: usize = 20_000;

/// Parses one YAML document. Duplicate keys, anchors, merge keys and more than one document are errors; only
/// `true` and `false` are booleans, so `off` stays text.
///
/// # Errors
/// Fails with the problem and its line; the caller adds the file.
pub fn parse(text: &str) -> Result<Node, ConfigError> {
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_aliases: 0,
            max_documents: 1,
        },
        strict_booleans: true,
        merge_keys: serde_yaml::options::MergeKeyPolicy::Error,
        with_snippet: false,
    };
    let node: Option<Node> =
        serde_yaml::from_str_with_options(text, options).map_err(|error| parse_error(&error))?;
    Ok(node.unwrap_or(Node { content: Content::Scalar(Value::Null), line: 1, column: 1 }))
}

fn parse_error(error: &serde_yaml::Error) -> ConfigError {
    let (line, column) = error.location().map_or((0, 0), |location| (location.line(), location.column()));
    let message = match error.without_snippet() {
        serde_yaml::Error::Budget { breach, .. } => budget_message(breach),
        error => {
            let rendered = error.to_string();
            let message = rendered.lines().next().unwrap_or_default();
            // The rest of the message is advice for programmers.
            sanitize(message.split_once(", set DuplicateKeyPolicy").map_or(message, |(start, _)| start))
        }
    };
    ConfigError {
        column: u32::try_from(column).ok().filter(|column| *column > 0),
        ..ConfigError::new(format!("not valid YAML: {message}")).line(line)
    }
}

/// Describes which limit a document exceeds.
fn budget_message(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Aliases { .. } | BudgetBreach::Anchors { .. } => {
            "aliases (`*name`) are not followed; write the value where it is needed".to_owned()
        }
        BudgetBreach::Depth { .. } => format!("it is nested deeper than {MAX_DEPTH} levels"),
        BudgetBreach::Documents { .. } => "it holds more than one document (`---`)".to_owned(),
        BudgetBreach::Nodes { .. } => format!("it holds more than {MAX_NODES} values"),
        _ => "it is too large to be a configuration".to_owned(),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(Self {
            line: spanned.referenced.line(),
            column: spanned.referenced.column(),
            content: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Content, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("a number must be finite"))?;
        Ok(Content::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Content, E> {
        Ok(Content::Scalar(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Content, E> {
        Ok(Content::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Content::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Content, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let (line, column) = (key.referenced.line(), key.referenced.column());
            entries.push(Entry { name: key.value, line, column, node: access.next_value()? });
        }
        Ok(Content::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn map(node: &Node) -> &[Entry] {
        match &node.content {
            Content::Map(entries) => entries,
            other => panic!("not a map: {other:?}"),
        }
    }

    #[test]
    fn every_key_and_value_has_its_line() {
        let node = parse("# c\na:\n  b: 1\n\n  c:\n    - x\n    - 2\n").unwrap();
        let a = &map(&node)[0];
        assert_eq!((a.name.as_str(), a.line), ("a", 2));
        let b = &map(&a.node)[0];
        assert_eq!((b.line, b.node.line, &b.node.content), (3, 3, &Content::Scalar(1.into())));
        assert_eq!((a.column, b.column, b.node.column), (1, 3, 6));
        let c = &map(&a.node)[1];
        assert_eq!(c.line, 5);
        let Content::List(items) = &c.node.content else { panic!() };
        assert_eq!((items[0].line, items[1].line), (6, 7));
    }

    #[test]
    fn only_true_and_false_are_booleans() {
        let node = parse("a: off\nb: yes\nc: true\nd: ~\ne: 'true'").unwrap();
        let values: Vec<_> = map(&node).iter().map(|entry| entry.node.content.clone()).collect();
        let scalars: Vec<Value> = vec!["off".into(), "yes".into(), true.into(), Value::Null, "true".into()];
        assert_eq!(values, scalars.into_iter().map(Content::Scalar).collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_file_is_nothing() {
        assert_eq!(parse("").unwrap().content, Content::Scalar(Value::Null));
        assert_eq!(parse("# only a comment\n").unwrap().content, Content::Scalar(Value::Null));
    }

    #[test]
    fn duplicate_keys_anchors_and_bad_syntax_are_errors_with_their_line() {
        let duplicate = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(duplicate.line, Some(3));
        assert!(duplicate.to_string().ends_with("duplicate mapping key: a"), "{duplicate}");
        assert!(parse("a: &x 1\nb: *x\n").is_err());
        assert!(parse("a: 1\n---\nb: 2\n").is_err());
        assert_eq!(parse("a: 1\nb: [1, 2\n").unwrap_err().line.map(|line| line >= 2), Some(true));
        assert!(parse("a: .nan").is_err());
        assert!(parse(&"[".repeat(1000)).is_err());
    }

    #[test]
    fn a_nest_of_aliases_is_refused_at_once() {
        let mut bomb = String::from("a0: &a0 [x, x]\n");
        for level in 1..30 {
            writeln!(bomb, "a{level}: &a{level} [*a{0}, *a{0}]", level - 1).unwrap();
        }
        assert!(parse(&bomb).is_err());
    }
}
