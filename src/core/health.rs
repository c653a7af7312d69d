//! Figures on the code of a workspace: length and complexity of its functions, repeated blocks, before and after a change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum number of lines of a function that is not long.
pub const MAX_FUNCTION_LINES: u32 = 50;
/// Maximum cyclomatic complexity of a function that is not complex.
pub const MAX_COMPLEXITY: u32 = 10;
/// Number of equal lines that make a repeated block.
pub const BLOCK_LINES: usize = 6;

/// The figures, and what exceeds the limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeHealth {
    /// The commit to which `before` belongs; null if `before` was measured at the start of a run, or not at all.
    pub base: Option<String>,
    /// The figures before the change; null without a comparison.
    pub before: Option<HealthFigures>,
    /// The current figures.
    pub after: HealthFigures,
    /// Functions (by file and name) that exist only after the change; null without a comparison.
    pub new_functions: Option<u64>,
    /// Functions (by file and name) that existed only before the change; null without a comparison.
    pub removed_functions: Option<u64>,
    /// Long and complex functions, the most complex first; in a comparison only those that are new or have grown.
    pub functions: Vec<MeasuredFunction>,
    /// Repeated blocks; in a comparison only the new ones.
    pub repeated_blocks: Vec<RepeatedBlock>,
    /// Number of functions and repeated blocks that are not listed.
    pub not_listed: u64,
}

/// What `agent run --health` asks `agent-health` for: a line of JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRequest {
    /// The workspace.
    pub workspace: PathBuf,
    /// Globs of the files to measure.
    pub include: Vec<String>,
    /// Globs on names of directories to leave out.
    pub exclude_dirs: Vec<String>,
    /// Patterns of files that are not read.
    pub sensitive_files: Vec<String>,
    /// Time limit of each of the two measurements in milliseconds.
    pub limit_ms: u64,
}

/// An answer of `agent-health`: a line of JSON on its standard output. Without a comparison and an error, the code before the run is measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthAnswer {
    /// The comparison after the run.
    pub health: Option<CodeHealth>,
    /// Why the code could not be measured.
    pub error: Option<String>,
}

/// Version of [`HealthDocument`].
const SCHEMA_VERSION: u32 = 1;

/// The document of `agent health --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HealthDocument {
    /// Version of this document.
    pub schema_version: u32,
    /// The figures.
    #[serde(flatten)]
    pub health: CodeHealth,
}

impl HealthDocument {
    /// Creates the document.
    pub fn new(health: CodeHealth) -> Self {
        Self { schema_version: SCHEMA_VERSION, health }
    }
}

/// Figures on a set of files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HealthFigures {
    /// Files that were measured.
    pub files: u64,
    /// Files in other languages, links, and files that the configuration excludes.
    pub other_files: u64,
    /// Measured files with errors in their syntax, whose figures are uncertain.
    pub files_with_errors: u64,
    /// Functions and methods.
    pub functions: u64,
    /// Average cyclomatic complexity of the functions; 0 without functions.
    pub average_complexity: f64,
    /// Highest cyclomatic complexity of a function.
    pub max_complexity: u32,
    /// Average number of lines of the functions; 0 without functions.
    pub average_lines: f64,
    /// Functions with more than 50 lines.
    pub long_functions: u64,
    /// Functions with a cyclomatic complexity of more than 10.
    pub complex_functions: u64,
    /// Passages of at least six lines that occur earlier in the files too; each repetition counts once.
    pub repeated_blocks: u64,
    /// Files of known languages that were not measured.
    pub left_out: FilesLeftOut,
    /// Whether all files were found and reached within the limits of files, lines and time.
    pub complete: bool,
}

/// Numbers of files that were not measured, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesLeftOut {
    /// Larger than 1 MiB.
    pub too_large: u64,
    /// Not parsed within a second.
    pub too_slow: u64,
    /// Unreadable (files and directories), or not text.
    pub unreadable: u64,
    /// Sensitive (`guardrails.sensitive_files`).
    pub sensitive: u64,
    /// Not reached within the limits of files, lines and time.
    pub not_reached: u64,
}

/// A function with its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeasuredFunction {
    /// File, from the workspace root.
    pub path: String,
    /// First line, from 1.
    pub line: u32,
    /// Name in the source.
    pub name: String,
    /// Number of lines.
    pub lines: u32,
    /// Cyclomatic complexity.
    pub complexity: u32,
}

/// A passage that occurs earlier too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepeatedBlock {
    /// File of the repetition, from the workspace root.
    pub path: String,
    /// First line of the repetition, from 1.
    pub line: u32,
    /// Last line of the repetition.
    pub end_line: u32,
    /// File of the first occurrence.
    pub first_path: String,
    /// First line of the first occurrence.
    pub first_line: u32,
}
