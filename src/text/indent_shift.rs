//! Finds a passage whose lines all differ from the searched lines by the same indentation.

use crate::line_search::line_positions;

/// Maximum lines compared in a search; a passage that needs more is not found.
const MAX_COMPARED_LINES: usize = 20_000_000;

/// Difference between the indentation of a file and that of the searched passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndentShift {
    /// The file's lines have this additional prefix.
    Deeper(String),
    /// The searched lines have this additional prefix.
    Shallower(String),
}

impl IndentShift {
    /// Returns the shift from `want` to `have`, if it is the same for all lines that are not blank.
    fn between(have: &[&str], want: &[&str]) -> Option<Self> {
        let mut lines = have.iter().zip(want).filter(|(have, _)| !have.trim().is_empty());
        let (first_have, first_want) = lines.next()?;
        let shift = match (first_have.strip_suffix(first_want), first_want.strip_suffix(first_have)) {
            (Some(more), _) => Self::Deeper(more.to_owned()),
            (None, Some(less)) => Self::Shallower(less.to_owned()),
            (None, None) => return None,
        };
        lines.all(|(have, want)| shift.maps(have, want)).then_some(shift)
    }

    fn maps(&self, have: &str, want: &str) -> bool {
        match self {
            Self::Deeper(more) => have.strip_prefix(more.as_str()) == Some(want),
            Self::Shallower(less) => want.strip_prefix(less.as_str()) == Some(have),
        }
    }

    /// Shifts a line of the new text; `None` when it lacks the indentation to remove.
    pub fn apply(&self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return Some(line.to_owned());
        }
        match self {
            Self::Deeper(more) => Some(format!("{more}{line}")),
            Self::Shallower(less) => line.strip_prefix(less.as_str()).map(str::to_owned),
        }
    }
}

/// Returns the first `most` positions at or after `from` where `want` occurs in `have` with a uniform shift.
pub fn find_with_shift(have: &[&str], want: &[&str], from: usize, most: usize) -> Vec<(usize, IndentShift)> {
    let have: Vec<&str> = have.iter().map(|line| line.trim_end()).collect();
    let want: Vec<&str> = want.iter().map(|line| line.trim_end()).collect();
    if want.iter().all(|line| line.is_empty()) {
        return Vec::new();
    }
    let trimmed_have: Vec<&str> = have.iter().map(|line| line.trim_start()).collect();
    let trimmed_want: Vec<&str> = want.iter().map(|line| line.trim_start()).collect();
    let most_tried = MAX_COMPARED_LINES / want.len();
    line_positions(&trimmed_have, &trimmed_want, from)
        .take(most_tried)
        .filter_map(|at| {
            let passage = have.get(at..at + want.len())?;
            IndentShift::between(passage, &want).map(|shift| (at, shift))
        })
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_passage_is_found_when_all_its_lines_are_shifted_by_the_same() {
        let have = ["x", "    if a:", "", "      b", "y"];
        let found = find_with_shift(&have, &["if a:", "", "  b"], 0, 2);
        assert_eq!(found, [(1, IndentShift::Deeper("    ".to_owned()))]);
        let found = find_with_shift(&have, &["\t    if a:", "", "\t      b"], 0, 2);
        assert_eq!(found, [(1, IndentShift::Shallower("\t".to_owned()))]);
        assert_eq!(find_with_shift(&have, &["if a:", "", "b"], 0, 2), []);
        assert_eq!(find_with_shift(&have, &[""], 0, 2), []);
    }

    #[test]
    fn new_lines_are_shifted_the_same_way_or_not_at_all() {
        assert_eq!(IndentShift::Deeper("  ".to_owned()).apply("a"), Some("  a".to_owned()));
        assert_eq!(IndentShift::Deeper("  ".to_owned()).apply(""), Some(String::new()));
        assert_eq!(IndentShift::Shallower("  ".to_owned()).apply("  a"), Some("a".to_owned()));
        assert_eq!(IndentShift::Shallower("  ".to_owned()).apply(" a"), None);
    }

    proptest! {
        #[test]
        fn shift_maps_searched_lines_to_file_lines(
            want in prop::collection::vec("[ ]{0,3}[ab]{0,2}", 1..6), more in "[ \t]{1,4}"
        ) {
            let want: Vec<&str> = want.iter().map(|line| line.trim_end()).collect();
            let deeper = IndentShift::Deeper(more.clone());
            let have: Vec<String> = want.iter().map(|line| deeper.apply(line).unwrap()).collect();
            let have: Vec<&str> = have.iter().map(String::as_str).collect();
            let expected: Vec<_> = want.iter().any(|line| !line.is_empty()).then_some((0, deeper)).into_iter().collect();
            prop_assert_eq!(find_with_shift(&have, &want, 0, 2), expected);
            for (at, shift) in find_with_shift(&want, &have, 0, 2) {
                prop_assert_eq!(at, 0);
                prop_assert!(have.iter().zip(&want).all(|(have, want)| shift.apply(have).as_deref() == Some(want)));
            }
        }
    }
}
