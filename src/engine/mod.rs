//! One tool call in its fixed order: look up, plan, decide, hooks, approve, execute, hooks.

pub mod approver;
mod background;
pub mod batch;
pub mod call;
pub mod call_arguments;
mod checkpoint_commits;
pub mod checkpoints;
mod command_changes;
pub mod command_class;
mod command_parts;
mod file_patterns;
mod gate_runner;
pub mod git;
pub mod grants;
mod guardrail_checks;
pub mod guardrails;
pub mod hook_dispatch;
pub mod hooks;
pub mod links;
mod pending_approvals;
pub mod policy;
pub mod rules;
mod subagent;

use crate::engine::approver::{Approver, NoApprover};
use crate::engine::checkpoints::Checkpoints;
use crate::engine::command_class::CommandOptions;
use crate::engine::grants::Grants;
use crate::engine::guardrails::Guardrails;
use crate::engine::guardrails::quality_gate::QualityGate;
use crate::engine::hooks::Hooks;
use crate::engine::policy::Policy;
use crate::journal::approvals::Approvals;
use crate::process::launch::Launcher;
use crate::runtime::clock::Clock;
use crate::runtime::emitter::Emitter;
use crate::tools::background::BackgroundCommands;
use crate::tools::observed_files::ObservedFiles;
use crate::tools::outputs::Outputs;
use crate::tools::toolbox::Toolbox;
use crate::workspace::Workspace;
use crate::workspace::baseline::Baseline;
use crate::workspace::search::PathFilter;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Which calls of one turn run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parallelism {
    /// None: one after another.
    Off,
    /// Consecutive read-only calls; any other alone, in the model's order.
    Reads,
    /// All of them; writers of one path in the model's order.
    All,
}

/// The form of a tool result for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// The text; a failure begins with `Error:`.
    Plain,
    /// `[tool] Success:` or `[tool] Error:` before the text.
    Tagged,
}

/// What of the engine's behaviour can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Which calls of one turn run together.
    pub parallel: Parallelism,
    /// What becomes of a call that nobody can be asked about.
    pub no_approver: NoApprover,
    /// Reads run, everything else is only described.
    pub dry_run: bool,
    /// The form of a result for the model.
    pub result_format: ResultFormat,
    /// Longer results are cut and kept; 0: never cut.
    pub max_result_tokens: usize,
    /// Time for one call, whatever the tool.
    pub timeout: Option<Duration>,
}

/// Runs tool calls.
pub struct Engine {
    /// The tools.
    pub toolbox: Toolbox,
    /// What may run.
    pub policy: Arc<Policy>,
    /// What is looked at besides, and counted.
    pub guardrails: Rc<Guardrails>,
    /// How commands are classified.
    pub commands: CommandOptions,
    /// The hooks.
    pub hooks: Rc<Hooks>,
    /// What must pass before a run counts as done.
    pub gates: Vec<QualityGate>,
    /// Who answers questions.
    pub approver: Rc<dyn Approver>,
    /// What was answered for all of the run.
    pub grants: Rc<Grants>,
    /// What was asked and answered between runs.
    pub approvals: Approvals,
    /// Whether a call of the answer at work waits: no call after it runs.
    pub has_pending_call: Cell<bool>,
    /// Where every fact is told.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Clock>,
    /// The project directory.
    pub workspace: Rc<Workspace>,
    /// Starts children.
    pub launcher: Rc<Launcher>,
    /// What the model has seen.
    pub observed_files: Rc<ObservedFiles>,
    /// Commands that run in the background.
    pub background: Rc<BackgroundCommands>,
    /// Long outputs.
    pub outputs: Rc<Outputs>,
    /// What can be set.
    pub options: EngineOptions,
    /// Whether a hook has ended the run: no further call runs.
    pub is_stopped_by_hook: Cell<bool>,
    /// The files as they were before the command that runs, or after the last one.
    pub baseline: Arc<Mutex<Baseline>>,
    /// Commits of what the session has made of files, where they are asked for.
    pub checkpoints: Option<Checkpoints>,
    /// Whether it was said that changes made by commands are not listed any more.
    pub has_warned_unlisted: Cell<bool>,
}

/// Runs `work`, and cancels it when `time` is up, before it begins if there is none: work ends by itself then, with
/// whatever result it has.
pub async fn with_time_limit<T>(
    time: Option<Duration>,
    cancel: &CancellationToken,
    work: impl Future<Output = T>,
) -> T {
    if time == Some(Duration::ZERO) {
        cancel.cancel();
    }
    let time = tokio::time::sleep(time.unwrap_or(Duration::MAX));
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = time => cancel.cancel(),
    }
    work.await
}

impl Engine {
    /// Which paths are sensitive, for tools that come across files.
    fn sensitive_filter(&self) -> PathFilter {
        let policy = Arc::clone(&self.policy);
        Arc::new(move |path| policy.is_sensitive(path))
    }
}
