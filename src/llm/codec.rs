//! What a wire format must be able to do: the seam between the one client and the pure codecs.

use crate::core::message::Message;
use crate::llm::effort::Thinking;
use crate::llm::framing::Framing;
use crate::llm::provider_error::ProviderError;
use crate::llm::response_builder::ResponseBuilder;
use crate::llm::{LlmError, Progress, Request};
use std::fmt::Debug;
use std::sync::Arc;

/// What is the same in every request to one model, whatever the format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelParameters {
    /// The model as the server calls it.
    pub model: String,
    /// Sampling temperature; the server's own when absent.
    pub temperature: Option<f64>,
    /// What the model may hold, in tokens, where its server was asked ([`WindowEndpoint`](crate::llm::window_request::WindowEndpoint)).
    pub window: Option<u32>,
    /// What is said about thinking; nothing when absent.
    pub thinking: Option<Thinking>,
    /// How the server is helped to cache prompts.
    pub caching: PromptCaching,
}

/// How a server is helped to cache the prompts of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptCaching {
    /// By the name of the session, so that its requests meet in one place.
    pub use_session_key: bool,
    /// By marks up to which the prompt is to be kept.
    pub use_breakpoints: bool,
}

/// A wire format. It knows JSON and nothing of connections; it has no state, which is the [`Decoder`]'s.
pub trait Codec: Debug {
    /// The name under which [`OpaqueData`](crate::core::message::OpaqueData) data is stored that only this codec may replay.
    fn name(&self) -> &'static str;

    /// Where requests for `model` go: what follows the API base, from a slash on.
    fn path(&self, model: &str, stream: bool) -> String;

    /// Where the list of models is, likewise.
    fn models_path(&self) -> &'static str {
        "/models"
    }

    /// The API base in `base`, where people know a server by another address.
    fn api_base<'a>(&self, base: &'a str) -> &'a str {
        base
    }

    /// The headers of every request, that of the key among them.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// How a streamed answer is divided into events.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// Appends what `message` adds to the JSON of the messages before it (`earlier`, in `json`): the separator, then
    /// itself. What stands in `json` already is never changed, so that a step costs what it adds; a format that must
    /// merge messages leaves the last one open and closes it here, or in [`encode`](Self::encode).
    ///
    /// # Errors
    /// When the message has no JSON form.
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()>;

    /// The body of a request; `messages` is what [`write_message`](Self::write_message) wrote for all of its
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

    /// Whether calls that stand in the text of an answer in a model's own marks count (`text_calls` in the table).
    fn accepts_tagged_calls(&self) -> bool {
        false
    }

    /// Tokens of the longest answer that is asked for where nobody says how long, in a format that demands a figure.
    fn output_limit(&self) -> Option<u32> {
        None
    }

    /// A decoder for one answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// The error of an answer whose status is none of success: its class, the provider's words (one line, possibly
    /// empty) as the message, and a wait that the body asks for.
    fn status_error(&self, status: u16, body: &[u8]) -> LlmError {
        ProviderError::from_body(body).with_status(status)
    }
}

/// Reads one answer into a [`ResponseBuilder`], event by event or as one document.
pub trait Decoder {
    /// Takes in one event of a stream: the data of a server-sent event, or a line.
    ///
    /// # Errors
    /// When it is not what the format promises, holds an error, or exceeds a limit.
    fn decode_event(
        &mut self,
        data: &str,
        answer: &mut ResponseBuilder,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError>;

    /// Whether an answer whose model [has stopped](ResponseBuilder::has_finish_reason) is whole, so that only the mark of its end is missing.
    fn is_complete_at_finish_reason(&self) -> bool {
        false
    }

    /// Takes in the whole body of an answer that is one document, streamed or not.
    ///
    /// # Errors
    /// As [`decode_event`](Self::decode_event).
    fn decode_body(
        &mut self,
        body: &[u8],
        answer: &mut ResponseBuilder,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError>;
}
