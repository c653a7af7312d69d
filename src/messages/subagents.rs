//! Lines of the human log about subagents.

use super::human_log::LogStyle;
use super::numbers::counted;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;

impl LogStyle {
    /// Indented line about the subagent `agent`.
    pub fn nested(self, agent: &str, line: &str) -> String {
        match self {
            Self::Icons(_) => format!("      ↳ [{agent}] {line}"),
            Self::Plain(_) => format!("      [{agent}] {line}"),
        }
    }

    /// Tool call of a subagent.
    pub fn named_tool(self, name: &str, summary: &str) -> String {
        format!("{name}{}{summary}", self.arrow(summary))
    }

    /// Refused tool call of a subagent.
    pub fn subagent_refused(self, tool: &str, reason: &str) -> String {
        format!("{tool} {}: {reason}", self.translate("refused", "rechazado"))
    }

    /// Failed tool call of a subagent.
    pub fn subagent_error(self, tool: &str, error: &str) -> String {
        format!("{tool} {}: {error}", self.translate("failed", "falló"))
    }

    /// Hook that blocked a call of a subagent or warned about it.
    pub fn subagent_hook(self, hook: &str) -> String {
        format!("hook {hook} {}", self.translate("objects", "objeta"))
    }
}

/// Start of a subagent with its model.
pub fn subagent_started(model: &str, language: Language) -> String {
    let verb = language.pick("starts", "comienza");
    format!("{verb} ({model})")
}

/// Result of a subagent.
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

/// Result of the subagent `agent`, as a line that names it.
pub fn subagent_in_report(agent: &str, result: &RunResult) -> String {
    format!("subagent {agent}: {}", subagent_ended(result, Language::En))
}
