//! Hunk of a patch: old lines, new lines and position.

use crate::lines::quoted;
use crate::patch::error::PatchError;

/// Hunk of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// First old line, counted from 1 (0 for an insertion at the start); `None` for a bare `@@`.
    pub start: Option<usize>,
    /// Number of old lines in the header.
    pub old_count: Option<usize>,
    /// Lines of the file, in order, that precede the hunk (text of its `@@` headers).
    pub scope: Vec<String>,
    /// Whether the hunk must be at the end of the file.
    pub at_end: bool,
    /// Lines of the hunk, in order.
    pub lines: Vec<Line>,
    /// Number of lines of the old side.
    pub old_len: usize,
    /// Whether `\ No newline at end of file` follows the last line of the new side.
    pub new_without_newline: bool,
    /// Whether `\ No newline at end of file` follows the last line of the old side only.
    pub old_without_newline: bool,
}

/// A line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Unchanged line.
    Context(String),
    /// Removed line.
    Removed(String),
    /// Added line.
    Added(String),
}

impl Hunk {
    /// Parses `@@ -a,b +c,d @@`, or a bare `@@`, whose position is found by its context.
    ///
    /// # Errors
    /// When the line numbers are invalid.
    pub fn header(line: &str, number: usize) -> Result<Self, PatchError> {
        let bad = || PatchError::BadHeader { hunk: number, line: quoted(line) };
        let rest = line.trim_start_matches('@').trim_start();
        let Some(old) = rest.strip_prefix('-') else { return Ok(Self::default()) };
        let range = old.split_whitespace().next().ok_or_else(bad)?;
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let start: usize = start.parse().map_err(|_| bad())?;
        let count: usize = count.parse().map_err(|_| bad())?;
        // No file has more lines, and sums below this limit cannot overflow.
        if start > u32::MAX as usize || count > u32::MAX as usize {
            return Err(bad());
        }
        Ok(Self { start: Some(start), old_count: Some(count), ..Self::default() })
    }

    /// Adds the next line of the patch.
    ///
    /// # Errors
    /// When the line starts with none of the signs.
    pub fn take_line(&mut self, line: &str, number: usize) -> Result<(), PatchError> {
        let text = || line.get(1..).unwrap_or_default().to_owned();
        match line.chars().next() {
            None => self.push(Line::Context(String::new())),
            Some(' ') => self.push(Line::Context(text())),
            Some('-') => self.push(Line::Removed(text())),
            Some('+') => self.push(Line::Added(text())),
            Some('\\') => match self.lines.last() {
                Some(Line::Removed(_)) => self.old_without_newline = true,
                Some(_) => self.new_without_newline = true,
                None => {}
            },
            Some(_) => return Err(PatchError::BadLine { hunk: number, line: quoted(line) }),
        }
        Ok(())
    }

    fn push(&mut self, line: Line) {
        self.old_len += usize::from(!matches!(line, Line::Added(_)));
        self.lines.push(line);
    }

    /// Completes a parsed hunk: removes trailing blank lines beyond the count in its header.
    ///
    /// # Errors
    /// When the hunk changes nothing.
    pub fn finish(&mut self, number: usize) -> Result<(), PatchError> {
        let blank = |line: Option<&Line>| matches!(line, Some(Line::Context(text)) if text.is_empty());
        while blank(self.lines.last()) && self.old_count.is_none_or(|count| self.old_len > count) {
            self.lines.pop();
            self.old_len -= 1;
        }
        if self.lines.iter().all(|line| matches!(line, Line::Context(_))) {
            return Err(PatchError::NoChange { hunk: number });
        }
        Ok(())
    }

    /// Checks whether all old lines counted in the header have been read.
    pub fn is_full(&self) -> bool {
        self.old_count.is_some_and(|count| self.old_len >= count)
    }

    /// Returns the lines of the old side.
    pub fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Removed(text) => Some(text.as_str()),
            Line::Added(_) => None,
        })
    }

    /// Returns the lines of the new side.
    pub fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Added(text) => Some(text.as_str()),
            Line::Removed(_) => None,
        })
    }

    /// Returns the added lines.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Added(text) => Some(text.as_str()),
            Line::Context(_) | Line::Removed(_) => None,
        })
    }

    /// Returns the index of the first old line, according to the header.
    pub fn position(&self) -> Option<usize> {
        let start = self.start?;
        let inserts = self.old_count == Some(0) && self.old_len == 0;
        Some(if inserts { start } else { start.saturating_sub(1) })
    }
}
