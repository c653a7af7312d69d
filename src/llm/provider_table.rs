//! Table of providers, built in and the user's own: address, key variables, format and quirks of each.

use crate::codec::Codec;
use crate::endpoint_overrides::{EndpointOverrides, KeyHeader};
use crate::generation_settings::requires_responses_api;
use crate::quirks::Quirks;
use crate::window_request::WindowEndpoint;
use crate::wire_format::WireFormat;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The built-in table as JSON.
const TABLE: &str = include_str!("../../config/models.json");

/// A row of the table: a server, or a kind of server. Its name is the prefix in `provider/model`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Provider {
    /// Name of the provider.
    #[serde(skip)]
    pub name: String,
    /// Other common names; they are accepted if no API base is set.
    pub aliases: Vec<String>,
    /// API base, without the path of a request; if absent, the user supplies it in `base_keys` or with `--api-base`.
    #[schemars(extend("x-format" = "url"))]
    pub base: Option<String>,
    /// Environment variables that may contain the API base, in order; they override `base`.
    #[schemars(extend("x-format" = "variable"))]
    pub base_keys: Vec<String>,
    /// Environment variables that may contain the key, in order; a provider without any needs no key.
    #[schemars(extend("x-format" = "variable"))]
    pub keys: Vec<String>,
    /// Whether the server runs on this machine, without a key, and is probed there.
    pub local: bool,
    /// Wire format.
    pub format: WireFormat,
    /// Whether the server offers Responses at the same address, for the models that require it.
    pub responses: bool,
    /// Request path after the API base, with `{model}` for the model; the format's own if absent.
    #[schemars(extend("x-format" = "path"))]
    pub path: Option<String>,
    /// Query parameters.
    pub query: BTreeMap<String, String>,
    /// Header that carries the key; the format's own if absent.
    pub key_header: Option<KeyHeader>,
    /// Query for a model's context window; the format's own if absent, which usually is none.
    pub window: Option<WindowEndpoint>,
    /// Deviations of the server from the common format.
    pub quirks: Quirks,
    /// Sources that document the row.
    pub sources: Vec<String>,
    /// Keys of the row that no source confirms.
    pub unconfirmed: Vec<String>,
}

impl Provider {
    /// Returns the codec for the provider's format.
    pub fn codec(&self) -> Box<dyn Codec> {
        self.format.codec(self.quirks)
    }

    /// Returns the wire format of requests for `model`.
    ///
    /// # Errors
    /// When the embedded table of thinking models is malformed, which a test rules out.
    pub fn format_for(&self, model: &str) -> serde_json::Result<WireFormat> {
        let demanded = self.responses && requires_responses_api(model)?;
        Ok(if demanded { WireFormat::Responses } else { self.format })
    }

    /// Returns the provider's deviations in address and key header.
    pub fn endpoint_overrides(&self) -> EndpointOverrides {
        EndpointOverrides { path: self.path.clone(), query: self.query.clone(), key_header: self.key_header }
    }

    /// Returns the query for a model's context window.
    pub fn window_endpoint(&self) -> Option<WindowEndpoint> {
        self.window.or(self.format.window_endpoint())
    }
}

/// The user's configuration of providers, by name: all or some keys of [`Provider`].
pub type ProviderOverrides = BTreeMap<String, Map<String, Value>>;

/// Error in a provider table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderTableError {
    /// The built-in table is malformed, which a test rules out.
    #[error("the table of providers: {0}")]
    BuiltIn(String),
    /// A row of the user is invalid.
    #[error("llm.providers.{name}: {problem}")]
    InvalidOverride {
        /// Name of the provider.
        name: String,
        /// Description of the problem.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "about")]
    _about: String,
    providers: Map<String, Value>,
}

/// Returns all providers in table order, with the changes and additions in `own`.
///
/// # Errors
/// When a row is malformed, or a new row lacks a server address.
pub fn load(own: &ProviderOverrides) -> Result<Vec<Provider>, ProviderTableError> {
    static BUILT_IN: LazyLock<Result<Vec<Provider>, ProviderTableError>> =
        LazyLock::new(|| read(&ProviderOverrides::new()));
    if own.is_empty() { BUILT_IN.clone() } else { read(own) }
}

fn read(own: &ProviderOverrides) -> Result<Vec<Provider>, ProviderTableError> {
    let built_in: Table =
        serde_json::from_str(TABLE).map_err(|error| ProviderTableError::BuiltIn(error.to_string()))?;
    let mut rows = built_in.providers;
    for (name, changes) in own {
        let row = rows.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
        apply(row, changes);
    }
    rows.into_iter().map(|(name, row)| provider(name, row)).collect()
}

/// Returns all built-in providers.
///
/// # Errors
/// As [`load`].
pub fn built_in_providers() -> Result<Vec<Provider>, ProviderTableError> {
    load(&ProviderOverrides::new())
}

/// Returns the key variables of the user's own providers.
pub fn key_variables(own: &ProviderOverrides) -> impl Iterator<Item = &str> {
    let keys = own.values().filter_map(|row| row.get("keys")?.as_array());
    keys.flatten().filter_map(Value::as_str)
}

