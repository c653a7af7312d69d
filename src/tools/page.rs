//! Reads a range of lines from a stream in bounded memory.

use agent_workspace::file::{CHUNK_BYTES, digits};
use memchr::memchr;
use std::io::{self, Read};

/// Maximum bytes scanned for one page; the lines of a longer file are not counted and its hash is unknown.
pub const MAX_SCAN_BYTES: u64 = 64 * 1024 * 1024;

/// The requested lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The first line, counted from 1.
    pub start: usize,
    /// Maximum number of lines.
    pub lines: usize,
    /// Maximum number of bytes.
    pub bytes: usize,
}

/// A page of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The bytes of the page: whole lines unless `is_line_cut`.
    pub bytes: Vec<u8>,
    /// Number of lines in the page.
    pub lines: usize,
    /// Number of lines in the whole text; `None` when it is too long to count.
    pub total: Option<usize>,
    /// Hash of the whole text; `None` when it is too long.
    pub hash: Option<String>,
    /// Whether the page is a single line that was cut because it is longer than a page.
    pub is_line_cut: bool,
    /// Whether the text contains a NUL byte, so that it is binary.
    pub binary: bool,
}

/// Collects a page from successive chunks of the text.
struct Collector {
    range: LineRange,
    page: Page,
    /// The line the next byte belongs to, counted from 1.
    line: usize,
    /// Offset of the current line in the page.
    line_start: usize,
    full: bool,
    ends_with_newline: bool,
}

/// Reads the lines `range` from `reader`.
///
/// # Errors
/// When reading fails.
pub fn read(mut reader: impl Read, range: LineRange) -> io::Result<Page> {
    let mut hasher = blake3::Hasher::new();
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    let mut collector = Collector {
        range,
        page: Page::default(),
        line: 1,
        line_start: 0,
        full: range.lines == 0,
        ends_with_newline: true,
    };
    let mut scanned = 0_u64;
    loop {
        chunk.clear();
        let count = reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if memchr(0, &chunk).is_some() {
            collector.page.binary = true;
            break;
        }
        hasher.update(&chunk);
        collector.take(&chunk);
        if count < CHUNK_BYTES {
            let unfinished = usize::from(!collector.ends_with_newline);
            collector.page.total = Some(collector.line - 1 + unfinished);
            collector.page.hash = Some(digits(&hasher.finalize()));
            break;
        }
        scanned += count as u64;
        if scanned > MAX_SCAN_BYTES {
            break;
        }
    }
    Ok(collector.finish())
}

impl Collector {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.ends_with_newline = piece.ends_with(b"\n");
            if self.line >= self.range.start && !self.full {
                self.collect(piece);
            }
            if self.ends_with_newline {
                self.end_line();
            }
        }
    }

    fn collect(&mut self, piece: &[u8]) {
        let room = self.range.bytes.saturating_sub(self.page.bytes.len());
        if piece.len() <= room {
            self.page.bytes.extend_from_slice(piece);
        } else if self.line_start == 0 {
            self.page.bytes.extend_from_slice(piece.get(..room).unwrap_or_default());
            self.page.is_line_cut = true;
            self.page.lines = 1;
            self.full = true;
        } else {
            self.page.bytes.truncate(self.line_start);
            self.full = true;
        }
    }

    fn end_line(&mut self) {
        if self.line >= self.range.start && !self.full {
            self.page.lines += 1;
            self.line_start = self.page.bytes.len();
            self.full = self.page.lines >= self.range.lines;
        }
        self.line += 1;
    }

    fn finish(mut self) -> Page {
        if !self.full && self.page.bytes.len() > self.line_start {
            self.page.lines += 1;
        }
        self.page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(text: &str, start: usize, lines: usize, bytes: usize) -> (String, usize, Option<usize>) {
        let page = read(text.as_bytes(), LineRange { start, lines, bytes }).unwrap();
        (String::from_utf8(page.bytes).unwrap(), page.lines, page.total)
    }

    #[test]
    fn t02_only_the_lines_asked_for_are_returned() {
        assert_eq!(page("a\nb\nc\nd", 2, 2, 100), ("b\nc\n".to_owned(), 2, Some(4)));
        assert_eq!(page("a\nb\nc\nd", 4, 9, 100), ("d".to_owned(), 1, Some(4)));
        assert_eq!(page("a\n", 5, 9, 100), (String::new(), 0, Some(1)));
        assert_eq!(page("", 1, 9, 100), (String::new(), 0, Some(0)));
    }

    #[test]
    fn a_page_ends_with_the_last_line_that_fits() {
        assert_eq!(page("aaa\nbbb\nccc\n", 1, 9, 9), ("aaa\nbbb\n".to_owned(), 2, Some(3)));
        let cut = read("x".repeat(50).as_bytes(), LineRange { start: 1, lines: 5, bytes: 10 }).unwrap();
        assert!(cut.is_line_cut && cut.bytes.len() == 10 && cut.lines == 1);
    }

    proptest! {
        #[test]
        fn pages_put_together_are_the_whole(lines in prop::collection::vec("[a-z]{0,5}", 0..30), size in 1_usize..7) {
            let text = lines.join("\n");
            let (mut whole, mut start) = (String::new(), 1);
            loop {
                let (part, count, _) = page(&text, start, size, 1000);
                if count == 0 { break; }
                whole.push_str(&part);
                start += count;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
