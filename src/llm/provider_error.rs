//! Classifies a provider's error by status and body, and extracts one readable line from it.

use crate::LlmError;
use agent_core::failure::FailureKind;
use agent_text::invisible::needs_escape;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Limit on a provider's message that is shown, in characters.
const MESSAGE_CAP: usize = 300;
/// Limit on an excerpt of an unexpected answer, in characters.
const EXCERPT_CAP: usize = 120;

/// Limit on a parser's error message that is shown, in characters.
const WHY_CAP: usize = 240;

/// Error codes that mean that credit or quota is used up (`OpenAI`, Z.ai, `DeepSeek`).
const QUOTA_CODES: [&str; 7] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "1308",
    "1113",
    "insufficient_balance",
    "billing_error",
];

/// Lower-case phrases by which Anthropic reports missing credit with status 400.
const QUOTA_PHRASES: [&str; 2] = ["credit balance is too low", "reached your specified api usage limits"];

/// Error codes by which servers report that a content filter refused the prompt or the answer: Azure, `OpenAI`, `DashScope`, Z.ai.
const REFUSAL_CODES: [&str; 4] =
    ["content_filter", "content_policy_violation", "data_inspection_failed", "1301"];

/// Lower-case phrases for the same refusals under other error codes: Azure, Anthropic, `OpenAI`, `DashScope`, `DeepSeek`
/// and, with status 403, `OpenRouter`.
const REFUSAL_PHRASES: [&str; 7] = [
    "content management policy",
    "blocked by content filtering policy",
    "violating our usage policy",
    "inappropriate content",
    "content exists risk",
    "requires moderation",
    "input was flagged",
];

/// Statuses for errors inside a stream, which have none, by their code or type.
const STREAM_STATUSES: [(u16, &[&str]); 10] = [
    (429, &["rate_limit_exceeded", "rate_limit_error", "rate_limit"]),
    (503, &["overloaded_error", "overloaded", "server_is_overloaded", "slow_down"]),
    (401, &["authentication_error", "invalid_api_key"]),
    (403, &["permission_error"]),
    (402, &["billing_error"]),
    (404, &["not_found_error"]),
    (413, &["request_too_large"]),
    (408, &["timeout_error"]),
    (409, &["conflict_error"]),
    (400, &["invalid_request_error", "invalid_prompt"]),
];

/// Lower-case phrases by which xAI and Gemini report a wrong key with status 400, also through gateways.
const KEY_PHRASES: [&str; 3] = ["incorrect api key", "invalid api key", "api key not valid"];

/// Lower-case phrases by which servers report that a prompt is too long; the last ones are from xAI, Groq and Cerebras,
/// Moonshot, Z.ai, `DashScope`, Copilot, TGI and Perplexity.
const OVERFLOW_PHRASES: [&str; 20] = [
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "prompt is too long",
    "input is too long",
    "input token count",
    "exceed context limit",
    "context_window_exceeded",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeded model token limit",
    "prompt exceeds max length",
    "range of input length",
    "prompt token count",
    "tokens + `max_new_tokens` must be",
    "too_many_prompt_tokens",
    "total length of all messages is too long",
];

/// Field names of the output limit, and phrases by which servers report that it is too large, in lower case and without quotes.
const OUTPUT_NAMES: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
const TOO_LARGE: [&str; 3] = ["is too large", "must be at most", "must be less than"];

/// The same in the wording of Anthropic, `DeepSeek` and `DashScope`.
const OUTPUT_PHRASES: [&str; 2] = ["maximum allowed number of output tokens", "range of max_tokens"];

/// Lower-case text after the length of a prompt, in errors that report it together with the window (vLLM, `OpenAI`,
/// `OpenRouter`).
const AFTER_PROMPT: [&str; 3] = [" input tokens", " in the messages", " of text input"];

/// Room that a useful answer needs: at most this many tokens, and at most this fraction (1/n) of the window.
const USEFUL_ANSWER: (u64, u64) = (1024, 8);

/// Lower-case phrases of errors with status 500 that are caused by the request or the server's setup: llama.cpp
/// without `--jinja`, templates that refuse a conversation, and schemas that cannot be converted to a grammar, also in
/// Ollama (<https://github.com/ollama/ollama/issues/8185>).
const SETUP_PHRASES: [&str; 7] = [
    "requires --jinja",
    "unsupported param: tools",
    "jinja exception",
    "cannot pass both content and thinking",
    "invalid json schema in format",
    "schema conversion failed",
    "failed to parse grammar",
];

/// Groq's error code for a tool call that did not parse; a proxy includes it in its own message.
const TOOL_USE_FAILED: &str = "tool_use_failed";

/// A provider's error, from a body or from the middle of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// The provider's message: one line without control characters; may be empty.
    pub message: String,
    /// `code` and `type` in lower case, if present.
    codes: Vec<String>,
}

