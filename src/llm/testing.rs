//! Test helper shared by all decoders: feeds an answer event by event and returns the outcome.

use crate::codec::Decoder;
use crate::response_builder::{FinishContext, ResponseBuilder};
use crate::{LlmError, Progress, Response};
use std::cell::Cell;

/// Feeds `events` to `decoder`, as a stream or each as a whole body. Returns the shown text (thinking in angle brackets) and
/// the outcome. The tool `read` is offered, the call id `old` is taken, generated ids are `new1`, `new2`, ….
pub(super) fn decode(
    codec: &'static str,
    decoder: &mut dyn Decoder,
    events: &[&str],
    body: bool,
) -> (String, Result<Response, LlmError>) {
    let mut shown = String::new();
    let mut show = |progress: Progress<'_>| match progress {
        Progress::Text(text) => shown.push_str(text),
        Progress::Thinking(text) => shown.extend(["<", text, ">"]),
        Progress::Sent { .. } | Progress::Retry { .. } => {}
    };
    let mut answer = ResponseBuilder::new(codec, true, &mut show);
    let fed: Result<(), LlmError> = events.iter().try_for_each(|event| {
        if body {
            decoder.decode_body(event.as_bytes(), &mut answer)
        } else {
            decoder.decode_event(event, &mut answer)
        }
    });
    let next = Cell::new(0);
    let context = FinishContext {
        is_offered: &|name| name == "read",
        is_echo: &|_| false,
        is_structured_answer: &|_| false,
        new_id: &|| {
            next.set(next.get() + 1);
            format!("new{}", next.get())
        },
    };
    let outcome = match fed {
        Ok(()) => answer.finish(&context),
        Err(error) => Err(answer.refuse(error)),
    };
    (shown, outcome)
}
