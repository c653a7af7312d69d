//! Runs the quality gates: commands that must pass when the model reports that it is done.

use crate::Engine;
use crate::guardrails::quality_gate::QualityGate;
use agent_core::event::Event;
use agent_core::quality_gate::GateResult;
use agent_process::capture::Captured;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, Launcher};
use agent_process::shell;
use agent_runtime::emitter::EmitError;
use agent_tools::run_command::end_text;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Characters shown from the end of a failed gate's standard output.
const STDOUT_CHARS: usize = 500;

/// Characters shown from the end of its standard error.
const STDERR_CHARS: usize = 1500;

impl Engine {
    /// Runs the gates one after another until `cancel`, and emits their results.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn run_gates(&self, cancel: &CancellationToken) -> Result<(), EmitError> {
        let mut results = Vec::new();
        for gate in &self.gates {
            let run = run_gate(&self.launcher, self.workspace.root(), gate, &BTreeMap::new(), cancel).await;
            results.push(run.result);
        }
        self.emitter.emit(Event::QualityGates { results }).map(drop)
    }
}

/// A gate that has run.
pub struct GateRun {
    /// Its result.
    pub result: GateResult,
    /// How its command ended; `None` if it could not start.
    pub exit: Option<CommandOutcome>,
}

/// Runs a gate in `root` with the variables `env` until `cancel`.
pub async fn run_gate(
    launcher: &Launcher,
    root: &Path,
    gate: &QualityGate,
    env: &BTreeMap<String, String>,
    cancel: &CancellationToken,
) -> GateRun {
    let spec = CommandSpec {
        argv: shell::argv(&gate.command),
        cwd: root.to_owned(),
        env: env.clone(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(gate.timeout),
    };
    let exit = launcher.launch(spec, cancel).await;
    let duration = exit.as_ref().map(|exit| exit.duration).unwrap_or_default();
    let output = match &exit {
        Ok(exit) if exit.reason == ExitReason::Code(0) => None,
        Ok(exit) => Some(failure_text(exit, Duration::from_secs(gate.timeout))),
        Err(error) => Some(error.to_string()),
    };
    let result = GateResult {
        name: gate.label().to_owned(),
        required: gate.required,
        passed: output.is_none(),
        output: output.unwrap_or_default(),
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    };
    GateRun { result, exit: exit.ok() }
}

/// Describes how a failed gate ended, with the end of its output.
fn failure_text(exit: &CommandOutcome, timeout: Duration) -> String {
    let written = [(&exit.stdout, STDOUT_CHARS), (&exit.stderr, STDERR_CHARS)];
    let ends = written.map(|(captured, most)| last_chars(captured, most));
    let how = match exit.reason {
        ExitReason::TimedOut => format!("It took longer than its {} s and was ended.", timeout.as_secs()),
        ExitReason::Cancelled => "It was ended because the run was interrupted or out of time.".to_owned(),
        other => end_text(other, timeout),
    };
    let all = std::iter::once(how).chain(ends);
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Returns the last `most` characters of an output.
fn last_chars(captured: &Captured, most: usize) -> String {
    let bytes: Vec<u8> = captured.head.iter().chain(&captured.tail).copied().collect();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_end();
    let skipped = text.chars().count().saturating_sub(most);
    let end: String = text.chars().skip(skipped).collect();
    if skipped > 0 { format!("[...]{end}") } else { end }
}
