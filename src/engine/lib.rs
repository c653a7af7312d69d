//! The engine: runs tool calls in a fixed order (look up, plan, decide, hooks, approve, execute, hooks).

mod approval_request;
pub mod approver;
mod background;
pub mod batch;
pub mod call;
pub mod call_arguments;
mod call_plan;
mod checkpoint_commits;
pub mod checkpoints;
mod command_changes;
pub mod command_class;
mod command_parts;
pub mod file_commit;
mod file_patterns;
pub mod gate_runner;
pub mod grants;
mod guardrail_checks;
pub mod guardrails;
pub mod hook_dispatch;
pub mod hooks;
mod instruction_loading;
mod keep_results;
pub mod links;
pub mod message_queue;
pub mod nested_instructions;
mod pending_approvals;
pub mod policy;
pub mod reviewer;
pub mod rules;
mod skill_loading;
pub mod skill_set;
mod subagent;
mod unsaved_files;

use crate::approver::{Approver, NoApprover};
use crate::checkpoints::Checkpoints;
use crate::command_class::CommandOptions;
use crate::grants::Grants;
use crate::guardrails::Guardrails;
use crate::guardrails::quality_gate::QualityGate;
use crate::hooks::Hooks;
use crate::message_queue::MessageQueue;
use crate::nested_instructions::NestedInstructions;
use crate::policy::Policy;
use crate::reviewer::Reviewer;
use crate::skill_set::SkillSet;
use agent_core::image::ImageStore;
use agent_journal::approvals::Approvals;
use agent_process::launch::Launcher;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::Emitter;
use agent_tools::background::BackgroundCommands;
use agent_tools::foreground::ForegroundCommands;
use agent_tools::observed_files::ObservedFiles;
use agent_tools::outputs::Outputs;
use agent_tools::toolbox::Toolbox;
use agent_workspace::Workspace;
use agent_workspace::baseline::Baseline;
use agent_workspace::search::PathFilter;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Which calls of one turn run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Parallelism {
    /// None: calls run one after another.
    Off,
    /// Consecutive read-only calls, up to 4 at a time; all others run alone, in the model's order.
    Reads,
    /// All calls, up to 8 at a time; those that write the same path run in the model's order.
    All,
}

/// Format of a tool result for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultFormat {
    /// The text; a failure starts with `Error:`.
    Plain,
    /// `[tool] Success:` or `[tool] Error:` before the text.
    Tagged,
}

/// Settings of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// Which calls of one turn run in parallel.
    pub parallel: Parallelism,
    /// Handling of a call that needs approval when no user can answer.
    pub no_approver: NoApprover,
    /// Whether only read calls run and all others are simulated.
    pub dry_run: bool,
    /// Format of a result for the model.
    pub result_format: ResultFormat,
    /// Tokens beyond which results are cut and stored; 0: no limit.
    pub max_result_tokens: usize,
    /// Time limit of one call of any tool but `dispatch_subagent` and `ask_user`.
    pub timeout: Option<Duration>,
}

/// Runs tool calls.
pub struct Engine {
    /// Id of the call that started the subagent whose calls it runs; absent for those of a run.
    pub subagent: Option<String>,
    /// The tools.
    pub toolbox: Toolbox,
    /// Decides which calls may run.
    pub policy: Arc<Policy>,
    /// Guardrails and their counters.
    pub guardrails: Rc<Guardrails>,
    /// Settings of the classification of commands.
    pub commands: CommandOptions,
    /// The hooks.
    pub hooks: Rc<Hooks>,
    /// Commands that must pass before a run counts as done.
    pub gates: Vec<QualityGate>,
    /// Reviews the changes before a run counts as done; `None` if nothing does.
    pub reviewer: Option<Box<dyn Reviewer>>,
    /// Answers approval questions.
    pub approver: Rc<dyn Approver>,
    /// Approvals of similar calls, which hold until the run or the conversation ends.
    pub grants: Rc<Grants>,
    /// Approvals requested by earlier runs and answered between runs.
    pub approvals: Approvals,
    /// Whether a call of the current answer is pending, so that no later call runs.
    pub has_pending_call: Cell<bool>,
    /// How long the user has taken for answers, which is no time of the calls.
    pub answering: Cell<Duration>,
    /// Emits events.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Clock>,
    /// The project directory.
    pub workspace: Rc<Workspace>,
    /// Starts child processes.
    pub launcher: Rc<Launcher>,
    /// Versions of files that the model has seen.
    pub observed_files: Rc<ObservedFiles>,
    /// Background commands.
    pub background: Rc<BackgroundCommands>,
    /// Commands that calls wait for while a user follows them.
    pub foreground: ForegroundCommands,
    /// The skills that the run offers.
    pub skills: Rc<SkillSet>,
    /// Instruction files of directories in the conversation.
    pub instructions: Rc<NestedInstructions>,
    /// Messages that the user has typed while the run works.
    pub queue: MessageQueue,
    /// Stored long outputs.
    pub outputs: Rc<Outputs>,
    /// Stores the images that tools return; absent outside a session.
    pub images: Option<Rc<dyn ImageStore>>,
    /// Settings.
    pub options: EngineOptions,
    /// Whether a hook has ended the run, so that no further call runs.
    pub is_stopped_by_hook: Cell<bool>,
    /// State of the files before the running command, or after the last one.
    pub baseline: Arc<Mutex<Baseline>>,
    /// Checkpoints, if configured.
    pub checkpoints: Option<Checkpoints>,
    /// Whether the warning that changes by commands are no longer listed was emitted.
    pub has_warned_unlisted: Cell<bool>,
}

/// Runs `work` and fires `cancel` after `time`, immediately if it is zero. It then still waits for `work`, which must end
/// itself on `cancel`.
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
    /// Returns a filter for sensitive paths, for tools that search files.
    fn sensitive_filter(&self) -> PathFilter {
        let policy = Arc::clone(&self.policy);
        Arc::new(move |path| policy.is_sensitive(path))
    }
}
