//! The tools of a server as the model sees them: names that every model accepts, and texts without control characters.

use super::schema_repair;
use agent_core::message::MCP_PREFIX;
use agent_redactor::Redactor;
use agent_text::invisible;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of tools of a server.
pub const MAX_TOOLS: usize = 256;
/// Maximum bytes of the names, descriptions and schemas of a server.
pub const MAX_LISTING_BYTES: usize = 256 * 1024;
/// Maximum characters of a tool's name for the model; the limit of the services of `OpenAI` and Anthropic.
const MAX_NAME_CHARS: usize = 64;
/// Hexadecimal digits of the hash that ends a name that was cut.
const HASH_DIGITS: usize = 8;
/// Separates the names of server and tool in the name of a tool for the model.
pub const SEPARATOR: &str = "__";
/// The type of the arguments of every tool.
const OBJECT: &str = "object";
/// Maximum characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4_000;

/// A tool as a server listed it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedTool {
    /// Its name at the server.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

impl ListedTool {
    /// Returns the tool with harmless texts and without secrets; `None` if its name or a key of its schema would have to change
    /// for that, because calls would then no longer fit.
    pub fn screened(mut self, redactor: &Redactor) -> Option<Self> {
        let clean = |text: &str| redactor.text(&harmless(text)).into_owned();
        let is_clean = |text: &str| clean(text) == text;
        if !is_clean(&self.name) || !has_only_keys(&self.schema, &is_clean) {
            return None;
        }
        self.description = clean(&self.description);
        visit_texts(&mut self.schema, &mut |text| *text = clean(text));
        Some(self)
    }

    /// Returns the hash of name, description and schema; another order of the keys gives the same hash.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for text in [&self.name, &self.description, &canonical(&self.schema).to_string()] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        short(&hasher)
    }

    /// Returns the size of the definition in bytes.
    pub fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.schema.to_string().len()
    }

    /// Returns the description for the model, which names the server.
    pub fn description_for_model(&self, server: &str) -> String {
        let text: String = harmless(&self.description).chars().take(MAX_DESCRIPTION_CHARS).collect();
        format!("Tool of the MCP server `{server}`. {}", text.trim())
    }

    /// Checks whether its arguments are an object, as MCP requires. No model server accepts other ones.
    pub fn takes_object(&self) -> bool {
        match self.schema.get("type") {
            None | Some(Value::Null) => true,
            Some(Value::Array(types)) => types.iter().any(|name| name == OBJECT),
            Some(name) => name == OBJECT,
        }
    }

    /// Returns the schema for the model: an object schema, without control characters in its texts, and without what model servers
    /// refuse.
    pub fn schema_for_model(&self) -> Value {
        let mut schema = self.schema.clone();
        visit_texts(&mut schema, &mut |text| *text = harmless(text));
        schema_repair::repair(&mut schema);
        schema
    }
}

/// Returns the hash of a list of tools, in any order.
pub fn hash_of_all(tools: &[ListedTool]) -> String {
    let mut hashes: Vec<String> = tools.iter().map(ListedTool::hash).collect();
    hashes.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for hash in hashes {
        hasher.update(hash.as_bytes());
    }
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().chars().take(32).collect()
}

