//! How servers differ from the common ground of their format: the switches of a row of the provider table.

use crate::llm::answer_schema::StrictAnswers;
use serde::Deserialize;

/// Which field limits the length of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenField {
    /// What compatible servers know.
    #[default]
    MaxTokens,
    /// What `OpenAI` demands of its newer models.
    MaxCompletionTokens,
}

/// How a message without text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoContent {
    /// `content: ""`, which most templates want.
    #[default]
    Blank,
    /// `content: null`, as `OpenAI` itself writes it.
    Null,
}

/// How a server differs from the common ground of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// The field that limits the length of an answer.
    pub token_field: TokenField,
    /// What stands for the text of a message that only calls tools.
    pub no_content: NoContent,
    /// Understands `stream_options.include_usage`.
    pub stream_usage: bool,
    /// Wants the reasoning of earlier turns back, as `reasoning_content`.
    pub replay_reasoning: bool,
    /// Refuses a history with tool calls when no tools are offered.
    pub tools_with_history: bool,
    /// When it takes a schema that the answer must fit.
    pub strict_answers: StrictAnswers,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            token_field: TokenField::MaxTokens,
            no_content: NoContent::Blank,
            stream_usage: true,
            replay_reasoning: false,
            tools_with_history: false,
            strict_answers: StrictAnswers::Alone,
        }
    }
}
