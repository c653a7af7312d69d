//! Words: what is quoted, what is escaped and what is expanded in them.

use super::reader::Reader;
use super::script::{ShellParseError, Word};

/// A word while it is read.
#[derive(Default)]
pub(super) struct WordBuilder {
    pub(super) text: String,
    pub(super) is_expanded: bool,
}

impl WordBuilder {
    /// Takes what an expansion leaves: how it is written.
    pub(super) fn expand(&mut self, written: &str) {
        self.text.push_str(written);
        self.is_expanded = true;
    }
}

/// Whether `char` ends a word.
pub(super) fn ends_word(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>')
}

/// Whether `char` means itself wherever it stands in a word.
fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | '/' | '=' | ':' | ',' | '+' | '@' | '%')
}

/// Whether `raw` assigns a variable: `NAME=`, `NAME+=` or `NAME[…]=` at its beginning.
pub fn is_assignment(raw: &str) -> bool {
    let Some((left, _)) = raw.split_once('=') else { return false };
    let left = left.strip_suffix('+').unwrap_or(left);
    let name = left.split_once('[').map_or(left, |(name, _)| name);
    is_name(name) && (name.len() == left.len() || left.ends_with(']'))
}

/// Whether `text` can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    !text.starts_with(|char: char| char.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

impl Reader<'_> {
    /// The next word; there must be one.
    pub(super) fn word(&mut self) -> Result<Word, ShellParseError> {
        let start = self.at;
        let mut made = WordBuilder::default();
        while let Some(char) = self.peek() {
            match char {
                _ if is_plain(char) => self.plain(&mut made),
                '<' | '>' if self.rest().get(1..2) == Some("(") => {
                    self.at += 2;
                    self.substitution()?;
                    made.expand("<()");
                }
                '(' if is_assignment(self.since(start)) && self.since(start).ends_with('=') => {
                    self.array()?;
                    made.expand("()");
                }
                _ if ends_word(char) => break,
                _ => self.part(&mut made, start)?,
            }
        }
        let raw = self.since(start);
        // Where a comment would begin is no word, and a number on two lines may be the descriptor of a redirection.
        let is_split = raw.contains("\\\n") && self.rest().starts_with(['<', '>']);
        if raw.is_empty() || raw.starts_with('#') || is_split {
            return Err(ShellParseError::Syntax);
        }
        let is_literal = !made.is_expanded || matches!(raw, "[" | "{}");
        Ok(Word { text: made.text, raw: raw.to_owned(), is_literal })
    }

    /// What comes of characters that mean themselves, all at once: most words are made of nothing else.
    fn plain(&mut self, made: &mut WordBuilder) {
        let rest = self.rest();
        let (plain, _) = rest.split_at(rest.find(|char| !is_plain(char)).unwrap_or(rest.len()));
        made.text.push_str(plain);
        self.at += plain.len();
    }

    /// One character, quotation or expansion of a word that began at `start`.
    fn part(&mut self, made: &mut WordBuilder, start: usize) -> Result<(), ShellParseError> {
        let begins = self.at == start || self.since(start).ends_with(['=', ':']);
        match self.next() {
            Some('\\') => match self.next() {
                Some('\n') => {}
                escaped => made.text.push(escaped.ok_or(ShellParseError::Syntax)?),
            },
            Some('\'') => {
                let (quoted, _) = self.rest().split_once('\'').ok_or(ShellParseError::Syntax)?;
                self.at += quoted.len() + 1;
                made.text.push_str(quoted);
            }
            Some('"') => self.double_quoted(made)?,
            Some('`') => self.backticks(made, false)?,
            Some('$') => self.expansion(made, false)?,
            Some(char) => {
                made.is_expanded |= matches!(char, '*' | '?' | '[' | '{') || (char == '~' && begins);
                made.text.push(char);
            }
            None => {}
        }
        Ok(())
    }

    /// What stands in double quotes, the first one already read.
    pub(super) fn double_quoted(&mut self, made: &mut WordBuilder) -> Result<(), ShellParseError> {
        loop {
            match self.next().ok_or(ShellParseError::Syntax)? {
                '"' => return Ok(()),
                '\\' => match self.next().ok_or(ShellParseError::Syntax)? {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => made.text.push(escaped),
                    other => made.text.extend(['\\', other]),
                },
                '`' => self.backticks(made, true)?,
                '$' => self.expansion(made, true)?,
                char => made.text.push(char),
            }
        }
    }

    /// The words of an array, from its opening parenthesis on.
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
