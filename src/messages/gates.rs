//! Messages about quality gates, for the model and for users.

use crate::duration;
use agent_core::language::Language;
use agent_core::quality_gate::GateResult;
use std::time::Duration;

/// Message to the model after required gates have failed.
pub fn gates_failed(failed: &[&GateResult]) -> String {
    let mut text = "[SYSTEM] You said that you are done, but required checks do not pass:".to_owned();
    for result in failed {
        text.extend(["\n\n## ", &result.name, "\n", &result.output]);
    }
    text.push_str(
        "\n\nFix the problems and finish again. If a check cannot pass for a reason that you cannot change, say so and explain why.",
    );
    text
}

/// Whether a gate passed, in words.
pub(super) fn gate_outcome(result: &GateResult, language: Language) -> &'static str {
    match (result.passed, result.required) {
        (true, _) => language.pick("passed", "superada"),
        (false, true) => language.pick("did not pass", "no superada"),
        (false, false) => language.pick("did not pass (optional)", "no superada (opcional)"),
    }
}

/// Log line about a gate.
pub fn gate(result: &GateResult, language: Language) -> String {
    let what = gate_outcome(result, language);
    let (gate, time) = (language.pick("Gate", "Comprobación"), Duration::from_millis(result.duration_ms));
    format!("{gate} {}: {what} ({})", result.name, duration(time))
}
