//! What a person sees of a diff or a command: rows of styled text, cut in the middle when they do not fit.

use super::sanitize::{row_count, sanitize, truncate_middle};
use super::streams::Style;
use std::ops::Range;

/// Most rows of a preview that is shown shortened.
pub const MAX_ROWS: usize = 60;
/// Fewest rows of a preview, on a terminal that is too low.
pub(super) const MIN_ROWS: usize = 8;
/// Columns of a line that is shown shortened: two and a half rows of a usual terminal.
const LINE_COLUMNS: usize = 200;
/// The end of what is too long gets one part in this many of the rows, because an attack could hide there.
const TAIL_SHARE: usize = 3;
/// Words of two lines are compared if at most this share of a line, in percent, has changed.
const MAX_CHANGED_PERCENT: usize = 70;
/// Characters before the number of a line.
const INDENT: &str = "  ";

/// One row: pieces of text, each with its style.
pub type Row = Vec<(Style, String)>;

/// Rows of a text or of a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The rows, sanitized.
    pub rows: Vec<Row>,
    /// Whether something of the text is not among them.
    pub is_cut: bool,
}

impl Preview {
    /// Returns all rows of `text`, which is a unified diff if it begins with `--- `.
    pub fn whole(text: &str) -> Self {
        Self { rows: rows(text), is_cut: false }
    }

    /// Returns what takes about `max_rows` rows on a screen of `width` columns: long lines shortened, and of many lines the first ones, how many are
    /// left out, and the last ones.
    pub fn fitting(text: &str, max_rows: usize, width: usize) -> Self {
        let mut rows = rows(text);
        let mut is_cut = false;
        for (_, piece) in rows.iter_mut().flatten() {
            let short = truncate_middle(piece, LINE_COLUMNS);
            is_cut |= short != *piece;
            *piece = short;
        }
        let height = |row: &Row| {
            let text: String = row.iter().map(|(_, piece)| piece.as_str()).collect();
            row_count(&text, width).max(1)
        };
        if rows.iter().map(height).sum::<usize>() > max_rows {
            let tail = max_rows / TAIL_SHARE;
            let last = fitting_count(rows.iter().rev().map(height), tail);
            let first = fitting_count(rows.iter().map(height), max_rows - tail - 1).min(rows.len() - last);
            let (left_out, total) = (rows.len() - first - last, rows.len());
            if left_out > 0 {
                let cut = agent_messages::preview_cut(left_out, text.len());
                rows.splice(first..total - last, [vec![(Style::Dim, format!("{INDENT}{cut}"))]]);
                is_cut = true;
            }
        }
        Self { rows, is_cut }
    }
}

/// Returns how many of the first heights fit into `max` together, at least one.
fn fitting_count(heights: impl Iterator<Item = usize>, max: usize) -> usize {
    let mut used = 0_usize;
    let fits = |height: &usize| {
        used = used.saturating_add(*height);
        used <= max
    };
    heights.take_while(fits).count().max(1)
}

fn rows(text: &str) -> Vec<Row> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let lines: Vec<&str> = text.split('\n').collect();
    if text.starts_with("--- ") { diff_rows(&lines) } else { lines.into_iter().map(plain_row).collect() }
}

fn plain_row(line: &str) -> Row {
    vec![(Style::Plain, format!("{INDENT}{}", sanitize(line)))]
}

/// The numbers of the next lines of a hunk, and how many lines it still has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hunk {
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
}

