//! Checks a configuration file against the rules and splits it into leaves: one value per dotted key.

use super::error::{ConfigError, did_you_mean, quoted, sanitize};
use super::flag_values::parse_seconds;
use super::key_rules::{Format, KeyRule, Kind};
use super::yaml::{self, Content, Entry, Node};
use agent_fetch::allowed_host::AllowedHost;
use agent_fetch::page_url::HostPattern;
use agent_mcp::definition::is_unambiguous;
use agent_messages as messages;
use agent_text::lines::list_first;
use agent_text::pattern;
use serde_json::{Map, Value};
use std::net::SocketAddr;

/// A configured value with its dotted key.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The key, dotted.
    pub key: String,
    /// The value, of the right type and within its range.
    pub value: Value,
    /// The line of the key, from 1; 0 when there is no file.
    pub line: u64,
}

/// Splits `node` into leaves.
///
/// # Errors
/// Fails at the first unknown key, wrong type or value out of range, with key and line.
pub fn leaves(rule: &KeyRule, node: &Node) -> Result<Vec<Leaf>, ConfigError> {
    let mut out = Vec::new();
    collect(rule, node, "", node.line, &mut out)?;
    Ok(out)
}

fn collect(
    rule: &KeyRule,
    node: &Node,
    key: &str,
    line: u64,
    out: &mut Vec<Leaf>,
) -> Result<(), ConfigError> {
    if !matches!(rule.kind, Kind::Group(_) | Kind::Map(_)) {
        out.push(Leaf { key: key.to_owned(), value: value(rule, node, key)?, line });
        return Ok(());
    }
    for entry in entries(rule, node, key)? {
        let child = child(rule, entry, key)?;
        collect(child, &entry.node, &join(key, &entry.name), entry.line, out)?;
    }
    Ok(())
}

/// Returns the entries of a group or map; a null value (`llm:` with all its keys commented out) counts as empty.
fn entries<'a>(rule: &KeyRule, node: &'a Node, key: &str) -> Result<&'a [Entry], ConfigError> {
    match &node.content {
        Content::Map(entries) => Ok(entries),
        Content::Scalar(Value::Null) => Ok(&[]),
        _ => Err(type_error(rule, node, key)),
    }
}

/// Returns the rule for one key of a group or map.
fn child<'a>(rule: &'a KeyRule, entry: &Entry, key: &str) -> Result<&'a KeyRule, ConfigError> {
    match &rule.kind {
        Kind::Group(rules) => rules.get(&entry.name).ok_or_else(|| {
            let mut error =
                ConfigError::new("unknown key").key(join(key, &sanitize(&entry.name))).line(entry.line);
            error.hint = did_you_mean(&entry.name, rules.keys().map(String::as_str)).or_else(|| {
                let known: Vec<&str> = rules.keys().map(String::as_str).collect();
                Some(format!("known keys here: {}", known.join(", ")))
            });
            error
        }),
        Kind::Map(values) => match rule.format.map_or(Ok(()), |format| well_formed(format, &entry.name)) {
            Ok(()) => Ok(values),
            Err(problem) => {
                Err(ConfigError::new(problem).key(join(key, &sanitize(&entry.name))).line(entry.line))
            }
        },
        _ => Err(ConfigError::new("must not have keys").key(key).line(entry.line)),
    }
}

/// Returns the checked value of a leaf, or of an item of a list.
fn value(rule: &KeyRule, node: &Node, key: &str) -> Result<Value, ConfigError> {
    if rule.nullable && node.content == Content::Scalar(Value::Null) {
        return Ok(Value::Null);
    }
    if rule.is_seconds()
        && let Content::Scalar(Value::String(text)) = &node.content
        && let Ok(seconds) = parse_seconds(text)
    {
        let seconds = Node { content: Content::Scalar(seconds.into()), ..*node };
        return value(rule, &seconds, key);
    }
    match (&rule.kind, &node.content) {
        (Kind::List(item), Content::List(nodes)) => {
            let item = KeyRule { format: item.format.or(rule.format), ..item.as_ref().clone() };
            let values =
                nodes.iter().enumerate().map(|(at, node)| value(&item, node, &format!("{key}[{at}]")));
            values.collect()
        }
        (Kind::Group(_) | Kind::Map(_), Content::Map(_)) => object(rule, node, key),
        // YAML 1.1 writers turn the word `off` into `false`.
        (Kind::Choice(words), Content::Scalar(Value::Bool(false)))
            if words.iter().any(|word| word == "off") =>
        {
            Ok("off".into())
        }
        (_, Content::Scalar(scalar)) if has_type_and_range(rule, scalar) => {
            check_format(rule, scalar, node.line, key)
        }
        _ => Err(type_error(rule, node, key)),
    }
}

