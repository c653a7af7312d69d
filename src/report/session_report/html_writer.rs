//! Writer of an HTML page: adds static markup as it is, and escapes all other text.

use agent_terminal::{sanitize, sanitize_prose};

/// An HTML page under construction.
#[derive(Debug, Default)]
pub struct HtmlWriter(String);

impl HtmlWriter {
    /// Adds markup, unescaped.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.escaped(&sanitize_prose(text))
    }

    /// Adds text in which every character matters, such as a diff or arguments, escaped.
    pub fn verbatim(&mut self, text: &str) -> &mut Self {
        self.escaped(&sanitize(text))
    }

    /// Adds a number.
    pub fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        self.0.push_str(&number.into().to_string());
        self
    }

    /// Returns the page.
    pub fn finish(self) -> String {
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
