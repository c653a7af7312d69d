//! Client for the scripted model: its turns pass through the real codec and the real retries.

use super::{Fault, RequestView, Script, ScriptError, ScriptedError, Turn, render};
use crate::echoed_call::is_echoed;
use crate::provider_error::ProviderError;
use crate::quirks::Quirks;
use crate::response_builder::{FinishContext, ResponseBuilder};
use crate::retry::DEFAULT_MAX_RETRY_AFTER;
use crate::retry_policy::RetryPolicy;
use crate::wire_format::WireFormat;
use crate::{LlmClient, LlmError, Progress, Request, Response};
use agent_core::failure::FailureKind;
use agent_core::message::{Part, Role};
use agent_runtime::clock::Clock;
use futures_util::future::{FutureExt, LocalBoxFuture, pending};
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// The wire format used between script and codec.
const FORMAT: WireFormat = WireFormat::ChatCompletions;

/// Plays a [`Script`], one turn per request of the session; a repeated request takes the next turn.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    script: Script,
    next: Cell<usize>,
    /// Whether the model accepts images.
    accepts_images: bool,
    retries: u32,
    max_retry_after: Duration,
    source: Rc<Clock>,
}

impl ScriptedModel {
    /// Creates a model that plays `script`.
    pub fn new(name: impl Into<String>, script: Script, retries: u32, source: Rc<Clock>) -> Self {
        let max_retry_after = DEFAULT_MAX_RETRY_AFTER;
        Self {
            name: name.into(),
            script,
            next: Cell::new(0),
            accepts_images: true,
            retries,
            max_retry_after,
            source,
        }
    }

    /// Creates a model that plays the script in a file.
    ///
    /// # Errors
    /// When the file is not a valid script.
    pub fn open(
        path: &Path,
        retries: u32,
        max_retry_after: Duration,
        source: Rc<Clock>,
    ) -> Result<Self, ScriptError> {
        let name = format!("scripted:{}", path.display());
        Ok(Self { max_retry_after, ..Self::new(name, Script::open(path)?, retries, source) })
    }

    /// Sets whether the model accepts images.
    #[must_use]
    pub fn with_images(self, accepts_images: bool) -> Self {
        Self { accepts_images, ..self }
    }

    /// Continues the script after the first `count` turns, which the session has played before.
    #[must_use]
    pub fn with_played_turns(self, count: usize) -> Self {
        Self { next: Cell::new(count), ..self }
    }

    async fn play(
        &self,
        request: &Request<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        let number = self.next.replace(self.next.get() + 1);
        let Some(turn) = self.script.turn(number) else {
            return Err(LlmError::new(FailureKind::Request, self.script.exhausted_message(number)));
        };
        if let Some(expect) = &turn.expect {
            expect.check(&request_view(request)).map_err(|why| {
                let message = format!("turn {} of the script expects another request: {why}", number + 1);
                LlmError::new(FailureKind::Request, message)
            })?;
        }
        pause(turn.delay_ms).await;
        if let Some(error) = &turn.error {
            return Err(scripted_error(error));
        }
        self.answer(&turn, number, request, show).await
    }

    async fn answer(
        &self,
        turn: &Turn,
        number: usize,
        request: &Request<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        let count = match &turn.fault {
            None => usize::MAX,
            Some(Fault::Cut(count) | Fault::Close(count) | Fault::Stall(count)) => *count,
            Some(Fault::Hang) => 0,
            Some(Fault::Reset) => {
                return Err(LlmError::new(FailureKind::Network, "the connection was reset"));
            }
            Some(Fault::Http(answer)) if answer.status >= 400 => {
                return Err(ProviderError::from_body(answer.body.as_bytes()).with_status(answer.status));
            }
            #[expect(clippy::panic, reason = "the script asks for it")]
            Some(Fault::Panic) => panic!("turn {} of the script panics", number + 1),
            Some(Fault::Http(_) | Fault::Raw(_)) => {
                let message = format!("turn {} of the script can only be played by a server", number + 1);
                return Err(LlmError::new(FailureKind::Malformed, message));
            }
        };
        let codec = FORMAT.codec(Quirks::default());
        let mut answer =
            ResponseBuilder::new(codec.name(), !request.tools.is_empty(), show).with_partial(request.partial);
        let mut decoder = codec.decoder();
        for event in render::events(FORMAT, turn, number).iter().take(count) {
            decoder.decode_event(event, &mut answer)?;
            if !answer.is_complete() {
                pause(turn.chunk_delay_ms).await;
            }
        }
        if matches!(turn.fault, Some(Fault::Hang | Fault::Stall(_))) {
            return pending().await;
        }
        let context = FinishContext {
            is_offered: &|name| request.tools.iter().any(|tool| tool.name == name),
            is_echo: &|calls| is_echoed(calls, request.messages),
            is_structured_answer: &|text| request.is_structured_answer(text),
            new_id: &|| self.source.short_id(),
        };
        answer.finish(&context)
    }
}

