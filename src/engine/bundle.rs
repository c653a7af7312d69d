//! git bundles: commits as a file, for a machine without the repository.

use crate::engine::git::{error_text, git};
use crate::engine::worktree::Repository;
use crate::process::launch::{ExitReason, Launcher};
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
        // With one thread the same commits are the same bytes, so that the same task is the same task.
        let words = ["-c", "pack.threads=1", "bundle", "create", "--quiet", file, reference, "--"];
        self.line(&self.workspace, &words).await.map(drop)
    }

    /// Writes the commits from `base` to `commit` into `file`.
    ///
    /// # Errors
    /// The message of git.
    pub async fn write_result(&self, file: &Path, (base, commit): (&str, &str)) -> Result<(), String> {
        let file = file.to_str().ok_or("the state directory is no text")?;
        self.line(&self.workspace, &["update-ref", RESULT, commit]).await?;
        let without = format!("^{base}");
        let words = ["bundle", "create", "--quiet", file, RESULT, &without, "--"];
        self.line(&self.workspace, &words).await.map(drop)
    }

    /// Stores the commits of a bundle; no reference changes.
    ///
    /// # Errors
    /// The message of git, also if commits are missing that the bundle builds on.
    pub async fn read_bundle(&self, file: &Path) -> Result<(), String> {
        let file = file.to_str().ok_or("the state directory is no text")?;
        self.line(&self.workspace, &["bundle", "unbundle", file]).await.map(drop)
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

/// Creates an empty repository in `directory`, which exists.
///
/// # Errors
/// The message of git.
pub async fn init(launcher: &Launcher, directory: &Path) -> Result<(), String> {
    let made = git(launcher, directory, &["init", "--quiet", "--template="], Vec::new(), &[]).await?;
    if made.reason == ExitReason::Code(0) { Ok(()) } else { Err(error_text(&made)) }
}
