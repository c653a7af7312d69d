//! A page of HTML as it grows: markup comes from this program's own source, and everything else goes in escaped.

use crate::terminal::{sanitize, sanitize_prose};

/// A page.
#[derive(Debug, Default)]
pub(super) struct HtmlWriter(String);

impl HtmlWriter {
    /// Adds markup.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds running text, which cannot be markup.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.escaped(&sanitize_prose(text))
    }

    /// Adds text of which every character counts: a diff, arguments.
    pub(super) fn verbatim(&mut self, text: &str) -> &mut Self {
        self.escaped(&sanitize(text))
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push_str(&number.into().to_string());
        self
    }

    /// The page.
    pub(super) fn finish(self) -> String {
        self.0
    }

    fn escaped(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }
}
