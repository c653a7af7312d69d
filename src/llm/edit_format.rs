//! Chooses the edit tools that a model is offered, by the format in which it was trained to write changes.

use crate::model_rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table of models and their edit formats.
const TABLE: &str = include_str!("../../config/edits.json");

/// The format in which a model writes changes to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditFormat {
    /// Any format: all tools are offered.
    #[default]
    All,
    /// A passage and its replacement: `edit_file`.
    Edit,
    /// Patches: `apply_patch`.
    Patch,
    /// The whole file, with `write_file` alone.
    Whole,
}

impl EditFormat {
    /// Returns the format of the model called `name`, ignoring the vendor prefix.
    ///
    /// # Errors
    /// When the embedded table is malformed, which a test rules out.
    pub fn for_model(name: &str) -> serde_json::Result<Self> {
        Ok(model_rules::find(TABLE, name)?.unwrap_or_default())
    }

    /// Checks whether the tool called `name` is offered to a model of this format.
    pub fn offers(self, name: &str) -> bool {
        match name {
            "edit_file" => matches!(self, Self::All | Self::Edit),
            "apply_patch" => matches!(self, Self::All | Self::Patch),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_of_a_name_decides() {
        for (name, format) in [
            ("openai/gpt-5.2-codex", EditFormat::Patch),
            ("openrouter/openai/gpt-5-mini", EditFormat::Patch),
            ("gpt-5-chat-latest", EditFormat::All),
            ("grok-4", EditFormat::Edit),
            ("anthropic/claude-sonnet-5", EditFormat::All),
            ("scripted:x", EditFormat::All),
        ] {
            assert_eq!(EditFormat::for_model(name).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn whole_files_can_be_written_in_every_form() {
        let offered = |format: EditFormat| {
            ["apply_patch", "edit_file", "read_file", "write_file"].map(|name| format.offers(name))
        };
        assert_eq!(offered(EditFormat::All), [true, true, true, true]);
        assert_eq!(offered(EditFormat::Edit), [false, true, true, true]);
        assert_eq!(offered(EditFormat::Patch), [true, false, true, true]);
        assert_eq!(offered(EditFormat::Whole), [false, false, true, true]);
    }
}
