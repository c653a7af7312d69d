//! Pages of text on standard output: the size of its terminal, and the bytes of a page for a pager.

use super::live::paint_row;
use super::preview::Row;
use super::streams::Terminal;

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl Terminal {
    /// Returns the size of the terminal of standard output, or nothing if standard output is no terminal.
    pub fn output_size(&self) -> Option<TerminalSize> {
        if !self.stream_info().stdout.is_terminal() {
            return None;
        }
        let (height, width) = console::Term::stdout().size();
        Some(TerminalSize { height: height.into(), width: usize::from(width).max(1) })
    }

    /// Returns rows as [`print_rows`](Self::print_rows) writes them.
    pub fn painted(&self, rows: &[Row]) -> String {
        let mut text = String::new();
        for row in rows {
            paint_row(&mut text, row, self.has_output_color());
            text.push('\n');
        }
        text
    }
}
