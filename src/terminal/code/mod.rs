//! Colours of code: finds comments, strings, numbers and keywords, one line after another. It knows quotes and words, but no grammar: what it takes for
//! something else has another colour, and its text is never changed.

mod languages;

use super::preview::Row;
use super::streams::Style;
use languages::LANGUAGES;

/// Bytes of a line that is drawn in colours.
pub(super) const MAX_COLORED_BYTES: usize = 500;
/// Bytes of the word that ends a here-document.
const MAX_END_BYTES: usize = 100;

/// What a language looks like.
#[derive(Debug)]
struct Language {
    /// The names after the fence of a code block.
    names: &'static [&'static str],
    /// Comments and strings; of two with the same beginning the longer is first.
    spans: &'static [Span],
    /// Separated by spaces; in lower case if the case does not count.
    keywords: &'static str,
    /// What belongs to a word besides letters, digits and the underscore.
    word_marks: &'static str,
    /// What begins a variable, an annotation or a directive.
    sigils: &'static str,
    /// What stands between a key and its value.
    key_end: Option<char>,
    kind: Kind,
}

/// What is special in a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Usual,
    /// The case of keywords does not count.
    AnyCase,
    /// Text with tags.
    Markup,
    /// With here-documents.
    Shell,
    /// Changed lines.
    Diff,
}

/// A comment or a string.
#[derive(Debug)]
struct Span {
    begin: &'static str,
    /// Empty if it ends with the line.
    end: &'static str,
    is_comment: bool,
    start: Start,
    /// Whether a backslash takes the next character in.
    has_escapes: bool,
    /// Whether it can end on another line; else it must end on its own to be one.
    spans_lines: bool,
}

/// Where a comment or a string can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Anywhere,
    /// At the beginning of a line or after a space.
    AfterSpace,
    /// Not after a letter or a digit, as in `don't`.
    OutsideWord,
    /// Before a single character: `'a'`, but not the lifetime `'a`.
    Character,
}

/// Gives the lines of a code block their colours.
#[derive(Debug, Clone)]
pub(super) struct Highlighter {
    language: &'static Language,
    open: Open,
    in_tag: bool,
}

/// What a line has begun and not ended.
#[derive(Debug, Clone, Default)]
enum Open {
    #[default]
    Nothing,
    Span(&'static Span),
    /// The text of a here-document, up to a line with this word.
    HereDocument(String),
}

impl Highlighter {
    /// Returns the highlighter for a code block with `info` after its fence, if its language is known.
    pub(super) fn new(info: &str) -> Option<Self> {
        let info = info.trim_start_matches([' ', '{', '.']);
        let name = info.split([' ', '\t', ',', ':', '{', '}']).next()?.to_ascii_lowercase();
        let language = LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()))?;
        Some(Self { language, open: Open::Nothing, in_tag: false })
    }

    /// Returns the line with its colours.
    pub(super) fn line(&mut self, text: &str) -> Row {
        if self.language.kind == Kind::Diff {
            return vec![(super::prompt::diff_style(text), text.to_owned())];
        }
        if let Open::HereDocument(end) = &self.open {
            let is_end = text.trim_start_matches('\t') == end;
            if is_end {
                self.open = Open::Nothing;
            }
            return vec![(if is_end { Style::Keyword } else { Style::Literal }, text.to_owned())];
        }
        let open = match std::mem::take(&mut self.open) {
            Open::Span(span) => Some(span),
            Open::Nothing | Open::HereDocument(_) => None,
        };
        let mut line = Line::new(self.language, text, self.in_tag);
        let mut open = open.and_then(|span| line.end_span(span, 0));
        while line.at < text.len() {
            open = line.token();
        }
        self.in_tag = line.in_tag;
        self.open = match (open, line.here) {
            (Some(span), _) => Open::Span(span),
            (None, Some(end)) => Open::HereDocument(end),
            (None, None) => Open::Nothing,
        };
        line.row
    }
}