fn object(rule: &KeyRule, node: &Node, key: &str) -> Result<Value, ConfigError> {
    let mut object = Map::new();
    for entry in entries(rule, node, key)? {
        let inner = value(child(rule, entry, key)?, &entry.node, &join(key, &entry.name))?;
        object.insert(entry.name.clone(), inner);
    }
    match rule.required.iter().find(|name| !object.contains_key(*name)) {
        Some(name) => Err(ConfigError::new(format!("`{name}` is missing")).key(key).line(node.line)),
        None => Ok(Value::Object(object)),
    }
}

/// Checks whether a scalar has the rule's type and range.
fn has_type_and_range(rule: &KeyRule, value: &Value) -> bool {
    let within =
        |low: &f64, high: &f64| value.as_f64().is_some_and(|number| (*low..=*high).contains(&number));
    match &rule.kind {
        Kind::Choice(words) => value.as_str().is_some_and(|word| words.iter().any(|known| known == word)),
        Kind::Text => value.is_string(),
        Kind::Bool => value.is_boolean(),
        Kind::Integer(low, high) => (value.is_u64() || value.is_i64()) && within(low, high),
        Kind::Number(low, high) => within(low, high),
        Kind::Group(_) | Kind::Map(_) | Kind::List(_) => false,
    }
}

fn check_format(rule: &KeyRule, value: &Value, line: u64, key: &str) -> Result<Value, ConfigError> {
    let checked = match (rule.format, value.as_str()) {
        (Some(format), Some(text)) => well_formed(format, text),
        _ => Ok(()),
    };
    checked.map(|()| value.clone()).map_err(|problem| ConfigError::new(problem).key(key).line(line))
}

/// Checks that `text` has the required `format`; fails with a description of the problem.
fn well_formed(format: Format, text: &str) -> Result<(), String> {
    /// Maximum length of a name in bytes: an agent's name becomes a file name and a column of a table.
    const NAME_MAX: usize = 64;
    let named = |first: &str, rest: &str| {
        let among = |set: &str, c: char| c.is_ascii_alphanumeric() || set.contains(c);
        let starts = text.chars().next().is_some_and(|c| among(first, c));
        starts && text.len() <= NAME_MAX && text.chars().all(|c| among(rest, c))
    };
    match format {
        Format::Matcher if text == "*" => Ok(()),
        Format::Glob | Format::Filled | Format::Regex if text.trim().is_empty() => Err("must not be empty".to_owned()),
        Format::Regex | Format::Matcher => match pattern::case_insensitive(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{} is not a regular expression: {}", quoted(text), last_line(&error))),
        },
        Format::Glob => match globset::Glob::new(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{} is not a file pattern: {}", quoted(text), error.kind())),
        },
        Format::Url => well_formed_url(text),
        Format::AgentName if !named("", "-_") => {
            Err("the name of an agent is up to 64 letters, digits, `-` and `_`, not `-` or `_` first"
                .to_owned())
        }
        Format::Variable if !named("_", "_") || text.starts_with(|c: char| c.is_ascii_digit()) => {
            Err("must be the name of an environment variable; a key itself must not be in a file"
                .to_owned())
        }
        Format::ProviderName if !named("", "-_") || matches!(text, "local" | "scripted") => {
            Err("the name of a provider is up to 64 letters, digits, `-` and `_`, not `-` or `_` first, and not `local`"
                .to_owned())
        }
        Format::Path if !text.starts_with('/') || text.contains(['?', '#', ' ']) => {
            Err("must be a path that begins with a slash, without a query".to_owned())
        }
        Format::Host => HostPattern::parse(text).map(drop),
        Format::HostPort => AllowedHost::parse(text).map(drop),
        Format::Socket if text.parse::<SocketAddr>().is_err() => {
            Err("must be an address with a port, such as `127.0.0.1:8080` or `[::1]:8080`".to_owned())
        }
        Format::ServerName if !is_server_name(text) => {
            Err("the name of a server is up to 32 lower-case letters, digits, `-` and `_`, not `-` or `_` first, \
                 without `__` and not `_` last"
                .to_owned())
        }
        Format::AgentName
        | Format::ServerName
        | Format::Variable
        | Format::Filled
        | Format::ProviderName
        | Format::Path
        | Format::Socket => Ok(()),
    }
}

