//! Client of a model on a server: combines codec, transport and retries.

use crate::codec::{Codec, ModelParameters};
use crate::echoed_call::is_echoed;
use crate::encoded_history::EncodedHistory;
use crate::endpoint_overrides::EndpointOverrides;
use crate::generation_settings::thinks;
use crate::provider_error::is_output_limit_error;
use crate::request_parts::nine_character_id;
use crate::response_builder::{FinishContext, ResponseBuilder};
use crate::response_reader::{Arrival, ResponseReader};
use crate::retry::RetryAdvice;
use crate::retry_policy::RetryPolicy;
use crate::tagged_call::TaggedCallParser;
use crate::{LlmClient, LlmError, Progress, Request, Response, ToolDefinition};
use agent_core::failure::FailureKind;
use agent_core::message::MCP_PREFIX;
use agent_core::secret::Secret;
use agent_http::{Deadline, Delivery, Endpoint, HttpError, HttpResponse, RequestBody};
use agent_runtime::clock::Clock;
use agent_text::delimiter::Delimiter;
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// `OpenAI`'s error for a model that does not support Chat Completions.
const RESPONSES_ONLY_PHRASE: &str = "only supported in v1/responses";

/// Maximum number of tools that are left out because the server refused them; each costs a request.
const MAX_REFUSED_TOOLS: usize = 8;

/// Texts before the position of a tool in the errors of Gemini (whose list of tools contains one list), `OpenAI` and Anthropic.
const TOOL_LISTS: [&str; 4] = ["function_declarations[", "functionDeclarations[", "tools[", "tools."];

/// Shortest key that is redacted in server messages, in bytes. Real keys have at least twenty; shorter ones (`none`, `1`)
/// are placeholders for local servers, and redacting them would garble every message.
const MIN_REDACTED_KEY_BYTES: usize = 8;

/// A key and its origin, for the error message if the server refuses it.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// The key, if there is one.
    pub secret: Option<Secret>,
    /// What to do if the key is refused: which variable to check or to set.
    pub advice: String,
}

/// Client of one model on one server.
#[derive(Debug)]
pub struct RemoteModel {
    /// `provider/model`, as in the result.
    pub name: String,
    /// Transport to the API base.
    pub endpoint: Endpoint,
    /// Codec of the server's wire format.
    pub codec: Box<dyn Codec>,
    /// Deviations of the request path and the key header.
    pub address: EndpointOverrides,
    /// Whether the server answers only streamed requests.
    pub stream_only: bool,
    /// Parameters of every request.
    pub parameters: ModelParameters,
    /// API key.
    pub key: ApiKey,
    /// Number of retries after the first attempt.
    pub retries: u32,
    /// Longest wait that the server may request.
    pub max_retry_after: Duration,
    /// Source of time, jitter and ids.
    pub source: Rc<Clock>,
    /// JSON of the conversation as last sent.
    pub history: RefCell<EncodedHistory>,
    /// Options of the user that are not sent as requested, one sentence each.
    pub warnings: Vec<String>,
    /// Whether the server has refused a schema.
    pub refuses_schemas: Cell<bool>,
    /// Whether the server has answered a request.
    pub has_answered: Cell<bool>,
    /// Whether it has refused a connection.
    pub was_refused: Cell<bool>,
    /// Names of the tools of MCP servers that the server has refused.
    pub refused_tools: RefCell<BTreeSet<String>>,
}

