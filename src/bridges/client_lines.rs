//! Reads lines of bounded length from a client.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Maximum bytes of a line.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its end.
    Complete(Vec<u8>),
    /// A line above the limit; its bytes are gone.
    TooLong,
}

/// Reads lines. Dropping a pending [`next`](Self::next) loses nothing.
pub struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
    limit: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader of lines with at most `limit` bytes.
    pub fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::new(input), line: Vec::new(), is_too_long: false, limit }
    }

    /// Returns the next line; `None` at the end of the input, which drops a line without an end.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            let bytes = self.input.fill_buf().await.ok().filter(|bytes| !bytes.is_empty())?;
            let end = memchr::memchr(b'\n', bytes);
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            self.is_too_long |= self.line.len().saturating_add(part.len()) > self.limit;
            if self.is_too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                let is_too_long = std::mem::take(&mut self.is_too_long);
                return Some(if is_too_long { Line::TooLong } else { Line::Complete(line) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_above_the_limit_is_dropped_and_the_next_one_is_read() {
        let mut reader = LineReader::new(&b"12345\n\n123456789\n1\nhalf"[..], 5);
        let complete = |text: &str| Some(Line::Complete(text.as_bytes().to_vec()));
        assert_eq!(reader.next().await, complete("12345"));
        assert_eq!(reader.next().await, complete(""));
        assert_eq!(reader.next().await, Some(Line::TooLong));
        assert_eq!(reader.next().await, complete("1"));
        assert_eq!(reader.next().await, None);
    }
}
