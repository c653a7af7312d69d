//! Decides whether and when a failed request is repeated, by the rules of the official SDKs.

use crate::LlmError;
use crate::error_action::is_retryable;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::time::Duration;

/// First back-off; each further one is twice as long.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
/// Longest back-off.
const BACKOFF_CAP: Duration = Duration::from_secs(8);
/// Largest reduction of a back-off, in percent, so that many clients do not retry at the same moment.
const JITTER_PERCENT: u64 = 25;
/// Default of `llm.max_retry_after`: the longest `Retry-After` that is obeyed.
pub const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// Returns the wait before the next attempt, or `None` if the request is not repeated.
///
/// `failed` is the number of attempts so far, `retries` the number allowed after the first, `random` any number. A wait that
/// the server requests is returned unchanged; the caller decides whether it is too long.
pub fn delay(error: &LlmError, failed: u32, retries: u32, random: u64) -> Option<Duration> {
    if !error.retryable || failed > retries {
        return None;
    }
    Some(error.retry_after.unwrap_or_else(|| backoff(failed, random)))
}

fn backoff(failed: u32, random: u64) -> Duration {
    let doublings = failed.saturating_sub(1).min(16);
    let full = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_CAP);
    let permille = 1000 - random % (JITTER_PERCENT * 10 + 1);
    full * u32::try_from(permille).unwrap_or(1000) / 1000
}

/// Retry advice in the headers of an error answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// `x-should-retry`.
    pub should_retry: Option<bool>,
    /// `retry-after-ms`, else `retry-after` in seconds or as an HTTP date.
    pub retry_after: Option<Duration>,
}

impl RetryAdvice {
    /// Reads the headers; `now` is the time since the Unix epoch. An unreadable wait, or one that is zero,
    /// negative or past, is ignored.
    pub fn from_headers<'a>(header: &dyn Fn(&str) -> Option<&'a str>, now: Duration) -> Self {
        let should_retry = match header("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        let millis = header("retry-after-ms").and_then(|text| parse_seconds(text, 0.001));
        let retry_after = millis.or_else(|| {
            let text = header("retry-after")?;
            parse_seconds(text, 1.0).or_else(|| duration_until(text, now))
        });
        Self { should_retry, retry_after }
    }

    /// Applies this advice to the error: the server's `x-should-retry` overrides the default, unless a retry can never help.
    #[must_use]
    pub fn apply_to(self, mut error: LlmError) -> LlmError {
        error.retryable = is_retryable(error.kind, self.should_retry.or(Some(error.retryable)));
        error.retry_after = self.retry_after.or(error.retry_after);
        error
    }
}

fn parse_seconds(text: &str, unit: f64) -> Option<Duration> {
    let seconds = text.trim().parse::<f64>().ok()? * unit;
    Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
}

/// Returns the wait until an HTTP date (RFC 9110 section 5.6.7).
fn duration_until(text: &str, now: Duration) -> Option<Duration> {
    let then: Timestamp = rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
    let then = Duration::from_millis(u64::try_from(then.as_millisecond()).ok()?);
    then.checked_sub(now).filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::failure::FailureKind;
    use proptest::prelude::*;

    fn advice(headers: &[(&str, &'static str)]) -> RetryAdvice {
        let find = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        // Wed, 21 Oct 2015 07:28:01 GMT
        RetryAdvice::from_headers(&find, Duration::from_secs(1_445_412_481))
    }

    fn wait(name: &str, value: &'static str) -> Option<Duration> {
        advice(&[(name, value)]).retry_after
    }

    #[test]
    fn lr2_retry_after_is_read_in_seconds_milliseconds_and_as_a_date() {
        assert_eq!(wait("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), Some(Duration::from_secs(29)));
        let both = advice(&[("retry-after", "9"), ("retry-after-ms", "1500")]);
        assert_eq!(both.retry_after, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn lr2_a_wait_that_makes_no_sense_is_ignored() {
        for value in ["0", "-1", "NaN", "inf", "soon", "", "Wed, 21 Oct 2015 07:27:00 GMT", "1e400"] {
            assert_eq!(wait("retry-after", value), None, "{value}");
        }
    }

    #[test]
    fn lr2_the_wait_that_the_server_asks_for_is_never_shortened() {
        let asked = Duration::from_secs(9999);
        let error = LlmError { retry_after: Some(asked), ..LlmError::new(FailureKind::RateLimit, "") };
        assert_eq!(delay(&error, 1, 2, 0), Some(asked));
    }

    #[test]
    fn l16_not_even_the_server_can_ask_for_a_repeated_401() {
        let insist = RetryAdvice { should_retry: Some(true), retry_after: None };
        assert!(!insist.apply_to(LlmError::new(FailureKind::Auth, "")).retryable);
        assert!(insist.apply_to(LlmError::new(FailureKind::Request, "")).retryable);
        let never = RetryAdvice { should_retry: Some(false), retry_after: None };
        assert!(!never.apply_to(LlmError::new(FailureKind::Server, "")).retryable);
    }

    #[test]
    fn lr4_after_the_retries_there_is_no_further_try() {
        let error = LlmError::new(FailureKind::Server, "");
        assert!(delay(&error, 2, 2, 0).is_some());
        assert_eq!(delay(&error, 3, 2, 0), None);
        assert_eq!(delay(&LlmError::new(FailureKind::Request, ""), 1, 2, 0), None);
    }

    proptest! {
        #[test]
        fn lr3_back_off_doubles_to_a_cap_and_is_at_most_a_quarter_shorter(failed in 1..2000_u32, random: u64) {
            let wait = delay(&LlmError::new(FailureKind::Server, ""), failed, u32::MAX, random).unwrap();
            let full = (0.5 * 2_f64.powi(i32::try_from(failed.min(30)).unwrap() - 1)).min(8.0);
            prop_assert!(wait.as_secs_f64() <= full + 1e-6);
            prop_assert!(wait.as_secs_f64() >= full * 0.75 - 1e-6);
        }
    }
}
