//! Splits a diff of several files into parts of limited length.

/// Characters of the lines that name a file and are repeated in each of its parts.
const MAX_HEADER_CHARS: usize = 2_000;

/// Start of a hunk; no other line of a diff starts with it.
const HUNK: &str = "@@ ";

/// Splits the diffs of `files` into parts of at most `max_chars` characters: between files, else before hunks, else before lines, else
/// within a line. A part that continues a file starts with the header of the file, for which `max_chars` must leave room.
pub fn split(files: &[String], max_chars: usize) -> Vec<String> {
    let mut parts = Parts { done: Vec::new(), current: String::new(), chars: 0, max_chars };
    for file in files {
        parts.add_file(file);
    }
    parts.close();
    parts.done
}

struct Parts {
    done: Vec<String>,
    current: String,
    /// Characters of `current`.
    chars: usize,
    max_chars: usize,
}

impl Parts {
    fn add_file(&mut self, file: &str) {
        if self.add(file) {
            return;
        }
        self.close();
        if self.add(file) {
            return;
        }
        let header = header(file);
        for hunk in pieces(file) {
            if self.add(hunk) {
                continue;
            }
            self.start_with(header);
            if self.add(hunk) {
                continue;
            }
            for line in hunk.split_inclusive('\n') {
                self.add_line(line, header);
            }
        }
        self.close();
    }

    /// Adds a line, in several parts if it is longer than one.
    fn add_line(&mut self, line: &str, header: &str) {
        let mut rest = line;
        while !self.add(rest) {
            if self.chars > header.chars().count() {
                self.start_with(header);
                continue;
            }
            let room = self.max_chars.saturating_sub(self.chars).max(1);
            let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
            let (fits, after) = rest.split_at(end);
            self.push(fits);
            self.start_with(header);
            rest = after;
        }
    }

    /// Adds `text` if there is room for it.
    fn add(&mut self, text: &str) -> bool {
        let fits = self.chars + text.chars().count() <= self.max_chars;
        if fits {
            self.push(text);
        }
        fits
    }

    fn push(&mut self, text: &str) {
        self.current.push_str(text);
        self.chars += text.chars().count();
    }

    /// Starts a part that continues a file.
    fn start_with(&mut self, header: &str) {
        if self.current != header {
            self.close();
            self.push(header);
        }
    }

    fn close(&mut self) {
        let part = std::mem::take(&mut self.current);
        self.chars = 0;
        if !part.is_empty() {
            self.done.push(part);
        }
    }
}

/// Returns the lines before the first hunk; nothing if they are too long to be repeated.
fn header(file: &str) -> &str {
    let first = pieces(file).first().copied().unwrap_or_default();
    if first.starts_with(HUNK) || first.chars().count() > MAX_HEADER_CHARS { "" } else { first }
}

/// Splits the diff of a file before each hunk.
fn pieces(file: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut end) = (Vec::new(), 0, 0);
    for line in file.split_inclusive('\n') {
        if line.starts_with(HUNK) && end > start {
            pieces.extend(file.get(start..end));
            start = end;
        }
        end += line.len();
    }
    pieces.extend(file.get(start..));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(name: &str, hunks: &[&str]) -> String {
        format!("--- a/{name}\n+++ b/{name}\n{}", hunks.concat())
    }

    #[test]
    fn a_diff_is_split_between_files_then_hunks_then_lines_then_characters() {
        let (a, b) = (file("a", &["@@ 1 @@\n+1\n"]), file("b", &["@@ 2 @@\n+2\n"]));
        assert_eq!(split(&[a.clone(), b.clone()], 60), [format!("{a}{b}")]);
        assert_eq!(split(&[a.clone(), b.clone()], 40), [a.clone(), b]);
        let hunks = file("a", &["@@ 1 @@\n+1\n", "@@ 2 @@\n+2\n"]);
        assert_eq!(split(&[hunks], 35), [a, file("a", &["@@ 2 @@\n+2\n"])]);
        let lines = file("a", &["@@ 1 @@\n+123456\n+abcdef\n"]);
        assert_eq!(split(&[lines], 35), [file("a", &["@@ 1 @@\n+123456\n"]), file("a", &["+abcdef\n"])]);
        let line = file("a", &["@@ 1 @@\n", "+éééééééééééé\n"]);
        assert_eq!(
            split(&[line], 25),
            [file("a", &["@@ 1 @@\n"]), file("a", &["+éééééééé"]), file("a", &["éééé\n"])]
        );
        assert_eq!(split(&[], 25), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn no_part_is_too_long_and_none_of_the_diff_is_lost(
            files in prop::collection::vec("[@ +\\-aé\n]{0,200}", 0..5),
            max in 1_usize..80,
        ) {
            let files: Vec<String> = files.iter().map(|body| format!("@@ 1 @@\n{body}")).collect();
            let parts = split(&files, max);
            prop_assert!(parts.iter().all(|part| (1..=max).contains(&part.chars().count())));
            prop_assert_eq!(parts.concat(), files.concat());
        }
    }
}
