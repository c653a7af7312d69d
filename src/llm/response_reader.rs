//! Reads one answer as its bytes arrive: a stream of events or one document.

use crate::LlmError;
use crate::codec::{Codec, Decoder};
use crate::framing::{FrameDecoder, Framing, FramingError};
use crate::provider_error::excerpt;
use crate::response_builder::ResponseBuilder;
use agent_core::failure::FailureKind;
use agent_http::MAX_BODY_BYTES;
use agent_text::json_bounds;
use serde::de::IgnoredAny;

/// Number of bytes of a body that are quoted if it is neither a document nor a stream.
const PREFIX_BYTES: usize = 512;
/// Byte order mark with which Unicode text may start.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Result of reading some bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrival {
    /// Nothing is complete yet.
    Partial,
    /// A comment or blank line, which servers send while a request is queued.
    KeepAlive,
    /// An event.
    Event,
}

/// Reads the bytes of one body into a [`ResponseBuilder`].
pub struct ResponseReader {
    framing: Framing,
    streamed: bool,
    decoder: Box<dyn Decoder>,
    kind: BodyKind,
    /// The first bytes, up to [`PREFIX_BYTES`], without the white space before them, which servers send while a request waits.
    prefix: Vec<u8>,
    any_event: bool,
}

/// Kind of a body.
enum BodyKind {
    /// Only white space so far.
    Undecided,
    Document(Vec<u8>),
    Stream(FrameDecoder),
}

impl ResponseReader {
    /// Creates a reader before the first byte; `streamed` is true if a stream was requested.
    pub fn new(codec: &dyn Codec, streamed: bool) -> Self {
        Self {
            framing: codec.framing(),
            streamed,
            decoder: codec.decoder(),
            kind: BodyKind::Undecided,
            prefix: Vec::new(),
            any_event: false,
        }
    }

