//! Shows Markdown on a terminal while it streams: each line as soon as it is complete.

use super::streams::{PrintOutcome, Style, Terminal};
use minimad::{Composite, CompositeStyle, Line};
use std::io;

/// Columns of a horizontal rule.
const RULE_COLUMNS: usize = 40;

/// Writes a stream of Markdown to standard output; without colour, writes it unchanged.
#[derive(Debug, Default)]
pub struct MarkdownStream {
    /// The incomplete last line.
    line: String,
    /// Whether the text so far is in a fenced code block.
    in_code: bool,
    /// Whether the text written last did not end its line.
    is_open: bool,
}

impl MarkdownStream {
    /// Writes the lines that `piece` completes.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn push(&mut self, terminal: &Terminal, piece: &str) -> io::Result<PrintOutcome> {
        if !terminal.has_output_color() {
            if !piece.is_empty() {
                self.is_open = !piece.ends_with('\n');
            }
            return terminal.print_spans(&[(Style::Plain, piece)]);
        }
        self.line.push_str(piece);
        let Some(end) = self.line.rfind('\n') else { return Ok(PrintOutcome::Written) };
        let rest = self.line.split_off(end.saturating_add(1));
        let complete = std::mem::replace(&mut self.line, rest);
        let spans: Vec<_> = complete.lines().flat_map(|line| self.spans(line)).collect();
        terminal.print_spans(&borrowed(&spans))
    }

    /// Writes the incomplete last line and ends it; the next text is a new document.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn finish(&mut self, terminal: &Terminal) -> io::Result<PrintOutcome> {
        let line = std::mem::take(&mut self.line);
        let spans = if !line.is_empty() {
            self.spans(&line)
        } else if self.is_open {
            vec![(Style::Plain, "\n".to_owned())]
        } else {
            Vec::new()
        };
        *self = Self::default();
        terminal.print_spans(&borrowed(&spans))
    }

    /// Returns the styled pieces of a line, with the newline that ends it.
    fn spans(&mut self, line: &str) -> Vec<(Style, String)> {
        let is_fence = line.trim_start().starts_with("```");
        let mut spans = if is_fence {
            self.in_code = !self.in_code;
            vec![(Style::Dim, line.to_owned())]
        } else if self.in_code {
            vec![(Style::Code, line.to_owned())]
        } else if !has_clear_marks(line) {
            vec![(Style::Plain, line.to_owned())]
        } else {
            match minimad::parse_line(line) {
                Line::Normal(composite) => composite_spans(line, &composite),
                Line::HorizontalRule => vec![(Style::Dim, "─".repeat(RULE_COLUMNS))],
                // A table is shown as it is written: its columns are known only at its end.
                Line::TableRow(_) | Line::TableRule(_) | Line::CodeFence(_) => {
                    vec![(Style::Plain, line.to_owned())]
                }
            }
        };
        spans.push((Style::Plain, "\n".to_owned()));
        spans
    }
}

fn borrowed(spans: &[(Style, String)]) -> Vec<(Style, &str)> {
    spans.iter().map(|(style, text)| (*style, text.as_str())).collect()
}

/// Checks whether each mark of emphasis and code is one of a pair around text, so that the parser, which removes every mark,
/// changes nothing else: not in `2 * 3`, `src/**/*.rs`, `a_b` or a path with a backslash.
fn has_clear_marks(line: &str) -> bool {
    let text = line.trim_start();
    let text = ["* ", "- ", "+ "].iter().find_map(|bullet| text.strip_prefix(bullet)).unwrap_or(text);
    if text.contains(['\\', '~']) || text.matches('`').count() % 2 == 1 {
        return false;
    }
    // The odd pieces are code.
    let mut open = Vec::new();
    text.split('`').step_by(2).all(|prose| closes_its_stars(prose, &mut open)) && open.is_empty()
}

/// Checks whether each run of stars in `prose` opens or closes emphasis; `open` has the lengths of those that are open.
fn closes_its_stars(prose: &str, open: &mut Vec<usize>) -> bool {
    let chars: Vec<char> = prose.chars().collect();
    let mut at = 0;
    while let Some(start) = chars.get(at..).and_then(|rest| rest.iter().position(|char| *char == '*')) {
        let start = at + start;
        let length = chars.iter().skip(start).take_while(|char| **char == '*').count();
        let before = start.checked_sub(1).and_then(|before| chars.get(before)).copied().unwrap_or(' ');
        let after = chars.get(start + length).copied().unwrap_or(' ');
        let is_edge = |char: char| char.is_whitespace() || "([{<>)]}\"'.,:;!?—-".contains(char);
        if open.last() == Some(&length) && !before.is_whitespace() && is_edge(after) {
            open.pop();
        } else if is_edge(before) && !after.is_whitespace() && length <= 3 {
            open.push(length);
        } else {
            return false;
        }
        at = start + length;
    }
    true
}

