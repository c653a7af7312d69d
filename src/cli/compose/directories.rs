//! The directories in which this program keeps its own files: there and writable before anything begins, or the way out.

use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::messages;
use crate::process::scratch_dir::create_private_dir;
use rustix::fs::Access;
use std::io;
use std::path::Path;

/// Makes what a run needs from its beginning, and looks whether the rest can be made when it is needed.
///
/// # Errors
/// When one cannot be made or not be written to.
pub fn prepare(settings: &Settings) -> CliResult<()> {
    let unusable = |directory: &Path, error: &io::Error| {
        CliError::new(
            FailureKind::Config,
            messages::directory_not_writable(&directory.display().to_string(), error),
        )
    };
    create_private_dir(&settings.state)
        .and_then(|()| check_writable(&settings.state))
        .map_err(|error| unusable(&settings.state, &error))?;
    if settings.sandbox_off {
        return Ok(());
    }
    let caches = settings.directories.workspace_cache(&settings.workspace);
    check_creatable(&caches).map_err(|error| unusable(&caches, &error))
}

fn check_writable(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Whether `directory` is there, or what is there of the way to it can be gone on with.
fn check_creatable(directory: &Path) -> io::Result<()> {
    match (directory.metadata(), directory.parent()) {
        (Ok(there), _) if there.is_dir() => check_writable(directory),
        (Ok(_), _) => Err(io::ErrorKind::NotADirectory.into()),
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => check_creatable(parent),
        (Err(error), _) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files of their own")]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_made_later_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_creatable(&dir.path().join("a/b/c")).is_ok());
        assert!(!dir.path().join("a").exists(), "it is not made yet");
        std::fs::write(dir.path().join("file"), "").unwrap();
        for in_the_way in ["file", "file/b"] {
            let error = check_creatable(&dir.path().join(in_the_way)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        }
    }
}