/// A line whose text before `at` has its colours.
struct Line<'a> {
    language: &'static Language,
    text: &'a str,
    at: usize,
    row: Row,
    in_tag: bool,
    /// The word that ends a here-document, which begins on the next line.
    here: Option<String>,
    /// Numbers of the spans that do not end on this line: the rest is not searched again.
    unclosed: Vec<usize>,
}

impl<'a> Line<'a> {
    fn new(language: &'static Language, text: &'a str, in_tag: bool) -> Self {
        Self { language, text, at: 0, row: Row::new(), in_tag, here: None, unclosed: Vec::new() }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Gives the next `size` bytes their style.
    fn push(&mut self, style: Style, size: usize) {
        let text = self.rest().get(..size).unwrap_or_default();
        self.at += size;
        match self.row.last_mut() {
            Some((last, before)) if *last == style => before.push_str(text),
            _ if text.is_empty() => {}
            _ => self.row.push((style, text.to_owned())),
        }
    }

    /// Gives the next token its style; returns the span that is still open after it.
    fn token(&mut self) -> Option<&'static Span> {
        let is_text = self.language.kind == Kind::Markup && !self.in_tag;
        if is_text && !self.rest().starts_with("<!--") {
            self.markup();
            return None;
        }
        if let Some(span) = self.span_here() {
            self.push(span.style(), span.begin.len());
            return self.end_span(span, span.begin.len());
        }
        if self.language.kind == Kind::Shell && self.rest().starts_with("<<") {
            self.here_document();
            return None;
        }
        let first = self.rest().chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            let size = number_size(self.rest());
            self.push(Style::Constant, size);
        } else if begins_word(first) || self.language.sigils.contains(first) {
            self.word(first);
        } else {
            self.in_tag &= first != '>';
            let is_tag_end = self.language.kind == Kind::Markup && "/?>".contains(first);
            self.push(if is_tag_end { Style::Keyword } else { Style::Plain }, first.len_utf8());
        }
        None
    }

    fn word(&mut self, first: char) {
        let is_inner =
            |char: &char| char.is_alphanumeric() || *char == '_' || self.language.word_marks.contains(*char);
        let rest = self.rest().get(first.len_utf8()..).unwrap_or_default();
        let size: usize =
            first.len_utf8() + rest.chars().take_while(is_inner).map(char::len_utf8).sum::<usize>();
        let word = self.rest().get(..size).unwrap_or_default();
        let is_variable = !begins_word(first) && size > first.len_utf8();
        let style = if is_variable || self.is_key(size) {
            Style::Constant
        } else if self.language.is_keyword(word) {
            Style::Keyword
        } else {
            Style::Plain
        };
        self.push(style, size);
    }

    /// Returns the value that follows if the next `size` bytes are a key.
    fn value_after(&self, size: usize) -> Option<&'a str> {
        let end = self.language.key_end?;
        self.rest().get(size..)?.trim_start().strip_prefix(end)
    }

    /// Checks whether the next `size` bytes are a key without quotes.
    fn is_key(&self, size: usize) -> bool {
        // `a:hover` and `http://` are no keys.
        let is_apart = |value: &str| value.is_empty() || value.starts_with([' ', '\t']);
        self.value_after(size).is_some_and(|value| self.language.key_end != Some(':') || is_apart(value))
    }

    /// Returns the comment or string that begins here.
    fn span_here(&mut self) -> Option<&'static Span> {
        let before = self.text.get(..self.at).and_then(|text| text.chars().next_back());
        for (number, span) in self.language.spans.iter().enumerate() {
            let Some(inner) = self.rest().strip_prefix(span.begin) else { continue };
            let can_start = match span.start {
                Start::Anywhere => true,
                Start::AfterSpace => before.is_none_or(char::is_whitespace),
                Start::OutsideWord => before.is_none_or(|char| !char.is_alphanumeric()),
                Start::Character => inner.starts_with('\\') || inner.chars().nth(1) == Some('\''),
            };
            if !can_start || self.unclosed.contains(&number) {
                continue;
            }
            if span.spans_lines || span.end.is_empty() || span.size_in(inner).is_some() {
                return Some(span);
            }
            self.unclosed.push(number);
        }
        None
    }

    /// Gives the rest of a span its style; `begin` bytes of it stand before. Returns the span if it does not end on this line.
    fn end_span(&mut self, span: &'static Span, begin: usize) -> Option<&'static Span> {
        let size = span.size_in(self.rest());
        self.push(span.style(), size.unwrap_or(self.rest().len()));
        let is_quoted_key = begin > 0 && !span.is_comment && self.value_after(0).is_some();
        if let Some((style, _)) = self.row.last_mut().filter(|_| is_quoted_key) {
            *style = Style::Constant;
        }
        (size.is_none() && span.spans_lines).then_some(span)
    }

    /// Gives text outside of tags its style, up to the next tag, or the beginning of a tag.
    fn markup(&mut self) {
        let rest = self.rest();
        let after = rest.strip_prefix('<').unwrap_or_default();
        if !after.starts_with(|char: char| char.is_ascii_alphabetic() || "/!?".contains(char)) {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let next = rest.get(first..).and_then(|text| text.find('<'));
            self.push(Style::Plain, next.map_or(rest.len(), |at| at + first));
            return;
        }
        let is_name = |char: &char| char.is_ascii_alphanumeric() || "/!?-:".contains(*char);
        self.push(Style::Keyword, 1 + after.chars().take_while(is_name).count());
        self.in_tag = true;
    }

    /// Gives `<<` its style and remembers the word that ends the here-document.
    fn here_document(&mut self) {
        let after = self.rest().trim_start_matches("<<").trim_start_matches('-').trim_start();
        let word = after.trim_start_matches(['\'', '"', '\\']);
        let size = word.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        // `<<<` takes a string, and `$((1 << 2))` a number.
        let is_here = !self.rest().starts_with("<<<")
            && (1..=MAX_END_BYTES).contains(&size)
            && !word.starts_with(|char: char| char.is_ascii_digit());
        if is_here {
            self.here = word.get(..size).map(str::to_owned);
        }
        self.push(Style::Plain, if self.rest().starts_with("<<<") { 3 } else { 2 });
    }
}