/// Finds a provider by its name, else by one of its aliases.
pub fn find<'a>(table: &'a [Provider], name: &str) -> Option<&'a Provider> {
    let alias = |provider: &&Provider| provider.aliases.iter().any(|alias| alias == name);
    table.iter().find(|provider| provider.name == name).or_else(|| table.iter().find(alias))
}

/// Sets the keys of `changes` in `row`; nested objects are merged key by key.
fn apply(row: &mut Value, changes: &Map<String, Value>) {
    let Some(row) = row.as_object_mut() else { return };
    for (key, value) in changes {
        match (row.get_mut(key), value) {
            (Some(group @ Value::Object(_)), Value::Object(inner)) => apply(group, inner),
            _ => {
                row.insert(key.clone(), value.clone());
            }
        }
    }
}

fn provider(name: String, row: Value) -> Result<Provider, ProviderTableError> {
    let wrong = |problem: String| ProviderTableError::InvalidOverride { name: name.clone(), problem };
    let provider: Provider = serde_json::from_value(row).map_err(|error| wrong(error.to_string()))?;
    if provider.base.is_none() && provider.base_keys.is_empty() {
        let problem =
            "a provider of your own needs `base`, the address of its API without the path of a request";
        return Err(wrong(problem.to_owned()));
    }
    Ok(Provider { name, ..provider })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_http::{Deadlines, Endpoint};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn own(rows: Value) -> ProviderOverrides {
        serde_json::from_value(rows).unwrap()
    }

    #[test]
    fn the_table_is_well_formed_and_its_names_are_unique() {
        let providers = built_in_providers().unwrap();
        let mut names = BTreeSet::from(["local", "scripted"]);
        for provider in &providers {
            for name in std::iter::once(&provider.name).chain(&provider.aliases) {
                assert!(names.insert(name), "{name} is there twice");
            }
            if let Some(base) = &provider.base {
                let endpoint = Endpoint::new(base, &[], Deadlines::default()).unwrap();
                assert_eq!(endpoint.is_loopback(), base.starts_with("http://"), "{}", provider.name);
            }
            assert!(provider.local || !provider.keys.is_empty(), "{}", provider.name);
            assert!(!provider.sources.is_empty(), "{} has no source", provider.name);
            assert!(provider.path.as_ref().is_none_or(|path| path.starts_with('/')), "{}", provider.name);
        }
    }

    #[test]
    fn a_quirk_stands_where_its_format_looks_for_it() {
        for provider in built_in_providers().unwrap() {
            let known = match provider.format {
                WireFormat::ChatCompletions => continue,
                WireFormat::Messages => {
                    Quirks { unsigned_thinking: provider.quirks.unsigned_thinking, ..Quirks::default() }
                }
                WireFormat::Ollama => Quirks { text_calls: provider.quirks.text_calls, ..Quirks::default() },
                WireFormat::Gemini | WireFormat::Responses => Quirks::default(),
            };
            let known = Quirks { prompt_cache: provider.quirks.prompt_cache, ..known };
            assert_eq!(provider.quirks, known, "{}", provider.name);
        }
    }

    #[test]
    fn what_is_unconfirmed_names_a_key_of_the_row() {
        let keys = serde_json::to_value(Provider::default()).unwrap();
        for provider in built_in_providers().unwrap() {
            for key in &provider.unconfirmed {
                let known = keys.get(key).or_else(|| keys["quirks"].get(key));
                assert!(known.is_some(), "{}: {key}", provider.name);
            }
        }
    }

    #[test]
    fn a_row_of_the_user_has_the_form_of_the_table() {
        let built_in: Table = serde_json::from_str(TABLE).unwrap();
        let Value::Object(azure) = built_in.providers["azure"].clone() else { panic!("no row") };
        let table = load(&ProviderOverrides::from([("mine".to_owned(), azure)])).unwrap();
        let row = |name: &str| Provider { name: String::new(), ..find(&table, name).unwrap().clone() };
        assert_eq!(row("mine"), row("azure"));
    }

    #[test]
    fn the_users_configuration_changes_a_row_key_by_key() {
        let rows = json!({"deepseek": {"base": "https://proxy/v1", "quirks": {"stream_usage": false}}});
        let table = load(&own(rows)).unwrap();
        let deepseek = find(&table, "deepseek").unwrap();
        assert_eq!(deepseek.base.as_deref(), Some("https://proxy/v1"));
        assert_eq!(deepseek.keys, ["DEEPSEEK_API_KEY"]);
        assert!(!deepseek.quirks.stream_usage && deepseek.quirks.reasoning_required);
    }

    #[test]
    fn a_row_without_an_address_is_an_error_that_names_it() {
        let error = load(&own(json!({"mine": {"keys": ["MY_KEY"]}}))).unwrap_err();
        assert!(
            error.to_string().starts_with("llm.providers.mine: ") && error.to_string().contains("`base`"),
            "{error}"
        );
    }

    #[test]
    fn a_provider_is_found_by_its_aliases() {
        let table = load(&own(json!({"kimi": {"base": "https://mine/v1"}}))).unwrap();
        for (called, name) in [("google", "gemini"), ("grok", "xai"), ("qwen", "dashscope"), ("kimi", "kimi")]
        {
            assert_eq!(find(&table, called).unwrap().name, name);
        }
        assert!(find(&table, "nobody").is_none());
    }
}
