//! `agent sessions fork`: creates a new session from the conversation of another one.

use super::{CommandContext, read_session};
use agent_journal::copy::{rewrite_for_session, up_to_step};
use agent_journal::images::IMAGES_DIR;
use agent_journal::session_store::SessionStore;
use agent_run::error::CliResult;
use agent_run::output::print;
use agent_runtime::private_file::create_private_dir;
use std::io;
use std::path::Path;

/// Creates the session `new` from session `id`, or from its first steps, and prints its id.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when the new one cannot be created.
pub fn fork(context: &CommandContext<'_>, id: &str, to_step: Option<u32>, new: &str) -> CliResult<()> {
    copy_session(&context.store, id, to_step, new)?;
    print(context.terminal, &format!("{new}\n"))
}

/// Creates the session `new` from session `id`, or from its first steps.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when the new one cannot be created.
pub fn copy_session(store: &SessionStore, id: &str, to_step: Option<u32>, new: &str) -> CliResult<()> {
    let reading = read_session(store, id)?;
    let records = match to_step {
        Some(step) => up_to_step(&reading.records, step).to_vec(),
        None => reading.records,
    };
    let (outputs, images) = (store.outputs_dir(id)?, store.images_dir(id)?);
    store.create_from_records(new, &rewrite_for_session(records, new), |dir| {
        copy(&outputs, &dir.join("outputs"))?;
        copy(&images, &dir.join(IMAGES_DIR))
    })?;
    Ok(())
}

/// Copies the files of a directory, if it exists.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(entries) = from.read_dir() else { return Ok(()) };
    create_private_dir(to)?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
