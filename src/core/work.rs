//! A command of several runs, such as `agent loop`: the events of its journal, and its result document.

use crate::failure::Failure;
use crate::price::Usd;
use crate::quality_gate::GateResult;
use crate::ranking::{Ranked, TaskScore};
use crate::run_result::RunResult;
use crate::stop_reason::{Status, StopReason};
use crate::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the document.
pub const WORK_SCHEMA_VERSION: u32 = 1;
/// Maximum number of models that answer in a debate.
pub const MAX_DEBATE_MODELS: usize = 8;
/// Maximum number of rounds of a debate.
pub const MAX_ROUNDS: u32 = 10;
/// Maximum number of rounds of a debate, unless another one is given.
pub const DEFAULT_ROUNDS: u32 = 3;

/// Why a command of several runs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum WorkStopReason {
    /// Everything succeeded; in a loop, all checks passed and the answer has the completion tag.
    Done,
    /// The loop has used all its iterations.
    MaxIterations,
    /// The remaining money or tokens are not enough for the next run.
    BudgetExceeded,
    /// The time limit was reached.
    Timeout,
    /// The same checks failed three times for the same files.
    NoProgress,
    /// A run ended early, or a check of it did not pass, and the command needs its result.
    RunPartial,
    /// A run failed, or a command that is a step of a pipeline.
    RunFailed,
    /// A branch could not be merged.
    NotMerged,
    /// A step of a pipeline did not succeed: its run ended early, or a check failed. With `continue_on_error` the steps after it ran.
    StepFailed,
    /// A call of a run needs the user's approval.
    AwaitingApproval,
    /// SIGINT or SIGTERM.
    UserInterrupt,
}

crate::impl_name!(WorkStopReason);

/// One run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkRun {
    /// Its name in the command, such as `iteration 2`.
    pub name: String,
    /// Why the step of a pipeline was skipped; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The checks after the run, in order; absent if there were none. Those of a command begin with the command itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<GateResult>,
    /// Where it worked; absent if that was the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// The result document of the run.
    #[serde(flatten)]
    pub result: RunResult,
}

/// A working tree and a branch of one run, beside those of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worktree {
    /// The branch.
    pub branch: String,
    /// The directory.
    pub path: String,
    /// The commit that it began with, if it is a repository of its own: that of a task of `agent eval --tasks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The last commit of the branch; absent if the run has changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit that merges it into the user's branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<String>,
    /// Files that prevented the merge, because both sides have changed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// Changes that the commit lacks and the directory has, from its top: files with a filter or ignored by git, and what is in submodules (`lib/`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why its changes could not be committed or merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What a worktree of a commit lacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Changed and untracked files.
    pub uncommitted: usize,
    /// Files that a filter such as Git LFS would convert.
    pub filtered: usize,
    /// Submodules.
    pub submodules: usize,
}

/// The result of a command of several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkResult {
    /// Version of this document.
    pub schema_version: u32,
    /// The command, such as `loop`.
    pub command: String,
    /// The id for `agent work show`, and for resuming; null if nothing began.
    pub work_id: Option<String>,
    /// The status that summarizes the stop reason.
    pub status: Status,
    /// Why the command ended; null if nothing began.
    pub stop_reason: Option<WorkStopReason>,
    /// The answer of the last run, or the standard output of a last command.
    pub output: String,
    /// The runs, in order.
    pub runs: Vec<WorkRun>,
    /// The models or configurations of `agent eval`, the best first; absent in other commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranking: Vec<Ranked>,
    /// The scores of `agent eval` for each task and each model or configuration; absent in other commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_scores: Vec<TaskScore>,
    /// Where all runs worked; absent if that was the workspace, or if each had a worktree of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Steps of all runs.
    pub steps: u32,
    /// Requests of all runs.
    pub requests: u32,
    /// Tool calls of all runs.
    pub tool_calls: u32,
    /// Tokens of all runs.
    pub usage: Usage,
    /// US dollars of all runs; null if the cost of a run is unknown.
    pub cost_usd: Option<Usd>,
    /// Wall time of all runs, in seconds.
    pub duration_seconds: f64,
    /// What `agent consolidate` came to; absent for other commands, and if it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation: Option<Consolidation>,
    /// The failure that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// What a debate of several models came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consolidation {
    /// The judge's summary: what the models agree on, and what only one of them said.
    pub summary: String,
    /// The number of rounds.
    pub rounds: u32,
    /// The round after which the judge found that they agree; null if it never did.
    pub agreed_at: Option<u32>,
}

/// An event of the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum WorkEvent {
    /// The command begins; the first record of its journal.
    Start {
        /// The command, such as `loop`.
        command: String,
        /// What the command was requested with, without a key; null in records of versions that kept the words of the command line.
        #[serde(default)]
        request: Value,
        /// The directory in which it was started.
        directory: String,
        /// The task.
        task: String,
        /// What the command needs to go on, in a form of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// The commit from which changes are counted; absent without a repository.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        base: Option<String>,
    },
    /// A step of a pipeline begins.
    StepStart {
        /// Name of the step.
        name: String,
        /// Files with changes that were not committed, if the step ends with a commit.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changed_before: Vec<String>,
    },
    /// A step without a session ended: a command, or one that was skipped.
    StepResult {
        /// Its result.
        run: Box<WorkRun>,
    },
    /// A step ended, and the next one follows.
    StepEnd {
        /// Name of the step.
        name: String,
    },
    /// A worktree is about to be created, or its branch has changed.
    Worktree {
        /// Name of the run that works in it.
        name: String,
        /// The worktree.
        worktree: Worktree,
    },
    /// One of its runs begins, as a session of its own.
    RunStart {
        /// Name of the run in the command, such as `iteration 2`.
        name: String,
        /// The session.
        session_id: String,
    },
    /// One of its runs ended.
    RunEnd {
        /// Name of the run.
        name: String,
        /// US dollars that the run may have cost: known costs, and the highest possible ones of calls whose cost is unknown.
        spent_usd: Usd,
        /// Its result.
        result: Box<RunResult>,
    },
    /// The checks after one of its runs ended.
    Checks {
        /// Name of the run.
        name: String,
        /// Results of the checks, in order.
        results: Vec<GateResult>,
    },
    /// The command ended.
    End {
        /// Its result.
        result: Box<WorkResult>,
    },
}

