//! What is said about quality gates.

use crate::core::language::Language;
use crate::core::quality_gate::GateResult;
use crate::messages::duration;
use std::time::Duration;

/// What the model is told when required gates have not passed.
pub fn gates_failed(failed: &[&GateResult]) -> String {
    let mut text = "[SYSTEM] You said that you are done, but required checks do not pass:".to_owned();
    for result in failed {
        text.extend(["\n\n## ", &result.name, "\n", &result.output]);
    }
    text.push_str(
        "\n\nMend what is wrong and finish again. If a check cannot pass for a reason that is not yours to change, say so and why.",
    );
    text
}

/// The line of the log about a gate.
pub fn gate(result: &GateResult, language: Language) -> String {
    let what = match (result.passed, result.required) {
        (true, _) => language.pick("passed", "superada"),
        (false, true) => language.pick("did not pass", "no superada"),
        (false, false) => language.pick("did not pass, and need not", "no superada, ni hace falta"),
    };
    let (gate, time) = (language.pick("Gate", "Comprobación"), Duration::from_millis(result.duration_ms));
    format!("{gate} {}: {what} ({})", result.name, duration(time))
}
