//! The error type for configuration problems: message, key, file, line and hint.

use std::fmt;
use std::path::Path;

/// A configuration that is unusable; ends the program before a run (exit code 3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigError {
    /// The problem, without its location.
    pub message: String,
    /// The key, dotted.
    pub key: Option<String>,
    /// The file, variable or flag.
    pub file: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<u64>,
    /// The column in the line, from 1; only some errors have one, and the message does not show it.
    pub column: Option<u32>,
    /// How to fix it.
    pub hint: Option<String>,
}

impl ConfigError {
    /// Creates an error without a location; add one with the other methods.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the file, variable or flag.
    #[must_use]
    pub fn file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Sets the file by its path.
    #[must_use]
    pub fn path(self, path: &Path) -> Self {
        self.file(path.display().to_string())
    }

    /// Sets the line; 0 means unknown.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.line = (line > 0).then_some(line);
        self
    }

    /// Sets the hint on how to fix it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
            f.write_str(": ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for ConfigError {}

/// Returns a hint with the name in `known` that is most similar to `name`.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    /// Similarity (Jaro-Winkler, 0 to 1) from which a suggestion helps more than it misleads; clap uses 0.7.
    const SIMILAR: f64 = 0.75;
    known
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// Returns `text` for quoting in a message: sanitized, between backquotes.
pub fn quoted(text: &str) -> String {
    format!("`{}`", sanitize(text))
}

/// Returns `text` on one line, with control and direction characters escaped, cut to 80 characters.
pub fn sanitize(text: &str) -> String {
    /// Characters; enough to recognise a value.
    const MAX: usize = 80;
    let mut shown: String = text.chars().take(MAX).flat_map(visible).collect();
    if text.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns a character, escaped if it is invisible; quotes stay as they are.
fn visible(c: char) -> impl Iterator<Item = char> {
    let plain = matches!(c, '\'' | '"' | '\\').then_some(c);
    plain.into_iter().chain(c.escape_debug().filter(move |_| plain.is_none()))
}
