//! The models of a run: the one that was chosen, those it falls back to, and what the run must know of each.

use crate::price::Price;

/// The chosen one and those that take over from it, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain<T> {
    /// The chosen one.
    pub first: T,
    /// What takes over when the one before it cannot be used.
    pub fallbacks: Vec<T>,
}

impl<T> Chain<T> {
    /// Number `place`, the chosen one being 0; the chosen one as well where there are not so many.
    pub fn at(&self, place: usize) -> &T {
        place.checked_sub(1).and_then(|place| self.fallbacks.get(place)).unwrap_or(&self.first)
    }

    /// What takes over from number `place`.
    pub fn after(&self, place: usize) -> Option<&T> {
        self.fallbacks.get(place)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(&self.fallbacks)
    }
}

/// What a run must know of a model that it may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// `provider/model`.
    pub model: String,
    /// What it costs; nothing when that is not known.
    pub price: Option<Price>,
    /// Tokens of the longest answer that is asked for; the server's own limit when absent.
    pub output_limit: Option<u32>,
    /// What it may hold, where that is known.
    pub window: Option<Window>,
}

/// What a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Tokens of prompt and answer together.
    pub tokens: u64,
    /// Who says so.
    pub source: WindowSource,
}

/// Who says what a model may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// `llm.context_window`.
    User,
    /// The server, when it was asked.
    Server,
    /// The table of models: true in general, not of every server and every contract.
    Table,
}

impl WindowSource {
    /// Who it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "llm.context_window",
            Self::Server => "the server",
            Self::Table => "the table of models",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_takes_over_from_the_one_before_it() {
        let chain = Chain { first: 'a', fallbacks: vec!['b', 'c'] };
        assert_eq!([0, 1, 2, 3].map(|place| *chain.at(place)), ['a', 'b', 'c', 'a']);
        assert_eq!([0, 1, 2].map(|place| chain.after(place).copied()), [Some('b'), Some('c'), None]);
        assert_eq!(chain.iter().collect::<String>(), "abc");
    }
}