impl Language {
    fn is_keyword(&self, word: &str) -> bool {
        let lower;
        let word = if self.kind == Kind::AnyCase {
            lower = word.to_ascii_lowercase();
            &lower
        } else {
            word
        };
        self.keywords.split(' ').any(|keyword| keyword == word)
    }
}

impl Span {
    fn style(&self) -> Style {
        if self.is_comment { Style::Dim } else { Style::Literal }
    }

    /// Returns the bytes of `text` up to the end of the span, and with it; `None` if `text` does not contain the end.
    fn size_in(&self, text: &str) -> Option<usize> {
        if self.end.is_empty() {
            return Some(text.len());
        }
        let mut at = 0;
        while let Some(rest) = text.as_bytes().get(at..).filter(|rest| !rest.is_empty()) {
            if rest.starts_with(self.end.as_bytes()) {
                return Some(at + self.end.len());
            }
            at += if self.has_escapes && rest.starts_with(b"\\") { 2 } else { 1 };
        }
        None
    }
}

fn begins_word(char: char) -> bool {
    char.is_alphabetic() || char == '_'
}

/// Returns the bytes of the number at the beginning of `text`.
fn number_size(text: &str) -> usize {
    let mut size = 0;
    let mut chars = text.chars().peekable();
    let mut last = '0';
    while let Some(char) = chars.next() {
        let is_digit = |next: Option<&char>| next.is_some_and(char::is_ascii_digit);
        let belongs = char.is_ascii_alphanumeric()
            || char == '_'
            || char == '.' && last.is_ascii_digit() && is_digit(chars.peek())
            || matches!(char, '+' | '-')
                && matches!(last, 'e' | 'E')
                && is_digit(chars.peek())
                && !text.starts_with("0x");
        if !belongs {
            break;
        }
        size += 1;
        last = char;
    }
    size
}

#[cfg(test)]
mod tests;
