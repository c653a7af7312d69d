//! Commands that a command of several runs starts itself, such as checks: in the sandbox, until a signal.

use agent_core::language::Language;
use agent_engine::gate_runner::{GateRun, run_gate};
use agent_engine::guardrails::quality_gate::QualityGate;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::AppResult;
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Time limit of a check in seconds.
const CHECK_SECONDS: u64 = 120;

/// How commands are started.
pub struct Commands<'a> {
    /// The application.
    pub app: &'a App,
    /// Starts them.
    pub launcher: &'a Launcher,
    /// The workspace, in which they run.
    pub root: &'a Path,
    /// Language of the message about a signal.
    pub language: Language,
}

impl Commands<'_> {
    /// Runs the commands one after another with the variables `env`; `None` if a signal interrupted them.
    ///
    /// # Errors
    /// Fails when the signal handlers cannot be installed.
    pub async fn run(
        &self,
        gates: &[QualityGate],
        env: &BTreeMap<String, String>,
    ) -> AppResult<Option<Vec<GateRun>>> {
        let cancel = assemble::arm_interrupt(self.app, Some(self.launcher), self.language)?;
        let runs = run_gates(self.launcher, self.root, gates, env, &cancel).await;
        // A signal from here on interrupts the next run.
        self.app.interrupt()?.disarm();
        Ok((!cancel.is_cancelled()).then_some(runs))
    }
}

/// Runs commands one after another in the directory `root`, until `cancel`.
pub async fn run_gates(
    launcher: &Launcher,
    root: &Path,
    gates: &[QualityGate],
    env: &BTreeMap<String, String>,
    cancel: &CancellationToken,
) -> Vec<GateRun> {
    let mut runs = Vec::new();
    for gate in gates {
        runs.push(run_gate(launcher, root, gate, env, cancel).await);
    }
    runs
}

/// Returns the gate of a check.
pub fn check_gate(command: &str) -> QualityGate {
    QualityGate { timeout: CHECK_SECONDS, ..QualityGate::from_command_line(command.to_owned()) }
}
