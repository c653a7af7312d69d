//! The directories in which this program keeps its own files: there and writable before anything begins, or the way out.

use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::messages;
use crate::process::scratch::make_private;
use rustix::fs::Access;
use std::io;
use std::path::Path;

/// Makes those that a run needs.
///
/// # Errors
/// When one cannot be made or not be written to.
pub fn prepare(settings: &Settings) -> CliResult<()> {
    let caches = (!settings.sandbox_off).then(|| settings.directories.cache_of(&settings.workspace));
    for directory in [Some(settings.state.clone()), caches].into_iter().flatten() {
        writable(&directory).map_err(|error| {
            CliError::new(
                ErrorKind::Config,
                messages::home_unusable(&directory.display().to_string(), &error),
            )
        })?;
    }
    Ok(())
}

fn writable(directory: &Path) -> io::Result<()> {
    make_private(directory)?;
    Ok(rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}
