//! What the attempts of a worker share.

use crate::cli::commands::hub::context::HubContext;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::compose::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::hub::Lane;
use crate::core::language::Language;
use crate::fleet::backoff::wait_after;
use crate::fleet::error::QueueError;
use crate::fleet::metrics::{Figure, Metrics};
use crate::fleet::queue::Queue;
use crate::terminal::Style;
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
    /// The options of all runs, which bound those of the tasks.
    pub options: RunOptions,
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

impl WorkerContext<'_> {
    /// Returns the seconds since the Unix epoch.
    pub fn now(&self) -> u64 {
        self.app.source.unix_time().as_secs()
    }

    /// Returns the value, or `None` if the queue cannot be used now, which may pass and is logged once.
    ///
    /// # Errors
    /// Fails for every other error.
    pub fn or_later<T>(&self, value: Result<T, QueueError>) -> CliResult<Option<T>> {
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
    pub async fn until_answered<T>(&self, call: impl AsyncFn() -> Result<T, QueueError>) -> CliResult<T> {
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
        if !self.options.quiet {
            self.app.notify(style, &self.app.redact(text));
        }
    }
}

/// Returns an error of git or of the file system that another attempt may not have.
pub fn may_pass(why: &str) -> CliError {
    CliError::new(FailureKind::Session, why)
}
