//! What people read about subagents.

use super::figures::count;
use super::log::Form;
use crate::failure::ErrorKind;
use crate::result::RunResult;
use crate::stop_reason::StopReason;

impl Form {
    /// What the subagent that is called `agent` does.
    pub fn nested(self, agent: &str, line: &str) -> String {
        match self {
            Self::Icons => format!("      ↳ [{agent}] {line}"),
            Self::Words => format!("      [{agent}] {line}"),
        }
    }

    /// A tool call of a subagent.
    pub fn named_tool(self, name: &str, summary: &str) -> String {
        format!("{name}{}{summary}", self.arrow(summary))
    }
}

/// A call of a subagent was refused.
pub fn subagent_refused(tool: &str, reason: &str) -> String {
    format!("{tool} refused: {reason}")
}

/// A call of a subagent failed.
pub fn subagent_error(tool: &str, error: &str) -> String {
    format!("{tool} failed: {error}")
}

/// A request of a subagent will be repeated.
pub fn subagent_retry(attempt: u32, kind: ErrorKind, message: &str) -> String {
    format!("attempt {attempt} failed ({}): {message}", kind.name())
}

/// A hook did not allow what a subagent wanted, or had something to say.
pub fn subagent_hook(hook: &str) -> String {
    format!("hook {hook} objects")
}

/// How a subagent ended.
pub fn subagent_ended(result: &RunResult) -> String {
    let reason = result.stop_reason.map_or("not started", StopReason::name);
    let (steps, calls) = (count(result.steps, "step"), count(result.tool_calls, "tool call"));
    let cost = result.cost.total_usd.map_or_else(String::new, |cost| format!(", {cost}"));
    format!("{} ({reason}), {steps}, {calls}{cost}", result.status.name())
}

/// How the subagent ended that is called `agent`, told by itself.
pub fn subagent_in_report(agent: &str, result: &RunResult) -> String {
    format!("subagent {agent}: {}", subagent_ended(result))
}
