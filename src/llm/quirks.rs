//! Deviations of servers from the common format: the quirks of a provider table row.

use crate::request_parts::{nine_character_id, sanitized_id};
use crate::response_schema::StrictSchemaSupport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The field that limits the length of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`, which compatible servers accept.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which `OpenAI` requires for its newer models.
    MaxCompletionTokens,
}

/// How the missing text of a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmptyContent {
    /// `content: ""`, which most templates expect.
    #[default]
    Blank,
    /// `content: null`, as `OpenAI` itself writes it.
    #[serde(rename = "none")]
    Null,
}

/// The field in which earlier reasoning is sent back to a Chat Completions server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningReplayField {
    /// Not sent back: most servers drop it, and some templates refuse it.
    #[default]
    Nowhere,
    /// `reasoning_content`, `DeepSeek`'s name for it.
    ReasoningContent,
    /// `reasoning`, vLLM's name for it since 0.11.
    Reasoning,
    /// `reasoning_details`, unmodified, as in `OpenRouter`'s API.
    ReasoningDetails,
}

/// The call ids that a server accepts. Its own ids are always sent back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallIdFormat {
    /// Any id.
    #[default]
    Any,
    /// At most 40 characters, as `OpenAI` requires.
    Short,
    /// Nine letters and digits, as Mistral requires.
    NineAlphanumeric,
}

impl CallIdFormat {
    /// Longest id that `OpenAI` accepts in Chat Completions, in characters: "Expected a string with maximum length
    /// 40" (<https://github.com/vercel/ai/issues/5171>).
    const SHORT: usize = 40;

    /// Returns an id that the server accepts: the original one, or one derived from it deterministically.
    pub fn conform(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Any => Cow::Borrowed(id),
            Self::Short => sanitized_id(id, Self::SHORT),
            Self::NineAlphanumeric => nine_character_id(id),
        }
    }
}

/// The tool calls that are accepted in the text of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextCallFormat {
    /// Calls in JSON.
    #[default]
    Json,
    /// Also calls in a model's own tags, which a server for arbitrary models passes through if it does not recognise them;
    /// likewise reasoning in tags at the start of the text.
    Tagged,
}

/// The thinking field of a Chat Completions server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingField {
    /// `reasoning_effort: WORD`, as in `OpenAI`'s API.
    ReasoningEffort,
    /// `reasoning: {effort: WORD}`, as in `OpenRouter`'s API.
    Reasoning,
    /// `thinking: {type: enabled | disabled}`, as in the APIs of Z.ai, `DeepSeek` and Moonshot.
    Thinking,
    /// `enable_thinking: BOOL`, as in Alibaba's `DashScope` API.
    EnableThinking,
    /// `chat_template_kwargs: {enable_thinking: BOOL}` or `{reasoning_effort: WORD}`, as in llama.cpp.
    ChatTemplate,
}

/// The field that helps a server to cache prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptCacheField {
    /// `prompt_cache_key`, by which `OpenAI` routes the requests of a session to the server that cached their prefix.
    Key,
    /// `cache_control` of a whole request, by which `OpenRouter` caches the prompts of Anthropic's models.
    Control,
}

/// The role of the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SystemRole {
    /// `system`, which every server accepts; `OpenAI` converts it to `developer` for its newer models.
    #[default]
    System,
    /// `developer`, which a gateway may require that forwards requests unchanged.
    Developer,
}

agent_core::impl_name!(SystemRole);

/// Deviations of a server from the common format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the table")]
pub struct Quirks {
    /// Field that limits the length of an answer.
    pub token_field: MaxTokensField,
    /// Content of a message that only calls tools.
    pub no_content: EmptyContent,
    /// Whether the server supports `stream_options.include_usage`.
    pub stream_usage: bool,
    /// Field in which earlier reasoning is sent back.
    pub replay_reasoning: ReasoningReplayField,
    /// Whether the server refuses earlier turns without reasoning, such as those of another model; the field then contains a blank.
    pub reasoning_required: bool,
    /// Whether unsigned thinking is sent back: for servers other than Anthropic's that use the Messages format.
    pub unsigned_thinking: bool,
    /// Call ids that the server accepts.
    pub call_ids: CallIdFormat,
    /// Whether parallel calls require `parallel_tool_calls`.
    pub ask_parallel_calls: bool,
    /// Whether the server answers some models' requests only as a stream.
    pub stream_only: bool,
    /// Whether the server refuses a history with tool calls if no tools are offered.
    pub tools_with_history: bool,
    /// Tool calls that are accepted in the text of an answer.
    pub text_calls: TextCallFormat,
    /// Thinking field; nothing is sent if it is unknown.
    pub thinking: Option<ThinkingField>,
    /// Field that helps the server to cache prompts.
    pub prompt_cache: Option<PromptCacheField>,
    /// When the server accepts a schema of the answer.
    pub strict_answers: StrictSchemaSupport,
    /// Role of the instructions.
    pub system_role: SystemRole,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            token_field: MaxTokensField::MaxTokens,
            no_content: EmptyContent::Blank,
            stream_usage: true,
            replay_reasoning: ReasoningReplayField::Nowhere,
            reasoning_required: false,
            unsigned_thinking: false,
            call_ids: CallIdFormat::Any,
            ask_parallel_calls: false,
            stream_only: false,
            tools_with_history: false,
            text_calls: TextCallFormat::Json,
            thinking: None,
            prompt_cache: None,
            strict_answers: StrictSchemaSupport::Alone,
            system_role: SystemRole::System,
        }
    }
}
