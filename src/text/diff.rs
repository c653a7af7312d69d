//! Unified diffs: whole for the person who decides, cut for the model that knows what it wrote, bounded in time.

use similar::TextDiff;
use std::fmt::Write as _;
use std::time::Duration;

/// Longest time spent on the smallest diff; after that a larger but true one is taken.
const DEADLINE: Duration = Duration::from_millis(200);

/// Lines of a diff shown; a longer one says how many were left out.
pub const MAX_LINES: usize = 200;

/// Characters of one diff line shown, so that a minified file does not fill the answer.
const MAX_LINE_CHARS: usize = 500;

/// The unified diff between two versions of `path`, cut; empty when they are equal.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    cut(&whole(path, old, new))
}

/// The unified diff between two versions of `path`; empty when they are equal. As long as both, so whoever shows it cuts it.
pub fn whole(path: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(DEADLINE).diff_lines(old, new);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

/// The first lines of a diff, and how many more there are.
pub fn cut(whole: &str) -> String {
    let total = whole.lines().count();
    let mut out = String::with_capacity(whole.len().min(MAX_LINES * 80));
    for line in whole.split_inclusive('\n').take(MAX_LINES) {
        match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => {
                out.push_str(line.get(..end).unwrap_or(line));
                out.push_str(" [... line cut ...]\n");
            }
            None => out.push_str(line),
        }
    }
    if total > MAX_LINES {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "[... {} more diff lines ...]", total - MAX_LINES);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_the_file_and_the_lines() {
        let diff = unified("a.txt", "one\ntwo\n", "one\n2\n");
        assert_eq!(diff, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a", "x\n", "x\n"), "");
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let new = (0..1000).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
        let diff = unified("a", "", &new);
        assert!(diff.lines().count() <= MAX_LINES + 1);
        assert!(diff.contains("more diff lines"));
        assert!(unified("a", "", &"x".repeat(100_000)).len() < 1000);
    }
}
