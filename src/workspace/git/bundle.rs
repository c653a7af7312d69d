//! git bundles: commits as a file, for a machine without the repository.

use crate::git::worktree::Repository;
use crate::git::{error_text, git};
use agent_process::launch::{ExitReason, Launcher};
use std::path::Path;

/// The reference in a bundle of a result.
const RESULT: &str = "refs/agent/result";

impl Repository<'_> {
    /// Writes `reference`, a branch, a tag or `HEAD`, with all its history into `file`.
    ///
    /// # Errors
    /// The message of git, also for a commit without a name.
    pub async fn write_bundle(&self, file: &Path, reference: &str) -> Result<(), String> {
        let file = file.to_str().ok_or("the state directory is no text")?;
        let words = ["bundle", "create", "--quiet", file, reference, "--"];
        self.line(&self.workspace, &words).await.map(drop)
    }

    /// Writes the commits from `base` to `commit` into `file`.
    ///
    /// # Errors
    /// The message of git.
    pub async fn write_result(&self, file: &Path, base: &str, commit: &str) -> Result<(), String> {
        let file = file.to_str().ok_or("the state directory is no text")?;
        self.line(&self.workspace, &["update-ref", RESULT, commit]).await?;
        let without = format!("^{base}");
        let words = ["bundle", "create", "--quiet", file, RESULT, &without, "--"];
        self.line(&self.workspace, &words).await.map(drop)
    }

    /// Stores the commits of a bundle up to `commit`, with all that belongs to them; no reference changes.
    ///
    /// # Errors
    /// The message of git, also if something is missing in the bundle, or commits that it builds on.
    pub async fn read_bundle(&self, file: &Path, commit: &str) -> Result<(), String> {
        let file = file.to_str().ok_or("the state directory is no text")?;
        self.line(&self.workspace, &["bundle", "unbundle", file]).await?;
        let words = ["rev-list", "--objects", "--quiet", commit, "--not", "--all", "--"];
        self.line(&self.workspace, &words).await.map(drop)
    }

    /// Checks out `commit`, without a branch, in a repository that has none yet.
    ///
    /// # Errors
    /// The message of git.
    pub async fn check_out(&self, commit: &str) -> Result<(), String> {
        self.line(&self.workspace, &["update-ref", "--no-deref", "HEAD", commit]).await?;
        let words = ["read-tree", "-u", "--reset", "--no-recurse-submodules", "HEAD"];
        self.line(&self.workspace, &words).await.map(drop)
    }
}

/// Creates an empty repository in `directory`, which exists, for commits with ids like `commit`.
///
/// # Errors
/// The message of git.
pub async fn init(launcher: &Launcher, directory: &Path, commit: &str) -> Result<(), String> {
    let format = if commit.len() == 64 { "--object-format=sha256" } else { "--object-format=sha1" };
    let made = git(launcher, directory, &["init", "--quiet", "--template=", format], Vec::new(), &[]).await?;
    if made.reason == ExitReason::Code(0) { Ok(()) } else { Err(error_text(&made)) }
}
