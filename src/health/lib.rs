//! Measures source code: length and cyclomatic complexity of functions, and repeated blocks, in seven languages.

pub mod blocks;
pub mod functions;
pub mod language;
pub mod project;
