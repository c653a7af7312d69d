//! Passes on the lines of a server that can be messages, within limits, and drops everything else that it prints.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Maximum length of a message in bytes, as in the parser of `rmcp`.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Maximum bytes of lines that are no messages, such as a banner.
pub const MAX_GARBAGE_BYTES: usize = 1024 * 1024;

/// Maximum number of values in a message. Parsing takes about 140 bytes of memory for each, however short it is.
pub const MAX_VALUES: usize = 256 * 1024;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// The reason why the filter has ended the stream, shared with the connection.
pub type Violation = Arc<Mutex<Option<String>>>;

/// Reads from a server. The stream ends when the server exceeds a limit.
#[derive(Debug)]
pub struct LineFilter<R> {
    inner: R,
    state: FilterState,
    /// Bytes to pass on, and how many of them were passed on.
    ready: Vec<u8>,
    passed: usize,
    /// Bytes that were read at once.
    chunk: Vec<u8>,
    violation: Violation,
}

/// Where the filter is in the stream.
#[derive(Debug, Default)]
struct FilterState {
    line: LineKind,
    line_bytes: usize,
    garbage_bytes: usize,
    values: ValueCounter,
}

/// Counts the values of a JSON text that comes in parts. The count is exact or one too high.
#[derive(Debug, Default)]
pub struct ValueCounter {
    is_in_string: bool,
    is_escaped: bool,
    count: usize,
}

impl ValueCounter {
    /// Adds a part of the text, and returns the number of values so far.
    pub fn add(&mut self, part: &[u8]) -> usize {
        for byte in part {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.is_in_string,
                b'"' => self.is_in_string = !self.is_in_string,
                b',' | b'[' | b'{' if !self.is_in_string => self.count += 1,
                _ => {}
            }
        }
        self.count
    }
}

/// What the current line is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// Nothing but white space was read of it.
    #[default]
    Unknown,
    /// It begins like a JSON object.
    Message,
    /// It does not.
    Garbage,
}

impl<R> LineFilter<R> {
    /// Creates a filter of `inner`, and returns where it stores the reason if it ends the stream.
    pub fn new(inner: R) -> (Self, Violation) {
        let violation = Violation::default();
        let filter = Self {
            inner,
            state: FilterState::default(),
            ready: Vec::new(),
            passed: 0,
            chunk: vec![0; CHUNK_BYTES],
            violation: Arc::clone(&violation),
        };
        (filter, violation)
    }
}

impl FilterState {
    /// Appends the parts of `bytes` that belong to messages to `out`.
    ///
    /// # Errors
    /// A description of the limit that the server has exceeded.
    fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line == LineKind::Unknown {
                let first = part.iter().find(|byte| !byte.is_ascii_whitespace() && !is_mark(**byte));
                self.line = match first {
                    Some(b'{') => LineKind::Message,
                    Some(_) => LineKind::Garbage,
                    None => LineKind::Unknown,
                };
            }
            self.line_bytes += part.len();
            if self.line == LineKind::Message {
                out.extend_from_slice(part);
                if self.line_bytes > MAX_LINE_BYTES {
                    return Err(format!("sent a message longer than {} MiB", MAX_LINE_BYTES >> 20));
                }
                if self.values.add(part) > MAX_VALUES {
                    return Err(format!("sent a message with more than {MAX_VALUES} values"));
                }
            } else {
                self.garbage_bytes += part.len();
                if self.garbage_bytes > MAX_GARBAGE_BYTES {
                    let most = MAX_GARBAGE_BYTES >> 20;
                    return Err(format!("printed more than {most} MiB that are no messages of MCP"));
                }
            }
            if part.ends_with(b"\n") {
                (self.line, self.line_bytes, self.values) = (LineKind::Unknown, 0, ValueCounter::default());
            }
        }
        Ok(())
    }
}

/// Checks whether `byte` is one of a byte order mark in UTF-8.
fn is_mark(byte: u8) -> bool {
    matches!(byte, 0xEF | 0xBB | 0xBF)
}

impl<R: AsyncRead + Unpin> AsyncRead for LineFilter<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = this.ready.get(this.passed..).unwrap_or_default();
            if !left.is_empty() {
                let count = left.len().min(buf.remaining());
                buf.put_slice(left.get(..count).unwrap_or_default());
                this.passed += count;
                return Poll::Ready(Ok(()));
            }
            this.ready.clear();
            this.passed = 0;
            let mut read = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            if let Err(reason) = this.state.pass(read.filled(), &mut this.ready) {
                *this.violation.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filtered(chunks: &[&[u8]]) -> (String, Option<String>) {
        let (mut state, mut out) = (FilterState::default(), Vec::new());
        let error = chunks.iter().find_map(|chunk| state.pass(chunk, &mut out).err());
        (String::from_utf8_lossy(&out).into_owned(), error)
    }

    #[test]
    fn mh_001_a_banner_is_skipped_and_messages_are_passed_on() {
        let (out, error) = filtered(&[b"Welcome!\n\n  {\"a\"", b": 1}\n", b"npm notice\n[1]\n{}\n"]);
        assert_eq!((out.as_str(), error), ("  {\"a\": 1}\n{}\n", None));
    }

    #[test]
    fn mh_004_more_than_a_mebibyte_of_garbage_ends_the_stream() {
        let noise = vec![b'x'; MAX_GARBAGE_BYTES / 2];
        assert_eq!(filtered(&[&noise, &noise]).1, None);
        assert!(filtered(&[&noise, &noise, b"x"]).1.unwrap().contains("no messages"));
    }

    #[test]
    fn mh_005_a_message_that_does_not_end_ends_the_stream() {
        let start: &[u8] = b"{";
        let more = vec![b'a'; MAX_LINE_BYTES];
        assert!(filtered(&[start, &more]).1.unwrap().contains("16 MiB"));
    }

    #[test]
    fn mh_005_a_message_of_too_many_values_ends_the_stream_and_a_long_text_is_one() {
        let (zeros, commas) = ("0,".repeat(MAX_VALUES), ",".repeat(MAX_VALUES + 1));
        assert!(filtered(&[b"{\"a\":[", zeros.as_bytes()]).1.unwrap().contains("values"));
        assert_eq!(filtered(&[b"{\"a\":\"\\\"[", commas.as_bytes(), b"\"}\n"]).1, None);
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_split_does_not_matter(text in "[{a \n]{0,40}", at in 0_usize..40) {
            let bytes = text.as_bytes();
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let messages = |chunks: &[&[u8]]| filtered(chunks).0.replace([' ', '\n'], "");
            prop_assert_eq!(messages(&[first, second]), messages(&[bytes]));
        }
    }
}
