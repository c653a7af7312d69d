//! A hunk of a patch: the lines it expects, the lines it leaves, and what it says about where that is.

use crate::text::lines::quoted;
use crate::text::patch::error::PatchError;

/// One hunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The first old line, counted from 1 (0 for an insertion at the start); `None` for a bare `@@`.
    pub start: Option<usize>,
    /// How many old lines its header counts.
    pub old_count: Option<usize>,
    /// Lines of the file, each after the one before, after which it stands.
    pub scope: Vec<String>,
    /// Whether it stands at the end of the file.
    pub at_end: bool,
    /// Its lines, in order.
    pub lines: Vec<Line>,
    /// How many of them are of the old side.
    pub old_len: usize,
    /// `\ No newline at end of file` stood after the last line of the new side.
    pub new_without_newline: bool,
    /// … after the last line of the old side only.
    pub old_without_newline: bool,
}

/// A line of a hunk, without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Stays.
    Context(String),
    /// Goes.
    Removed(String),
    /// Comes.
    Added(String),
}

impl Hunk {
    /// Reads `@@ -a,b +c,d @@`, or a bare `@@` whose place the context decides.
    ///
    /// # Errors
    /// When numbers are begun that are none.
    pub fn header(line: &str, number: usize) -> Result<Self, PatchError> {
        let bad = || PatchError::BadHeader { hunk: number, line: quoted(line) };
        let rest = line.trim_start_matches('@').trim_start();
        let Some(old) = rest.strip_prefix('-') else { return Ok(Self::default()) };
        let range = old.split_whitespace().next().ok_or_else(bad)?;
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let start: usize = start.parse().map_err(|_| bad())?;
        let count: usize = count.parse().map_err(|_| bad())?;
        // No file has more lines than this, and sums of it cannot overflow.
        if start > u32::MAX as usize || count > u32::MAX as usize {
            return Err(bad());
        }
        Ok(Self { start: Some(start), old_count: Some(count), ..Self::default() })
    }

    /// Takes the next line of the patch.
    ///
    /// # Errors
    /// When it starts with none of the signs.
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

    /// The last look at a hunk that is read: blank lines after it belong to it only as far as its header counts them.
    ///
    /// # Errors
    /// When it changes nothing.
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

    /// Whether all old lines that its header counts have been read.
    pub fn is_full(&self) -> bool {
        self.old_count.is_some_and(|count| self.old_len >= count)
    }

    /// The lines it expects.
    pub fn old_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Removed(text) => Some(text.as_str()),
            Line::Added(_) => None,
        })
    }

    /// The lines it leaves.
    pub fn new_lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Context(text) | Line::Added(text) => Some(text.as_str()),
            Line::Removed(_) => None,
        })
    }

    /// The lines it brings.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            Line::Added(text) => Some(text.as_str()),
            Line::Context(_) | Line::Removed(_) => None,
        })
    }

    /// The index of its first old line as its header says.
    pub fn position(&self) -> Option<usize> {
        let start = self.start?;
        let inserts = self.old_count == Some(0) && self.old_len == 0;
        Some(if inserts { start } else { start.saturating_sub(1) })
    }
}
