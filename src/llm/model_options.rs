//! Options from which a model client is made.

use crate::effort::Effort;
use crate::provider_table::ProviderOverrides;
use crate::retry::DEFAULT_MAX_RETRY_AFTER;
use agent_core::secret::Secret;
use agent_http::Deadlines;
use std::time::Duration;

/// Number of retries after the first attempt, as in the official SDKs.
pub const DEFAULT_RETRIES: u32 = 5;

/// Model options of the user.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// `provider/model`, a bare model name, `local/…`, or `scripted:FILE`.
    pub model: Option<String>,
    /// API base of the server; the provider's own if absent.
    pub api_base: Option<String>,
    /// API key.
    pub api_key: Option<Secret>,
    /// Environment variable that holds the key.
    pub api_key_env: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Context window in tokens; the value that the server reports if absent.
    pub window: Option<u32>,
    /// Whether the model accepts images; as the table says if absent.
    pub images: Option<bool>,
    /// Reasoning effort; the model's default if absent.
    pub effort: Option<Effort>,
    /// Whether prompt caching hints are sent.
    pub prompt_caching: bool,
    /// Number of retries after the first attempt.
    pub retries: u32,
    /// Longest wait accepted from a server (`Retry-After`).
    pub max_retry_after: Duration,
    /// Time limit of each phase of an attempt.
    pub deadlines: Deadlines,
    /// Whether to look for a server on this machine if no model is chosen; true only on a terminal.
    pub probe_local: bool,
    /// Number of turns of a script that the session has played before.
    pub played_turns: usize,
    /// Provider table rows of the user.
    pub provider_overrides: ProviderOverrides,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            model: None,
            api_base: None,
            api_key: None,
            api_key_env: None,
            temperature: None,
            window: None,
            images: None,
            effort: None,
            prompt_caching: true,
            retries: DEFAULT_RETRIES,
            max_retry_after: DEFAULT_MAX_RETRY_AFTER,
            deadlines: Deadlines::default(),
            probe_local: false,
            played_turns: 0,
            provider_overrides: ProviderOverrides::new(),
        }
    }
}
