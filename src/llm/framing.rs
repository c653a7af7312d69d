//! Splits the bytes of a stream into events of limited size: server-sent events or lines of JSON.

use memchr::memchr2;
use std::str::Utf8Error;

/// Limit on a line and on an event, in bytes; a whole answer of 128,000 tokens fits even if every
/// character is escaped.
pub const EVENT_CAP: usize = 4 * 1024 * 1024;

/// Largest line buffer that is reused for the next line, in bytes; longer lines are rare.
const RETAINED_CAPACITY: usize = 64 * 1024;

/// Error of a stream that is not made of UTF-8 lines of limited size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A line or event above [`EVENT_CAP`].
    #[error("an event of the stream is longer than {} MiB", EVENT_CAP / 1024 / 1024)]
    TooLong,
    /// Bytes that are not UTF-8; never replaced, because they may be part of arguments.
    #[error("the stream is not valid UTF-8")]
    NotUtf8,
    /// The last event ends inside a character.
    #[error("an event of the stream ends inside a character")]
    IncompleteUtf8,
}

impl From<Utf8Error> for FramingError {
    fn from(error: Utf8Error) -> Self {
        if error.error_len().is_none() { Self::IncompleteUtf8 } else { Self::NotUtf8 }
    }
}

/// How a stream is divided into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>. Only their `data` is used.
    Sse,
    /// One event per non-blank line: <https://github.com/ndjson/ndjson-spec>.
    Ndjson,
}

/// Splits a stream into events, regardless of how it is cut into chunks.
#[derive(Debug)]
pub struct FrameDecoder {
    framing: Framing,
    line: Vec<u8>,
    /// The `data` of the current event; `None` if it has none yet.
    data: Option<Vec<u8>>,
    after_cr: bool,
    has_started: bool,
    keep_alive: bool,
}

impl FrameDecoder {
    /// Creates a decoder at the start of a stream.
    pub fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: None, after_cr: false, has_started: false, keep_alive: false }
    }

    /// Returns whether a comment or a blank line without an event arrived since the last call.
    pub fn take_keep_alive(&mut self) -> bool {
        std::mem::take(&mut self.keep_alive)
    }

    /// Reads more bytes and appends each completed event to `events`.
    ///
    /// # Errors
    /// When a line or event is too long or not UTF-8; the stream is then unusable.
    pub fn push(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), FramingError> {
        let mut rest = bytes;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            let end = memchr2(b'\n', b'\r', rest);
            let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
            if self.line.len() + text.len() > EVENT_CAP {
                return Err(FramingError::TooLong);
            }
            self.line.extend_from_slice(text);
            let Some((&terminator, after)) = after.split_first() else { break };
            self.after_cr = terminator == b'\r';
            rest = after;
            self.end_line(events)?;
        }
        Ok(())
    }

    /// Ends the stream: an event without its closing blank line still counts.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self, events: &mut Vec<String>) -> Result<(), FramingError> {
        self.end_line(events)?;
        self.end_event(events)
    }

    fn end_line(&mut self, events: &mut Vec<String>) -> Result<(), FramingError> {
        let mut line = std::mem::take(&mut self.line);
        let content = if std::mem::replace(&mut self.has_started, true) {
            line.as_slice()
        } else {
            line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line)
        };
        let is_comment = self.framing == Framing::Sse && content.starts_with(b":");
        self.keep_alive |= is_comment || content.is_empty() && self.data.is_none();
        if self.framing == Framing::Ndjson {
            if !content.trim_ascii().is_empty() {
                events.push(str::from_utf8(content)?.to_owned());
            }
        } else if content.is_empty() {
            self.end_event(events)?;
        } else if let Some(value) = data_of(content) {
            let data = match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data
                }
                none => none.insert(Vec::new()),
            };
            if data.len() + value.len() > EVENT_CAP {
                return Err(FramingError::TooLong);
            }
            data.extend_from_slice(value);
        }
        line.clear();
        if line.capacity() <= RETAINED_CAPACITY {
            self.line = line;
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<String>) -> Result<(), FramingError> {
        if let Some(data) = self.data.take() {
            events.push(String::from_utf8(data).map_err(|error| error.utf8_error())?);
        }
        Ok(())
    }
}

/// Returns the value of a `data` line, without the one optional space after the colon.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    match value.split_first() {
        None => Some(value),
        Some((b':', value)) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode_as<'a>(
        framing: Framing,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Vec<String>, FramingError> {
        let mut decoder = FrameDecoder::new(framing);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece, &mut events)?;
        }
        decoder.finish(&mut events)?;
        Ok(events)
    }

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, FramingError> {
        decode_as(Framing::Sse, pieces)
    }

    fn whole(stream: &str) -> Vec<String> {
        decode([stream.as_bytes()]).unwrap()
    }

    #[test]
    fn each_line_that_is_not_blank_is_an_event_of_ndjson() {
        let lines = |stream: &str| decode_as(Framing::Ndjson, [stream.as_bytes()]).unwrap();
        assert_eq!(lines("\u{FEFF}{\"a\":1}\r\n\n \n{}\ndata: x"), ["{\"a\":1}", "{}", "data: x"]);
        assert_eq!(decode_as(Framing::Ndjson, [b"\xFF\n".as_slice()]), Err(FramingError::NotUtf8));
        let line = vec![b'x'; EVENT_CAP / 2 + 1];
        assert_eq!(decode_as(Framing::Ndjson, [line.as_slice(), &line]), Err(FramingError::TooLong));
    }

    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        assert_eq!(whole("data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\r\n\n"), ["a", "b", "c", "d"]);
    }

    #[test]
    fn comments_other_fields_and_a_byte_order_mark_are_not_data() {
        let stream = "\u{FEFF}data:a\n: PROCESSING\nevent: x\nid: 7\nretry: 3\ndatax: no\n\n:\n\ndata: b\n\n";
        assert_eq!(whole(stream), ["a", "b"]);
    }

    #[test]
    fn data_lines_are_joined_and_one_space_is_dropped() {
        assert_eq!(whole("data:  a\ndata\ndata:b\n\n"), [" a\n\nb"]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(whole("data: a\n\ndata: b"), ["a", "b"]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_an_error() {
        assert_eq!(decode([b"data: \xFF\n\n".as_slice()]), Err(FramingError::NotUtf8));
        assert_eq!(decode([b"data: \xF0\x9F".as_slice()]), Err(FramingError::IncompleteUtf8));
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_errors() {
        let line = vec![b'x'; EVENT_CAP / 2 + 1];
        assert_eq!(decode([b"data: ".as_slice(), &line, &line]), Err(FramingError::TooLong));
        let lines = [b"data: ".as_slice(), &line, b"\ndata: ", &line, b"\n"];
        assert_eq!(decode(lines), Err(FramingError::TooLong));
    }

    proptest! {
        #[test]
        fn the_events_do_not_depend_on_how_the_stream_is_cut(
            framing in prop::sample::select(vec![Framing::Sse, Framing::Ndjson]),
            lines in prop::collection::vec("(data: ?|: ?|event:)?[ -~é→\u{1F600}]{0,12}", 0..12),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"]), 12),
            cuts in prop::collection::vec(0..400_usize, 0..20),
        ) {
            let stream: String = lines.iter().zip(&ends).flat_map(|(line, end)| [line.as_str(), end]).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &stream.as_bytes()[pair[0]..pair[1]]);
            prop_assert_eq!(decode_as(framing, pieces), decode_as(framing, [stream.as_bytes()]));
        }
    }
}
