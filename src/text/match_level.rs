//! Match levels for a searched passage: exact first, then with more and more differences in white space ignored.
//!
//! Each level ignores more than the previous one. A passage matches on the first level on which it occurs, and only if it
//! occurs there once. Similarity is never a match.

use std::cell::OnceCell;
use std::cmp::min;

/// Differences ignored between a searched passage and the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MatchLevel {
    /// No difference.
    #[default]
    Exact,
    /// Line endings (`\r\n` or `\n`).
    Endings,
    /// Also spaces and tabs at the ends of lines.
    TrailingSpace,
    /// Also typographic quotes, dashes and spaces.
    Punctuation,
    /// Also indentation, if all lines are shifted by the same amount.
    Indentation,
}

impl MatchLevel {
    /// Levels that compare folded texts.
    pub const FOLDS: [Self; 3] = [Self::Endings, Self::TrailingSpace, Self::Punctuation];

    /// Describes the difference between the passage and the matched text; `None` for an exact match.
    pub fn difference(self) -> Option<&'static str> {
        match self {
            Self::Exact => None,
            Self::Endings => Some("with other line endings"),
            Self::TrailingSpace => Some("apart from white space at the ends of lines"),
            Self::Punctuation => Some("apart from the form of quotes, dashes and spaces"),
            Self::Indentation => Some("apart from indentation, by which the new lines were shifted too"),
        }
    }

    /// Folds `text`: normalizes what this level ignores. The number of lines does not change.
    pub fn fold(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (kept, ending) = self.kept(line);
            self.push(kept, &mut out);
            out.push_str(ending);
        }
        out
    }

    /// Converts an `offset` in the fold of `text` to an offset in `text`.
    pub fn unfold(self, text: &str, offset: usize) -> usize {
        let (mut left, mut at) = (offset, 0);
        for line in text.split_inclusive('\n') {
            let (kept, ending) = self.kept(line);
            let folded = self.folded_len(kept);
            if left < folded + ending.len() || (left == folded && ending.is_empty()) {
                return at + self.unfold_line(kept, min(left, folded));
            }
            left -= folded + ending.len();
            at += line.len();
        }
        at
    }

    /// Returns the part of a line that the level compares, and the normalized ending.
    fn kept(self, line: &str) -> (&str, &'static str) {
        let Some(body) = line.strip_suffix('\n').filter(|_| self > Self::Exact) else { return (line, "") };
        let body = body.strip_suffix('\r').unwrap_or(body);
        let blank = |character: char| match self {
            Self::Exact | Self::Endings => false,
            Self::TrailingSpace => matches!(character, ' ' | '\t'),
            Self::Punctuation | Self::Indentation => matches!(plain(character), ' ' | '\t'),
        };
        (body.trim_end_matches(blank), "\n")
    }

    fn push(self, kept: &str, out: &mut String) {
        if self >= Self::Punctuation {
            out.extend(kept.chars().map(plain));
        } else {
            out.push_str(kept);
        }
    }

    fn folded_len(self, kept: &str) -> usize {
        if self >= Self::Punctuation { kept.chars().map(|it| plain(it).len_utf8()).sum() } else { kept.len() }
    }

    fn unfold_line(self, kept: &str, offset: usize) -> usize {
        if self < Self::Punctuation {
            return offset;
        }
        let mut folded = 0;
        let reached = kept.char_indices().find(|(_, character)| {
            let here = folded;
            folded += plain(*character).len_utf8();
            here >= offset
        });
        reached.map_or(kept.len(), |(at, _)| at)
    }
}

/// A text and its folds, computed on first use.
pub struct FoldedText<'a> {
    /// Unchanged text.
    pub text: &'a str,
    folds: [OnceCell<String>; MatchLevel::FOLDS.len()],
}

impl<'a> FoldedText<'a> {
    /// Creates a value for `text` without computing folds.
    pub fn new(text: &'a str) -> Self {
        Self { text, folds: Default::default() }
    }

    /// Returns the fold of the text on `level`; the text itself for a level without a fold.
    pub fn at_level(&self, level: MatchLevel) -> &str {
        let mut cells = MatchLevel::FOLDS.into_iter().zip(&self.folds);
        cells
            .find(|(it, _)| *it == level)
            .map_or(self.text, |(_, cell)| cell.get_or_init(|| level.fold(self.text)))
    }
}

/// Returns the ASCII equivalent of a typographic character.
fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "a \r\n\u{201c}b\u{201d}\u{a0}\u{2013}c\t\nd ";

    #[test]
    fn each_match_level_ignores_more() {
        assert_eq!(MatchLevel::Exact.fold(FILE), FILE);
        assert_eq!(MatchLevel::Endings.fold(FILE), "a \n\u{201c}b\u{201d}\u{a0}\u{2013}c\t\nd ");
        assert_eq!(MatchLevel::TrailingSpace.fold(FILE), "a\n\u{201c}b\u{201d}\u{a0}\u{2013}c\nd ");
        assert_eq!(MatchLevel::Punctuation.fold(FILE), "a\n\"b\" -c\nd ");
    }

    #[test]
    fn ignored_trailing_characters_come_after_the_unfolded_line_end() {
        assert_eq!(MatchLevel::TrailingSpace.unfold("a  \r\nb", 1), 1);
        assert_eq!(MatchLevel::TrailingSpace.unfold("a  \r\nb", 2), 5);
        assert_eq!(MatchLevel::Punctuation.unfold("\u{201c}b\u{201d}", 2), 4);
    }

    proptest! {
        #[test]
        fn a_fold_of_a_fold_is_the_fold(text in "[ab \t\r\n\u{a0}\u{2019}\u{2014}]{0,40}") {
            for level in MatchLevel::FOLDS {
                // Removing white space can create a new `\r\n`, so such texts are excluded.
                prop_assume!(!text.contains("\r\r") && !text.contains("\r ") && !text.contains("\r\t") && !text.contains("\r\u{a0}"));
                let once = level.fold(&text);
                prop_assert_eq!(level.fold(&once), once);
            }
        }

        #[test]
        fn every_offset_of_a_fold_maps_to_an_offset_of_the_text(text in "[ab \t\r\n\u{a0}\u{2019}é]{0,40}") {
            for level in MatchLevel::FOLDS {
                let fold = level.fold(&text);
                let places: Vec<usize> = fold.char_indices().map(|(at, _)| level.unfold(&text, at)).collect();
                prop_assert!(places.is_sorted());
                for ((at, character), place) in fold.char_indices().zip(places) {
                    let there = text[place..].chars().next();
                    prop_assert!(character == '\n' || there.map(plain) == Some(plain(character)), "{at}");
                }
                prop_assert_eq!(level.unfold(&text, fold.len()), text.len());
            }
        }
    }
}
