//! Parses words with their quotes, escapes and expansions.

use super::reader::Reader;
use super::script::{ShellParseError, Word};

/// Word during parsing.
#[derive(Default)]
pub(super) struct WordBuilder {
    pub(super) text: String,
    pub(super) is_expanded: bool,
}

impl WordBuilder {
    /// Appends an expansion in its written form.
    pub(super) fn expand(&mut self, written: &str) {
        self.text.push_str(written);
        self.is_expanded = true;
    }
}

/// Checks whether `char` ends a word.
pub(super) fn ends_word(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Checks whether `char` has no special meaning at any position in a word.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '=' | ':' | ',' | '+' | '@' | '%')
}

/// Checks whether `raw` assigns a variable: starts with `NAME=`, `NAME+=` or `NAME[…]=`.
pub fn is_assignment(raw: &str) -> bool {
    let Some((left, _)) = raw.split_once('=') else { return false };
    let left = left.strip_suffix('+').unwrap_or(left);
    let name = left.split_once('[').map_or(left, |(name, _)| name);
    is_name(name) && (name.len() == left.len() || left.ends_with(']'))
}

/// Checks whether `text` is a valid variable name.
pub(super) fn is_name(text: &str) -> bool {
    !text.starts_with(|char: char| char.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

impl Reader<'_> {
    /// Parses the next word, which must exist.
    pub(super) fn word(&mut self) -> Result<Word, ShellParseError> {
        let start = self.at;
        let mut builder = WordBuilder::default();
        while let Some(char) = self.peek() {
            match char {
                _ if is_plain(char) => self.plain(&mut builder),
                '<' | '>' if self.rest().get(1..2) == Some("(") => {
                    self.at += 2;
                    self.substitution()?;
                    builder.expand("<()");
                }
                '(' if is_assignment(self.since(start)) && self.since(start).ends_with('=') => {
                    self.array()?;
                    builder.expand("()");
                }
                _ if ends_word(char) => break,
                _ => self.part(&mut builder, start)?,
            }
        }
        let raw = self.since(start);
        // Rejects the start of a comment, and a number with a line continuation, which may be the descriptor of a redirection.
        let is_split = raw.contains("\\\n") && self.rest().starts_with(['<', '>']);
        if raw.is_empty() || raw.starts_with('#') || is_split {
            return Err(ShellParseError::Syntax);
        }
        let is_literal = !builder.is_expanded || matches!(raw, "[" | "{}");
        Ok(Word { text: builder.text, raw: raw.to_owned(), is_literal })
    }

    /// Appends a sequence of characters without special meaning at once: most words contain no others.
    fn plain(&mut self, builder: &mut WordBuilder) {
        let rest = self.rest();
        let (plain, _) = rest.split_at(rest.find(|char| !is_plain(char)).unwrap_or(rest.len()));
        builder.text.push_str(plain);
        self.at += plain.len();
    }

    /// Parses one character, quoted part or expansion of a word that started at `start`.
    fn part(&mut self, builder: &mut WordBuilder, start: usize) -> Result<(), ShellParseError> {
        let begins = self.at == start || self.since(start).ends_with(['=', ':']);
        match self.next() {
            Some('\\') => match self.next() {
                Some('\n') => {}
                escaped => builder.text.push(escaped.ok_or(ShellParseError::Syntax)?),
            },
            Some('\'') => {
                let (quoted, _) = self.rest().split_once('\'').ok_or(ShellParseError::Syntax)?;
                self.at += quoted.len() + 1;
                builder.text.push_str(quoted);
            }
            Some('"') => self.double_quoted(builder)?,
            Some('`') => self.backticks(builder, false)?,
            Some('$') => self.expansion(builder, false)?,
            Some(char) => {
                builder.is_expanded |= matches!(char, '*' | '?' | '[' | '{') || (char == '~' && begins);
                builder.text.push(char);
            }
            None => {}
        }
        Ok(())
    }

    /// Parses text in double quotes after the opening quote.
    pub(super) fn double_quoted(&mut self, builder: &mut WordBuilder) -> Result<(), ShellParseError> {
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(ShellParseError::Syntax)? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => builder.text.push(escaped),
                    other => builder.text.extend(['\\', other]),
                },
                '`' => self.backticks(builder, true)?,
                '$' => self.expansion(builder, true)?,
                char => builder.text.push(char),
            }
        }
    }

    /// Parses the words of an array from its opening parenthesis on.
    fn array(&mut self) -> Result<(), ShellParseError> {
        self.at += 1;
        self.with_depth(|reader| {
            loop {
                reader.lines()?;
                if reader.accept(")") {
                    return Ok(());
                }
                reader.word()?;
            }
        })
    }
}
