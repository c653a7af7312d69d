//! Wire formats by name, and the codec of each.

use crate::anthropic::AnthropicMessages;
use crate::chat_completions::ChatCompletions;
use crate::codec::Codec;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::quirks::Quirks;
use crate::responses::Responses;
use crate::window_request::WindowEndpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wire format, by its name in the provider table and in the headers of `tests/wire`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// `OpenAI`'s older API, which most other servers support.
    #[default]
    ChatCompletions,
    /// Anthropic's API.
    Messages,
    /// Ollama's own API, which lets a request choose the window.
    Ollama,
    /// Google's `generateContent`.
    Gemini,
    /// `OpenAI`'s newer API, in which a model retains its reasoning between calls.
    Responses,
}

impl WireFormat {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::ChatCompletions, Self::Messages, Self::Ollama, Self::Gemini, Self::Responses];

    /// Returns the codec for a server with these `quirks`.
    pub fn codec(self, quirks: Quirks) -> Box<dyn Codec> {
        match self {
            Self::ChatCompletions => Box::new(ChatCompletions { quirks }),
            Self::Messages => Box::new(AnthropicMessages { quirks }),
            Self::Ollama => Box::new(Ollama { text_calls: quirks.text_calls }),
            Self::Gemini => Box::new(Gemini),
            Self::Responses => Box::new(Responses),
        }
    }

    /// Returns the context window query that all servers of the format support, if there is one.
    pub fn window_endpoint(self) -> Option<WindowEndpoint> {
        match self {
            Self::Ollama => Some(WindowEndpoint::OllamaShow),
            Self::ChatCompletions | Self::Messages | Self::Gemini | Self::Responses => None,
        }
    }
}