impl WorkStopReason {
    /// Returns the reason of a command that ends because a run ended with `result`, which is no success.
    pub fn for_run(result: &RunResult) -> Self {
        match (result.stop_reason, result.status) {
            (Some(StopReason::UserInterrupt), _) => Self::UserInterrupt,
            (Some(StopReason::AwaitingApproval), _) => Self::AwaitingApproval,
            (_, Status::Failed) => Self::RunFailed,
            (Some(StopReason::Timeout), _) => Self::Timeout,
            (Some(StopReason::BudgetExceeded), _) => Self::BudgetExceeded,
            (_, Status::Partial | Status::Success) => Self::RunPartial,
        }
    }

    /// Returns the status for this reason.
    pub fn status(self) -> Status {
        match self {
            Self::Done => Status::Success,
            Self::RunFailed => Status::Failed,
            Self::MaxIterations
            | Self::BudgetExceeded
            | Self::Timeout
            | Self::NoProgress
            | Self::RunPartial
            | Self::NotMerged
            | Self::StepFailed
            | Self::AwaitingApproval
            | Self::UserInterrupt => Status::Partial,
        }
    }
}

impl WorkResult {
    /// Creates the result of a command that ended with these runs.
    pub fn new(command: &str, work_id: &str, stop_reason: WorkStopReason, runs: Vec<WorkRun>) -> Self {
        let last = runs.iter().rfind(|run| run.skipped.is_none());
        let mut costs = runs.iter().map(|run| run.result.cost.total_usd);
        let mut result = Self {
            work_id: Some(work_id.to_owned()),
            status: stop_reason.status(),
            stop_reason: Some(stop_reason),
            output: last.map(|run| run.result.output.text().into_owned()).unwrap_or_default(),
            cost_usd: costs.try_fold(Usd::default(), |sum, cost| Some(sum + cost?)),
            ..Self::not_started(command, None)
        };
        for WorkRun { result: run, .. } in &runs {
            result.steps += run.steps;
            result.requests += run.requests;
            result.tool_calls += run.tool_calls;
            result.usage += run.usage;
            result.duration_seconds += run.duration_seconds;
        }
        result.duration_seconds = (result.duration_seconds * 1000.0).round() / 1000.0;
        result.runs = runs;
        result
    }

    /// Creates the result of a command that did not start because of `error`.
    pub fn not_started(command: &str, error: Option<Failure>) -> Self {
        Self {
            schema_version: WORK_SCHEMA_VERSION,
            command: command.to_owned(),
            work_id: None,
            status: Status::Failed,
            stop_reason: None,
            output: String::new(),
            runs: Vec::new(),
            ranking: Vec::new(),
            task_scores: Vec::new(),
            worktree: None,
            steps: 0,
            requests: 0,
            tool_calls: 0,
            usage: Usage::default(),
            cost_usd: None,
            duration_seconds: 0.0,
            consolidation: None,
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_result::Cost;
    use strum::VariantArray;

    fn run(cost: Option<f64>) -> WorkRun {
        let total_usd = cost.map(|cost| Usd::try_from(cost).unwrap());
        let result =
            RunResult { steps: 2, cost: Cost { total_usd, ..Cost::default() }, ..RunResult::default() };
        WorkRun { name: "iteration 1".to_owned(), result, ..WorkRun::default() }
    }

    #[test]
    fn an_unknown_cost_makes_the_sum_unknown() {
        let known =
            WorkResult::new("loop", "id", WorkStopReason::Done, vec![run(Some(0.5)), run(Some(0.25))]);
        assert_eq!((known.cost_usd.map(f64::from), known.steps), (Some(0.75), 4));
        let unknown = WorkResult::new("loop", "id", WorkStopReason::Done, vec![run(Some(0.5)), run(None)]);
        assert_eq!(unknown.cost_usd, None);
    }

    #[test]
    fn a_run_that_is_no_success_is_never_done() {
        for reason in StopReason::VARIANTS {
            for status in [Status::Partial, Status::Failed] {
                let result = RunResult { stop_reason: Some(*reason), status, ..RunResult::default() };
                assert_ne!(WorkStopReason::for_run(&result).status(), Status::Success, "{reason:?}");
            }
        }
    }

    #[test]
    fn a_run_is_its_result_document_with_its_name() {
        let json = serde_json::to_value(run(None)).unwrap();
        assert_eq!((&json["name"], &json["steps"]), (&"iteration 1".into(), &2.into()));
        assert_eq!(serde_json::from_value::<WorkRun>(json).unwrap(), run(None));
    }
}
