//! Checks before a run that the program's own directories exist and are writable, or can be created.

use crate::error::{AppError, AppResult};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_runtime::private_file::create_private_dir;
use rustix::fs::Access;
use std::io;
use std::path::Path;

/// Creates the directories that a run needs from the start, and checks that the others can be created later.
///
/// # Errors
/// Fails when a directory cannot be created or is not writable.
pub fn prepare(settings: &Settings) -> AppResult<()> {
    let unusable = |directory: &Path, error: &io::Error| {
        AppError::new(
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

/// Checks that `directory` is writable, or that its nearest existing ancestor is.
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
    fn a_missing_directory_is_checked_without_creating_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(check_creatable(&dir.path().join("a/b/c")).is_ok());
        assert!(!dir.path().join("a").exists(), "it is not created");
        std::fs::write(dir.path().join("file"), "").unwrap();
        for blocked in ["file", "file/b"] {
            let error = check_creatable(&dir.path().join(blocked)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        }
    }
}
