//! Hooks: programs of the user that run around tools and model calls.

use serde::{Deserialize, Serialize};

/// When a hook runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before a tool call; can block it.
    PreToolUse,
    /// After a tool call; its output is appended to the result.
    PostToolUse,
    /// `post_tool_use` of a tool that changed a file.
    PostEdit,
    /// Before a model call; its output becomes context.
    PreLlmCall,
    /// After a model call.
    PostLlmCall,
    /// Before the first step of a run.
    SessionStart,
    /// After the last step of a run, however it ended.
    SessionEnd,
    /// After a tool call that failed.
    OnError,
    /// When the model says that it is done.
    AgentComplete,
}

/// What happens when a hook times out or cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The action goes on, with a warning.
    Allow,
    /// The action is blocked.
    Block,
}

/// One configured hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRule {
    /// Shown in the log; the command when empty.
    #[serde(default)]
    pub name: String,
    /// A shell command; `{file}` is replaced by the quoted path of the edited file.
    #[schemars(extend("x-format" = "filled"))]
    pub command: String,
    /// Regex on the tool name, anchored at both ends; `*` is every tool.
    #[serde(default = "every_tool")]
    #[schemars(extend("x-format" = "matcher"))]
    pub matcher: String,
    /// Globs on the file's path; empty is every file.
    #[serde(default)]
    #[schemars(extend("x-format" = "glob"))]
    pub file_patterns: Vec<String>,
    /// Seconds, 1 to 300.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 300), extend("x-unit" = "seconds"))]
    pub timeout: u64,
    /// Not waited for; its answer is ignored.
    #[serde(default, rename = "async")]
    pub background: bool,
    /// Off keeps it in the file without effect.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// When it times out or cannot start; absent: a pre hook blocks, any other warns.
    #[serde(default)]
    pub on_error: Option<OnError>,
}

fn every_tool() -> String {
    "*".to_owned()
}

fn ten_seconds() -> u64 {
    10
}

fn yes() -> bool {
    true
}
