//! Languages of logs, refusals and closing summaries: English and Spanish.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Spanish.
    Es,
}

impl Language {
    /// Returns the one of two texts that is in this language.
    pub fn pick<T>(self, english: T, spanish: T) -> T {
        match self {
            Self::En => english,
            Self::Es => spanish,
        }
    }
}
