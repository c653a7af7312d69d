//! Spinner shown while the agent waits; removed from the screen before any text is written.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Time between redraws; slow enough for a terminal over ssh.
const TICK: Duration = Duration::from_millis(120);
/// Time since the label was set, then the label, cut to the width of the terminal.
const TEMPLATE: &str = "{spinner} {elapsed} {wide_msg}";

/// A spinner on standard error, visible or hidden.
#[derive(Debug, Default)]
pub struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Shows `label` and restarts its timer; `label` must be one sanitized line.
    pub fn show(&mut self, label: &str) {
        if let Some(bar) = &self.bar {
            bar.reset_elapsed();
            bar.set_message(label.to_owned());
            return;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(label.to_owned());
        bar.enable_steady_tick(TICK);
        self.bar = Some(bar);
    }

    /// Removes the spinner from the screen and returns its label.
    pub fn hide(&mut self) -> Option<String> {
        let bar = self.bar.take()?;
        bar.finish_and_clear();
        Some(bar.message())
    }

    /// Runs `write` while the spinner is hidden.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}
