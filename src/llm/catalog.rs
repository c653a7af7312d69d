//! The table of providers: where each is, which variable holds its key, how it differs.

use crate::llm::codec::Codec;
use crate::llm::format::Format;
use crate::llm::quirks::Quirks;
use crate::llm::thinking::demands_responses;
use serde::Deserialize;

/// The table as data.
const TABLE: &str = include_str!("../../config/models.json");

/// A server, or a kind of server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// What stands before the slash in `provider/model`.
    pub name: String,
    /// Its usual API base.
    pub base: String,
    /// Variables that may hold its key, in order.
    #[serde(default)]
    pub keys: Vec<String>,
    /// Whether it runs on this machine, without a key, and is looked for there.
    #[serde(default)]
    pub local: bool,
    /// What it speaks.
    #[serde(default)]
    pub format: Format,
    /// Whether it speaks Responses at the same address, for the models that demand it.
    #[serde(default)]
    pub responses: bool,
    /// How it differs from the common ground of Chat Completions.
    #[serde(default)]
    pub quirks: Quirks,
}

impl Provider {
    /// The codec for its format.
    pub fn codec(&self) -> Box<dyn Codec> {
        self.format.codec(self.quirks)
    }

    /// The format in which it is asked for `model`.
    ///
    /// # Errors
    /// When the embedded table of thinking models is not well-formed, which a test rules out.
    pub fn format_of(&self, model: &str) -> serde_json::Result<Format> {
        let demanded = self.responses && demands_responses(model)?;
        Ok(if demanded { Format::Responses } else { self.format })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "about")]
    _about: String,
    providers: Vec<Provider>,
}

/// All providers, in the order of the table.
///
/// # Errors
/// When the embedded table is not well-formed, which a test rules out.
pub fn providers() -> serde_json::Result<Vec<Provider>> {
    Ok(serde_json::from_str::<Table>(TABLE)?.providers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Deadlines, Endpoint};
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_well_formed_and_its_names_are_unique() {
        let providers = providers().unwrap();
        let names: BTreeSet<_> = providers.iter().map(|provider| provider.name.as_str()).collect();
        assert_eq!(names.len(), providers.len());
        for provider in &providers {
            let endpoint = Endpoint::new(&provider.base, &[], Deadlines::default()).unwrap();
            assert_eq!(endpoint.is_loopback(), provider.base.starts_with("http://"), "{}", provider.name);
            assert!(provider.local || !provider.keys.is_empty(), "{}", provider.name);
            let plain = Quirks { prompt_cache: provider.quirks.prompt_cache, ..Quirks::default() };
            let alike = provider.quirks == plain || provider.format == Format::ChatCompletions;
            assert!(alike, "{}", provider.name);
        }
    }
}