    /// Reads more bytes and returns what they completed; those after the end of the answer are ignored.
    ///
    /// # Errors
    /// When they violate the format, contain an error, or exceed a limit.
    pub fn push(&mut self, bytes: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<Arrival, LlmError> {
        let has_line_end = bytes.contains(&b'\n');
        let start =
            if self.prefix.is_empty() { bytes.iter().position(|byte| !is_blank(*byte)) } else { Some(0) };
        let Some(bytes) = start.and_then(|start| bytes.get(start..)) else {
            return Ok(if has_line_end { Arrival::KeepAlive } else { Arrival::Partial });
        };
        self.prefix.extend(bytes.iter().take(PREFIX_BYTES - self.prefix.len()));
        if let (BodyKind::Undecided, Some(first)) = (&self.kind, bytes.first()) {
            self.kind = detect_kind(*first, self.framing, self.streamed);
        }
        self.feed(bytes, answer)
    }

    /// Checks whether `answer` is complete if the body ends here.
    pub fn is_whole(&self, answer: &ResponseBuilder<'_>) -> bool {
        matches!(self.kind, BodyKind::Stream(_))
            && answer.has_finish_reason()
            && self.decoder.is_complete_at_finish_reason()
    }

    /// Ends the body.
    ///
    /// # Errors
    /// As [`push`](Self::push), and when the body is neither a document nor a stream.
    pub fn finish(mut self, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        if answer.is_complete() {
            return Ok(());
        }
        match std::mem::replace(&mut self.kind, BodyKind::Undecided) {
            BodyKind::Undecided => Ok(()),
            BodyKind::Document(body) => {
                check_bounds(&body)?;
                let read = self.decoder.decode_body(&body, answer);
                read.map_err(
                    |error| if is_truncated(&error, &body) { truncated() } else { answer.refuse(error) },
                )
            }
            BodyKind::Stream(mut frames) => {
                let mut events = Vec::new();
                let ended = frames.finish(&mut events);
                self.take_last(events, answer)?;
                match ended {
                    Ok(()) | Err(FramingError::IncompleteUtf8) => {}
                    Err(error) => return Err(unframed(error)),
                }
                if !self.any_event && !is_event_stream(&self.prefix) {
                    let shown = excerpt(&self.prefix);
                    let message = format!("the server answered with plain text: `{shown}`");
                    // Not a model server, or a proxy in front of one: a retry would not help.
                    return Err(LlmError { retryable: false, ..malformed(&message) });
                }
                Ok(())
            }
        }
    }

    /// Reads a last event without its end mark. A truncated one is ignored; whether the answer is
    /// complete depends on the other events.
    fn take_last(&mut self, events: Vec<String>, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let last = events.last().cloned().unwrap_or_default();
        match self.take(events, answer) {
            Err(error) if is_truncated(&error, last.as_bytes()) => Ok(()),
            taken => taken,
        }
    }

    fn feed(&mut self, bytes: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<Arrival, LlmError> {
        match &mut self.kind {
            BodyKind::Undecided => Ok(Arrival::Partial),
            BodyKind::Document(body) if body.len() + bytes.len() > MAX_BODY_BYTES => {
                let cap = MAX_BODY_BYTES / 1024 / 1024;
                Err(LlmError::too_large(format!("the answer is a document of more than {cap} MiB")))
            }
            BodyKind::Document(body) => {
                body.extend_from_slice(bytes);
                Ok(Arrival::Partial)
            }
            BodyKind::Stream(frames) => {
                let mut events = Vec::new();
                let pushed = frames.push(bytes, &mut events);
                let arrival = match (events.is_empty(), frames.take_keep_alive()) {
                    (false, _) => Arrival::Event,
                    (true, true) => Arrival::KeepAlive,
                    (true, false) => Arrival::Partial,
                };
                self.take(events, answer)?;
                // Anything after the end of the answer is ignored.
                if answer.is_complete() { Ok(arrival) } else { pushed.map(|()| arrival).map_err(unframed) }
            }
        }
    }

    /// Passes events to the decoder until the answer is complete.
    fn take(&mut self, events: Vec<String>, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.any_event |= !events.is_empty();
        for event in events {
            if answer.is_complete() {
                break;
            }
            check_bounds(event.as_bytes())?;
            self.decoder.decode_event(&event, answer).map_err(|error| answer.refuse(error))?;
        }
        Ok(())
    }
}

/// Checks whether `byte` is white space or part of a byte order mark.
fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || BYTE_ORDER_MARK.contains(&byte)
}

/// Detects the kind of a body by its `first` byte. One JSON document or a web page is a document; in a stream of lines each line is
/// a document.
fn detect_kind(first: u8, framing: Framing, streamed: bool) -> BodyKind {
    let is_document = match first {
        b'{' => framing == Framing::Sse || !streamed,
        first => matches!(first, b'[' | b'<'),
    };
    if is_document { BodyKind::Document(Vec::new()) } else { BodyKind::Stream(FrameDecoder::new(framing)) }
}

/// Checks whether a body without events consists of an event stream's lines, or of the prefix of one.
fn is_event_stream(body: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [b":", b"data", b"event", b"id", b"retry"];
    fields.into_iter().any(|field| body.starts_with(field) || field.starts_with(body))
}

/// Checks whether an event or document is invalid because it is truncated.
fn is_truncated(error: &LlmError, json: &[u8]) -> bool {
    // The parser reports a number that ends with a sign or a point as invalid, not as unfinished.
    let last = json.iter().rposition(|byte| !matches!(byte, b'-' | b'+' | b'.'));
    let trimmed = last.and_then(|last| json.get(..=last)).unwrap_or_default();
    let unfinished = || serde_json::from_slice::<IgnoredAny>(trimmed).is_err_and(|error| error.is_eof());
    error.kind == FailureKind::Malformed && (b"[DONE]".starts_with(json.trim_ascii()) || unfinished())
}

fn truncated() -> LlmError {
    LlmError::new(FailureKind::CutStream, "the answer ended before it was complete")
}

fn check_bounds(json: &[u8]) -> Result<(), LlmError> {
    json_bounds::check(json).map_err(|error| malformed(&format!("the answer is not usable JSON: {error}")))
}

fn unframed(error: FramingError) -> LlmError {
    match error {
        FramingError::TooLong => LlmError::too_large(error.to_string()),
        FramingError::NotUtf8 | FramingError::IncompleteUtf8 => malformed(&error.to_string()),
    }
}

fn malformed(message: &str) -> LlmError {
    LlmError::new(FailureKind::Malformed, message)
}