fn composite_spans(line: &str, composite: &Composite<'_>) -> Vec<(Style, String)> {
    let indent: String = line.chars().take_while(|char| char.is_whitespace()).collect();
    let (lead, whole) = match composite.style {
        CompositeStyle::Header(_) => (String::new(), Some(Style::Bold)),
        CompositeStyle::ListItem(_) => (format!("{indent}• "), None),
        CompositeStyle::OrderedListItem { index, .. } => (format!("{indent}{index}. "), None),
        CompositeStyle::Quote => (format!("{indent}│ "), Some(Style::Dim)),
        // The parser removes four columns of the indent.
        CompositeStyle::Code => return vec![(Style::Code, line.to_owned())],
        CompositeStyle::Paragraph => (indent, None),
    };
    let compounds = composite.compounds.iter().map(|compound| {
        let style = match (whole, compound.code, compound.bold, compound.italic) {
            (Some(whole), ..) => whole,
            (None, true, ..) => Style::Code,
            (None, false, true, _) => Style::Bold,
            (None, false, false, true) => Style::Italic,
            (None, false, false, false) => Style::Plain,
        };
        (style, compound.src.to_owned())
    });
    [(Style::Plain, lead)].into_iter().chain(compounds).filter(|(_, text)| !text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StdoutTarget, StreamInfo, TerminalEnvironment};
    use proptest::prelude::*;
    use std::io::Read;

    /// Returns what a terminal receives of `pieces`, with or without colour.
    fn shown(pieces: &[&str], colored: bool) -> String {
        let (mut reader, out) = io::pipe().unwrap();
        let environment = TerminalEnvironment {
            clicolor_force: colored.then(|| "1".to_owned()),
            ..TerminalEnvironment::default()
        };
        let info = StreamInfo { stdout: StdoutTarget::Elsewhere, ..StreamInfo::default() };
        let terminal = Terminal::with_streams(info, &environment, Box::new(out), Box::new(io::sink()));
        let mut stream = MarkdownStream::default();
        for piece in pieces {
            stream.push(&terminal, piece).unwrap();
        }
        stream.finish(&terminal).unwrap();
        drop(terminal);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn markdown_is_coloured_line_by_line() {
        let text = shown(
            &["# Ti", "tle\nSome **bold** and `code`\n- item\n```rust\nlet a = 1;\n```\n> q", "uote"],
            true,
        );
        assert_eq!(
            text,
            "\u{1b}[1mTitle\u{1b}[0m\nSome \u{1b}[1mbold\u{1b}[0m and \u{1b}[36mcode\u{1b}[0m\n• item\n\
             \u{1b}[2m```rust\u{1b}[0m\n\u{1b}[36mlet a = 1;\u{1b}[0m\n\u{1b}[2m```\u{1b}[0m\n│ \u{1b}[2mquote\u{1b}[0m\n"
        );
    }

    #[test]
    fn what_is_no_emphasis_is_shown_as_it_is_written() {
        for line in [
            "2 * 3 * 4",
            "src/**/*.rs and *.md",
            "~~old~~ new",
            "a\\*b\\*",
            "one ` tick",
            "        eight columns of code",
            "5*x + 3*y",
            "**open",
        ] {
            let text = shown(&[line], true);
            let text = text.replace("\u{1b}[36m", "").replace("\u{1b}[0m", "");
            assert_eq!(text, format!("{line}\n"));
        }
        for (line, text) in
            [("**a** and *b*, `c * d`", "a and b, c * d\n"), ("* a *b* (**c**).", "• a b (c).\n")]
        {
            let plain: String = shown(&[line], true).split('\u{1b}').fold(String::new(), |text, piece| {
                text + piece
                    .split_once('m')
                    .filter(|_| piece.starts_with('['))
                    .map_or(piece, |(_, rest)| rest)
            });
            assert_eq!(plain, text, "{line}");
        }
    }

    #[test]
    fn escape_sequences_of_the_model_do_not_reach_the_terminal() {
        for colored in [true, false] {
            assert!(!shown(&["a \u{1b}[31mred\u{1b}]0;title\u{7}"], colored).contains("\u{1b}[31m"));
        }
    }

    proptest! {
        #[test]
        fn without_colour_the_text_is_unchanged_and_ends_its_line(text in "[a-z*`#\n -]{0,60}", at in 0usize..60) {
            let at = at.min(text.len());
            let shown = shown(&[&text[..at], &text[at..]], false);
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            prop_assert_eq!(shown, format!("{text}{end}"));
        }
    }
}
