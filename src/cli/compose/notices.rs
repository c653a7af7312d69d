//! Notices at the start of a run: confinement of commands, a context window that is too small, a damaged journal.

use crate::agent::context_window::BYTES_PER_TOKEN;
use crate::agent::session_state::SessionState;
use crate::cli::compose;
use crate::config::settings::Settings;
use crate::core::limits::Limits;
use crate::messages;
use crate::process::launch::Launcher;

/// Divisor of the context window: tools that take more than this share cause a notice.
const TOOLS_SHARE: u64 = 3;

/// Returns the notices at the start of a run on the confinement of commands and the context windows of the models.
pub fn startup_notices(
    settings: &Settings,
    launcher: &Launcher,
    limits: &Limits,
    window: Option<u64>,
) -> Vec<String> {
    let mut notices = compose::sandbox_notices(settings, launcher);
    notices.extend(window_notice(limits, window));
    notices
}

/// Returns notices on damaged and incomplete parts of the journal.
pub fn journal_problems(known: &SessionState) -> impl Iterator<Item = String> {
    let damaged = (!known.damaged.is_empty()).then(|| messages::journal_damaged(&known.damaged));
    let incomplete = (!known.incomplete.is_empty()).then(|| messages::journal_incomplete(&known.incomplete));
    damaged.into_iter().chain(incomplete)
}

/// Returns a notice if the tools take too much of the smallest context window.
fn window_notice(limits: &Limits, window: Option<u64>) -> Option<String> {
    let tools = limits.tools_bytes / BYTES_PER_TOKEN;
    let window = window.filter(|window| tools > window / TOOLS_SHARE)?;
    Some(messages::tools_fill_window(tools, window))
}
