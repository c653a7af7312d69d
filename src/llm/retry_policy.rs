//! Repeats a model request within the limits on retries and time.

use crate::error_action::{ErrorAction, action_for};
use crate::{LlmError, Progress, Request, Response, retry};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_runtime::clock::Clock;
use std::time::Duration;

/// Limit on the time that all attempts of one call together wait for the start of an answer, unless
/// `llm.timeouts.first_byte_seconds` allows a single attempt more.
const NO_ANSWER_LIMIT: Duration = Duration::from_mins(2);

/// Limits on the repetition of a request.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy<'a> {
    /// Number of retries after the first attempt.
    pub retries: u32,
    /// Longest wait that a server may request; a longer one ends the call.
    pub max_retry_after: Duration,
    /// Longest wait of one attempt for the start of its answer.
    pub first_byte: Duration,
    /// Time limit of all attempts together, including waits.
    pub total: Duration,
    /// Source of time and jitter.
    pub source: &'a Clock,
}

impl RetryPolicy<'_> {
    /// Calls `attempt` until it succeeds, an error is final, or the request's deadline passes.
    ///
    /// A partial answer is discarded even if part of it was shown; no call of it was executed. A complete but
    /// unusable answer is requested again at once, regardless of the number of allowed retries.
    ///
    /// # Errors
    /// The last error.
    pub async fn run(
        self,
        request: &Request<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
        attempt: impl AsyncFn(&mut dyn FnMut(Progress<'_>)) -> Result<Response, LlmError>,
    ) -> Result<Response, LlmError> {
        let started = self.source.elapsed();
        let deadline = request.deadline.map_or(self.total, |deadline| deadline.min(self.total));
        let spent = || self.source.elapsed().saturating_sub(started);
        let left = || deadline.saturating_sub(spent());
        let (mut number, mut resamples) = (0, 0);
        loop {
            number += 1;
            progress(Progress::Sent { attempt: number });
            let mut shown = false;
            let mut show = |piece: Progress<'_>| {
                if request.stream {
                    shown = true;
                    progress(piece);
                }
            };
            let error = match with_time_limit(left(), attempt(&mut show)).await.and_then(reject_empty) {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let (retry, max_retries, delay) = match action_for(error.kind) {
                ErrorAction::Resample(times) if error.retryable => {
                    resamples += 1;
                    (resamples, times, (resamples <= times).then_some(Duration::ZERO))
                }
                _ => {
                    if let Some(asked) = error.retry_after.filter(|_| error.retryable)
                        && (asked > self.max_retry_after || asked >= left())
                    {
                        return Err(wait_too_long(
                            with_attempt_count(error, number),
                            asked,
                            self.max_retry_after,
                            left(),
                        ));
                    }
                    if error.before_answer && spent() + self.first_byte > self.no_answer_limit() {
                        return Err(with_attempt_count(error, number));
                    }
                    let failed = number - resamples;
                    (failed, self.retries, retry::delay(&error, failed, self.retries, self.source.random()))
                }
            };
            let Some(delay) = delay.filter(|delay| *delay < left()) else {
                return Err(with_attempt_count(error, number));
            };
            progress(Progress::Retry {
                attempt: number,
                retry,
                max_retries,
                discarded: shown,
                delay,
                error: &error,
            });
            // The listener may cancel the call here, even if the next request is sent at once.
            tokio::task::yield_now().await;
            tokio::time::sleep(delay).await;
        }
    }

    fn no_answer_limit(&self) -> Duration {
        NO_ANSWER_LIMIT.max(self.first_byte)
    }
}

async fn with_time_limit(
    left: Duration,
    attempt: impl Future<Output = Result<Response, LlmError>>,
) -> Result<Response, LlmError> {
    tokio::time::timeout(left, attempt).await.unwrap_or_else(|_| {
        let tenths = (left.as_secs_f64() * 10.0).round() / 10.0;
        let message = format!("the model did not answer within the remaining {tenths}s");
        Err(LlmError { retryable: false, ..LlmError::new(FailureKind::Timeout, message) })
    })
}

/// Converts an answer without text and calls to an error, unless the finish reason explains it.
fn reject_empty(response: Response) -> Result<Response, LlmError> {
    let explained = match response.finish {
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_) => false,
        FinishReason::Length
        | FinishReason::Paused
        | FinishReason::ContentFilter
        | FinishReason::Filtered(_)
        | FinishReason::Refusal
        | FinishReason::WindowFull => true,
    };
    let empty =
        response.message.tool_calls().next().is_none() && response.message.joined_text().trim().is_empty();
    if empty && !explained {
        let message = "the model answered with neither text nor a tool call";
        let message = match &response.finish {
            FinishReason::Other(reason) => format!("{message}; it stopped with `{reason}`"),
            _ => message.to_owned(),
        };
        let error = LlmError::new(FailureKind::EmptyAnswer, message);
        return Err(LlmError { usage: response.usage, ..error });
    }
    Ok(response)
}

