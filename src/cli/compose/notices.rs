//! What is to be said before a run begins: what holds its commands, and whether its model holds enough.

use crate::agent::context_window::BYTES_PER_TOKEN;
use crate::cli::compose;
use crate::config::settings::Settings;
use crate::core::limits::Limits;
use crate::messages;
use crate::process::launch::Launcher;

/// The part of a window beyond which it is said that the tools take too much of it.
const TOOLS_SHARE: u64 = 3;

/// What is to be said at the beginning of a run about what holds its commands and what its models hold.
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

/// What is to be said when the tools leave little of the smallest window of a run's models.
fn window_notice(limits: &Limits, window: Option<u64>) -> Option<String> {
    let tools = limits.tools_bytes / BYTES_PER_TOKEN;
    let window = window.filter(|window| tools > window / TOOLS_SHARE)?;
    Some(messages::tools_fill_window(tools, window))
}
