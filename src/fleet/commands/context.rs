//! What the attempts of a worker share.

use crate::backoff::wait_after;
use crate::commands::hub::context::HubContext;
use crate::error::QueueError;
use crate::metrics::{Figure, Metrics};
use crate::queue::Queue;
use agent_core::failure::FailureKind;
use agent_core::hub::Lane;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;
use agent_journal::played_turns::PlayedTurns;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::costs;
use agent_run::error::{AppError, AppResult};
use agent_run::model_chain::ModelChain;
use agent_run::request::RunRequest;
use agent_terminal::Style;
use std::cell::Cell;
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What the attempts of a worker share.
pub struct WorkerContext<'a> {
    /// The application.
    pub app: &'a App,
    /// The queue.
    pub queue: Queue,
    /// The request of all runs, which bounds the tasks.
    pub request: RunRequest,
    /// Language of the log.
    pub language: Language,
    /// Ends the runs, whose tasks are given back.
    pub stop: CancellationToken,
    /// Held while git works, which locks its files.
    pub git: Mutex<()>,
    /// The tasks that it does.
    pub lane: Lane,
    /// Its figures.
    pub metrics: Metrics,
    /// Whether the queue could not be used when it was last asked.
    pub is_away: Cell<bool>,
    /// The Hub, if it activates agents.
    pub hub: Option<HubContext>,
}

/// An error of the worker itself, with which it would fail every task: its key or its configuration is wrong. The task is given back, and the
/// worker ends.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct WorkerFault(String);

/// Checks whether an error is one of the worker, and not of the task.
pub fn is_worker_fault(error: &AppError) -> bool {
    error.cause.is::<WorkerFault>()
}

/// Returns the error for a key of the worker that was refused, with the message.
pub fn key_refused(message: &str) -> AppError {
    AppError { kind: FailureKind::Auth, cause: WorkerFault(message.to_owned()).into() }
}

impl WorkerContext<'_> {
    /// Returns the error of an attempt that could not start, as one of the worker if that could not start without the task either;
    /// `uses_own_model` is whether the task uses the model of the worker.
    pub async fn attribute(&self, error: AppError, uses_own_model: bool) -> AppError {
        if is_worker_fault(&error) || !matches!(error.kind, FailureKind::Auth | FailureKind::Config) {
            return error;
        }
        match self.try_start(uses_own_model).await {
            Err(own) if matches!(own.kind, FailureKind::Auth | FailureKind::Config) => {
                let cause = WorkerFault(own.to_string()).into();
                AppError { kind: own.kind, cause }
            }
            _ => error,
        }
    }

    /// Does what a run does before it starts, with the worker's own settings: loads them, and connects the models if the task
    /// `uses_own_model`.
    async fn try_start(&self, uses_own_model: bool) -> AppResult<()> {
        let settings = self.app.load(&self.request.effective_overrides())?.settings;
        assemble::launcher(self.app, &settings)?;
        if uses_own_model {
            let (caps, prices) = (costs::caps(&settings)?, costs::user_prices(&settings.costs)?);
            ModelChain::connect(self.app, &settings, &caps, &prices, &PlayedTurns::default()).await?;
        }
        Ok(())
    }

    /// Returns the error of the worker if the provider of its own models has refused its key in a run.
    pub fn key_fault(&self, result: &RunResult) -> Option<AppError> {
        let error = result.error.as_ref().filter(|_| result.stop_reason == Some(StopReason::AuthError))?;
        let llm = self.app.load(&self.request.effective_overrides()).ok()?.settings.llm;
        let provider = |model: &str| match model.split_once('/') {
            Some((provider, _)) if !provider.starts_with("scripted:") => Some(provider.to_owned()),
            Some(_) => Some(model.to_owned()),
            None => None,
        };
        let used = result.model.as_deref().and_then(provider);
        // Without a model of its own, all are named by tasks, for which it has the keys.
        let is_own = llm.model.is_none()
            || llm
                .model
                .iter()
                .chain(&llm.fallback)
                .any(|own| provider(own).is_none_or(|own| Some(own) == used));
        is_own.then(|| key_refused(&error.message))
    }

    /// Returns the seconds since the Unix epoch.
    pub fn now(&self) -> u64 {
        self.app.source.unix_time().as_secs()
    }

    /// Returns the value, or `None` if the queue cannot be used now, which may pass and is logged once.
    ///
    /// # Errors
    /// Fails for every other error.
    pub fn or_later<T>(&self, value: Result<T, QueueError>) -> AppResult<Option<T>> {
        match value {
            Ok(value) => {
                self.is_away.set(false);
                Ok(Some(value))
            }
            Err(error @ QueueError::Away(_)) => {
                if !self.is_away.replace(true) {
                    self.log(Style::Warning, &error.to_string());
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Repeats a call of the queue until its server answers, unless the runs are ended.
    ///
    /// # Errors
    /// Fails as the call does.
    pub async fn until_answered<T>(&self, call: impl AsyncFn() -> Result<T, QueueError>) -> AppResult<T> {
        let mut tries = 0;
        loop {
            let answer = call().await;
            if self.stop.is_cancelled() {
                return Ok(answer?);
            }
            match self.or_later(answer)? {
                Some(value) => return Ok(value),
                None => sleep(wait_after(tries)).await,
            }
            tries += 1;
        }
    }

    /// Notes in the figures that the worker goes on.
    pub fn set_heartbeat(&self) {
        self.metrics.set(Figure::Heartbeat, &[], self.app.source.unix_time().as_secs_f64());
    }

    /// Writes a line of the log for users.
    pub fn log(&self, style: Style, text: &str) {
        if !self.request.quiet {
            self.app.notify(style, &self.app.redact(text));
        }
    }
}

/// Returns an error of git or of the file system that another attempt may not have.
pub fn may_pass(why: &str) -> AppError {
    AppError::new(FailureKind::Session, why)
}
