//! What the attempts of a worker share.

use crate::cli::commands::run_args::RunOptions;
use crate::cli::compose::app::App;
use crate::core::language::Language;
use crate::fleet::queue::Queue;
use crate::terminal::Style;
use std::time::Duration;
use tokio::sync::Mutex;
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
    /// Time after which a claim ends.
    pub lease: Duration,
    /// Ends the runs, whose tasks are given back.
    pub stop: CancellationToken,
    /// Held while git works, which locks its files.
    pub git: Mutex<()>,
}

impl WorkerContext<'_> {
    /// Returns the seconds since the Unix epoch.
    pub fn now(&self) -> u64 {
        self.app.source.unix_time().as_secs()
    }

    /// Writes a line of the log for users.
    pub fn log(&self, style: Style, text: &str) {
        if !self.options.quiet {
            self.app.notify(style, &self.app.redact(text));
        }
    }
}