/// Returns the name of a tool for the model, `mcp__SERVER__TOOL`. Characters that models do not accept become `_`. A name that
/// is too long, or was changed so, ends with a hash, so that two tools do not get the same name.
pub fn name_for_model(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain: String = tool.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let name = format!("{}{plain}", name_prefix(server));
    if name.len() <= MAX_NAME_CHARS && plain == tool && !tool.is_empty() {
        return name;
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let hash = hash.get(..HASH_DIGITS).unwrap_or_default();
    let start: String = name.chars().take(MAX_NAME_CHARS - HASH_DIGITS - 1).collect();
    format!("{start}_{hash}")
}

/// Returns the start of the names of all tools of a server for the model. Names of servers are short enough that none is cut there.
pub fn name_prefix(server: &str) -> String {
    format!("{MCP_PREFIX}{server}{SEPARATOR}")
}

/// Checks whether the name of a server ends where its tools' names for the model continue: it has no `__` and no `_` at its end.
pub fn is_unambiguous(server: &str) -> bool {
    !server.contains(SEPARATOR) && !server.ends_with('_')
}

/// Splits the name of a tool for the model into those of its server and, at that, of the tool. `None` for tools of this program.
pub fn server_and_tool(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(MCP_PREFIX)?.split_once(SEPARATOR)
}

/// Returns `text` without control characters, except tabs and line breaks, and without invisible characters.
pub fn harmless(text: &str) -> String {
    text.chars().filter(|c| !invisible::needs_escape(*c)).collect()
}

/// Checks whether `fits` accepts each key in `value`.
fn has_only_keys(value: &Value, fits: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().all(|item| has_only_keys(item, fits)),
        Value::Object(fields) => fields.iter().all(|(key, field)| fits(key) && has_only_keys(field, fits)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Calls `change` for each text value in `value`. Keys stay: they are the names of arguments.
pub fn visit_texts(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| visit_texts(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| visit_texts(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns `value` with sorted keys.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(canonical).collect()),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> =
                fields.iter().map(|(name, field)| (name, canonical(field))).collect();
            sorted.into_iter().map(|(name, field)| (name.clone(), field)).collect()
        }
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tool(description: &str, schema: Value) -> ListedTool {
        ListedTool { name: "t".into(), description: description.into(), schema }
    }

    #[test]
    fn mh_010_a_hash_is_of_all_that_the_model_reads() {
        let one = tool("a", json!({"type": "object", "properties": {"x": {"type": "string"}}}));
        let same = tool("a", json!({"properties": {"x": {"type": "string"}}, "type": "object"}));
        assert_eq!(one.hash(), same.hash());
        assert_ne!(one.hash(), tool("b", one.schema.clone()).hash());
        assert_ne!(one.hash(), tool("a", json!({"type": "object"})).hash());
        assert_eq!(
            hash_of_all(&[one.clone(), tool("b", json!({}))]),
            hash_of_all(&[tool("b", json!({})), one])
        );
    }

    #[test]
    fn mh_013_control_characters_in_texts_do_not_reach_the_model() {
        let hostile =
            tool("a\u{1b}[2Jb\u{200b}", json!({"properties": {"x": {"description": "\u{1b}]0;t\u{7}"}}}));
        let shown = format!("{}{}", hostile.description_for_model("s"), hostile.schema_for_model());
        assert!(!shown.chars().any(|c| c.is_control() || c == '\u{200b}'), "{shown:?}");
        assert!(hostile.schema_for_model().get("type") == Some(&json!("object")));
    }

    #[test]
    fn m03_a_name_that_fits_is_kept_and_another_one_ends_with_a_hash() {
        assert_eq!(name_for_model("git_hub", "list-issues"), "mcp__git_hub__list-issues");
        let long = "x".repeat(80);
        assert_ne!(name_for_model("s", &long), name_for_model("s", &format!("{long}y")));
        assert_ne!(name_for_model("s", "a.b"), name_for_model("s", "a/b"));
    }

    // Fault E5: the tool `b__x` of the server `a` had the name of the tool `x` of the server `a__b`.
    #[test]
    fn a_name_for_the_model_has_one_server_and_one_tool() {
        for (server, is_valid) in [("a", true), ("a_b", true), ("a__b", false), ("a_", false), ("__", false)]
        {
            assert_eq!(is_unambiguous(server), is_valid, "{server}");
        }
        for (server, tool) in [("a", "b__x"), ("a_b", "x"), ("a", "_x"), ("a", "__x")] {
            assert_eq!(server_and_tool(&name_for_model(server, tool)), Some((server, tool)));
        }
        assert_eq!(server_and_tool("write_file"), None);
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_models_accept(tool in any::<String>()) {
            let name = name_for_model("server", &tool);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            prop_assert!(name.len() <= MAX_NAME_CHARS && name.chars().all(is_plain), "{}", name);
        }
    }
}
