//! The directories in which this program keeps its own files: there and writable before anything begins, or the way out.

use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::messages;
use crate::process::scratch::make_private;
use rustix::fs::Access;
use std::io;
use std::path::Path;

/// Makes what a run needs from its beginning, and looks whether the rest can be made when it is needed.
///
/// # Errors
/// When one cannot be made or not be written to.
pub fn prepare(settings: &Settings) -> CliResult<()> {
    let unusable = |directory: &Path, error: &io::Error| {
        CliError::new(ErrorKind::Config, messages::home_unusable(&directory.display().to_string(), error))
    };
    make_private(&settings.state)
        .and_then(|()| writable(&settings.state))
        .map_err(|error| unusable(&settings.state, &error))?;
    if settings.sandbox_off {
        return Ok(());
    }
    let caches = settings.directories.cache_of(&settings.workspace);
    can_be_made(&caches).map_err(|error| unusable(&caches, &error))
}

fn writable(directory: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Whether `directory` is there, or what is there of the way to it can be gone on with.
fn can_be_made(directory: &Path) -> io::Result<()> {
    match (directory.metadata(), directory.parent()) {
        (Ok(there), _) if there.is_dir() => writable(directory),
        (Ok(_), _) => Err(io::ErrorKind::NotADirectory.into()),
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => can_be_made(parent),
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
        assert!(can_be_made(&dir.path().join("a/b/c")).is_ok());
        assert!(!dir.path().join("a").exists(), "it is not made yet");
        std::fs::write(dir.path().join("file"), "").unwrap();
        for in_the_way in ["file", "file/b"] {
            let error = can_be_made(&dir.path().join(in_the_way)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        }
    }
}
