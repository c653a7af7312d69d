//! Pure functions on text: edits, patches, diffs, shell parsing, HTML to Markdown, excerpts, lines, token estimates.

pub mod corrections;
pub mod delimiter;
pub mod diff;
pub mod diff_parts;
pub mod edit;
pub mod excerpt;
pub mod fence;
pub mod file_url;
pub mod header_list;
pub mod html;
pub mod indent_shift;
pub mod invisible;
pub mod json_bounds;
pub mod line_search;
pub mod lines;
pub mod match_level;
pub mod patch;
pub mod pattern;
pub mod placeholder;
pub mod shell;
pub mod tokens;
