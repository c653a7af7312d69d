//! The line that turns while nothing else can be said; cleared before any text.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// Redraws per second stay far below what a terminal over ssh feels.
const TICK: Duration = Duration::from_millis(120);
/// Seconds of waiting on this label, then the label, cut to the width of the terminal.
const TEMPLATE: &str = "{spinner} {elapsed} {wide_msg}";

/// A spinner on standard error, or nothing.
#[derive(Debug, Default)]
pub struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Shows `label` and counts its seconds from now; `label` must be harmless and one line.
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

    /// Clears it from the screen; gives back its label.
    pub fn hide(&mut self) -> Option<String> {
        let bar = self.bar.take()?;
        bar.finish_and_clear();
        Some(bar.message())
    }

    /// Runs `write` while the spinner is off the screen.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}
