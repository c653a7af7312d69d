//! The languages in which people are told of a run, calls are refused and runs close.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language. What stands in journals of earlier versions is English.
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
    /// The one of two texts that is in this language.
    pub fn pick<T>(self, english: T, spanish: T) -> T {
        match self {
            Self::En => english,
            Self::Es => spanish,
        }
    }
}
