//! Decodes Ollama's lines, or a whole body, into an answer.

use crate::call_assembler::CallDelta;
use crate::codec::Decoder;
use crate::provider_error::{ProviderError, unexpected_format};
use crate::response_builder::ResponseBuilder;
use crate::{LlmError, finish_reason};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::usage::Usage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Slots of the message parts; they give their order, in whatever order the server sends them.
const THINKING: u64 = 0;
const TEXT: u64 = 1;
const CALLS: u64 = 2;

/// Ollama's error if a model with its window does not fit into memory: "model requires more system memory (5.0 GiB) than is
/// available (3.9 GiB)", with status 500.
const NO_MEMORY: &str = "requires more system memory";

/// Decodes lines. It counts calls, because they arrive whole, with the same index or none.
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
    /// Id of the call; older servers send none.
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow)]
    function: WireFunction<'a>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    name: String,
    /// Raw arguments; parsing would change numbers and the order of keys.
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
}

impl Decoder for LineDecoder {
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.decode_body(data.as_bytes(), answer)
    }

    /// Reads a whole body, which may also consist of lines: some gateways stream every answer.
    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
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
            self.apply_line(line, answer)?;
            if answer.is_complete() {
                break;
            }
        }
        Ok(())
    }
}

impl LineDecoder {
    fn apply_line(&mut self, line: Line<'_>, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        if !line.error.is_null() {
            return Err(error(&line.error).to_stream_error());
        }
        if let Some(message) = line.message {
            answer.push_thinking(THINKING, message.thinking.as_deref().unwrap_or_default())?;
            answer.push_text(TEXT, message.content.as_deref().unwrap_or_default())?;
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

    fn call(&mut self, call: &WireCall<'_>, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let written = call.function.arguments.map_or("", RawValue::get);
        // Arguments that are not JSON can only arrive as a string.
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

/// Stores the finish reason; older servers send none.
fn record_done_reason(reason: &Value, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    let reason = match reason {
        Value::Null => None,
        Value::String(reason) if matches!(reason.as_str(), "load" | "unload") => {
            let message = format!("the server {reason}ed the model without an answer");
            return Err(LlmError::new(FailureKind::EmptyAnswer, message));
        }
        Value::String(reason) => finish_reason::read(reason, "")?,
        odd => Some(FinishReason::Other(odd.to_string())),
    };
    if let Some(reason) = reason {
        answer.set_finish_reason(reason);
    }
    Ok(())
}

/// Returns the token counts that the server reported. A server may omit a prompt that it had read before; it does not
/// report cached tokens and reasoning separately.
fn usage(prompt: &Value, output: &Value) -> Option<Usage> {
    let (prompt, output) = (prompt.as_u64(), output.as_u64());
    (prompt.is_some() || output.is_some()).then(|| Usage {
        input: prompt.unwrap_or(0),
        output: output.unwrap_or(0),
        ..Usage::default()
    })
}

/// Returns the error for an answer with an error status. A lack of memory is not retried: the window that we chose will not
/// fit later either.
pub fn status_error(status: u16, body: &[u8]) -> LlmError {
    let reported = match serde_json::from_slice::<Value>(body) {
        Ok(value) if value.get("error").is_some_and(Value::is_string) => error(&value["error"]),
        _ => ProviderError::from_body(body),
    };
    let refused = reported.with_status(status);
    if !refused.message.contains(NO_MEMORY) {
        return refused;
    }
    let message =
        format!("{}; a smaller model, or PARAMETER num_ctx in a Modelfile, needs less", refused.message);
    LlmError { message, retryable: false, ..refused }
}

/// Reads the error, which is a text or the JSON of the process behind the server.
fn error(value: &Value) -> ProviderError {
    match value.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(inner @ Value::Object(_))) => ProviderError::from_value(&inner),
        _ => ProviderError::from_value(value),
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