impl ProviderError {
    /// Reads the body of an error answer: JSON in one of the usual shapes, or the first line of anything else.
    pub fn from_body(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Array(mut list)) if !list.is_empty() => Self::from_value(&list.swap_remove(0)),
            Ok(value) => Self::from_value(&value),
            Err(_) => Self { message: excerpt(body), codes: Vec::new() },
        }
    }

    /// Reads an error object, or the object that contains it as `error`.
    pub fn from_value(value: &Value) -> Self {
        let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let message = match inner {
            Value::String(text) => text.clone(),
            _ => ["message", "detail", "msg"]
                .iter()
                .find_map(|key| inner.get(*key).or_else(|| value.get(*key)))
                .map_or_else(
                    || inner.to_string(),
                    |found| found.as_str().map_or_else(|| found.to_string(), str::to_owned),
                ),
        };
        let codes = ["code", "type", "status"].iter().filter_map(|key| code(inner.get(*key)?)).collect();
        let mut message = one_line(&message, MESSAGE_CAP);
        if let Some(generation) = inner.get("failed_generation").and_then(Value::as_str) {
            message.extend([" (the model wrote `", &one_line(generation, EXCERPT_CAP), "`)"]);
        }
        Self { message, codes }
    }

    /// Returns the class of an error with this HTTP status.
    pub fn classify(&self, status: u16) -> FailureKind {
        if self.has_code(&QUOTA_CODES) || self.mentions_any(&QUOTA_PHRASES) {
            return FailureKind::Quota;
        }
        if self.has_code(&REFUSAL_CODES) || self.mentions_any(&REFUSAL_PHRASES) {
            return FailureKind::Refusal;
        }
        match status {
            401 | 403 => FailureKind::Auth,
            400 if self.mentions_any(&KEY_PHRASES) => FailureKind::Auth,
            402 => FailureKind::Quota,
            408 => FailureKind::Timeout,
            429 => FailureKind::RateLimit,
            409 | 503 | 529 => FailureKind::Overloaded,
            400 | 422 if self.has_code(&[TOOL_USE_FAILED]) || self.mentions_any(&[TOOL_USE_FAILED]) => {
                FailureKind::ToolUseFailed
            }
            400 | 413 | 422 | 500 if self.is_overflow() => FailureKind::ContextOverflow,
            500 if self.mentions_any(&SETUP_PHRASES) => FailureKind::Request,
            500.. => FailureKind::Server,
            _ => FailureKind::Request,
        }
    }

    /// Converts to the error for an answer with this HTTP status and the provider's message.
    pub fn with_status(self, status: u16) -> LlmError {
        LlmError::new(self.classify(status), self.message)
    }

    /// Converts to the error for a stream whose status was 200; some gateways put the real status in `code`.
    pub fn to_stream_error(&self) -> LlmError {
        let number =
            self.codes.iter().find_map(|code| code.parse::<u16>().ok().filter(|status| *status >= 400));
        let named =
            || STREAM_STATUSES.iter().find(|(_, codes)| self.has_code(codes)).map(|(status, _)| *status);
        let status = number.or_else(named);
        let kind = match status {
            Some(status) => self.classify(status),
            None if self.is_overflow() => FailureKind::ContextOverflow,
            None => self.classify(500),
        };
        let detail = if self.message.is_empty() { "no message" } else { &self.message };
        LlmError::new(kind, format!("the server reported an error in its answer: {detail}"))
    }

    fn has_code(&self, known: &[&str]) -> bool {
        self.codes.iter().any(|code| known.contains(&code.as_str()))
    }

    fn mentions_any(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    fn is_overflow(&self) -> bool {
        if is_output_limit_error(&self.message) {
            return false;
        }
        let in_code = |phrase: &&str| self.codes.iter().any(|code| code.contains(phrase));
        self.mentions_any(&OVERFLOW_PHRASES) || OVERFLOW_PHRASES.iter().any(in_code)
    }
}

