//! How servers differ from the common ground of their format: the switches of a row of the provider table.

use crate::llm::request_parts::{nine_character_id, sanitized_id};
use crate::llm::response_schema::StrictSchemaSupport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Which field limits the length of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// What compatible servers know.
    #[default]
    MaxTokens,
    /// What `OpenAI` demands of its newer models.
    MaxCompletionTokens,
}

/// How a message without text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EmptyContent {
    /// `content: ""`, which most templates want.
    #[default]
    Blank,
    /// `content: null`, as `OpenAI` itself writes it.
    #[serde(rename = "none")]
    Null,
}

/// The field in which the reasoning of earlier turns goes back to a server of Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningReplayField {
    /// It does not go back: most servers drop it, and some templates refuse it.
    #[default]
    Nowhere,
    /// `reasoning_content`, `DeepSeek`'s name for it.
    ReasoningContent,
    /// `reasoning`, vLLM's name for it since 0.11.
    Reasoning,
    /// `reasoning_details`, unmodified, as `OpenRouter` has it.
    ReasoningDetails,
}

/// Which ids of calls a server accepts. Those that it made itself always come back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallIdFormat {
    /// Any.
    #[default]
    Any,
    /// At most 40 characters, as `OpenAI` has it.
    Short,
    /// Nine letters and digits, as Mistral has it.
    NineAlphanumeric,
}

impl CallIdFormat {
    /// The longest id that `OpenAI` accepts in Chat Completions, in characters: "Expected a string with maximum length
    /// 40" (<https://github.com/vercel/ai/issues/5171>).
    const SHORT: usize = 40;

    /// The id as the server accepts it: that which it is, or one made from it, always the same.
    pub fn conform(self, id: &str) -> Cow<'_, str> {
        match self {
            Self::Any => Cow::Borrowed(id),
            Self::Short => sanitized_id(id, Self::SHORT),
            Self::NineAlphanumeric => nine_character_id(id),
        }
    }
}

/// Which calls that a model writes as its whole text, instead of calling, are calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TextCallFormat {
    /// Those that are JSON.
    #[default]
    Json,
    /// Also those in a model's own marks, which a server that runs any model lets through when it does not know them;
    /// likewise reasoning in tags at the beginning.
    Tagged,
}

/// How a server of Chat Completions is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingField {
    /// `reasoning_effort: WORD`, as `OpenAI` has it.
    ReasoningEffort,
    /// `reasoning: {effort: WORD}`, as `OpenRouter` has it.
    Reasoning,
    /// `thinking: {type: enabled | disabled}`, as Z.ai, `DeepSeek` and Moonshot have it.
    Thinking,
    /// `enable_thinking: BOOL`, as Alibaba's `DashScope` has it.
    EnableThinking,
    /// `chat_template_kwargs: {enable_thinking: BOOL}` or `{reasoning_effort: WORD}`, as llama.cpp has it.
    ChatTemplate,
}

/// What helps a server to cache prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptCacheField {
    /// `prompt_cache_key`, by which `OpenAI` sends the requests of a session to where their beginning is cached.
    Key,
    /// `cache_control` of a whole request, by which `OpenRouter` has the prompts of Anthropic's models cached.
    Control,
}

/// The role of the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SystemRole {
    /// What every server takes; `OpenAI`'s own turns it into `developer` for its newer models.
    #[default]
    System,
    /// What a server may demand that passes everything on as it is.
    Developer,
}

impl SystemRole {
    /// The role on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
        }
    }
}

/// How a server differs from the common ground of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the table")]
pub struct Quirks {
    /// The field that limits the length of an answer.
    pub token_field: MaxTokensField,
    /// What stands for the text of a message that only calls tools.
    pub no_content: EmptyContent,
    /// Understands `stream_options.include_usage`.
    pub stream_usage: bool,
    /// Where the reasoning of earlier turns goes back.
    pub replay_reasoning: ReasoningReplayField,
    /// Refuses earlier turns without reasoning, such as those of another model: then that field holds a blank.
    pub reasoning_required: bool,
    /// Wants thinking back although it never signed it; the servers that speak Messages without being Anthropic's.
    pub unsigned_thinking: bool,
    /// Which ids of calls it accepts.
    pub call_ids: CallIdFormat,
    /// Makes several calls in one turn only when `parallel_tool_calls` asks for that.
    pub ask_parallel_calls: bool,
    /// Answers some of its models' requests only when they are streamed.
    pub stream_only: bool,
    /// Refuses a history with tool calls when no tools are offered.
    pub tools_with_history: bool,
    /// Which calls that a model writes as its whole text are calls.
    pub text_calls: TextCallFormat,
    /// The field in which it is told how hard to think; nothing is sent where that is not known.
    pub thinking: Option<ThinkingField>,
    /// What helps it to cache prompts.
    pub prompt_cache: Option<PromptCacheField>,
    /// When it takes a schema that the answer must fit.
    pub strict_answers: StrictSchemaSupport,
    /// The role of the instructions.
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
