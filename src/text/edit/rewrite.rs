//! Builds the replacement for a matched passage: line endings and indentation of the file, unchanged lines byte for byte.

use crate::diff::compare_lines;
use crate::edit::find::Match;
use crate::lines::{LineEnding, body};
use similar::DiffOp;

/// Returns the replacement for the match `found` of `old`: `new` with the line endings and indentation of the file. Lines that
/// `old` and `new` share keep the file's bytes. Returns `None` if the indentation cannot be applied to a line of `new`.
pub fn rewrite_passage(text: &str, found: &Match, old: &str, new: &str) -> Option<String> {
    let passage = text.get(found.range.clone()).unwrap_or_default();
    if passage == old && old.contains('\r') {
        return Some(new.to_owned());
    }
    let ending =
        LineEnding::dominant(passage).or_else(|| LineEnding::dominant(text)).unwrap_or(LineEnding::Lf);
    if passage == old {
        return Some(ending.apply(new));
    }
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let bodies =
        |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| content(line).to_owned()).collect() };
    let (passage, old, new) = (lines(passage), lines(old), lines(new));
    let (old, bare) = (bodies(&old), bodies(&new));
    let (old, bare): (Vec<&str>, Vec<&str>) =
        (old.iter().map(String::as_str).collect(), bare.iter().map(String::as_str).collect());
    let mut stays: Vec<Option<&str>> = vec![None; new.len()];
    for op in compare_lines(&old, &bare) {
        let DiffOp::Equal { old_index, new_index, len } = op else { continue };
        let kept = passage.iter().skip(old_index).take(len);
        stays.iter_mut().skip(new_index).zip(kept).for_each(|(stays, line)| *stays = Some(line));
    }
    new.iter()
        .zip(stays)
        .map(|(line, stays)| {
            let text = match (stays, &found.shift) {
                (Some(kept), _) => content(kept).to_owned(),
                (None, Some(shift)) => shift.apply(content(line))?,
                (None, None) => content(line).to_owned(),
            };
            let kept_ending = stays.and_then(LineEnding::dominant).unwrap_or(ending);
            Some(if line.ends_with('\n') { text + kept_ending.as_str() } else { text })
        })
        .collect()
}

/// Returns a line without its ending; a last line without a newline is unchanged.
fn content(line: &str) -> &str {
    if line.ends_with('\n') { body(line) } else { line }
}
