//! Ollama's lines, or a whole body, into an answer.

use crate::core::event::FinishReason;
use crate::core::failure::FailureKind;
use crate::core::usage::Usage;
use crate::llm::call_assembler::CallDelta;
use crate::llm::codec::Decoder;
use crate::llm::provider_error::{ProviderError, unexpected_format};
use crate::llm::response_builder::ResponseBuilder;
use crate::llm::{LlmError, Progress};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Where the parts of a message stand, however a server mixes them.
const THINKING: u64 = 0;
const TEXT: u64 = 1;
const CALLS: u64 = 2;

/// How Ollama says that a model with its window does not fit: "model requires more system memory (5.0 GiB) than is
/// available (3.9 GiB)", with status 500.
const NO_MEMORY: &str = "requires more system memory";

/// Reads lines; it only counts calls, which come whole, with the same index or none.
#[derive(Debug, Default)]
pub struct LineDecoder {
    calls: u64,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default, borrow)]
    message: Option<WireMessage<'a>>,
    #[serde(default)]
    done: Option<bool>,
    #[serde(default)]
    done_reason: Value,
    #[serde(default)]
    prompt_eval_count: Value,
    #[serde(default)]
    eval_count: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default, borrow)]
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    /// Newer servers name their calls.
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow)]
    function: WireFunction<'a>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    name: String,
    /// As the server wrote them, because numbers and the order of keys would not survive reading.
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl Decoder for LineDecoder {
    fn decode_event(
        &mut self,
        data: &str,
        answer: &mut ResponseBuilder,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        self.decode_body(data.as_bytes(), answer, show)
    }

    /// A body may hold lines as well: some servers in between stream whatever they are asked.
    fn decode_body(
        &mut self,
        body: &[u8],
        answer: &mut ResponseBuilder,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        let wrong = |why: &str| unexpected_format("Ollama", body, why);
        for line in serde_json::Deserializer::from_slice(body).into_iter() {
            let line: Line<'_> = line.map_err(|error| {
                if error.is_eof() {
                    return LlmError::new(FailureKind::CutStream, "the answer ended in the middle of a line");
                }
                wrong(&error.to_string())
            })?;
            if line.message.is_none() && line.done.is_none() && line.error.is_null() {
                return Err(wrong("it has neither `message` nor `done`"));
            }
            self.apply_line(line, answer, show)?;
            if answer.is_complete() {
                break;
            }
        }
        Ok(())
    }
}

impl LineDecoder {
    fn apply_line(
        &mut self,
        line: Line<'_>,
        answer: &mut ResponseBuilder,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        if !line.error.is_null() {
            return Err(error(&line.error).to_stream_error());
        }
        if let Some(message) = line.message {
            answer.push_thinking(THINKING, message.thinking.as_deref().unwrap_or_default(), show)?;
            answer.push_text(TEXT, message.content.as_deref().unwrap_or_default(), show)?;
            for call in message.tool_calls.into_iter().flatten() {
                self.call(&call, answer)?;
            }
        }
        if line.done == Some(true) {
            if let Some(usage) = usage(&line.prompt_eval_count, &line.eval_count) {
                answer.set_usage(usage);
            }
            record_done_reason(&line.done_reason, answer)?;
            answer.mark_complete();
        }
        Ok(())
    }

    fn call(&mut self, call: &WireCall<'_>, answer: &mut ResponseBuilder) -> Result<(), LlmError> {
        let written = call.function.arguments.map_or("", RawValue::get);
        // Arguments that are no JSON can only come as text.
        let arguments = serde_json::from_str(written).map_or(Cow::Borrowed(written), Cow::<str>::Owned);
        let delta = CallDelta {
            index: Some(self.calls),
            id: call.id.as_deref().unwrap_or_default(),
            name: &call.function.name,
            arguments: &arguments,
            extra: Value::Null,
        };
        self.calls += 1;
        answer.push_call(CALLS, delta)
    }
}

/// Notes why the model stopped; older servers do not say.
fn record_done_reason(reason: &Value, answer: &mut ResponseBuilder) -> Result<(), LlmError> {
    match reason {
        Value::Null => {}
        Value::String(reason) => match reason.as_str() {
            "" => {}
            "stop" => answer.set_finish_reason(FinishReason::Stop),
            "length" => answer.set_finish_reason(FinishReason::Length),
            "load" | "unload" => {
                let message = format!("the server {reason}ed the model and did not let it answer");
                return Err(LlmError::new(FailureKind::EmptyAnswer, message));
            }
            other => answer.set_finish_reason(FinishReason::Other(other.to_owned())),
        },
        odd => answer.set_finish_reason(FinishReason::Other(odd.to_string())),
    }
    Ok(())
}

/// The tokens as far as they are said. A server may leave out a prompt that it had read before; what came from its
/// cache and what was reasoning it does not tell apart.
fn usage(prompt: &Value, output: &Value) -> Option<Usage> {
    let (prompt, output) = (prompt.as_u64(), output.as_u64());
    (prompt.is_some() || output.is_some()).then(|| Usage {
        input: prompt.unwrap_or(0),
        output: output.unwrap_or(0),
        ..Usage::default()
    })
}

/// The error of an answer whose status is none of success. Memory that the window, which we chose, takes up does not
/// come back by waiting.
pub fn status_error(status: u16, body: &[u8]) -> LlmError {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.get("error").is_some_and(Value::is_string) => error(&value["error"]),
        _ => ProviderError::from_body(body),
    };
    let refused = said.with_status(status);
    if !refused.message.contains(NO_MEMORY) {
        return refused;
    }
    let message =
        format!("{}; a smaller model, or PARAMETER num_ctx in a Modelfile, needs less", refused.message);
    LlmError { message, retryable: false, ..refused }
}

/// The error is a text, which may be the JSON that the process behind the server wrote.
fn error(value: &Value) -> ProviderError {
    match value.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(inner @ Value::Object(_))) => ProviderError::from_value(&inner),
        _ => ProviderError::from_value(value),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