/// Adds the requested wait to the error, and why it is too long.
fn wait_too_long(mut error: LlmError, asked: Duration, max: Duration, left: Duration) -> LlmError {
    let (asked, left) = (asked.as_secs_f64().ceil(), left.as_secs_f64().floor());
    let reason = if asked > max.as_secs_f64() {
        format!("llm.max_retry_after allows {}s", max.as_secs())
    } else {
        format!("only {left}s are left for this call")
    };
    error.message = format!("{}; the server asks to wait {asked}s, and {reason}", error.message);
    error
}

fn with_attempt_count(error: LlmError, attempts: u32) -> LlmError {
    match attempts {
        1 => error,
        _ => LlmError { message: format!("{} (after {attempts} attempts)", error.message), ..error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::message::{Message, Role};
    use std::cell::RefCell;

    fn answer(text: &str) -> Response {
        let message = Message::text(Role::Assistant, text);
        Response { message, finish: FinishReason::Stop, usage: None, is_cached: false }
    }

    fn fail(kind: FailureKind) -> LlmError {
        LlmError { retry_after: Some(Duration::from_millis(1)), ..LlmError::new(kind, "no") }
    }

    /// Plays `outcomes`; a text before an outcome is shown first.
    fn play(
        outcomes: Vec<(&str, Result<Response, LlmError>)>,
        deadline: Option<Duration>,
    ) -> (Result<Response, LlmError>, usize) {
        let (outcome, sent, _) = play_with_retries(outcomes, deadline);
        (outcome, sent)
    }

    /// Number of a retry, number of allowed retries, and whether shown text was discarded.
    type Retried = (u32, u32, bool);

    /// Plays `outcomes` and returns the retries as well.
    fn play_with_retries(
        outcomes: Vec<(&str, Result<Response, LlmError>)>,
        deadline: Option<Duration>,
    ) -> (Result<Response, LlmError>, usize, Vec<Retried>) {
        let left = RefCell::new(outcomes.into_iter());
        let source = Clock::new();
        let (mut sent, mut repeated) = (0, Vec::new());
        let request = Request { stream: true, deadline, ..Request::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(attempts(&source).run(
            &request,
            &mut |progress| match progress {
                Progress::Sent { .. } => sent += 1,
                Progress::Retry { retry, max_retries, discarded, .. } => {
                    repeated.push((retry, max_retries, discarded));
                }
                _ => {}
            },
            async |show| {
                let (text, outcome) = left.borrow_mut().next().unwrap();
                if !text.is_empty() {
                    show(Progress::Text(text));
                }
                outcome
            },
        ));
        (outcome, sent, repeated)
    }

    fn attempts(source: &Clock) -> RetryPolicy<'_> {
        RetryPolicy {
            retries: 2,
            max_retry_after: Duration::from_secs(90),
            first_byte: Duration::from_secs(1),
            total: Duration::from_mins(3),
            source,
        }
    }

    #[test]
    fn lr1_a_temporary_failure_is_repeated() {
        let (outcome, sent) = play(
            vec![
                ("", Err(fail(FailureKind::RateLimit))),
                ("", Err(fail(FailureKind::Timeout))),
                ("", Ok(answer("x"))),
            ],
            None,
        );
        assert_eq!((outcome, sent), (Ok(answer("x")), 3));
    }

    #[test]
    fn a_listener_can_cancel_before_an_unusable_answer_is_requested_again() {
        let (source, given_up) = (Clock::new(), tokio_util::sync::CancellationToken::new());
        let (request, mut sent) = (Request::default(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut tell = |progress: Progress<'_>| match progress {
            Progress::Sent { .. } => sent += 1,
            _ => given_up.cancel(),
        };
        let call = attempts(&source).run(&request, &mut tell, async |_| Ok(answer("")));
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = given_up.cancelled() => {}
                outcome = call => panic!("{outcome:?}"),
            }
        });
        assert_eq!(sent, 1);
    }

    #[test]
    fn lr4_the_last_error_says_how_often_was_tried() {
        let (outcome, sent) = play(vec![("", Err(fail(FailureKind::Server))); 3], None);
        assert_eq!((outcome.unwrap_err().message.as_str(), sent), ("no (after 3 attempts)", 3));
    }

    #[test]
    fn lr5_an_answer_that_breaks_after_text_was_shown_is_discarded_and_requested_again() {
        for kind in [
            FailureKind::CutStream,
            FailureKind::Network,
            FailureKind::Timeout,
            FailureKind::Server,
            FailureKind::Malformed,
        ] {
            let (outcome, sent, retries) = play_with_retries(
                vec![("half", Err(fail(kind))), ("", Err(fail(kind))), ("x", Ok(answer("x")))],
                None,
            );
            assert_eq!((outcome, sent), (Ok(answer("x")), 3), "{kind:?}");
            assert_eq!(retries, [(1, 2, true), (2, 2, false)], "{kind:?}");
        }
    }

    #[test]
    fn an_empty_answer_is_asked_again_once() {
        let (outcome, sent) = play(vec![("", Ok(answer(" "))), ("", Ok(answer("x")))], None);
        assert_eq!((outcome, sent), (Ok(answer("x")), 2));
        let (outcome, sent) = play(vec![("", Ok(answer(""))); 2], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (FailureKind::EmptyAnswer, 2));
    }

    #[test]
    fn l20_a_call_that_its_server_could_not_read_is_requested_again_twice() {
        let failed = || Err(fail(FailureKind::ToolUseFailed));
        let (outcome, sent) = play(vec![("", failed()), (" ", failed()), ("", Ok(answer("x")))], None);
        assert_eq!((outcome, sent), (Ok(answer("x")), 3));
        let (outcome, sent) = play(vec![("", failed()), ("", failed()), ("", failed())], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (FailureKind::ToolUseFailed, 3));
        let (outcome, sent) = play(vec![("half", failed()), ("", Ok(answer("x")))], None);
        assert_eq!((outcome, sent), (Ok(answer("x")), 2));
    }

    #[test]
    fn what_an_empty_answer_used_goes_with_its_error() {
        let usage = Some(agent_core::usage::Usage { input: 7, ..Default::default() });
        let empty = Response { usage, ..answer("") };
        let (outcome, _) = play(vec![("", Ok(empty.clone())), ("", Ok(empty))], None);
        assert_eq!(outcome.unwrap_err().usage, usage);
    }

    #[test]
    fn lr2_a_wait_beyond_the_deadline_or_the_maximum_ends_the_call_and_is_named() {
        for (asked, deadline, reason) in [
            (60, Some(30), "the server asks to wait 60s, and only 29s are left"),
            (86_400, None, "the server asks to wait 86400s, and llm.max_retry_after allows 90s"),
        ] {
            let late =
                LlmError { retry_after: Some(Duration::from_secs(asked)), ..fail(FailureKind::RateLimit) };
            let (outcome, sent) = play(vec![("", Err(late))], deadline.map(Duration::from_secs));
            let error = outcome.unwrap_err();
            assert_eq!((error.kind, error.retryable, sent), (FailureKind::RateLimit, true, 1));
            assert!(error.message.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_call_without_any_answer_ends_after_its_limit() {
        let silent = || LlmError { before_answer: true, ..fail(FailureKind::Timeout) };
        let (source, request) = (Clock::new(), Request::default());
        for (first_byte, sent) in
            [(Duration::from_secs(1), 2), (NO_ANSWER_LIMIT, 1), (Duration::from_mins(5), 1)]
        {
            let outcomes = RefCell::new(vec![Ok(answer("x")), Err(silent())]);
            let requests = std::cell::Cell::new(0);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let call = RetryPolicy { first_byte, ..attempts(&source) };
            let outcome = runtime.block_on(call.run(&request, &mut |_| {}, async |_| {
                requests.set(requests.get() + 1);
                outcomes.borrow_mut().pop().unwrap()
            }));
            assert_eq!((outcome.is_ok(), requests.get()), (sent == 2, sent), "{first_byte:?}");
        }
    }
}
