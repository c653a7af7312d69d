//! How servers differ from the common ground of their format: the switches of a row of the provider table.

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

/// How a server of Chat Completions is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptCacheField {
    /// `prompt_cache_key`, by which `OpenAI` sends the requests of a session to where their beginning is cached.
    Key,
    /// `cache_control` of a whole request, by which `OpenRouter` has the prompts of Anthropic's models cached.
    Control,
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
    /// The field in which it is told how hard to think; nothing is sent where that is not known.
    pub thinking: Option<ThinkingField>,
    /// What helps it to cache prompts.
    pub prompt_cache: Option<PromptCacheField>,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            token_field: TokenField::MaxTokens,
            no_content: NoContent::Blank,
            stream_usage: true,
            replay_reasoning: false,
            tools_with_history: false,
            thinking: None,
            prompt_cache: None,
        }
    }
}
