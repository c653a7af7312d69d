//! Language model clients: one client interface, one transport, a pure codec per wire format, a table of providers.
//!
//! A row of the provider table (`config/models.json` and the user's own, read in [`provider_table`]) contains a server's address
//! ([`endpoint_overrides`]), its deviations ([`quirks`]), the query for a context window ([`window_request`]), and a
//! [`wire_format::WireFormat`]. Each format has a [`codec::Codec`], which writes path, headers and body of a request, and a
//! [`codec::Decoder`], which fills the [`response_builder::ResponseBuilder`] that all formats share.
//!
//! Shared by all codecs: the cached JSON of the conversation ([`encoded_history`]), the reader of a body ([`response_reader`]), its
//! division into events ([`framing`]), calls assembled from pieces ([`call_assembler`]) or found in text ([`embedded_call`],
//! [`tagged_call`]) unless they repeat the input ([`echoed_call`]), the parts of earlier turns that may be sent back
//! ([`request_parts`]), and error classes ([`provider_error`]). [`remote`] combines codec, transport and [`retry_policy`]. A new
//! format needs a directory next to `chat_completions`, a variant of [`wire_format::WireFormat`], and fixtures in `tests/wire`.

pub mod anthropic;
pub mod cache_control;
pub mod call_assembler;
pub mod chat_completions;
pub mod codec;
pub mod connect;
pub mod discovery;
pub mod echoed_call;
pub mod edit_format;
pub mod effort;
pub mod embedded_call;
pub mod encoded_history;
pub mod endpoint_overrides;
pub mod error_action;
pub mod finish_reason;
pub mod framing;
pub mod gemini;
pub mod generation_settings;
pub mod model_options;
pub mod model_rules;
pub mod model_table;
pub mod ollama;
pub mod preserialized;
pub mod prompt_prefix;
pub mod provider_error;
pub mod provider_table;
pub mod quirks;
pub mod remote;
pub mod request_body;
pub mod request_images;
pub mod request_parts;
pub mod response_builder;
pub mod response_cache;
pub mod response_reader;
pub mod response_schema;
pub mod responses;
pub mod retry;
pub mod retry_policy;
pub mod scripted;
pub mod tagged_call;
#[cfg(test)]
mod testing;
pub mod think_tags;
pub mod token_count;
pub mod window_request;
pub mod wire_format;

use crate::error_action::is_retryable;
use crate::preserialized::Preserialized;
use crate::response_schema::{AnswerValidator, ResponseSchema, StrictSchemaSupport};
use agent_core::event::FinishReason;
use agent_core::failure::{Failure, FailureKind};
use agent_core::image::ImageSource;
use agent_core::message::Message;
use agent_core::usage::Usage;
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: Preserialized<String>,
    /// JSON Schema of the arguments.
    pub parameters: Preserialized<Value>,
}

/// The content of the images of a request; absent for a model that accepts none.
pub type Images<'a> = Option<&'a dyn ImageSource>;

/// A request to a model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The conversation, system message first.
    pub messages: &'a [Arc<Message>],
    /// The tools offered, sorted by name; empty for a closing call.
    pub tools: &'a [ToolDefinition],
    /// Whether to stream the answer.
    pub stream: bool,
    /// Limit on the answer, in tokens; the server's default if absent.
    pub max_output_tokens: Option<u32>,
    /// Time limit of the whole call, including retries and waits.
    pub deadline: Option<Duration>,
    /// Id of the session, for servers that may receive it.
    pub session: Option<&'a str>,
    /// The content of the images; images are described by a line if absent.
    pub images: Images<'a>,
    /// Text of the answer so far, if a limit cut it and this request continues it.
    pub partial: &'a str,
    /// Schema of the answer, for servers with a strict mode; the answer may still violate it.
    pub schema: Option<&'a ResponseSchema>,
    /// Validator of structured answers; a valid answer is not treated as a call, even if it looks like one.
    pub answer_validator: Option<&'a dyn AnswerValidator>,
}

impl<'a> Request<'a> {
    /// Checks whether `text` is a valid structured answer.
    pub fn is_structured_answer(&self, text: &str) -> bool {
        self.answer_validator.is_some_and(|schema| schema.is_valid(text))
    }

    /// Returns the schema if the server supports one in this request. Returns `None` while continuing an answer that was cut: a
    /// strict mode would start it anew.
    pub fn strict_schema(&self, taken: StrictSchemaSupport) -> Option<&'a ResponseSchema> {
        self.schema.filter(|_| self.partial.is_empty()).filter(|_| match taken {
            StrictSchemaSupport::BesideTools => true,
            StrictSchemaSupport::Alone => self.tools.is_empty(),
            StrictSchemaSupport::Never => false,
        })
    }
}

/// A model's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The assistant message: thinking, text and tool calls.
    pub message: Message,
    /// Finish reason.
    pub finish: FinishReason,
    /// Token usage, if the server reported it.
    pub usage: Option<Usage>,
    /// Whether the answer came from the response cache, without a request.
    pub is_cached: bool,
}

/// Progress of a model call.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A request is being sent.
    Sent {
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// A request failed and will be repeated after `delay`.
    Retry {
        /// Number of the failed attempt, from 1.
        attempt: u32,
        /// Number of this retry, from 1.
        retry: u32,
        /// Number of allowed retries.
        max_retries: u32,
        /// Whether pieces of the answer were reported; they are discarded.
        discarded: bool,
        /// The wait before the next attempt.
        delay: Duration,
        /// The error of the failed attempt.
        error: &'a LlmError,
    },
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of reasoning.
    Thinking(&'a str),
}

/// Final failure of a model call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LlmError {
    /// Error class; determines retries, the stop reason and the exit code.
    pub kind: FailureKind,
    /// What happened and what to do; never contains a key.
    pub message: String,
    /// Whether a later attempt could succeed.
    pub retryable: bool,
    /// Wait that the server requested.
    pub retry_after: Option<Duration>,
    /// Token usage of an answer that arrived but is unusable.
    pub usage: Option<Usage>,
    /// Whether the time limit for the start of the answer passed.
    pub before_answer: bool,
}

impl LlmError {
    /// Creates a failure whose class alone determines whether it is retryable.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let retryable = is_retryable(kind, None);
        Self {
            kind,
            message: message.into(),
            retryable,
            retry_after: None,
            usage: None,
            before_answer: false,
        }
    }

    /// Creates the failure of an answer that exceeds one of our limits; it is not retryable, because a repeated answer would too.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self { retryable: false, ..Self::new(FailureKind::Malformed, message) }
    }
}

impl From<LlmError> for Failure {
    fn from(error: LlmError) -> Self {
        Self { kind: error.kind, message: error.message, retryable: error.retryable }
    }
}

/// A model that answers requests. Dropping the future abandons the call and its connection.
pub trait LlmClient {
    /// Returns `provider/model`, as in the result.
    fn model(&self) -> &str;

    /// Returns the context window (prompt and answer together) in tokens, if known.
    fn window(&self) -> Option<u32> {
        None
    }

    /// Returns the default limit of an answer in tokens.
    fn output_limit(&self) -> Option<u32> {
        None
    }

    /// Checks whether the model accepts images, as far as is known.
    fn accepts_images(&self) -> bool {
        true
    }

    /// Returns the options of the user that are not sent as requested, one sentence each.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Returns a hash of everything in `request` that determines the answer; `None` if answers do not depend on the
    /// request alone.
    fn fingerprint(&self, _request: &Request<'_>) -> Option<String> {
        None
    }

    /// Sends the request, with retries; `progress` receives the pieces of the answer as they arrive.
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>>;
}