impl Hunk {
    /// Parses `@@ -1,2 +3,4 @@`, in which a count of 1 may be missing.
    fn parse(line: &str) -> Option<Self> {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let range = |text: &str| {
            let (first, count) = text.split_once(',').unwrap_or((text, "1"));
            Some((first.parse().ok()?, count.parse().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Self { old, new, old_left, new_left })
    }

    /// Counts a line that begins with `sign`, and returns its number; `None` if it is no line of the hunk.
    fn take(&mut self, sign: u8) -> Option<usize> {
        let (is_old, is_new) = (sign != b'+', sign != b'-');
        if is_old && self.old_left == 0 || is_new && self.new_left == 0 {
            return None;
        }
        let number = if is_new { self.new } else { self.old };
        self.old += usize::from(is_old);
        self.old_left -= usize::from(is_old);
        self.new += usize::from(is_new);
        self.new_left -= usize::from(is_new);
        Some(number)
    }
}

/// Returns the rows of a unified diff: a row for each file, then its lines with their numbers, and a row between hunks.
fn diff_rows(lines: &[&str]) -> Vec<Row> {
    let last = lines.iter().filter_map(|line| Hunk::parse(line)).map(|hunk| hunk.new + hunk.new_left);
    let digits = last.max().unwrap_or_default().to_string().len();
    let (mut rows, mut hunk, mut at) = (Vec::new(), None::<Hunk>, 0);
    while let Some(line) = lines.get(at) {
        if let Some(of) = hunk.as_mut()
            && let taken @ 1.. = push_lines(&mut rows, of, lines.get(at..).unwrap_or_default(), digits)
        {
            at += taken;
            continue;
        }
        if let Some(next) = Hunk::parse(line) {
            if hunk.replace(next).is_some() {
                rows.push(vec![(Style::Dim, format!("{INDENT}{:>digits$} ⋮", ""))]);
            }
        } else if let (Some(old), Some(new)) =
            (line.strip_prefix("--- "), lines.get(at + 1).and_then(|line| line.strip_prefix("+++ ")))
        {
            rows.push(vec![(Style::Bold, format!("{INDENT}{}", sanitize(&file_of(old, new))))]);
            (hunk, at) = (None, at + 1);
        } else {
            let style = if line.starts_with('\\') { Style::Dim } else { Style::Plain };
            rows.push(vec![(style, format!("{INDENT}{}", sanitize(line)))]);
        }
        at += 1;
    }
    rows
}

/// Returns the file of a diff: its path, or both paths of one that moves.
fn file_of(old: &str, new: &str) -> String {
    let (old, new) = (old.strip_prefix("a/").unwrap_or(old), new.strip_prefix("b/").unwrap_or(new));
    match (old, new) {
        ("/dev/null", path) | (path, "/dev/null") => path.to_owned(),
        _ if old == new => new.to_owned(),
        _ => format!("{old} → {new}"),
    }
}

/// Adds the rows of an unchanged line, or of lines that were replaced by others, and returns how many lines they are; 0 if the first one is
/// no line of the hunk.
fn push_lines(rows: &mut Vec<Row>, hunk: &mut Hunk, lines: &[&str], digits: usize) -> usize {
    let starting = |sign: char, from: usize| {
        let rest = lines.get(from..).unwrap_or_default();
        rest.iter().take_while(|line| line.starts_with(sign)).count()
    };
    let removed = starting('-', 0).min(hunk.old_left);
    let added = starting('+', removed).min(hunk.new_left);
    if removed + added == 0 {
        let line = lines.first().copied().unwrap_or_default();
        let is_context = line.is_empty() || line.starts_with(' ');
        let Some(number) = is_context.then(|| hunk.take(b' ')).flatten() else { return 0 };
        let text = sanitize(line.get(1..).unwrap_or_default());
        rows.push(vec![
            (Style::Dim, format!("{INDENT}{number:>digits$}   ")),
            (Style::Plain, text.into_owned()),
        ]);
        return 1;
    }
    let text = |at: usize| lines.get(at).and_then(|line| line.get(1..)).unwrap_or_default();
    for at in 0..removed + added {
        let is_removed = at < removed;
        let (sign, other) = if is_removed { (b'-', at + removed) } else { (b'+', at.wrapping_sub(removed)) };
        let Some(number) = hunk.take(sign) else { return at };
        let changed = if removed == added { changed_part(text(at), text(other)) } else { None };
        let (style, word) =
            if is_removed { (Style::Error, Style::RemovedWord) } else { (Style::Success, Style::AddedWord) };
        let mut row = vec![(style.clone(), format!("{INDENT}{number:>digits$} {} ", char::from(sign)))];
        push_marked(&mut row, text(at), changed, [style, word]);
        rows.push(row);
    }
    removed + added
}

/// Adds a line in the first style, with its changed part in the second.
fn push_marked(row: &mut Row, line: &str, changed: Option<Range<usize>>, [style, word]: [Style; 2]) {
    let changed = changed.unwrap_or(line.len()..line.len());
    let pieces =
        [(style.clone(), 0..changed.start), (word, changed.clone()), (style, changed.end..line.len())];
    for (style, range) in pieces {
        let piece = line.get(range).unwrap_or_default();
        if !piece.is_empty() {
            row.push((style, sanitize(piece).into_owned()));
        }
    }
}

/// Returns the part of `line` that `other` does not have, in whole words; `None` if most of it has changed.
fn changed_part(line: &str, other: &str) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let equal = |pairs: &mut dyn Iterator<Item = (char, char)>| -> usize {
        pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let mut start = equal(&mut line.chars().zip(other.chars()));
    let same_end = equal(&mut line.chars().rev().zip(other.chars().rev()));
    let mut end = line.len() - same_end.min(line.len() - start).min(other.len() - start);
    while let Some(before) = line[..start].chars().next_back()
        && is_word(before)
        && line[start..].chars().next().is_none_or(is_word)
    {
        start -= before.len_utf8();
    }
    while let Some(after) = line[end..].chars().next()
        && is_word(after)
        && line[..end].chars().next_back().is_none_or(is_word)
    {
        end += after.len_utf8();
    }
    let is_small = (end - start) * 100 <= line.trim().len() * MAX_CHANGED_PERCENT;
    (start < end && is_small).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rows as text, with marked words between brackets.
    fn shown(text: &str) -> Vec<String> {
        let piece = |(style, piece): &(Style, String)| match style {
            Style::AddedWord | Style::RemovedWord => format!("[{piece}]"),
            _ => piece.clone(),
        };
        Preview::whole(text).rows.iter().map(|row| row.iter().map(piece).collect()).collect()
    }

    const DIFF: &str = "--- a/src/x.py\n+++ b/src/x.py\n@@ -8,3 +8,3 @@\n def f():\n-    return one(1)\n+    return two(1)\n \n";

    #[test]
    fn u05_a_diff_has_numbers_and_marked_words() {
        assert_eq!(
            shown(DIFF),
            [
                "  src/x.py",
                "   8   def f():",
                "   9 -     return [one](1)",
                "   9 +     return [two](1)",
                "  10   "
            ]
        );
    }

    #[test]
    fn u05_lines_that_look_like_headers_are_lines_of_their_hunk() {
        let diff = "--- /dev/null\n+++ b/a\n@@ -0,0 +1,2 @@\n+++ b/x\n+@@ -1 +1 @@\n@@ -5 +7 @@\n-x\n+y\n";
        assert_eq!(shown(diff), ["  a", "  1 + ++ b/x", "  2 + @@ -1 +1 @@", "    ⋮", "  5 - x", "  7 + y"]);
    }

    #[test]
    fn a_moved_file_and_a_missing_newline_are_told() {
        let diff = "--- a/old\n+++ b/new\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n";
        assert_eq!(shown(diff)[0], "  old → new");
        assert_eq!(shown(diff)[2], "  \\ No newline at end of file");
    }

    #[test]
    fn u05_a_long_preview_keeps_its_beginning_and_its_end() {
        let text = (1..=100).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        let preview = Preview::fitting(&text, 9, 80);
        assert!(preview.is_cut && preview.rows.len() == 9, "{preview:?}");
        let row = |at: usize| preview.rows[at][0].1.trim().to_owned();
        assert_eq!([row(0), row(4), row(8)], ["line 1", "line 5", "line 100"]);
        assert!(row(5).contains("92"), "{}", row(5));
        assert!(!Preview::fitting("short\n", 9, 80).is_cut);
        assert!(Preview::fitting(&"x".repeat(300), 9, 80).is_cut);
    }

    proptest! {
        #[test]
        fn nothing_of_a_text_is_lost_or_reaches_the_terminal_as_a_command(text in "(--- a\n\\+\\+\\+ b\n@@ -1,2 \\+1,3 @@\n)?(.|\n){0,80}") {
            let rows = Preview::whole(&text).rows;
            let all: String = rows.iter().flatten().map(|(_, piece)| piece.as_str()).collect();
            let has_command = all.contains(['\u{1b}', '\r', '\n']);
            prop_assert!(!has_command);
            for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 1) {
                prop_assert!(all.contains(word), "{word} is not in {all}");
            }
        }
    }
}
