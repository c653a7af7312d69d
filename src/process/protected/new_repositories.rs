//! Checks what commands created below the workspace root: moves away configurations, and repositories that run programs.

use super::openat;
use super::safe_repository::{is_safe, is_safe_worktree};
use super::{ProtectedChange, restore};
use crate::sandbox::repositories::{GitLink, is_git, resolve_git_link};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Moves repositories among `paths` that make programs run to `quarantine`. Skips paths in or below `protected`, because they
/// are already restored.
pub(super) fn quarantine_unsafe(
    paths: &BTreeSet<PathBuf>,
    protected: &[PathBuf],
    quarantine: &Path,
) -> Vec<ProtectedChange> {
    let dangerous: Vec<PathBuf> = paths
        .iter()
        .filter(|path| !is_harmless(path, protected).unwrap_or(false))
        .map(|path| if names_git(path) { path.clone() } else { path.join("HEAD") })
        .collect();
    restore::quarantine_paths(&dangerous, quarantine)
}

fn names_git(path: &Path) -> bool {
    path.file_name().is_some_and(is_git)
}

/// Checks whether git runs nothing from what it finds at `path`. `None` if it cannot be read.
fn is_harmless(path: &Path, protected: &[PathBuf]) -> Option<bool> {
    let at = openat::open_real(path.parent()?).ok()?;
    let Some(stat) = openat::stat_at(&at, path.file_name()?).ok()? else { return Some(true) };
    if openat::kind(&stat) == FileType::Directory {
        let git = openat::open_directory(&at, path.file_name()?).ok()?;
        let was_taken_away = || openat::stat_at(&git, OsStr::new("HEAD")).is_ok_and(|stat| stat.is_none());
        return Some(!names_git(path) && was_taken_away() || is_safe(&git));
    }
    let Some(GitLink { directory, common }) = resolve_git_link(path) else { return Some(true) };
    if is_protected(&directory, protected) {
        return Some(true);
    }
    let directory = openat::open_real(&directory).ok()?;
    let Some(common) = common else { return Some(is_safe(&directory)) };
    let is_held = is_protected(&common, protected) || is_safe(&openat::open_real(&common).ok()?);
    Some(is_held && is_safe_worktree(&directory))
}

/// Checks whether the configuration of the repository `git` is protected.
fn is_protected(git: &Path, protected: &[PathBuf]) -> bool {
    // Either all of it is protected or nothing.
    let one = git.join("config");
    protected.iter().any(|held| one.starts_with(held))
}
