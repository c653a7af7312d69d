//! Questions to the person at the terminal.

use super::figures::{bytes, thousands};

/// The end of every question.
pub const PROMPT_CHOICES: &str = "Allow it? y = yes, n = no, a = abort the run: ";

/// The first line of a question.
pub fn prompt_title(call: &str) -> String {
    format!("May I run {call}?")
}

/// Why it is asked.
pub fn prompt_reason(reason: &str) -> String {
    format!("   Asked because {reason}")
}

/// Stands for the lines of a preview that are not shown.
pub fn preview_cut(left_out: usize, total: usize, size: usize) -> String {
    let number = |lines: usize| thousands(u64::try_from(lines).unwrap_or(u64::MAX));
    format!("… {} of {} lines not shown ({} in all) …", number(left_out), number(total), bytes(size))
}

/// Stands for the rest of a long line.
pub fn line_cut(characters: usize) -> String {
    format!("… ({} more characters)", thousands(u64::try_from(characters).unwrap_or(u64::MAX)))
}
