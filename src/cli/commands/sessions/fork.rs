//! `agent sessions fork`: creates a new session from the conversation of another one.

use super::CommandContext;
use agent_run::error::AppResult;
use agent_run::output::print;

/// Creates the session `new` from session `id`, or from its first steps, and prints its id.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when the new one cannot be created.
pub fn fork(context: &CommandContext<'_>, id: &str, to_step: Option<u32>, new: &str) -> AppResult<()> {
    context.store.copy(id, to_step, new)?;
    print(context.terminal, &format!("{new}\n"))
}
