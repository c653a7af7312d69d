//! The section `web` of the configuration.

use super::environment::Environment;
use agent_core::secret::Secret;
use agent_fetch::search_provider::SearchProvider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tools `web_fetch` and `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Whether `web_fetch` exists. It fetches public addresses only; modes that ask show the whole address.
    #[schemars(extend("x-scope" = "never-from-project", "x-tightens" = [false]))]
    pub enabled: bool,
    /// Hosts that `web_fetch` may fetch from: `example.org`, `*.example.org` (all subdomains), `*` (every host); empty: none.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "host"))]
    pub allowed_hosts: Vec<String>,
    /// Addresses with a port, such as `127.0.0.1:8080`, that both tools may use although they are not public.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "socket"))]
    pub allowed_private: Vec<String>,
    /// The tool `web_search`.
    pub search: WebSearchSettings,
}

/// The tool `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchSettings {
    /// The service that searches; absent: there is no `web_search`.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub provider: Option<SearchProvider>,
    /// Address of the service, without `/search`; needed for `searxng`, absent: that of the provider.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "url"))]
    pub url: Option<String>,
    /// Environment variable with the key; absent: `TAVILY_API_KEY`, `BRAVE_API_KEY`, and no key for `searxng`.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "variable"))]
    pub api_key_env: Option<String>,
    /// Results of a search that does not give a number.
    #[schemars(range(min = 1, max = 20), extend("x-scope" = "never-from-project", "x-unit" = "results"))]
    pub max_results: u32,
}

impl WebSearchSettings {
    /// Returns the provider and its address; `None` when no provider is configured.
    ///
    /// # Errors
    /// When the provider has no address of its own and none is configured.
    pub fn service(&self) -> Result<Option<(SearchProvider, &str)>, String> {
        let Some(provider) = self.provider else { return Ok(None) };
        match self.url.as_deref().or_else(|| provider.default_url()) {
            Some(url) => Ok(Some((provider, url))),
            None => Err("searxng needs web.search.url, the address of your server".to_owned()),
        }
    }

    /// Returns the key.
    pub fn key(&self, environment: &Environment) -> Option<Secret> {
        environment.get(self.key_variable()?).map(Secret::new)
    }

    /// Returns the environment variable with the key; `None` for a provider without keys.
    pub fn key_variable(&self) -> Option<&str> {
        self.api_key_env.as_deref().or_else(|| self.provider?.default_key_variable())
    }
}
