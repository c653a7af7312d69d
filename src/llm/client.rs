//! The client of a Chat Completions server: codec, transport and retries put together.

use crate::failure::ErrorKind;
use crate::http::{Endpoint, HttpError, Payload, Reply};
use crate::llm::attempts::Attempts;
use crate::llm::chat_completions::answer::{Answer, Surroundings};
use crate::llm::chat_completions::history::History;
use crate::llm::chat_completions::request::{Parameters, encode};
use crate::llm::error_body::{ProviderError, excerpt};
use crate::llm::framing::SseDecoder;
use crate::llm::retry::Advice;
use crate::llm::{LlmClient, LlmError, Progress, Request, Response};
use crate::secret::Secret;
use crate::source::Source;
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::cell::RefCell;
use std::rc::Rc;

/// How many bytes of a body that is no event stream are kept for the message about it.
const EXCERPT_BYTES: usize = 512;

/// Where a key came from, for the message about a server that refuses it.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key, where there is one.
    pub secret: Option<Secret>,
    /// What to do when it is refused: which variable to check or to set.
    pub advice: String,
}

/// One model on one server.
#[derive(Debug)]
pub struct ChatClient {
    /// `provider/model`, as the result names it.
    pub name: String,
    /// Where requests go.
    pub endpoint: Endpoint,
    /// What every request says.
    pub parameters: Parameters,
    /// Who pays.
    pub key: Key,
    /// How many tries may follow the first.
    pub retries: u32,
    /// Time, jitter and ids.
    pub source: Rc<Source>,
    /// The conversation as it was last sent.
    pub history: RefCell<History>,
}

impl LlmClient for ChatClient {
    fn model(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        async move {
            let body = self.encode(request).map_err(|error| {
                LlmError::new(ErrorKind::Internal, format!("the request has no JSON form: {error}"))
            })?;
            let payload = Payload::from(body);
            let attempts =
                Attempts { retries: self.retries, whole: self.endpoint.whole(), source: &self.source };
            attempts.make(request, progress, async |show| self.attempt(&payload, request, show).await).await
        }
        .boxed_local()
    }
}

impl ChatClient {
    fn encode(&self, request: &Request<'_>) -> serde_json::Result<Vec<u8>> {
        let mut history = self.history.borrow_mut();
        encode(request, &self.parameters, history.json(request.messages, self.parameters.quirks)?)
    }

    async fn attempt(
        &self,
        payload: &Payload,
        request: &Request<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        let reply =
            self.endpoint.post(payload, request.stream).await.map_err(|error| self.unreachable(&error))?;
        if !(200..300).contains(&reply.status()) {
            return Err(self.refused(reply).await);
        }
        let mut answer = Answer::new(!request.tools.is_empty());
        self.receive(reply, &mut answer, show).await.map_err(|error| self.located(error))?;
        let surroundings = Surroundings {
            offered: &|name| request.tools.iter().any(|tool| tool.name == name),
            taken: &|id| {
                request.messages.iter().flat_map(|message| message.tool_calls()).any(|call| call.id == id)
            },
            new_id: &|| call_id(&self.source),
        };
        answer.finish(&surroundings, show).map_err(|error| self.located(error))
    }

    /// Reads the body into `answer`: an event stream or one JSON document, whichever the first byte announces.
    async fn receive(
        &self,
        mut reply: Reply,
        answer: &mut Answer,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        let mut beginning = Vec::new();
        let mut any_event = false;
        loop {
            let chunk = reply.chunk().await.map_err(|error| self.unreachable(&error))?;
            let Some(chunk) = chunk else { break };
            if beginning.len() < EXCERPT_BYTES {
                beginning.extend_from_slice(chunk.as_ref());
                if !any_event && is_document(&beginning) {
                    return self.receive_document(reply, beginning, answer, show).await;
                }
            }
            decoder.push(chunk.as_ref(), &mut events).map_err(|error| malformed(&error.to_string()))?;
            for event in events.drain(..) {
                any_event = true;
                answer.event(&event, show)?;
            }
            if answer.is_done() {
                reply.drain().await;
                return Ok(());
            }
        }
        decoder.finish(&mut events).map_err(|error| malformed(&error.to_string()))?;
        for event in events.drain(..) {
            any_event = true;
            answer.event(&event, show)?;
        }
        if !any_event && !is_event_stream(&beginning) {
            let said = excerpt(&beginning);
            return Err(malformed(&format!("the server answered with text instead of an answer: `{said}`")));
        }
        Ok(())
    }