fn code(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_lowercase()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Checks whether `message` reports that the requested output limit is too large, for the model or for the rest of the
/// window, and not that the prompt itself is too long.
pub fn is_output_limit_error(message: &str) -> bool {
    let message = message.to_lowercase().replace(['\'', '"', '`'], "");
    let no_digit = |c: char| !c.is_ascii_digit();
    let after = |mark: &str| message.split_once(mark)?.1.split(no_digit).next()?.parse::<u64>().ok();
    let before = |mark: &&str| message.split_once(*mark)?.0.rsplit(no_digit).next()?.parse::<u64>().ok();
    let window = after("maximum context length is ").or_else(|| after(" > "));
    let prompt = AFTER_PROMPT.iter().find_map(before).or_else(|| after("context limit: "));
    if let Some((window, prompt)) = window.zip(prompt) {
        let (most, part) = USEFUL_ANSWER;
        return prompt.saturating_add(most.min(window / part)) <= window;
    }
    let exceeds = |name: &str| TOO_LARGE.iter().any(|words| message.contains(&format!("{name} {words}")));
    let phrase = |phrase: &&str| message.contains(*phrase);
    OUTPUT_PHRASES.iter().any(phrase) || OUTPUT_NAMES.into_iter().any(exceeds)
}

/// Returns the error for an answer that is not in `format`, given by its common name.
pub fn unexpected_format(format: &str, body: &[u8], why: &str) -> LlmError {
    let shown = excerpt(body);
    let start = body.trim_ascii_start();
    let message = if start.starts_with(b"<") {
        format!(
            "the server answered with a web page (`{shown}`); check the API base, which usually ends in /v1"
        )
    } else if start.is_empty() {
        "the server's answer is empty; check the API base, which usually ends in /v1".into()
    } else {
        // A parser quotes its input, which may be long.
        let why = one_line(why, WHY_CAP);
        format!("the server's answer is not in the {format} format ({why}): `{shown}`")
    };
    let error = LlmError::new(FailureKind::Malformed, message);
    // Valid JSON of another shape, or a web page, means a wrong address or a login, which a retry does not fix.
    let damaged = serde_json::from_slice::<IgnoredAny>(body).is_err() && !start.starts_with(b"<");
    LlmError { retryable: damaged, ..error }
}

/// Returns an excerpt of bytes that are not JSON, for a message: an HTML page's title, or the first line.
pub fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let title = text.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let line = match title {
        Some((title, _)) => title.trim(),
        None => text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default(),
    };
    one_line(line, EXCERPT_CAP)
}

