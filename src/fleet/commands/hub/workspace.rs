//! The directory in which an attempt of an activation works: empty at its begin, and removed at its end, or after a `kill -9` by the next
//! attempt of the agent.

use crate::commands::claim::Claim;
use crate::commands::context::may_pass;
use crate::commands::records::directories;
use agent_config::environment::WORKTREES;
use agent_process::scratch_dir::ScratchDir;
use agent_run::error::AppResult;
use agent_runtime::private_file::create_private_dir;
use std::path::PathBuf;

/// The directory of an attempt, which no other one has. Dropping it removes it.
pub struct Workspace {
    scratch: ScratchDir,
}

impl Workspace {
    /// Creates it in the state directory of `agent`, whose sessions are kept there.
    ///
    /// # Errors
    /// Fails when the state directory cannot be used.
    pub fn create(Claim { worker, .. }: Claim<'_>, agent: &str) -> AppResult<Self> {
        let parent = directories(worker.app)?.agent_state(agent).join(WORKTREES);
        let created = ScratchDir::new(&parent).and_then(|scratch| {
            let workspace = Self { scratch };
            create_private_dir(&workspace.path()).map(|()| workspace)
        });
        created.map_err(|error| may_pass(&format!("{}: {error}", parent.display())))
    }

    /// Returns the directory in which the agent works.
    pub fn path(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    /// Returns the path of a home directory for another program.
    pub fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }
}
