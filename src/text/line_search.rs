//! Searches for a sequence of lines in linear time, because files and passages may be long and repetitive.

/// Returns the positions at or after `from` where the lines `want` occur in `have`, in order (Knuth-Morris-Pratt).
pub fn line_positions(have: &[&str], want: &[&str], from: usize) -> impl Iterator<Item = usize> {
    // For each prefix of `want`: the length of its longest proper prefix that is also its suffix.
    let mut borders = vec![0_usize; want.len()];
    let mut length = 0;
    for (at, line) in want.iter().enumerate().skip(1) {
        length = extend_match(want, &borders, length, line);
        if let Some(border) = borders.get_mut(at) {
            *border = length;
        }
    }
    let mut length = 0;
    let ends = have.iter().enumerate().skip(from).filter_map(move |(at, line)| {
        length = extend_match(want, &borders, length, line);
        (length == want.len()).then_some(at)
    });
    ends.map(|end| end + 1 - want.len())
}

/// Returns the length of the matched prefix of `want` after `line`, given `length` matched lines before it.
fn extend_match(want: &[&str], borders: &[usize], mut length: usize, line: &str) -> usize {
    while length > 0 && want.get(length).is_none_or(|next| *next != line) {
        length = borders.get(length - 1).copied().unwrap_or(0);
    }
    length + usize::from(want.get(length).is_some_and(|next| *next == line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_place_is_found(old in prop::collection::vec("[ab]", 0..40), want in prop::collection::vec("[ab]", 1..6), from in 0usize..10) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            let naive: Vec<usize> = (from..old.len()).filter(|at| old[*at..].starts_with(&want)).collect();
            prop_assert_eq!(line_positions(&old, &want, from).collect::<Vec<_>>(), naive);
        }
    }
}