/// Returns `text` as one line of at most `cap` characters, without control and bidirectional characters.
pub fn one_line(text: &str, cap: usize) -> String {
    let mut line: String = text
        .trim()
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !needs_escape(*c))
        .take(cap + 1)
        .collect();
    if let Some((end, _)) = line.char_indices().nth(cap) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(status: u16, body: &str) -> (FailureKind, bool) {
        let error = ProviderError::from_body(body.as_bytes()).with_status(status);
        (error.kind, error.retryable)
    }

    #[test]
    fn lr1_each_status_has_its_class() {
        for (status, kind, retryable) in [
            (400, FailureKind::Request, false),
            (401, FailureKind::Auth, false),
            (402, FailureKind::Quota, false),
            (403, FailureKind::Auth, false),
            (404, FailureKind::Request, false),
            (408, FailureKind::Timeout, true),
            (409, FailureKind::Overloaded, true),
            (413, FailureKind::Request, false),
            (422, FailureKind::Request, false),
            (429, FailureKind::RateLimit, true),
            (500, FailureKind::Server, true),
            (502, FailureKind::Server, true),
            (503, FailureKind::Overloaded, true),
            (529, FailureKind::Overloaded, true),
        ] {
            assert_eq!(class(status, ""), (kind, retryable), "{status}");
        }
    }

    #[test]
    fn codes_tell_quota_overflow_and_resampling_from_the_status() {
        let quota = r#"{"error":{"message":"m","code":"insufficient_quota"}}"#;
        assert_eq!(class(429, quota), (FailureKind::Quota, false));
        assert_eq!(class(429, r#"{"error":{"code":1308,"message":"m"}}"#), (FailureKind::Quota, false));
        let overflow = r#"{"error":{"type":"exceed_context_size_error","message":"m"}}"#;
        assert_eq!(class(400, overflow), (FailureKind::ContextOverflow, false));
        let billing = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}"#;
        assert_eq!(class(400, billing), (FailureKind::Quota, false));
        assert_eq!(class(402, r#"{"error":{"type":"billing_error"}}"#), (FailureKind::Quota, false));
        // Fault D6 a: xAI reports a wrong key so.
        let key =
            r#"{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain one from C."}"#;
        assert_eq!(class(400, key), (FailureKind::Auth, false));
        // Fault D6 b: Perplexity's overflow.
        for overflow in [
            r#"{"error":{"message":"The total length of all messages is too long.","code":400}}"#,
            r#"{"error":{"message":"m","type":"too_many_prompt_tokens","code":400}}"#,
        ] {
            assert_eq!(class(400, overflow), (FailureKind::ContextOverflow, false));
        }
        let overflow = r#"{"error":"This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens"}"#;
        assert_eq!(class(400, overflow), (FailureKind::ContextOverflow, false));
        assert_eq!(class(400, r#"{"error":{"code":"tool_use_failed"}}"#), (FailureKind::ToolUseFailed, true));
    }

    #[test]
    fn lr1_what_a_filter_refuses_is_a_refusal_whatever_its_status() {
        for (status, body) in [
            (400, r#"{"error":{"code":"content_filter","message":"The response was filtered"}}"#),
            (400, r#"{"error":{"type":"invalid_request_error","message":"Content Exists Risk"}}"#),
            (400, r#"{"error":{"code":"data_inspection_failed","message":"m"}}"#),
            (400, r#"{"error":{"code":"1301","message":"m"}}"#),
            (
                400,
                r#"{"error":{"type":"invalid_request_error","message":"Output blocked by content filtering policy"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":"invalid_prompt","message":"flagged as potentially violating our usage policy"}}"#,
            ),
            (
                403,
                r#"{"error":{"code":403,"message":"m/x requires moderation on P. Your input was flagged for \"violence\"."}}"#,
            ),
        ] {
            assert_eq!(class(status, body), (FailureKind::Refusal, false), "{body}");
        }
        assert_eq!(class(403, r#"{"error":{"message":"your key may not do that"}}"#).0, FailureKind::Auth);
    }

    #[test]
    fn l14_an_answer_that_may_not_be_so_long_is_not_a_prompt_that_is_too_long() {
        for (message, kind) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 8492 tokens (300 in the messages, 8192 in \
                 the completion).",
                FailureKind::Request,
            ),
            (
                "This model's maximum context length is 8192 tokens. However, you requested 4096 output tokens and your prompt \
                 contains at least 8000 input tokens, for a total of at least 12096 tokens.",
                FailureKind::ContextOverflow,
            ),
            (
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (10000 of text \
                 input, 130000 in the output).",
                FailureKind::Request,
            ),
            (
                "input length and `max_tokens` exceed context limit: 100000 + 128000 > 200000, decrease input length",
                FailureKind::Request,
            ),
            (
                "input length and `max_tokens` exceed context limit: 199500 + 32000 > 200000, decrease input length",
                FailureKind::ContextOverflow,
            ),
        ] {
            let body = serde_json::json!({"error": {"message": message, "code": "context_length_exceeded"}})
                .to_string();
            assert_eq!(class(400, &body), (kind, false), "{message}");
        }
        for message in [
            "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000.",
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`",
            "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-m",
        ] {
            assert!(is_output_limit_error(message), "{message}");
        }
        assert!(!is_output_limit_error("prompt is too long: 210000 tokens > 200000 maximum"));
    }

    #[test]
    fn l14_a_prompt_that_is_too_long_is_known_by_the_words_of_each_server() {
        for message in [
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            "Please reduce the length of the messages or completion.",
            "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
            "Prompt exceeds max length",
            "Range of input length should be [1, 129024]",
            "prompt token count of 140000 exceeds the limit of 128000",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 200 `max_new_tokens`",
            "Prompt contains 65673 tokens, too large for model with 32768 maximum context length",
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            assert_eq!(class(400, &body).0, FailureKind::ContextOverflow, "{message}");
        }
    }

    #[test]
    fn a_request_that_cannot_succeed_is_not_repeated() {
        for (status, message) in [
            (400, "registry.ollama.ai/library/smollm2:360m does not support tools"),
            (400, "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"),
            (500, "tools param requires --jinja flag"),
            (500, "Unsupported param: tools"),
            (500, "Jinja Exception: System message must be at the beginning."),
            (500, "Cannot pass both content and thinking in an assistant message with tool calls!"),
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            assert_eq!(class(status, &body), (FailureKind::Request, false), "{message}");
        }
    }

    #[test]
    fn the_message_is_found_in_every_usual_shape() {
        for body in [
            r#"{"error":{"message":"no\nway"}}"#,
            r#"{"error":"no way"}"#,
            r#"{"message":"no way"}"#,
            r#"{"detail":"no way"}"#,
            r#"[{"error":{"message":"no way"}}]"#,
            "\n  no way\nmore",
            "<html><head><title>no way</title></head></html>",
        ] {
            assert_eq!(ProviderError::from_body(body.as_bytes()).message, "no way", "{body}");
        }
        assert_eq!(ProviderError::from_body(b"").message, "");
    }

    #[test]
    fn an_error_in_a_stream_is_classified_by_its_code() {
        let kind = |body: &str| {
            ProviderError::from_value(&serde_json::from_str(body).unwrap()).to_stream_error().kind
        };
        assert_eq!(kind(r#"{"error":{"code":429,"message":"m"}}"#), FailureKind::RateLimit);
        assert_eq!(kind(r#"{"error":{"type":"overloaded_error"}}"#), FailureKind::Overloaded);
        assert_eq!(kind(r#"{"error":{"message":"boom","code":"x"}}"#), FailureKind::Server);
    }

    #[test]
    fn control_and_bidirectional_characters_are_removed() {
        assert_eq!(one_line("a\u{1b}[31m\tb\u{202e}c\u{9b}d", 20), "a[31m bcd");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
