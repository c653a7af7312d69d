//! The keys of Codex's configuration on the command line of `agent exec`: `--config key=value`.

use crate::exec::args::CodexSandbox;
use agent_config::flag_values::{parse_effort, parse_name};
use agent_core::failure::FailureKind;
use agent_llm::effort::Effort;
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantArray};

/// The values of the known keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CodexConfig {
    /// `openai_base_url`.
    pub base_url: Option<String>,
    /// `model`.
    pub model: Option<String>,
    /// `model_reasoning_effort`.
    pub effort: Option<Effort>,
    /// `approval_policy`.
    pub approvals: Option<ApprovalPolicy>,
    /// `sandbox_mode`.
    pub sandbox: Option<CodexSandbox>,
    /// `sandbox_workspace_write.network_access`.
    pub network: Option<bool>,
    /// `web_search`.
    pub web_search: Option<WebSearchMode>,
    /// What has no effect.
    pub warnings: Vec<String>,
}

/// When Codex asks for approval. `agent exec` cannot ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum ApprovalPolicy {
    /// None.
    Never,
    /// Those for which the model asks.
    OnRequest,
    /// Those that failed in the sandbox.
    OnFailure,
    /// All that are not known to be harmless.
    Untrusted,
}

/// Codex's web search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum WebSearchMode {
    /// There is none.
    Disabled,
    /// In stored pages.
    Cached,
    /// On the web.
    Live,
}

impl CodexConfig {
    /// Reads the values of `--config`; of several for a key, the last one counts.
    ///
    /// # Errors
    /// For a text without `=`, and for an invalid value of a key that can take permission away.
    pub fn parse(texts: &[String]) -> AppResult<Self> {
        let mut config = Self::default();
        for text in texts {
            for (key, value) in leaves(text)? {
                config.set(&key, &value)?;
            }
        }
        Ok(config)
    }

    fn set(&mut self, key: &str, value: &Value) -> AppResult<()> {
        match key {
            "openai_base_url" => self.base_url = Some(string(key, value)?),
            "model" => self.model = Some(string(key, value)?),
            "model_reasoning_effort" => match parse_effort(&string(key, value)?) {
                Ok(effort) => self.effort = Some(effort),
                Err(_) => self.warnings.push(messages::codex_value_ignored(key, &value.to_string())),
            },
            "approval_policy" => self.approvals = Some(word(key, value)?),
            "sandbox_mode" => self.sandbox = Some(word(key, value)?),
            "sandbox_workspace_write.network_access" => {
                self.network = Some(value.as_bool().ok_or_else(|| invalid(key, "it is true or false"))?);
            }
            "web_search" => self.web_search = Some(word(key, value)?),
            _ => self.warnings.push(messages::codex_key_ignored(key)),
        }
        Ok(())
    }
}

/// Returns the dotted keys in `key=value` with their values. A value that is no TOML is a string, as in Codex.
fn leaves(text: &str) -> AppResult<Vec<(String, Value)>> {
    let (key, value) = text.split_once('=').ok_or_else(|| invalid(text, "a value must follow, KEY=VALUE"))?;
    let parsed: Result<Map<String, Value>, _> = toml::from_str(text);
    let mut found = Vec::new();
    match parsed {
        Ok(table) => flatten(String::new(), Value::Object(table), &mut found),
        Err(_) => found.push((key.trim().to_owned(), value.trim().into())),
    }
    Ok(found)
}

fn flatten(key: String, value: Value, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = if key.is_empty() { name } else { format!("{key}.{name}") };
                flatten(name, value, found);
            }
        }
        value => found.push((key, value)),
    }
}

fn string(key: &str, value: &Value) -> AppResult<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| invalid(key, "it is a string"))
}

fn word<T: VariantArray + Into<&'static str> + Copy>(key: &str, value: &Value) -> AppResult<T> {
    parse_name("it is one of", value.as_str().unwrap_or_default()).map_err(|why| invalid(key, &why))
}

fn invalid(key: &str, why: &str) -> AppError {
    AppError::new(FailureKind::Usage, format!("--config {key}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(texts: &[&str]) -> AppResult<CodexConfig> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        CodexConfig::parse(&texts)
    }

    #[test]
    fn what_the_sdk_sends_is_read() {
        let config = parse(&[
            r#"openai_base_url="http://localhost:1/v1""#,
            r#"model_reasoning_effort="high""#,
            "sandbox_workspace_write.network_access=true",
            r#"web_search="live""#,
            r#"approval_policy="on-request""#,
        ])
        .unwrap();
        let expected = CodexConfig {
            base_url: Some("http://localhost:1/v1".to_owned()),
            effort: Some(Effort::High),
            network: Some(true),
            web_search: Some(WebSearchMode::Live),
            approvals: Some(ApprovalPolicy::OnRequest),
            ..CodexConfig::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn a_table_is_its_keys_and_a_value_that_is_no_toml_is_a_string() {
        let config = parse(&[
            "sandbox_workspace_write={network_access = false}",
            "approval_policy=never",
            "model=gpt-5",
        ])
        .unwrap();
        assert_eq!((config.network, config.approvals), (Some(false), Some(ApprovalPolicy::Never)));
        assert_eq!(config.model.as_deref(), Some("gpt-5"));
    }

    #[test]
    fn unknown_keys_and_efforts_are_warnings_and_wrong_permissions_are_errors() {
        let config = parse(&["a.b=1", "model_reasoning_effort=\"ultra\"", "empty={}"]).unwrap();
        assert_eq!(config.warnings.len(), 3, "{config:?}");
        for text in [
            "approval_policy=\"sometimes\"",
            "sandbox_mode=1",
            "web_search=\"x\"",
            "sandbox_workspace_write.network_access=\"no\"",
            "model",
        ] {
            assert!(parse(&[text]).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _read = CodexConfig::parse(&[text]);
        }
    }
}
