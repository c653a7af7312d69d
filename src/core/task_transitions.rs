//! How a task changes: pure functions on its record, which every store of tasks applies.

use crate::fleet::{AttemptKey, TaskRecord, TaskSpec, TaskState, branch_name};
use crate::run_result::RunResult;
use std::time::Duration;

/// Wait after the first failed attempt; each further one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(2);
/// Longest wait after a failed attempt.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// Maximum bytes of the cause in a record.
const MAX_CAUSE_BYTES: usize = 4 << 10;

/// How an attempt ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// The run succeeded; with the commit of its changes.
    Done(Option<String>),
    /// The run ended otherwise, and another attempt would end the same way.
    Failed(String),
    /// The attempt failed, and another one may succeed.
    Retry(String),
    /// The task is not to be done, for this reason, which is no failure.
    NotDone(String),
}

/// What becomes of a record that a store has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    Keep,
    /// It is written.
    Write,
    /// It is written, and no worker claims the task before this time has passed.
    WriteAndWait(Duration),
}

/// Why the state of a task does not allow what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct StateRefusal(pub String);

impl TaskRecord {
    /// Creates the record of a task that is submitted at `now` (seconds since the Unix epoch).
    pub fn new(id: &str, number: u64, spec: &TaskSpec, now: u64) -> Self {
        Self {
            id: id.to_owned(),
            number,
            spec: spec.clone(),
            state: TaskState::Queued,
            attempt: 0,
            failed_attempts: 0,
            worker: None,
            session_id: None,
            base: None,
            cause: None,
            commit: None,
            left_out: Vec::new(),
            worktree: None,
            result_bundle: None,
            session_object: None,
            branch: None,
            settled: false,
            subject: None,
            posts: Vec::new(),
            submitted_at: now,
            changed_at: now,
            result: None,
        }
    }

    /// Returns the newest attempt.
    pub fn newest_attempt(&self) -> AttemptKey {
        AttemptKey { task: self.number, attempt: self.attempt }
    }

    /// Checks whether `attempt`, an earlier state of the record, may change the task: it is claimed, no later attempt has begun, and no other
    /// worker goes on with this one.
    pub fn belongs_to(&self, attempt: &Self) -> bool {
        self.state == TaskState::Claimed
            && self.newest_attempt() == attempt.newest_attempt()
            && self.worker == attempt.worker
    }

    /// Begins an attempt of `worker`.
    pub fn claim(&mut self, worker: &str, now: u64) {
        self.set_state(TaskState::Claimed, now);
        self.attempt = self.attempt.saturating_add(1);
        self.worker = Some(worker.to_owned());
        (self.session_id, self.base, self.result, self.settled) = (None, None, None, false);
        (self.result_bundle, self.session_object) = (None, None);
        (self.left_out, self.worktree) = (Vec::new(), None);
    }

    /// Lets `worker` go on with the attempt of a worker that has ended, which counts as a failed one if it `has_failed`; returns whether the task
    /// may have another.
    pub fn adopt(&mut self, worker: &str, has_failed: bool) -> bool {
        let failed_attempts = self.failed_attempts.saturating_add(has_failed.into());
        if failed_attempts >= self.spec.max_attempts {
            return false;
        }
        (self.failed_attempts, self.worker) = (failed_attempts, Some(worker.to_owned()));
        true
    }

    /// Ends the attempt of a worker that has not renewed its claim.
    pub fn take_back(&mut self, now: u64) {
        let worker = self.worker.as_deref().unwrap_or_default();
        self.fail(format!("the worker {worker} has ended without a result"), now);
        // An activation is still to be reported to the Hub.
        self.settled = false;
    }

    fn fail(&mut self, cause: String, now: u64) {
        self.failed_attempts = self.failed_attempts.saturating_add(1);
        let is_dead = self.failed_attempts >= self.spec.max_attempts;
        self.set_state(if is_dead { TaskState::Dead } else { TaskState::Queued }, now);
        self.cause = Some(bounded_cause(cause));
    }

