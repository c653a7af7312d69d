//! The directory in which an attempt of an activation works: empty at its begin, and removed at its end.

use crate::cli::commands::fleet::claim::Claim;
use crate::cli::commands::fleet::context::may_pass;
use crate::cli::commands::fleet::executor::home_of;
use crate::cli::commands::fleet::records::directories;
use crate::cli::error::CliResult;
use crate::runtime::private_file::create_private_dir;
use std::io;
use std::path::{Path, PathBuf};

/// Directory of these directories, in the state directory.
const DIRECTORY: &str = "hub";

/// The directory of an attempt, which no other one has.
pub struct Workspace {
    of_task: PathBuf,
    of_attempt: PathBuf,
}

impl Workspace {
    /// Creates it, and removes those of earlier attempts, which killed workers have left.
    ///
    /// # Errors
    /// Fails when the state directory cannot be used.
    pub fn create(Claim { worker, task, .. }: Claim<'_>) -> CliResult<Self> {
        let of_task = directories(worker.app)?.state.join(DIRECTORY).join(worker.queue.id()).join(&task.id);
        let of_attempt = of_task.join(task.attempt.to_string());
        let unusable = |error: io::Error| may_pass(&format!("{}: {error}", of_task.display()));
        for attempt in 1..task.attempt {
            let earlier = of_task.join(attempt.to_string());
            remove(&home_of(&earlier)).and_then(|()| remove(&earlier)).map_err(unusable)?;
        }
        create_private_dir(&of_attempt).map_err(unusable)?;
        Ok(Self { of_task, of_attempt })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.of_attempt
    }

    /// Returns the path of a home directory for another program, which is removed with it.
    pub fn home(&self) -> PathBuf {
        home_of(&self.of_attempt)
    }

    /// Removes it.
    ///
    /// # Errors
    /// Fails when something in it cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        remove(&self.home()).and_then(|()| remove(&self.of_attempt))?;
        // A later attempt may be at work beside it.
        let _other = std::fs::remove_dir(&self.of_task);
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a directory that only attempts of this task have used")]
fn remove(directory: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
