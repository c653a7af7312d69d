//! Pure functions on text: edits, patches, shell texts, excerpts, diffs, lines, tokens, marks, HTML as Markdown, and the bounds of JSON.

pub mod diff;
pub mod edit;
pub mod excerpt;
pub mod html;
pub mod invisible;
pub mod json_bounds;
pub mod lines;
pub mod mark;
pub mod patch;
pub mod shell;
pub mod tokens;