    async fn receive_document(
        &self,
        mut reply: Reply,
        mut body: Vec<u8>,
        answer: &mut Answer,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        while let Some(chunk) = reply.chunk().await.map_err(|error| self.unreachable(&error))? {
            body.extend_from_slice(chunk.as_ref());
        }
        answer.body(&body, show)
    }

    /// The error of an answer whose status is none of success.
    async fn refused(&self, reply: Reply) -> LlmError {
        let status = reply.status();
        let line = reply.status_line();
        let advice = Advice::from_headers(&|name| reply.header(name), self.source.wall());
        let provider = ProviderError::from_body(&reply.error_body().await);
        let (kind, retryable) = provider.classify(status);
        let said =
            if provider.message.is_empty() { String::new() } else { format!(": {}", provider.message) };
        let advise = match (kind, status) {
            (ErrorKind::Auth, _) => format!("; {}", self.key.advice),
            (ErrorKind::Quota, _) => {
                "; the account has no credit or quota left, waiting does not help".into()
            }
            (ErrorKind::ContextOverflow, _) => "; the conversation is longer than the model's window".into(),
            (_, 404) => format!("; check the model name `{}` and the API base", self.parameters.model),
            _ => String::new(),
        };
        let message = self.without_key(&format!("{} answered {line}{said}{advise}", self.endpoint.host()));
        advice.applied(LlmError { retryable, ..LlmError::new(kind, message) })
    }

    /// The error of an exchange that did not work.
    fn unreachable(&self, error: &HttpError) -> LlmError {
        let kind = match error {
            HttpError::Address(_) | HttpError::Setup(_) => ErrorKind::Config,
            HttpError::Connect(_) | HttpError::Tls(_) | HttpError::Broken(_) => ErrorKind::Network,
            HttpError::Timeout(..) => ErrorKind::Timeout,
            HttpError::Redirect(_) => ErrorKind::Request,
            HttpError::TooLarge => ErrorKind::Malformed,
        };
        let advise = match error {
            HttpError::Connect(_) if self.endpoint.is_loopback() => {
                "; is the server running? Start it, or name another with --api-base"
            }
            HttpError::Connect(_) => "; check the network, the proxy variables and --api-base",
            HttpError::Tls(_) => "; a private certificate authority can be named in SSL_CERT_FILE",
            _ => "",
        };
        let retryable = !matches!(error, HttpError::Tls(_));
        let error = LlmError::new(kind, format!("{}: {error}{advise}", self.endpoint.host()));
        LlmError { retryable: error.retryable && retryable, ..error }
    }

    /// Says which server an error of the answer came from.
    fn located(&self, error: LlmError) -> LlmError {
        let host = self.endpoint.host();
        if error.message.starts_with(&host) {
            return error;
        }
        LlmError { message: self.without_key(&format!("{host}: {}", error.message)), ..error }
    }

    /// A server may repeat the key it refuses.
    fn without_key(&self, message: &str) -> String {
        match &self.key.secret {
            Some(secret) if !secret.expose().is_empty() => message.replace(secret.expose(), "[secret]"),
            _ => message.to_owned(),
        }
    }
}

/// Nine alphanumeric characters, which is what the strictest servers (Mistral) accept.
fn call_id(source: &Source) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut number = source.random();
    (0..9)
        .map(|_| {
            let digit = usize::try_from(number % 36).unwrap_or(0);
            number /= 36;
            DIGITS.get(digit).copied().map_or('0', char::from)
        })
        .collect()
}

/// Whether a body is one JSON document or a web page rather than an event stream.
fn is_document(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).trim_ascii_start();
    matches!(body.first(), Some(b'{' | b'[' | b'<'))
}

/// Whether a body without any event is at least made of an event stream's lines.
fn is_event_stream(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    let fields: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];
    body.is_empty() || fields.iter().any(|field| body.starts_with(field))
}

fn malformed(message: &str) -> LlmError {
    LlmError::new(ErrorKind::Malformed, message)
}
