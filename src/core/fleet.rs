//! A task of the queue: what is to be done, how far it is, and its result.

use crate::hub::{Activation, ActivationKind, Lane, OutboxPost, Subject};
use crate::run_result::RunResult;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumIter, EnumString, IntoStaticStr};

/// Version of the document of tasks.
pub const TASKS_SCHEMA_VERSION: u32 = 1;

/// Which tasks come first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
    EnumIter,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Priority {
    /// Before all others.
    High,
    /// In the order of submission.
    #[default]
    Normal,
    /// When nothing else waits.
    Low,
}

/// How far a task is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumIter, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum TaskState {
    /// It waits for a worker.
    Queued,
    /// A worker does it.
    Claimed,
    /// Its run succeeded.
    Done,
    /// Its run ended otherwise, for a reason that another attempt would not change.
    Failed,
    /// All its attempts failed.
    Dead,
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// Returns the name, as in the documents.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Checks whether no worker will do anything about the task.
    pub fn has_ended(self) -> bool {
        !matches!(self, Self::Queued | Self::Claimed)
    }
}

/// A commit with its history, as an object of the queue.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// Name of the object: the hash of its content (BLAKE3, in hexadecimal digits).
    pub object: String,
    /// Id of the commit from which the work begins.
    pub commit: String,
    /// Path of the directory in the repository in which the work is done: empty, or with a `/` at its end.
    pub prefix: String,
}

impl PartialEq for Bundle {
    /// The same commit is not always the same file.
    fn eq(&self, other: &Self) -> bool {
        (&self.commit, &self.prefix) == (&other.commit, &other.prefix)
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSpec {
    /// The prompt, or the beginning of a long one.
    pub prompt: String,
    /// Of a prompt that is too long for a record: the object with all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<String>,
    /// Absolute path of the repository, or of a directory in it; empty with a bundle.
    pub dir: String,
    /// What the worker works on instead of a repository that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Bundle>,
    /// Which tasks come first.
    #[serde(default)]
    pub priority: Priority,
    /// How many attempts may fail before the task is dead.
    pub max_attempts: u32,
    /// The agent; absent: that of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model; absent: that of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode, which never allows more than that of the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Maximum number of model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<u32>,
    /// Time limit in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    /// Maximum cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<f64>,
    /// The program that does the task, of `fleet.executors` of the worker; absent: the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Commands that must succeed before the task counts as done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    /// The activation of an agent of a Hub, whose prompt its worker builds from what the Hub has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

impl TaskSpec {
    /// Creates a task without any limits of its own.
    pub fn new(prompt: impl Into<String>, dir: impl Into<String>, max_attempts: u32) -> Self {
        Self {
            prompt: prompt.into(),
            long_prompt: None,
            dir: dir.into(),
            bundle: None,
            priority: Priority::Normal,
            max_attempts,
            agent: None,
            model: None,
            mode: None,
            max_steps: None,
            timeout: None,
            budget: None,
            executor: None,
            checks: Vec::new(),
            activation: None,
        }
    }

    /// Creates the task of an activation. Those for notifications come first.
    pub fn of_activation(activation: Activation, max_attempts: u32) -> Self {
        let (prompt, priority) = match activation.kind {
            ActivationKind::Notification => ("answer a notification", Priority::High),
            ActivationKind::Exploration => ("look for posts to answer", Priority::Normal),
        };
        let prompt = format!("{}: {prompt}", activation.agent);
        Self { priority, activation: Some(activation), ..Self::new(prompt, "/", max_attempts) }
    }

    /// Checks whether the workers of `lane` do the task.
    pub fn is_of(&self, lane: Lane) -> bool {
        match (lane, &self.activation) {
            (Lane::Submitted, None) | (Lane::Hub(None), Some(_)) => true,
            (Lane::Hub(Some(kind)), Some(activation)) => activation.kind == kind,
            (Lane::Submitted, Some(_)) | (Lane::Hub(_), None) => false,
        }
    }
}

/// A task with its state: the truth about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRecord {
    /// Its id.
    pub id: String,
    /// Its number in the queue, in the order of submission. No other task ever has it, also after this one is removed.
    pub number: u64,
    /// What is to be done.
    #[serde(flatten)]
    pub spec: TaskSpec,
    /// How far it is.
    pub state: TaskState,
    /// Number of the newest attempt, from 1; 0 before the first. Only the worker of this attempt may change the task.
    pub attempt: u32,
    /// Number of attempts that failed, and of workers that were killed.
    pub failed_attempts: u32,
    /// The worker of the newest attempt.
    pub worker: Option<String>,
    /// The session of the newest attempt.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The commit from which the newest attempt began.
    #[serde(default)]
    pub base: Option<String>,
    /// Why the newest attempt failed, or the task was cancelled.
    pub cause: Option<String>,
    /// The commit with the changes, if the task is done and changed anything.
    pub commit: Option<String>,
    /// Changes that the commit lacks, from the top of `worktree`: files with a filter or ignored by git, and what is in submodules (`lib/`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The directory on the machine of the worker that was kept, because it has changes that are in no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Of a task with a bundle: the object with its commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_bundle: Option<String>,
    /// On a server: the object with the session of the newest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_object: Option<String>,
    /// The branch of the commit, once it exists.
    pub branch: Option<String>,
    /// Whether the task has its branch, and nothing is left of its attempts.
    #[serde(default)]
    pub settled: bool,
    /// Of an activation: the notification that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// Of an activation: its posts, those of all attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub posts: Vec<OutboxPost>,
    /// Seconds since the Unix epoch when it was submitted.
    pub submitted_at: u64,
    /// Seconds since the Unix epoch when its state last changed.
    pub changed_at: u64,
    /// The document of its last run.
    pub result: Option<RunResult>,
}

/// The document of `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TasksDocument {
    /// Version of this document.
    pub schema_version: u32,
    /// The tasks.
    pub tasks: Vec<TaskRecord>,
}

/// An attempt of a task. No other one ever has the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// Number of the task in the queue.
    pub task: u64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
}

impl TasksDocument {
    /// Creates the document of these tasks.
    pub fn new(tasks: Vec<TaskRecord>) -> Self {
        Self { schema_version: TASKS_SCHEMA_VERSION, tasks }
    }
}

/// Returns the branch on which the changes of the task `id` are published.
pub fn branch_name(id: &str) -> String {
    format!("agent/task/{id}")
}

/// Checks that `id` can be the name of a branch and of a directory: 1 to 64 letters, digits, `.`, `_` and `-`.
///
/// # Errors
/// Says what an id is.
pub fn check_id(id: &str) -> Result<(), String> {
    let is_plain = id.chars().all(|char| char.is_ascii_alphanumeric() || "._-".contains(char));
    let is_name = !id.starts_with(['.', '-']) && !id.ends_with('.') && !id.contains("..");
    // git refuses such branches.
    let is_branch = !id.to_ascii_lowercase().ends_with(".lock");
    if (1..=64).contains(&id.len()) && is_plain && is_name && is_branch {
        return Ok(());
    }
    Err("an id has 1 to 64 letters, digits, `.`, `_` and `-`, and is the name of a branch".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_name_of_a_branch_and_of_a_directory() {
        for id in ["a", "A-1_b.c", "0192e3a4-7b1c-7def-8a9b-0123456789ab"] {
            assert_eq!(check_id(id), Ok(()), "{id}");
        }
        for id in ["", ".", "..", ".a", "-a", "a/b", "a b", "a..b", "a.", "a.LOCK", "é", &"x".repeat(65)] {
            assert!(check_id(id).is_err(), "{id}");
        }
    }
}
