//! Pure functions on text: edits, patches, excerpts, diffs, lines, tokens.

pub mod diff;
pub mod edit;
pub mod excerpt;
pub mod lines;
pub mod patch;
pub mod tokens;