impl LlmClient for RemoteModel {
    fn model(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u32> {
        self.parameters.window
    }

    fn output_limit(&self) -> Option<u32> {
        self.codec.output_limit()
    }

    fn accepts_images(&self) -> bool {
        !self.parameters.is_text_only
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Hashes the server, the format and the whole body, without the session's name.
    fn fingerprint(&self, request: &Request<'_>) -> Option<String> {
        let anonymous = Request { session: None, ..*request };
        let body = if request.messages.is_empty() {
            self.codec.encode(&anonymous, &self.parameters, &[]).ok()
        } else {
            self.encode(&anonymous).ok()
        };
        let mut hasher = blake3::Hasher::new();
        for part in [self.endpoint.base(), &self.name, self.codec.name(), &self.parameters.model] {
            hasher.update(part.as_bytes()).update(b"\0");
        }
        let body = String::from_utf8(body?).ok()?;
        // The session's untrusted-data delimiters do not affect the answer.
        let body = match request.session {
            Some(session) => body.replace(Delimiter::for_session(session).token(), ""),
            None => body,
        };
        Some(hasher.update(body.as_bytes()).finalize().to_hex().to_string())
    }

    /// Sends the request. If the server refuses the schema of the answer or a tool of an MCP server, that is omitted from then on.
    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        async move {
            loop {
                let tools = self.accepted_tools(request.tools);
                let schema = request.schema.filter(|_| !self.refuses_schemas.get());
                let sent = Request { schema, tools: &tools, ..*request };
                let error = match self.complete_with_retries(&sent, progress).await {
                    Err(error) if error.kind == FailureKind::Request => error,
                    outcome => return outcome,
                };
                let error = match refused_tool(&error.message, &tools) {
                    Some(name) if self.refused_tools.borrow().len() < MAX_REFUSED_TOOLS => {
                        self.refused_tools.borrow_mut().insert(name.to_owned());
                        let message = format!("{name} is left out from now on: {}", error.message);
                        LlmError { message, ..error }
                    }
                    _ if self.encode(&sent)? != self.encode(&Request { schema: None, ..sent })? => {
                        self.refuses_schemas.set(true);
                        error
                    }
                    _ => return Err(error),
                };
                progress(Progress::Retry {
                    attempt: 1,
                    retry: 1,
                    max_retries: 1,
                    discarded: false,
                    delay: Duration::ZERO,
                    error: &error,
                });
            }
        }
        .boxed_local()
    }
}

impl RemoteModel {
    /// Returns the tools without those that the server has refused.
    fn accepted_tools<'a>(&self, tools: &'a [ToolDefinition]) -> Cow<'a, [ToolDefinition]> {
        let refused = self.refused_tools.borrow();
        if refused.is_empty() {
            return Cow::Borrowed(tools);
        }
        tools.iter().filter(|tool| !refused.contains(&tool.name)).cloned().collect()
    }

    /// Sends the request, with retries. An answer that is streamed only because the server requires it is shown when complete.
    async fn complete_with_retries(
        &self,
        request: &Request<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        let sent = &Request { stream: request.stream || self.stream_only, ..*request };
        let payload = RequestBody::from(self.encode(sent)?);
        let deadlines = self.endpoint.deadlines(self.delivery(sent.stream));
        let attempts = RetryPolicy {
            retries: self.retries,
            max_retry_after: self.max_retry_after,
            first_byte: deadlines.first_byte,
            total: deadlines.whole,
            source: &self.source,
        };
        attempts.run(request, progress, async |show| self.attempt(&payload, sent, show).await).await
    }

    /// Returns how the answer arrives: without streaming, a thinking model sends nothing until it is done.
    fn delivery(&self, streamed: bool) -> Delivery {
        if streamed {
            return Delivery::Streamed;
        }
        let ModelParameters { model, thinking, .. } = &self.parameters;
        // The embedded table is well-formed, which a test checks.
        Delivery::Whole { thinks: thinks(model, *thinking).unwrap_or(true) }
    }

    fn encode(&self, request: &Request<'_>) -> Result<Vec<u8>, LlmError> {
        let images = request.images.filter(|_| !self.parameters.is_text_only);
        let request = Request { images, ..*request };
        let mut history = self.history.borrow_mut();
        let messages = history.encode_messages(request.messages, images, self.codec.as_ref());
        messages.and_then(|messages| self.codec.encode(&request, &self.parameters, messages)).map_err(
            |error| LlmError::new(FailureKind::Internal, format!("the request has no JSON form: {error}")),
        )
    }

    async fn attempt(
        &self,
        payload: &RequestBody,
        request: &Request<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        let path = self.address.path(self.codec.as_ref(), &self.parameters.model, request.stream);
        let reply = self.endpoint.post(&path, payload, self.delivery(request.stream)).await;
        let reply = reply.map_err(|error| self.transport_error(&error))?;
        self.has_answered.set(true);
        if !(200..300).contains(&reply.status()) {
            return Err(self.status_error(reply).await);
        }
        let mut answer = ResponseBuilder::new(self.codec.name(), !request.tools.is_empty(), show)
            .with_partial(request.partial);
        if self.codec.accepts_tagged_calls() {
            answer = answer.with_tagged_calls(TaggedCallParser::new(request.tools));
        }
        let received = self.receive(reply, request.stream, &mut answer).await;
        received.map_err(|error| self.with_host(stream_error(&answer, error)))?;
        let context = FinishContext {
            is_offered: &|name| request.tools.iter().any(|tool| tool.name == name),
            is_echo: &|calls| is_echoed(calls, request.messages),
            is_structured_answer: &|text| request.is_structured_answer(text),
            // The strictest servers (Mistral) require nine letters and digits.
            new_id: &|| nine_character_id(&self.source.short_id()).into_owned(),
        };
        answer.finish(&context).map_err(|error| self.with_host(error))
    }

    /// Reads the body into `answer`, until the body or the answer ends.
    async fn receive(
        &self,
        mut reply: HttpResponse,
        streamed: bool,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        let mut reader = ResponseReader::new(self.codec.as_ref(), streamed);
        loop {
            let chunk = match reply.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                Err(HttpError::Broken(_) | HttpError::Timeout(..)) if reader.is_whole(answer) => break,
                Err(error) => return Err(self.transport_error(&error)),
            };
            match reader.push(chunk.as_ref(), answer)? {
                Arrival::Partial => {}
                Arrival::KeepAlive => reply.kept_alive(),
                Arrival::Event => reply.event_received(),
            }
            if answer.is_complete() {
                reply.drain().await;
                return Ok(());
            }
        }
        reader.finish(answer)
    }

    /// Returns the error for an answer with an error status.
    async fn status_error(&self, reply: HttpResponse) -> LlmError {
        let status = reply.status();
        let line = reply.status_line();
        let advice = RetryAdvice::from_headers(&|name| reply.header(name), self.source.unix_time());
        let error = self.codec.status_error(status, &reply.error_body().await);
        let detail = if error.message.is_empty() { String::new() } else { format!(": {}", error.message) };
        let advise = match (error.kind, status) {
            (FailureKind::Auth, _) => format!("; {}", self.key.advice),
            (FailureKind::Quota, _) => {
                "; the account has no credit or quota left, waiting does not help".into()
            }
            (FailureKind::ContextOverflow, _) => {
                "; the conversation is longer than the model's window".into()
            }
            _ if is_output_limit_error(&error.message) => {
                "; the requested answer is too long: lower llm.max_output_tokens".into()
            }
            _ if error.message.contains(RESPONSES_ONLY_PHRASE) => {
                format!("; use --model openai-responses/{}", self.parameters.model)
            }
            (_, 404) => format!("; check the model name `{}` and the API base", self.parameters.model),
            _ => String::new(),
        };
        let message = self.without_key(&format!("{} answered {line}{detail}{advise}", self.endpoint.host()));
        advice.apply_to(LlmError { message, ..error })
    }

    /// Returns the error for a failed exchange.
    fn transport_error(&self, error: &HttpError) -> LlmError {
        let kind = match error {
            HttpError::Address(_) | HttpError::Key | HttpError::Setup(_) => FailureKind::Config,
            HttpError::Connect(_) | HttpError::Tls(_) | HttpError::Broken(_) => FailureKind::Network,
            HttpError::Timeout(..) => FailureKind::Timeout,
            HttpError::Redirect(_) => FailureKind::Request,
            HttpError::TooLarge(_) => FailureKind::Malformed,
        };
        let advise = match error {
            HttpError::Connect(_) if self.endpoint.is_loopback() => {
                "; is the server running? Start it, or name another with --api-base"
            }
            HttpError::Connect(_) => "; check the network, the proxy variables and --api-base",
            HttpError::Tls(_) => "; a private certificate authority can be named in SSL_CERT_FILE",
            _ => "",
        };
        let retryable = match error {
            HttpError::Tls(_) | HttpError::TooLarge(_) => false,
            // A server on this machine that is not there twice does not start by itself; one that was there comes back.
            HttpError::Connect(_) if self.endpoint.is_loopback() => {
                !self.was_refused.replace(true) || self.has_answered.get()
            }
            _ => true,
        };
        let before_answer = matches!(error, HttpError::Timeout(Deadline::FirstByte, _));
        let error = LlmError::new(kind, format!("{}: {error}{advise}", self.endpoint.host()));
        LlmError { retryable: error.retryable && retryable, before_answer, ..error }
    }

    /// Adds the server's host to an error of the answer.
    fn with_host(&self, error: LlmError) -> LlmError {
        let host = self.endpoint.host();
        if error.message.starts_with(&host) {
            return error;
        }
        LlmError { message: self.without_key(&format!("{host}: {}", error.message)), ..error }
    }

    /// Redacts the key, which a server may repeat in its refusal.
    fn without_key(&self, message: &str) -> String {
        match &self.key.secret {
            Some(secret) if secret.expose().len() >= MIN_REDACTED_KEY_BYTES => {
                message.replace(secret.expose(), "[secret]")
            }
            _ => message.to_owned(),
        }
    }
}