impl LlmClient for ScriptedModel {
    fn model(&self) -> &str {
        &self.name
    }

    fn accepts_images(&self) -> bool {
        self.accepts_images
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        let attempts = RetryPolicy {
            retries: self.retries,
            max_retry_after: self.max_retry_after,
            first_byte: Duration::MAX,
            total: Duration::MAX,
            source: &self.source,
        };
        async move { attempts.run(request, progress, async |show| self.play(request, show).await).await }
            .boxed_local()
    }
}

fn scripted_error(error: &ScriptedError) -> LlmError {
    let provider = ProviderError::from_value(&render::error_body(error));
    let status = render::status(error);
    let retry_after = error.retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let message = format!("the script answered {status}: {}", provider.message);
    LlmError { message, retry_after, ..provider.with_status(status) }
}

async fn pause(millis: u64) {
    if millis > 0 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

fn request_view<'a>(request: &'a Request<'_>) -> RequestView<'a> {
    let messages = request.messages.iter().flat_map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        message.parts.iter().filter_map(move |part| match part {
            Part::Text { text } => Some((role, text.as_str())),
            Part::ToolResult(result) => Some((role, result.text.as_str())),
            Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => None,
        })
    });
    RequestView { messages: messages.collect(), tools: !request.tools.is_empty(), stream: request.stream }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::FinishReason;
    use agent_core::message::Message;
    use std::sync::Arc;

    fn ask(yaml: &str, times: usize) -> Vec<Result<Response, LlmError>> {
        let model = ScriptedModel::new("s", Script::parse(yaml, "s").unwrap(), 2, Rc::new(Clock::new()));
        let messages = [Arc::new(Message::text(Role::User, "hello"))];
        let request = Request {
            messages: &messages,
            stream: true,
            deadline: Some(Duration::from_secs(20)),
            ..Request::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        (0..times).map(|_| runtime.block_on(model.complete(&request, &mut |_| {}))).collect()
    }

    #[test]
    fn a_script_plays_text_calls_and_usage_and_then_is_used_up() {
        let yaml = "turns:\n\
            - {text: hi, calls: [{name: read_file, arguments: {path: a}}], chunk: 1, usage: {input: 3, output: 2}}\n\
            - {text: bye, finish: length}";
        let answers = ask(yaml, 3);
        let first = answers[0].as_ref().unwrap();
        assert_eq!(first.message.joined_text(), "hi");
        let call = first.message.tool_calls().next().unwrap();
        assert_eq!((call.name.as_str(), call.arguments.as_str()), ("read_file", r#"{"path":"a"}"#));
        assert_eq!(first.usage.unwrap().prompt_tokens(), 3);
        assert_eq!(answers[1].as_ref().unwrap().finish, FinishReason::Length);
        let over = answers[2].as_ref().unwrap_err();
        assert!(over.message.contains("used up") && !over.retryable, "{over}");
    }

    #[test]
    fn errors_are_classified_and_repeated_like_a_servers() {
        let yaml = "turns:\n- error: {status: 429, retry_after: 0.001}\n- text: ok\n- error: {kind: auth}\n";
        let answers = ask(yaml, 2);
        assert_eq!(answers[0].as_ref().unwrap().message.joined_text(), "ok");
        assert_eq!(answers[1].as_ref().unwrap_err().kind, FailureKind::Auth);
    }

    #[test]
    fn an_unmet_expectation_names_the_turn() {
        let error = ask("turns:\n- {text: a, expect: {contains: [secret]}}", 1).remove(0).unwrap_err();
        assert!(error.message.contains("turn 1") && error.message.contains("secret"), "{error}");
    }
}
