//! Language models: one seam, one transport, a pure codec per wire format, a table of providers.
//!
//! A row of the provider table (`config/models.json` and the user's own, read in [`provider_table`]) says where a server is
//! ([`endpoint_overrides`]), how it differs ([`quirks`]), how it is asked what a model may hold ([`window_request`]), and names a
//! [`wire_format::WireFormat`], which stands for a [`codec::Codec`]: the path, the headers and the body of a request, and a [`codec::Decoder`] that fills an
//! [`response_builder::ResponseBuilder`], whose terms all formats share. What is the same everywhere stands beside the codecs: the JSON of
//! the conversation kept between requests ([`encoded_history`]), a body read as it arrives ([`response_reader`]) and divided into events
//! ([`framing`]), calls put together from pieces ([`call_assembler`]) or found in text ([`embedded_call`], [`tagged_call`]) where
//! they are no repetition ([`echoed_call`]), what may
//! be replayed ([`request_parts`]), classes of
//! errors ([`provider_error`]). [`remote`] puts codec, transport and [`retry_policy`] together. A further format is a folder
//! beside `chat_completions`, a variant of [`wire_format::WireFormat`], and fixtures in `tests/wire`.

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
pub mod framing;
pub mod gemini;
pub mod generation_settings;
pub mod messages;
pub mod model_table;
pub mod ollama;
pub mod preserialized;
pub mod prompt_prefix;
pub mod provider_error;
pub mod provider_table;
pub mod quirks;
pub mod remote;
pub mod request_body;
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

use crate::core::event::FinishReason;
use crate::core::failure::{Failure, FailureKind};
use crate::core::message::Message;
use crate::core::usage::Usage;
use crate::llm::error_action::is_retryable;
use crate::llm::preserialized::Preserialized;
use crate::llm::response_schema::{AnswerValidator, ResponseSchema, StrictSchemaSupport};
use futures_util::future::LocalBoxFuture;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// A tool as the model is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: Preserialized<String>,
    /// JSON Schema of its arguments.
    pub parameters: Preserialized<Value>,
}

/// What a model is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The conversation, system message first.
    pub messages: &'a [Arc<Message>],
    /// The tools offered, sorted by name; empty for a closing call.
    pub tools: &'a [ToolDefinition],
    /// Whether the answer is streamed.
    pub stream: bool,
    /// The longest answer, in tokens; the server's own limit when absent.
    pub max_output_tokens: Option<u32>,
    /// The longest the whole call may take, retries and waits included.
    pub deadline: Option<Duration>,
    /// The session it is part of, where a server may be told.
    pub session: Option<&'a str>,
    /// What the model has said of its answer already, where a limit cut it and this asks for the rest.
    pub partial: &'a str,
    /// What the answer must fit, for servers with a strict mode; the answer may still not fit.
    pub schema: Option<&'a ResponseSchema>,
    /// Knows an answer that fits, however much it looks like a call.
    pub answer_validator: Option<&'a dyn AnswerValidator>,
}

impl<'a> Request<'a> {
    /// Whether `text` is a structured answer that fits.
    pub fn is_structured_answer(&self, text: &str) -> bool {
        self.answer_validator.is_some_and(|schema| schema.is_valid(text))
    }

    /// The schema as far as a server takes one in this request. Not while an answer goes on that was cut: a strict mode would
    /// begin it anew.
    pub fn strict_schema(&self, taken: StrictSchemaSupport) -> Option<&'a ResponseSchema> {
        self.schema.filter(|_| self.partial.is_empty()).filter(|_| match taken {
            StrictSchemaSupport::BesideTools => true,
            StrictSchemaSupport::Alone => self.tools.is_empty(),
            StrictSchemaSupport::Never => false,
        })
    }
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The assistant message: thinking, text and tool calls.
    pub message: Message,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// Tokens, where the server said.
    pub usage: Option<Usage>,
    /// Whether it was kept from an earlier request: none went out for it.
    pub is_cached: bool,
}

/// What happens while an answer is on its way.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A request goes out; `attempt` counts from 1.
    Sent {
        /// 1 for the first try.
        attempt: u32,
    },
    /// A request failed and is repeated after `delay`.
    Retry {
        /// The attempt that failed.
        attempt: u32,
        /// The number of this retry, from 1.
        retry: u32,
        /// How many retries are allowed.
        max_retries: u32,
        /// Whether pieces of the answer were reported, which are discarded.
        discarded: bool,
        /// The wait before the next.
        delay: Duration,
        /// What went wrong.
        error: &'a LlmError,
    },
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of reasoning.
    Thinking(&'a str),
}

/// A call that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LlmError {
    /// Its class; decides retries, the stop reason and the exit code.
    pub kind: FailureKind,
    /// What happened and what to do; never holds a key.
    pub message: String,
    /// Whether a later try could succeed.
    pub retryable: bool,
    /// How long the server asked us to wait.
    pub retry_after: Option<Duration>,
    /// The tokens of an answer that came, was counted, and is of no use.
    pub usage: Option<Usage>,
    /// Whether the time for an answer to begin passed.
    pub before_answer: bool,
}

impl LlmError {
    /// A failure whose class alone decides whether a later try could succeed.
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

    /// The failure of an answer that exceeds one of our limits: repeating the request would exceed it again.
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
    /// `provider/model`, as the result names it.
    fn model(&self) -> &str;

    /// What the model may hold, prompt and answer together, in tokens, where its server was asked and said so.
    fn window(&self) -> Option<u32> {
        None
    }

    /// Tokens of the longest answer that is asked for where nobody says how long.
    fn output_limit(&self) -> Option<u32> {
        None
    }

    /// What of the user's wishes is not sent as it was, a sentence each.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// What tells `request` from every other, as a hash of all that decides on the answer; nothing where answers have
    /// other reasons than requests.
    fn fingerprint(&self, _request: &Request<'_>) -> Option<String> {
        None
    }

    /// Asks once, with retries inside; `progress` is told what arrives while it arrives.
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>>;
}
