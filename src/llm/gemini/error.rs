//! Classifies Gemini's errors by their status and their details.
//!
//! The details have the types of `google.rpc` (`ErrorInfo`, `QuotaFailure`, `RetryInfo`):
//! <https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto>.

use crate::LlmError;
use crate::provider_error::ProviderError;
use agent_core::failure::FailureKind;
use serde_json::Value;
use std::time::Duration;

/// Returns the error for an answer with this error status.
pub fn status_error(status: u16, body: &[u8]) -> LlmError {
    let error = ProviderError::from_body(body).with_status(status);
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => with_details(error, value.get(0).unwrap_or(&value)),
        Err(_) => error,
    }
}

/// Returns the error in `value`, which is an event of a stream or a body with status 200.
pub fn stream_error(value: &Value) -> LlmError {
    with_details(ProviderError::from_value(value).to_stream_error(), value)
}

fn with_details(error: LlmError, value: &Value) -> LlmError {
    let inner = value.get("error").unwrap_or(value);
    let details = inner.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // An invalid key is answered with 400, which would otherwise be classified as an invalid request.
    if details.iter().any(|detail| detail.get("reason").is_some_and(|reason| reason == "API_KEY_INVALID")) {
        return LlmError { kind: FailureKind::Auth, retryable: false, ..error };
    }
    if details.iter().any(is_daily_quota) {
        return LlmError { kind: FailureKind::Quota, retryable: false, ..error };
    }
    LlmError { retry_after: details.iter().find_map(delay), ..error }
}

/// Checks whether a daily quota is used up, whatever wait the same answer requests.
fn is_daily_quota(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array);
    let quota = |violation: &Value| violation.get("quotaId")?.as_str().map(|id| id.contains("PerDay"));
    violations.is_some_and(|violations| violations.iter().any(|violation| quota(violation) == Some(true)))
}

/// Returns the wait of a `RetryInfo`: seconds followed by `s`.
fn delay(detail: &Value) -> Option<Duration> {
    let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn quota(id: &str, delay: &str) -> Value {
        json!({"error": {"code": 429, "message": "You exceeded your current quota.", "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]}})
    }

    fn answered(status: u16, body: &Value) -> LlmError {
        status_error(status, body.to_string().as_bytes())
    }

    #[test]
    fn lr2_the_wait_of_a_retry_info_is_taken_and_one_that_cannot_be_read_is_none() {
        for (delay, expected) in [
            ("17s", Some(Duration::from_secs(17))),
            ("1.5s", Some(Duration::from_millis(1500))),
            ("0s", None),
            ("-1s", None),
            ("NaNs", None),
            ("soon", None),
        ] {
            let body = quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", delay);
            for error in [answered(429, &body), answered(429, &json!([body])), stream_error(&body)] {
                assert_eq!((error.kind, error.retryable), (FailureKind::RateLimit, true));
                assert_eq!(error.retry_after, expected, "{delay}");
            }
        }
    }

    #[test]
    fn a_daily_quota_is_not_retried() {
        let error = answered(429, &quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "17s"));
        assert_eq!((error.kind, error.retryable), (FailureKind::Quota, false));
    }

    #[test]
    fn an_invalid_key_is_an_auth_error() {
        let body = json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
        assert_eq!(answered(400, &body).kind, FailureKind::Auth);
    }

    #[test]
    fn a_prompt_that_is_too_long_is_an_overflow() {
        let message =
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).";
        let body = json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}});
        let error = answered(400, &body);
        assert_eq!((error.kind, error.message.as_str()), (FailureKind::ContextOverflow, message));
    }

    #[test]
    fn other_bodies_are_read_as_everywhere() {
        let error = status_error(503, b"<html><title>Unavailable</title></html>");
        assert_eq!((error.kind, error.message.as_str()), (FailureKind::Overloaded, "Unavailable"));
        assert_eq!(answered(500, &json!({"error": {"details": "none"}})).kind, FailureKind::Server);
        assert_eq!(status_error(404, b"").kind, FailureKind::Request);
    }
}