    /// Ends the newest attempt; returns the time to wait before the next one.
    pub fn finish(&mut self, ending: &Ending, result: Option<RunResult>, now: u64) -> Duration {
        self.result = result;
        let wait = FIRST_WAIT.saturating_mul(1 << self.failed_attempts.min(10)).min(MAX_WAIT);
        match ending {
            Ending::Done(commit) => {
                self.set_state(TaskState::Done, now);
                (self.commit, self.cause) = (commit.clone(), None);
                return Duration::ZERO;
            }
            Ending::Failed(cause) => {
                self.fail(cause.clone(), now);
                self.set_state(TaskState::Failed, now);
            }
            Ending::Retry(cause) => self.fail(cause.clone(), now),
            Ending::NotDone(why) => {
                self.set_state(TaskState::Cancelled, now);
                self.cause = Some(bounded_cause(why.clone()));
            }
        }
        wait
    }

    /// Ends the newest attempt, which does not count as failed.
    pub fn give_back(&mut self, now: u64) {
        self.set_state(TaskState::Queued, now);
    }

    /// Records that the task has its branch, and that nothing is left of its newest attempt.
    pub fn settle(&mut self) {
        self.settled = true;
        // That of a bundle is created by `agent tasks fetch`.
        let commit = self.commit.as_ref().filter(|_| self.spec.bundle.is_none());
        self.branch = commit.map(|_| branch_name(&self.id));
    }

    /// Cancels the task.
    ///
    /// # Errors
    /// Fails if it has ended.
    pub fn cancel(&mut self, now: u64) -> Result<(), StateRefusal> {
        if self.state.has_ended() {
            return Err(self.refuse("has ended"));
        }
        self.set_state(TaskState::Cancelled, now);
        // Without an attempt there is nothing that could be left.
        self.settled |= self.attempt == 0;
        self.cause = Some("cancelled by the user".to_owned());
        Ok(())
    }

    /// Queues the task again; its attempts may fail as often as before.
    ///
    /// # Errors
    /// Fails unless it ended without success.
    pub fn retry(&mut self, now: u64) -> Result<(), StateRefusal> {
        if !self.state.has_ended() || self.state == TaskState::Done {
            return Err(self.refuse("can be retried only after it failed"));
        }
        if self.spec.activation.is_some() {
            return Err(self.refuse("is not retried: the next activation of the agent follows it"));
        }
        self.set_state(TaskState::Queued, now);
        (self.failed_attempts, self.cause) = (0, None);
        Ok(())
    }

    /// Checks that the task can be removed.
    ///
    /// # Errors
    /// Fails if it has not ended, or its branch is still missing.
    pub fn check_removable(&self) -> Result<(), StateRefusal> {
        if self.state == TaskState::Done && !self.settled && self.spec.activation.is_none() {
            return Err(self.refuse("has no branch yet: a worker on its machine makes it"));
        }
        if self.state.has_ended() {
            return Ok(());
        }
        Err(self.refuse("has not ended; `agent tasks cancel` cancels it"))
    }

    /// Checks whether another failed attempt would be the last one.
    pub fn has_last_attempt(&self) -> bool {
        self.failed_attempts.saturating_add(1) >= self.spec.max_attempts
    }

    fn set_state(&mut self, state: TaskState, now: u64) {
        (self.state, self.changed_at) = (state, now);
        // An activation has no branch, and its directory is removed by the next one.
        self.settled |= state.has_ended() && self.spec.activation.is_some();
    }

    fn refuse(&self, why: &str) -> StateRefusal {
        StateRefusal(format!("the task {} ({}) {why}", self.id, self.state.name()))
    }
}

fn bounded_cause(mut cause: String) -> String {
    cause.truncate(cause.floor_char_boundary(MAX_CAUSE_BYTES));
    cause
}
