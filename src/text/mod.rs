//! Pure functions on text: edits, patches, patterns, shell texts, excerpts, diffs, lines, tokens, marks, HTML as Markdown, and the bounds of JSON.

pub mod diff;
pub mod edit;
pub mod excerpt;
pub mod html;
pub mod indentation;
pub mod invisible;
pub mod json_bounds;
pub mod lines;
pub mod mark;
pub mod patch;
pub mod pattern;
pub mod placeholder;
pub mod places;
pub mod rung;
pub mod shell;
pub mod tokens;
