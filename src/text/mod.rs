//! Pure functions on text: edits, patches, excerpts, diffs, lines.

pub mod diff;
pub mod edit;
pub mod excerpt;
pub mod lines;
pub mod patch;
