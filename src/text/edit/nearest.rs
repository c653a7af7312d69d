//! Finds the lines most similar to a passage that was not found, and the first difference.

use crate::lines::{body, quoted};

/// Maximum lines of the file compared.
const MAX_NEAR_LINES: usize = 20_000;

/// Maximum lines of `old_str` compared.
const MAX_WANTED_LINES: usize = 200;

/// Maximum characters of a line compared.
const MAX_NEAR_CHARS: usize = 200;

/// Minimum similarity of a near line (0 to 1, Sørensen–Dice).
const NEAR: f64 = 0.5;

/// Describes the position of the passage most similar to `old` and the first difference.
pub fn nearest(text: &str, old: &str) -> Option<String> {
    let have: Vec<&str> = text.lines().take(MAX_NEAR_LINES).collect();
    let want: Vec<&str> = old.lines().take(MAX_WANTED_LINES).collect();
    let start = best_start(&have, &want)?;
    let end = (start + want.len()).min(have.len());
    let different = want.iter().enumerate().find_map(|(offset, wanted)| {
        let found = have.get(start + offset).copied();
        (found != Some(*wanted)).then_some((start + offset, found, *wanted))
    });
    let place = if end <= start + 1 {
        format!("The nearest passage is line {}", start + 1)
    } else {
        format!("The nearest passage is lines {}-{end}", start + 1)
    };
    Some(match different {
        Some((line, Some(found), wanted)) => format!(
            "{place}; the first difference is in line {}: the file has {}, old_str has {}.",
            line + 1,
            quoted(found),
            quoted(wanted)
        ),
        Some((_, None, wanted)) => {
            format!("{place}; the file ends there, old_str continues with {}.", quoted(wanted))
        }
        None => format!("{place}; its lines are equal, so only a line break or the place it starts differs."),
    })
}

/// Returns the start of the passage that shares most lines with `want`, else of the one with the line most similar to its longest line.
fn best_start(have: &[&str], want: &[&str]) -> Option<usize> {
    let anchor = want.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let mut best: Option<(usize, usize)> = None;
    for (at, _) in have.iter().enumerate().filter(|(_, line)| line.trim() == anchor.1.trim()) {
        let Some(start) = at.checked_sub(anchor.0) else { continue };
        let equal = want.iter().zip(have.iter().skip(start)).filter(|(a, b)| a.trim() == b.trim()).count();
        if best.is_none_or(|(most, _)| equal > most) {
            best = Some((equal, start));
        }
    }
    if anchor.1.trim().is_empty() {
        return None;
    }
    best.map(|(_, start)| start).or_else(|| {
        let wanted = clip(anchor.1);
        let mut near: Option<(f64, usize)> = None;
        // Skips the expensive comparison for lines of very different length.
        let similar = |line: &str| line.len() / 2 <= wanted.len() && wanted.len() / 2 <= line.len();
        for (at, line) in have.iter().enumerate().filter(|(_, line)| similar(clip(line))) {
            let likeness = strsim::sorensen_dice(wanted, clip(line));
            if likeness >= NEAR && near.is_none_or(|(most, _)| likeness > most) {
                near = Some((likeness, at));
            }
        }
        near.map(|(_, at)| at.saturating_sub(anchor.0))
    })
}

fn clip(line: &str) -> &str {
    let line = body(line).trim();
    line.char_indices().nth(MAX_NEAR_CHARS).and_then(|(end, _)| line.get(..end)).unwrap_or(line)
}