/// Returns the tool of an MCP server that an error message names, by its name (`OpenAI`) or its position in the request (Anthropic, Gemini).
fn refused_tool<'a>(message: &str, tools: &'a [ToolDefinition]) -> Option<&'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut words = message.split(|c: char| !is_part(c));
    let named = words.find_map(|word| tools.iter().find(|tool| tool.name == word));
    let at = |list: &&str| {
        let rest = message.split_once(*list)?.1;
        tools.get(rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()?)
    };
    let tool = named.or_else(|| TOOL_LISTS.iter().find_map(at))?;
    Some(tool.name.as_str()).filter(|name| name.starts_with(MCP_PREFIX))
}

/// Returns the error that ended `answer`. An answer that has started may be billed, so a later overload error of the server is
/// not treated as a rejected request.
fn stream_error(answer: &ResponseBuilder<'_>, error: LlmError) -> LlmError {
    match error.kind {
        FailureKind::RateLimit | FailureKind::Overloaded if !answer.is_empty() => {
            LlmError { kind: FailureKind::Server, ..error }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Fault A8: the answer 400 to one tool ended the run for all of them.
    #[test]
    fn the_tool_that_a_server_refuses_is_found_by_its_name_or_its_position() {
        let tool = |name: &str| ToolDefinition {
            name: name.into(),
            description: "".into(),
            parameters: json!({}).into(),
        };
        let tools = ["grep", "mcp__s__a", "mcp__s__ab"].map(tool);
        for (message, expected) in [
            ("h answered 400: Invalid schema for function 'mcp__s__ab': In context=()", Some("mcp__s__ab")),
            ("h answered 400: tools.1.custom.input_schema: JSON schema is invalid", Some("mcp__s__a")),
            ("* GenerateContentRequest.tools[0].function_declarations[2].parameters: x", Some("mcp__s__ab")),
            ("Invalid 'tools[1].function.parameters'", Some("mcp__s__a")),
            ("tools.0.custom.input_schema: x", None),
            ("Invalid schema for function 'grep'", None),
            ("tools.17: x", None),
            ("tools: too many", None),
            ("Invalid schema for function 'mcp__s__abc'", None),
        ] {
            assert_eq!(refused_tool(message, &tools), expected, "{message}");
        }
    }
}
