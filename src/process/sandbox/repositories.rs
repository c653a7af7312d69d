//! Finds what git reads its configuration from in a workspace: repositories at any depth, and what the `.git` files of
//! worktrees and submodules lead to.

use super::Reach;
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The directories that are looked into, the uppermost first; a larger workspace is rare, and its repositories are near
/// the top.
const MAX_DIRECTORIES: usize = 2000;

/// The entries that are looked at, for directories with very many files.
const MAX_ENTRIES: usize = 50_000;

/// The repositories that are protected, each of which costs some mounts for each command.
const MAX_REPOSITORIES: usize = 32;

/// The longest `.git` file or `commondir` that is read, in bytes: a path.
const MAX_POINTER_BYTES: u64 = 8192;

/// What in a repository's directory makes git run programs or look elsewhere.
const CONFIGURATION: [&str; 8] =
    ["commondir", "config", "config.worktree", "gitdir", "hooks", "info", "modules", "worktrees"];

/// `reach` with the repositories in its writable directories protected.
pub(super) fn protected(mut reach: Reach) -> Reach {
    let mut found = BTreeSet::new();
    for repository in reach.writable.first().map(|workspace| repositories(workspace)).unwrap_or_default() {
        add(&repository, &reach.writable, &mut found);
    }
    found.extend(reach.read_only.iter().filter(|path| !leads_through_link(path, &reach.writable)).cloned());
    reach.read_only = found.into_iter().collect();
    reach
}

/// Whether a directory above `path` is a link: then what it leads to is protected, if it is ours, and the link.
fn leads_through_link(path: &Path, writable: &[PathBuf]) -> bool {
    let inside = |ancestor: &&Path| !writable.iter().any(|root| root == ancestor);
    path.ancestors().skip(1).take_while(inside).any(Path::is_symlink)
}

/// The `.git` entries below `workspace`, files and links too.
fn repositories(workspace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = VecDeque::from([workspace.to_owned()]);
    let (mut directories, mut entries) = (0, 0);
    while let Some(directory) = open.pop_front() {
        directories += 1;
        let Ok(listed) = std::fs::read_dir(&directory) else { continue };
        for entry in listed.flatten() {
            entries += 1;
            if directories > MAX_DIRECTORIES || entries > MAX_ENTRIES || found.len() >= MAX_REPOSITORIES {
                return found;
            }
            if entry.file_name().eq_ignore_ascii_case(".git") {
                found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push_back(entry.path());
            }
        }
    }
    found
}

/// Adds what is to be protected of the `.git` entry at `path`.
fn add(path: &Path, writable: &[PathBuf], found: &mut BTreeSet<PathBuf>) {
    let Ok(kind) = path.symlink_metadata() else { return };
    if kind.is_dir() {
        found.extend(CONFIGURATION.map(|name| path.join(name)));
        return;
    }
    found.insert(path.to_owned());
    let parent = path.parent().unwrap_or(path);
    let directory = if kind.is_file() { pointer(path, parent, "gitdir:") } else { path.canonicalize().ok() };
    let Some(directory) = directory else { return };
    let common = pointer(&directory.join("commondir"), &directory, "");
    for directory in [Some(directory), common].into_iter().flatten() {
        if writable.iter().any(|root| directory.starts_with(root)) {
            found.extend(CONFIGURATION.map(|name| directory.join(name)));
        }
    }
}

/// The directory that the file at `path` names behind `prefix`, relative to `base`.
fn pointer(path: &Path, base: &Path, prefix: &str) -> Option<PathBuf> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_POINTER_BYTES).read_to_string(&mut text).ok()?;
    base.join(text.strip_prefix(prefix)?.trim()).canonicalize().ok()
}
