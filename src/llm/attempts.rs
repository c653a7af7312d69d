//! One request, asked as often as the retry rules allow and for as long as its deadline allows.

use crate::event::FinishReason;
use crate::failure::ErrorKind;
use crate::llm::reaction::{Reaction, reaction};
use crate::llm::{LlmError, Progress, Request, Response, retry};
use crate::source::Source;
use std::fmt::Write;
use std::time::Duration;

/// How stubborn a client is.
#[derive(Debug, Clone, Copy)]
pub struct Attempts<'a> {
    /// How many tries may follow the first.
    pub retries: u32,
    /// The longest all of them may take together, waits included.
    pub whole: Duration,
    /// Time and jitter.
    pub source: &'a Source,
}

impl Attempts<'_> {
    /// Calls `attempt` until it succeeds, an error is final, or the request's deadline passes.
    ///
    /// A streamed answer is repeated only as long as none of it was shown. An answer that came and is of no use is
    /// asked for again at once, whatever the retries, as long as no text of it was shown.
    ///
    /// # Errors
    /// The last error.
    pub async fn make(
        self,
        request: &Request<'_>,
        progress: &mut dyn FnMut(Progress<'_>),
        attempt: impl AsyncFn(&mut dyn FnMut(Progress<'_>)) -> Result<Response, LlmError>,
    ) -> Result<Response, LlmError> {
        let begun = self.source.elapsed();
        let deadline = request.deadline.map_or(self.whole, |deadline| deadline.min(self.whole));
        let left = || deadline.saturating_sub(self.source.elapsed().saturating_sub(begun));
        let mut number = 0;
        let mut useless = 0;
        loop {
            number += 1;
            progress(Progress::Sent { attempt: number });
            let (mut shown, mut said) = (false, false);
            let mut show = |piece: Progress<'_>| {
                if request.stream {
                    shown = true;
                    said |= matches!(piece, Progress::Text(text) if !text.trim().is_empty());
                    progress(piece);
                }
            };
            let error = match within(left(), attempt(&mut show)).await.and_then(not_empty) {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let failed = number - useless;
            let delay = match reaction(error.kind) {
                Reaction::AskAgain(times) if !said && error.retryable => {
                    useless += 1;
                    (useless <= times).then_some(Duration::ZERO)
                }
                _ if shown => return Err(broken_off(error)),
                _ => retry::delay(&error, failed, self.retries, self.source.random()),
            };
            match delay {
                Some(delay) if delay < left() => {
                    progress(Progress::Retry { attempt: number, delay, error: &error });
                    // Who is told may give the call up, also where the next request goes out at once.
                    tokio::task::yield_now().await;
                    tokio::time::sleep(delay).await;
                }
                Some(_) => return Err(too_late(counted(error, number), left())),
                None => return Err(counted(error, number)),
            }
        }
    }
}

async fn within(
    left: Duration,
    attempt: impl Future<Output = Result<Response, LlmError>>,
) -> Result<Response, LlmError> {
    tokio::time::timeout(left, attempt).await.unwrap_or_else(|_| {
        let tenths = (left.as_secs_f64() * 10.0).round() / 10.0;
        let message = format!("the model did not answer within {tenths}s, the time that was left for it");
        Err(LlmError { retryable: false, ..LlmError::new(ErrorKind::Timeout, message) })
    })
}

/// An answer without text and calls is an error, unless the finish reason explains it.
fn not_empty(response: Response) -> Result<Response, LlmError> {
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
        let error = LlmError::new(ErrorKind::EmptyAnswer, message);
        return Err(LlmError { usage: response.usage, ..error });
    }
    Ok(response)
}

fn broken_off(mut error: LlmError) -> LlmError {
    error.message.push_str(" (part of the answer was shown already, so it was not asked for again)");
    error
}

/// Says why there was no further try although one was allowed, where it is the server that asks for a wait.
fn too_late(mut error: LlmError, left: Duration) -> LlmError {
    if let Some(asked) = error.retry_after {
        let (asked, left) = (asked.as_secs_f64().ceil(), left.as_secs_f64().floor());
        let _ = write!(
            error.message,
            "; the server asks to wait {asked}s, and only {left}s are left for this call"
        );
    }
    error
}

fn counted(error: LlmError, attempts: u32) -> LlmError {
    match attempts {
        1 => error,
        _ => LlmError { message: format!("{} (after {attempts} attempts)", error.message), ..error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, Role};
    use std::cell::RefCell;

    fn answer(text: &str) -> Response {
        let message = Message::text(Role::Assistant, text);
        Response { message, finish: FinishReason::Stop, usage: None, kept: false }
    }

    fn fail(kind: ErrorKind) -> LlmError {
        LlmError { retry_after: Some(Duration::from_millis(1)), ..LlmError::new(kind, "no") }
    }

    /// Plays `outcomes`; a text among them is shown before its outcome.
    fn play(
        outcomes: Vec<(&str, Result<Response, LlmError>)>,
        deadline: Option<Duration>,
    ) -> (Result<Response, LlmError>, usize) {
        let left = RefCell::new(outcomes.into_iter());
        let source = Source::new();
        let mut sent = 0;
        let request = Request { stream: true, deadline, ..Request::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome =
            runtime.block_on(Attempts { retries: 2, whole: Duration::from_mins(1), source: &source }.make(
                &request,
                &mut |progress| sent += usize::from(matches!(progress, Progress::Sent { .. })),
                async |show| {
                    let (text, outcome) = left.borrow_mut().next().unwrap();
                    if !text.is_empty() {
                        show(Progress::Text(text));
                    }
                    outcome
                },
            ));
        (outcome, sent)
    }

    #[test]
    fn lr1_a_temporary_failure_is_repeated() {
        let (outcome, sent) = play(
            vec![
                ("", Err(fail(ErrorKind::RateLimit))),
                ("", Err(fail(ErrorKind::Timeout))),
                ("", Ok(answer("x"))),
            ],
            None,
        );
        assert_eq!((outcome, sent), (Ok(answer("x")), 3));
    }

    #[test]
    fn who_is_told_that_an_answer_was_of_no_use_may_give_the_call_up_before_it_is_asked_for_again() {
        let (source, given_up) = (Source::new(), tokio_util::sync::CancellationToken::new());
        let (request, mut sent) = (Request::default(), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut tell = |progress: Progress<'_>| match progress {
            Progress::Sent { .. } => sent += 1,
            _ => given_up.cancel(),
        };
        let attempts = Attempts { retries: 2, whole: Duration::from_mins(1), source: &source };
        let call = attempts.make(&request, &mut tell, async |_| Ok(answer("")));
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
        let (outcome, sent) = play(vec![("", Err(fail(ErrorKind::Server))); 3], None);
        assert_eq!((outcome.unwrap_err().message.as_str(), sent), ("no (after 3 attempts)", 3));
    }

    #[test]
    fn lr5_an_answer_of_which_something_was_shown_is_not_repeated() {
        let (outcome, sent) = play(vec![("half", Err(fail(ErrorKind::CutStream)))], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (ErrorKind::CutStream, 1));
    }

    #[test]
    fn an_empty_answer_is_asked_again_once() {
        let (outcome, sent) = play(vec![("", Ok(answer(" "))), ("", Ok(answer("x")))], None);
        assert_eq!((outcome, sent), (Ok(answer("x")), 2));
        let (outcome, sent) = play(vec![("", Ok(answer(""))); 2], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (ErrorKind::EmptyAnswer, 2));
    }

    #[test]
    fn l20_a_call_that_its_server_could_not_read_is_asked_again_twice_unless_text_was_shown() {
        let failed = || Err(fail(ErrorKind::ToolUseFailed));
        let (outcome, sent) = play(vec![("", failed()), (" ", failed()), ("", Ok(answer("x")))], None);
        assert_eq!((outcome, sent), (Ok(answer("x")), 3));
        let (outcome, sent) = play(vec![("", failed()), ("", failed()), ("", failed())], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (ErrorKind::ToolUseFailed, 3));
        let (outcome, sent) = play(vec![("half", failed())], None);
        assert_eq!((outcome.unwrap_err().kind, sent), (ErrorKind::ToolUseFailed, 1));
    }

    #[test]
    fn what_an_empty_answer_used_goes_with_its_error() {
        let usage = Some(crate::usage::Usage { input: 7, ..Default::default() });
        let empty = Response { usage, ..answer("") };
        let (outcome, _) = play(vec![("", Ok(empty.clone())), ("", Ok(empty))], None);
        assert_eq!(outcome.unwrap_err().usage, usage);
    }

    #[test]
    fn a_wait_that_does_not_fit_into_the_deadline_is_not_begun() {
        let late = LlmError { retry_after: Some(Duration::from_mins(1)), ..fail(ErrorKind::RateLimit) };
        let (outcome, sent) = play(vec![("", Err(late))], Some(Duration::from_secs(30)));
        let error = outcome.unwrap_err();
        assert_eq!((error.kind, sent), (ErrorKind::RateLimit, 1));
        assert!(error.message.contains("the server asks to wait 60s, and only 29s are left"), "{error}");
    }
}
