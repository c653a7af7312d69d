//! A claimed task in the queue: renews the claim, and records how the attempt ended.

use crate::commands::context::WorkerContext;
use agent_core::failure::FailureKind;
use agent_core::fleet::TaskRecord;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;
use agent_core::task_transitions::Ending;
use agent_messages as messages;
use agent_run::error::AppResult;
use agent_terminal::Style;
use std::cell::{Cell, OnceCell};
use std::convert::Infallible;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The run of an attempt.
#[derive(Default)]
pub struct AttemptRun {
    has_begun: Cell<bool>,
    result: OnceCell<RunResult>,
}

impl AttemptRun {
    /// Notes that the run begins, which may cost something.
    pub fn begin(&self) {
        self.has_begun.set(true);
    }

    /// Notes how the run ended, unless that is known, and returns it.
    pub fn end(&self, result: RunResult) -> &RunResult {
        self.result.get_or_init(|| result)
    }

    /// Checks whether the run has begun.
    pub fn has_begun(&self) -> bool {
        self.has_begun.get()
    }

    /// Returns how the run ended, once it has.
    pub fn get(&self) -> Option<&RunResult> {
        self.result.get()
    }
}

/// The newest attempt of a task.
#[derive(Clone, Copy)]
pub struct Claim<'a> {
    /// Its worker.
    pub worker: &'a WorkerContext<'a>,
    /// The task.
    pub task: &'a TaskRecord,
    /// The run of the attempt.
    pub run: &'a AttemptRun,
}

impl Claim<'_> {
    /// Renews the claim all the time, and interrupts the attempt when the task is no longer its own.
    pub async fn renew(&self, interrupt: &CancellationToken) -> Infallible {
        let mut renewals = interval(self.worker.queue.lease() / 3);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            renewals.tick().await;
            self.worker.set_heartbeat();
            match self.worker.or_later(self.worker.queue.renew(self.task).await) {
                // If an outage lasts, another worker takes the task, and what this one does has no effect.
                Ok(Some(true) | None) => {}
                Ok(Some(false)) => interrupt.cancel(),
                Err(error) => self.worker.log(Style::Warning, &error.to_string()),
            }
        }
    }

    /// Records how the attempt ended; returns whether the task was still its own.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn finish(&self, ending: Ending, result: Option<&RunResult>) -> AppResult<bool> {
        let redact = |cause: String| self.worker.app.redact(&cause);
        let ending = match ending {
            Ending::Done(commit) => Ending::Done(commit),
            Ending::Failed(cause) => Ending::Failed(redact(cause)),
            Ending::Retry(cause) => Ending::Retry(redact(cause)),
            Ending::NotDone(why) => Ending::NotDone(redact(why)),
        };
        let worker = self.worker;
        worker
            .until_answered(async || worker.queue.finish(self.task, &ending, result, worker.now()).await)
            .await
    }

    /// Gives the task back, which does not count as a failed attempt.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn give_back(&self) -> AppResult<()> {
        let worker = self.worker;
        worker.until_answered(async || worker.queue.give_back(self.task, worker.now()).await).await.map(drop)
    }
}

/// Returns how an attempt ended whose run ended without success.
pub fn ending_of_run(result: &RunResult) -> Ending {
    let reason = result.stop_reason.map_or_else(|| result.status.name(), StopReason::name);
    let failed_check = result.quality_gates.iter().find(|gate| gate.required && !gate.passed);
    match &result.error {
        Some(failure) if failure.retryable => Ending::Retry(failure.message.clone()),
        Some(failure) => Ending::Failed(failure.message.clone()),
        None => Ending::Failed(failed_check.map_or_else(|| reason.to_owned(), messages::check_failed)),
    }
}

/// Returns how an attempt ended whose run could not start: with the same configuration no other one would.
pub fn ending_of(kind: FailureKind, message: String) -> Ending {
    match kind {
        FailureKind::Internal | FailureKind::Session | FailureKind::Network => Ending::Retry(message),
        _ => Ending::Failed(message),
    }
}
