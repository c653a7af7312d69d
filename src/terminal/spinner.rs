//! Spinner shown while the agent waits: a row of the live area.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use std::fmt::{self, Debug};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time between redraws; slow enough for a terminal over ssh.
const TICK: Duration = Duration::from_millis(120);
/// Redraws in a second at most.
const MAX_RATE: u8 = 20;
/// Time since the label was set, then the label, which the live area cuts to the width of the terminal.
const TEMPLATE: &str = "{spinner} {elapsed} {msg}";

/// Shows the row that it receives, or removes the row that was shown if it is empty.
pub type ShowRow = Arc<dyn Fn(&str) + Send + Sync>;

/// A spinner, visible or hidden.
#[derive(Debug, Default)]
pub struct Spinner {
    bar: Option<ProgressBar>,
}

impl Spinner {
    /// Shows `label` through `show` and restarts its timer; `label` must be one sanitized line.
    pub fn show(&mut self, label: &str, width: fn() -> u16, show: &ShowRow) {
        if let Some(bar) = &self.bar {
            bar.reset_elapsed();
            bar.set_message(label.to_owned());
            return;
        }
        let row = StatusRow { text: Mutex::default(), width, show: Arc::clone(show) };
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(row), MAX_RATE);
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_message(label.to_owned());
        bar.enable_steady_tick(TICK);
        bar.tick();
        self.bar = Some(bar);
    }

    /// Removes the spinner from the screen and returns its label.
    pub fn hide(&mut self) -> Option<String> {
        let bar = self.bar.take()?;
        bar.finish_and_clear();
        Some(bar.message())
    }
}

/// The terminal of the spinner: one row.
struct StatusRow {
    text: Mutex<String>,
    width: fn() -> u16,
    show: ShowRow,
}

impl StatusRow {
    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for StatusRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusRow").finish_non_exhaustive()
    }
}

impl TermLike for StatusRow {
    fn width(&self) -> u16 {
        (self.width)()
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.text().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.text().clear();
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let row = std::mem::take(&mut *self.text());
        (self.show)(row.trim());
        Ok(())
    }
}
