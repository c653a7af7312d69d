//! Configuration of hooks: events, rules and defaults.

use serde::{Deserialize, Serialize};

/// The event at which a hook runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum HookEvent {
    /// Before a tool call; can block it.
    PreToolUse,
    /// After a tool call; its output is appended to the result.
    PostToolUse,
    /// After a tool call that changed a file.
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
    /// When the model reports that it is done.
    AgentComplete,
    /// Once, when the cost of the run reaches `costs.warn_at_usd`.
    BudgetWarning,
    /// Before the conversation is compacted.
    ContextCompress,
}

agent_core::impl_name!(HookEvent);

impl HookEvent {
    /// Checks whether a hook of this event can block the action or end the run.
    pub fn can_block(self) -> bool {
        !matches!(
            self,
            Self::PostLlmCall
                | Self::AgentComplete
                | Self::SessionEnd
                | Self::BudgetWarning
                | Self::ContextCompress
        )
    }

    /// Checks whether the event is about a tool call, which a hook can match.
    pub fn has_tool(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PostToolUse | Self::PostEdit | Self::OnError)
    }

    /// Checks whether the run ends after this event, so that its hooks never run in the background.
    pub fn is_run_end(self) -> bool {
        matches!(self, Self::AgentComplete | Self::SessionEnd)
    }

    /// Checks whether the output of a hook that fails (for example with exit code 1) is sent to the model.
    pub fn reports_findings(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PostEdit | Self::OnError)
    }
}

/// Reaction to a hook that times out or cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookFailureAction {
    /// The action continues, with a warning.
    Allow,
    /// The action is blocked.
    Block,
}

/// One configured hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRule {
    /// Name in the log; the command when empty.
    #[serde(default)]
    pub name: String,
    /// Shell command; `{file}` is replaced by the quoted path of the edited file.
    #[schemars(extend("x-format" = "filled"))]
    pub command: String,
    /// Regex on the tool name, anchored at both ends; `*` matches every tool.
    #[serde(default = "every_tool")]
    #[schemars(extend("x-format" = "matcher"))]
    pub matcher: String,
    /// Globs on the file's path; an empty list matches every file.
    #[serde(default)]
    #[schemars(extend("x-format" = "glob"))]
    pub file_patterns: Vec<String>,
    /// Time limit in seconds, 1 to 300.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 300), extend("x-unit" = "seconds"))]
    pub timeout: u64,
    /// Whether the hook runs in the background; its output is then ignored.
    #[serde(default, rename = "async")]
    pub background: bool,
    /// Whether the hook is active.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Reaction when it times out or cannot start; absent: `pre_tool_use` blocks, any other event warns.
    #[serde(default)]
    pub on_error: Option<HookFailureAction>,
}

impl HookRule {
    /// Returns the name for the log.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.command } else { &self.name }
    }

    /// Returns the reaction at `event` when this hook times out, cannot start or is killed; `pre_tool_use` blocks by default.
    pub fn on_error(&self, event: HookEvent) -> HookFailureAction {
        let default =
            if event == HookEvent::PreToolUse { HookFailureAction::Block } else { HookFailureAction::Allow };
        self.on_error.unwrap_or(default)
    }
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
