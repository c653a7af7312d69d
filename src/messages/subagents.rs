//! What people read about subagents.

use super::human_log::LogStyle;
use super::numbers::counted;
use crate::core::language::Language;
use crate::core::run_result::RunResult;
use crate::core::stop_reason::StopReason;

impl LogStyle {
    /// What the subagent that is called `agent` does.
    pub fn nested(self, agent: &str, line: &str) -> String {
        match self {
            Self::Icons(_) => format!("      ↳ [{agent}] {line}"),
            Self::Plain(_) => format!("      [{agent}] {line}"),
        }
    }

    /// A tool call of a subagent.
    pub fn named_tool(self, name: &str, summary: &str) -> String {
        format!("{name}{}{summary}", self.arrow(summary))
    }

    /// A call of a subagent was refused.
    pub fn subagent_refused(self, tool: &str, reason: &str) -> String {
        format!("{tool} {}: {reason}", self.translate("refused", "rechazado"))
    }

    /// A call of a subagent failed.
    pub fn subagent_error(self, tool: &str, error: &str) -> String {
        format!("{tool} {}: {error}", self.translate("failed", "falló"))
    }

    /// A hook did not allow what a subagent wanted, or had something to say.
    pub fn subagent_hook(self, hook: &str) -> String {
        format!("hook {hook} {}", self.translate("objects", "objeta"))
    }
}

/// That a subagent begins to work, with this model.
pub fn subagent_started(model: &str, language: Language) -> String {
    let begins = language.pick("begins", "comienza");
    format!("{begins} ({model})")
}

/// How a subagent ended.
pub fn subagent_ended(result: &RunResult, language: Language) -> String {
    let reason = result.stop_reason.map_or(language.pick("not started", "no comenzó"), StopReason::name);
    let steps = counted(result.steps, ["step", "steps"], ["paso", "pasos"], language);
    let calls = counted(
        result.tool_calls,
        ["tool call", "tool calls"],
        ["llamada a herramientas", "llamadas a herramientas"],
        language,
    );
    let cost = result.cost.total_usd.map_or_else(String::new, |cost| format!(", {cost}"));
    format!("{} ({reason}), {steps}, {calls}{cost}", result.status.name())
}

/// How the subagent ended that is called `agent`, told by itself.
pub fn subagent_in_report(agent: &str, result: &RunResult) -> String {
    format!("subagent {agent}: {}", subagent_ended(result, Language::En))
}