/// Checks a URL. The error never quotes the text because it may contain a password.
fn well_formed_url(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("must be an address that begins with http:// or https://".to_owned());
    }
    if authority.contains('@') {
        return Err("must not hold a name and password: put the key into an environment variable".to_owned());
    }
    if text.contains(['?', '#']) {
        return Err("must not have a query: set it in `llm.providers.NAME.query`".to_owned());
    }
    Ok(())
}

/// Checks whether `name` can be the name of an MCP server.
fn is_server_name(name: &str) -> bool {
    /// Maximum length in bytes.
    const MAX_NAME_BYTES: usize = 32;
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let starts =
        name.bytes().next().is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit());
    starts && name.len() <= MAX_NAME_BYTES && name.bytes().all(of_name) && is_unambiguous(name)
}

/// Checks whether `name` is a valid agent name.
///
/// # Errors
/// Fails with the rule for names.
pub fn agent_name(name: &str) -> Result<(), String> {
    well_formed(Format::AgentName, name)
}

/// Checks whether `name` is a valid name of an MCP server.
///
/// # Errors
/// Fails with the rule for names.
pub fn server_name(name: &str) -> Result<(), String> {
    well_formed(Format::ServerName, name)
}

/// Returns the last line of a regex error, which has the reason; the lines before are a drawing.
fn last_line(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Creates the error for a value of the wrong type or out of range.
fn type_error(rule: &KeyRule, node: &Node, key: &str) -> ConfigError {
    let found = match &node.content {
        Content::Scalar(Value::Null) => "nothing".to_owned(),
        Content::Scalar(Value::String(text)) => quoted(text),
        Content::Scalar(value) => quoted(&value.to_string()),
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "keys and values".to_owned(),
    };
    let key = if key.is_empty() { "the file" } else { key };
    let error =
        ConfigError::new(format!("must be {}, found {found}", expected(rule))).key(key).line(node.line);
    match (&rule.kind, &node.content) {
        _ if rule.is_seconds() => error.hint(messages::DURATION_FORMS),
        (Kind::Text, Content::Scalar(value)) if !value.is_null() => error.hint(format!("write \"{value}\"")),
        (Kind::Choice(words), Content::Scalar(Value::String(word))) => {
            let hint = did_you_mean(word, words.iter().map(String::as_str));
            hint.map_or(error.clone(), |hint| error.hint(hint))
        }
        _ => error,
    }
}

/// Describes the values that a rule allows, for messages and the manual.
pub fn expected(rule: &KeyRule) -> String {
    let unit = rule.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
    let range = |low: f64, high: f64| format!(" from {low} to {high}{unit}");
    match &rule.kind {
        Kind::Group(_) | Kind::Map(_) => "keys and values".to_owned(),
        Kind::List(_) => "a list".to_owned(),
        Kind::Choice(words) => format!("one of {}", words.join(", ")),
        Kind::Text => "text".to_owned(),
        Kind::Bool => "true or false".to_owned(),
        Kind::Integer(low, high) => format!("a whole number{}", range(*low, *high)),
        Kind::Number(low, high) => format!("a number{}", range(*low, *high)),
    }
}

fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

/// Creates the leaf for a value that does not come from a file but from a variable or a flag.
///
/// # Errors
/// Fails for an unknown key, a wrong type or a value out of range.
pub fn leaf_for_key(rules: &KeyRule, key: &str, input: &Value) -> Result<Leaf, ConfigError> {
    let rule = rules.find(key).ok_or_else(|| ConfigError::new("unknown key").key(key))?;
    Ok(Leaf { key: key.to_owned(), value: value(rule, &Node::of(input), key)?, line: 0 })
}

/// Returns the value that `text` means for `key` on a command line: a list as in YAML, everything else as it is, without quotes.
///
/// # Errors
/// Fails for an unknown key, with the one that was meant; for a group of keys; and for a wrong type or a value out of range.
pub fn value_of_text(rules: &KeyRule, key: &str, text: &str) -> Result<Value, ConfigError> {
    let rule = known_rule(rules, key)?;
    let parsed =
        || yaml::parse(text).map_err(|error| ConfigError { line: None, key: Some(key.to_owned()), ..error });
    let node = match &rule.kind {
        Kind::Group(_) | Kind::Map(_) => {
            let keys = rule.keys().into_iter().map(|(name, _)| format!("{key}.{name}"));
            let hint = list_first(keys, MAX_HINTED_KEYS, ", ").unwrap_or_default();
            return Err(ConfigError::new("is a group of keys").key(key).hint(hint));
        }
        _ if rule.nullable && text == "null" => Node::of(&Value::Null),
        Kind::Text | Kind::Choice(_) => Node::of(&text.into()),
        Kind::List(_) if !text.trim_start().starts_with('[') => {
            let items = text.split(',').map(str::trim).collect::<Vec<_>>().join(", ");
            return Err(ConfigError::new("must be a list").key(key).hint(format!("write '[{items}]'")));
        }
        _ => parsed()?,
    };
    value(rule, &node, key).map_err(|error| ConfigError { line: None, ..error })?;
    Ok(node.to_json())
}

/// Maximum number of keys in the hint about a group.
const MAX_HINTED_KEYS: usize = 8;

/// Returns the rule for a dotted key that the user has entered.
///
/// # Errors
/// Fails for an unknown key, with the one that was meant.
pub fn known_rule<'a>(rules: &'a KeyRule, key: &str) -> Result<&'a KeyRule, ConfigError> {
    rules.find(key).ok_or_else(|| {
        let known: Vec<String> = rules.keys().into_iter().map(|(key, _)| key).collect();
        let is_last_part = |full: &&String| full.rsplit('.').next() == Some(key);
        let hint = match known.iter().find(is_last_part) {
            Some(full) => Some(format!("did you mean `{full}`?")),
            None => did_you_mean(key, known.iter().map(String::as_str)),
        };
        let hint = hint.unwrap_or_else(|| messages::CONFIG_KEYS_HINT.to_owned());
        ConfigError::new("unknown key").key(sanitize(key)).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use crate::{key_rules, validate, yaml};
    use proptest::prelude::*;

    /// Generates text that resembles a configuration more often than random text does.
    fn almost_yaml() -> impl Strategy<Value = String> {
        let token = prop::sample::select(vec![
            "llm",
            "mode",
            "hooks",
            "post_edit",
            "command",
            "agents",
            "x",
            ":",
            ": ",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            "[",
            "]",
            "{",
            "}",
            ",",
            "'",
            "\"",
            "yolo",
            "1",
            "-1",
            "1e9",
            "~",
            "null",
            "true",
            "|",
            ">",
            "&a ",
            "*a",
            "!!t ",
            "? ",
            "# ",
            "\t",
            "---\n",
            "<<",
            "é",
            "\u{0}",
            "99999999999999999999",
        ]);
        prop::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat())
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_panic_and_errors_are_one_harmless_line(
            text in prop_oneof![almost_yaml(), any::<String>()],
        ) {
            let rules = &key_rules::embedded_schema().unwrap().rules;
            if let Err(error) = yaml::parse(&text).and_then(|node| validate::leaves(rules, &node)) {
                prop_assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
            }
        }
    }
}
