//! Interface of a wire format: the traits `Codec` and `Decoder`, and the parameters of a model.

use crate::effort::Thinking;
use crate::framing::Framing;
use crate::provider_error::ProviderError;
use crate::response_builder::ResponseBuilder;
use crate::{Images, LlmError, Request};
use agent_core::message::Message;
use std::fmt::Debug;
use std::sync::Arc;

/// Parameters of every request to one model, whatever the format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelParameters {
    /// Model name that the server uses.
    pub model: String,
    /// Sampling temperature; the server's default if absent.
    pub temperature: Option<f64>,
    /// Context window in tokens, if the server reported it ([`WindowEndpoint`](crate::window_request::WindowEndpoint)).
    pub window: Option<u32>,
    /// Thinking setting; nothing is sent if absent.
    pub thinking: Option<Thinking>,
    /// Prompt caching hints.
    pub caching: PromptCaching,
    /// Whether the model accepts no images.
    pub is_text_only: bool,
}

/// Hints that help a server to cache the prompts of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptCaching {
    /// Whether to send the session's name, so that its requests reach the same cache.
    pub use_session_key: bool,
    /// Whether to send cache breakpoints.
    pub use_breakpoints: bool,
}

/// Writes requests as JSON.
pub trait Encoder {
    /// Appends the JSON of `message` to that of the messages before it (`earlier`, in `json`): the separator, then the
    /// message, with the content of its images from `images`. Bytes already in `json` never change, so a step costs only what it adds; a format that must
    /// merge messages leaves the last one open and closes it here or in [`encode`](Self::encode).
    ///
    /// # Errors
    /// When the message has no JSON form.
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()>;

    /// Returns the body of a request; `messages` is the output of [`write_message`](Self::write_message) for all of its
    /// messages. Equal prefixes of a conversation give equal bytes.
    ///
    /// # Errors
    /// When a tool's schema or a number has no JSON form.
    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        messages: &[u8],
    ) -> serde_json::Result<Vec<u8>>;
}

/// A wire format. It converts between requests or answers and JSON; it does no I/O, except through [`Images`], and has no state, which is
/// in the [`Decoder`].
pub trait Codec: Encoder + Debug {
    /// Returns the codec name of the [`OpaqueData`](agent_core::message::OpaqueData) that only this codec may replay.
    fn name(&self) -> &'static str;

    /// Returns the request path for `model`: the part after the API base, with its leading slash.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Returns the path of the model list, after the API base.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// Returns the API base for `base`, which may be another common address of the same server.
    fn api_base<'a>(&self, base: &'a str) -> &'a str {
        base
    }

    /// Returns the headers of every request, including the one with the key.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    /// Returns the framing of a streamed answer.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// Checks whether tagged tool calls in the text of an answer are accepted (`text_calls` in the table).
    fn accepts_tagged_calls(&self) -> bool {
        false
    }

    /// Returns the default limit of an answer in tokens, for a format that requires a limit.
    fn output_limit(&self) -> Option<u32> {
        None
    }

    /// Creates a decoder for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Returns the error for an answer with an error status: its class, the provider's message (one line, possibly
    /// empty), and a wait that the body requests.
    fn status_error(&self, status: u16, body: &[u8]) -> LlmError {
        ProviderError::from_body(body).with_status(status)
    }
}

/// Reads one answer into a [`ResponseBuilder`], event by event or as one document.
pub trait Decoder {
    /// Reads one event of a stream: the data of a server-sent event, or a line.
    ///
    /// # Errors
    /// When the event violates the format, contains an error, or exceeds a limit.
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError>;

    /// Checks whether an answer with a [finish reason](ResponseBuilder::has_finish_reason) is whole even without its end marker.
    fn is_complete_at_finish_reason(&self) -> bool {
        false
    }

    /// Reads the whole body of an answer that is one document, whether a stream was requested or not.
    ///
    /// # Errors
    /// As [`decode_event`](Self::decode_event).
    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError>;
}
