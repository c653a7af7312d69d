//! What a hook is and when it runs, as configured.

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
    /// When the run has cost `costs.warn_at_usd`; once.
    BudgetWarning,
    /// Before the conversation is made shorter.
    ContextCompress,
}

impl HookEvent {
    /// The name used in the configuration, the log and `AGENT_EVENT`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "pre_tool_use",
            Self::PostToolUse => "post_tool_use",
            Self::PostEdit => "post_edit",
            Self::PreLlmCall => "pre_llm_call",
            Self::PostLlmCall => "post_llm_call",
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::OnError => "on_error",
            Self::AgentComplete => "agent_complete",
            Self::BudgetWarning => "budget_warning",
            Self::ContextCompress => "context_compress",
        }
    }

    /// Whether what a hook says is read by the run; where it is not, there is nothing that it could block.
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

    /// Whether the run ends next: a hook in the background would have nothing left to run beside.
    pub fn is_run_end(self) -> bool {
        matches!(self, Self::AgentComplete | Self::SessionEnd)
    }

    /// Whether a hook that fails (exit code 1, say) has found something that the model should read.
    pub fn reports_findings(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PostEdit | Self::OnError)
    }
}

/// What happens when a hook times out or cannot start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookFailureAction {
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
    pub on_error: Option<HookFailureAction>,
}

impl HookRule {
    /// What the log calls it.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.command } else { &self.name }
    }

    /// What happens at `event` when this hook times out, cannot start or is killed: a guard fails closed.
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
