//! Pure functions on text: edits, patches, excerpts, diffs, lines.
