//! Reads why a model stopped, by the names of all wire formats: gateways pass on the name of another format, in any case.

use crate::LlmError;
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;

/// Reads the finish reason `name`, with the provider's explanation as a suffix for messages (`detail`, may be empty). Returns `None` for
/// an unspecified reason. An unknown one is [`FinishReason::Other`].
///
/// # Errors
/// When the server could not finish the answer, or the answer is unusable; a retry may succeed.
pub fn read(name: &str, detail: &str) -> Result<Option<FinishReason>, LlmError> {
    let failed = |kind, what: &str| Err(LlmError::new(kind, format!("{what}: `{name}`{detail}")));
    Ok(Some(match name.to_ascii_lowercase().as_str() {
        "" | "finish_reason_unspecified" => return Ok(None),
        "stop" | "end_turn" | "eos" | "stop_sequence" => FinishReason::Stop,
        "tool_calls" | "function_call" | "tool_use" => FinishReason::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => FinishReason::Length,
        "model_context_window_exceeded" => FinishReason::WindowFull,
        "pause_turn" | "continuation" => FinishReason::Paused,
        "content_filter" | "sensitive" => FinishReason::ContentFilter,
        "refusal" => FinishReason::Refusal,
        "safety"
        | "recitation"
        | "language"
        | "blocklist"
        | "prohibited_content"
        | "spii"
        | "model_armor"
        | "image_safety"
        | "image_recitation"
        | "image_prohibited_content" => FinishReason::Filtered(format!("{name}{detail}")),
        "error" | "abort" | "aborted" | "network_error" | "insufficient_system_resource" => {
            return failed(FailureKind::Server, "the server stopped the answer");
        }
        // The model's calls are unusable; another attempt may be better.
        "malformed_function_call" | "malformed_response" | "unexpected_tool_call" | "too_many_tool_calls" => {
            return failed(FailureKind::ToolUseFailed, "the model's answer is unusable");
        }
        "missing_thought_signature" => {
            let what =
                "a signature of an earlier thought is missing, which a gateway in between may have dropped";
            return failed(FailureKind::Request, what);
        }
        // Gemini's `OTHER` gives no details; `NO_IMAGE` and `IMAGE_OTHER` do not occur in text answers.
        _ => FinishReason::Other(format!("{name}{detail}")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault A12: gateways change the case of a finish reason, or pass on that of another format.
    #[test]
    fn the_name_of_a_finish_reason_is_read_in_any_case() {
        for (names, expected) in [
            (["STOP", "Stop", "End_Turn", "EOS"], FinishReason::Stop),
            (["TOOL_CALLS", "Function_Call", "TOOL_USE", "Tool_Calls"], FinishReason::ToolCalls),
            (["MAX_TOKENS", "Length", "MAX_OUTPUT_TOKENS", "Model_Length"], FinishReason::Length),
            (["CONTENT_FILTER", "Sensitive", "SENSITIVE", "Content_Filter"], FinishReason::ContentFilter),
            (["Pause_Turn", "CONTINUATION", "continuation", "PAUSE_TURN"], FinishReason::Paused),
        ] {
            for name in names {
                assert_eq!(read(name, ""), Ok(Some(expected.clone())), "{name}");
            }
        }
        assert_eq!(read("Refusal", ""), Ok(Some(FinishReason::Refusal)));
        assert_eq!(read("MODEL_CONTEXT_WINDOW_EXCEEDED", ""), Ok(Some(FinishReason::WindowFull)),);
        let filtered = FinishReason::Filtered("Safety (why)".into());
        assert_eq!(read("Safety", " (why)"), Ok(Some(filtered)));
        assert_eq!(read("finish_reason_unspecified", ""), Ok(None));
        assert_eq!(read("ERROR", "").unwrap_err().kind, FailureKind::Server);
        assert_eq!(read("Malformed_Function_Call", "").unwrap_err().kind, FailureKind::ToolUseFailed);
    }

    #[test]
    fn an_unknown_finish_reason_stays_as_the_server_wrote_it() {
        for name in ["STOPPED", "stop ", "Weird", "OTHER"] {
            assert_eq!(read(name, ""), Ok(Some(FinishReason::Other(name.into()))));
        }
    }
}
