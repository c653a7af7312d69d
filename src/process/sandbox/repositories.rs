//! What a git repository is to us, for all who protect or judge one: how it is known, and what in it makes git run programs
//! or look elsewhere.

use super::SandboxPolicy;
use super::git_config;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The repositories that are protected, each of which costs some mounts for each command.
const MAX_REPOSITORIES: usize = 32;

/// The linked worktrees of one repository that are protected.
const MAX_WORKTREES: usize = 32;

/// The longest `.git` file or `commondir` that is read, in bytes: a path.
const MAX_POINTER_BYTES: u64 = 8192;

/// The name behind which git looks for a repository.
pub const GIT: &str = ".git";

/// What in a repository's directory, and in that of each linked worktree, makes git run programs or look elsewhere. The rest
/// of `info` is git's to write: `git gc` does.
pub const GIT_CONFIG_PATHS: [&str; 7] =
    ["commondir", "config", "config.worktree", "gitdir", "hooks", "info/attributes", "modules"];

/// Where a repository keeps the directories of its linked worktrees.
const WORKTREES: &str = "worktrees";

/// What every repository's directory has.
const HEAD: &str = "HEAD";

/// What a `.git` that is no directory leads to.
#[derive(Debug)]
pub struct GitLink {
    /// The repository's directory, or that of a linked worktree.
    pub directory: PathBuf,
    /// The repository that the worktree is linked to.
    pub common: Option<PathBuf>,
}

/// Whether git looks for a repository behind this name, also where file systems ignore case.
#[cfg(target_os = "linux")]
pub fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

/// Whether a directory with these names is a repository itself, as a bare one is.
pub fn is_bare<'a>(names: impl Fn(&'a str) -> bool) -> bool {
    names(HEAD) && (names("commondir") || names("objects") && names("refs"))
}

/// Whether no tool changes the file at this path from a repository's directory, whose parts are in lower case. Without its
/// `HEAD` it would be none for a while, and the rest of it anybody's.
pub fn is_protected_from_tools(parts: &[String]) -> bool {
    let is_below = |name: &str| {
        let mut names = name.split('/').zip(parts);
        parts.len() >= name.split('/').count() && names.all(|(name, part)| name.eq_ignore_ascii_case(part))
    };
    GIT_CONFIG_PATHS.into_iter().chain([HEAD, WORKTREES]).any(is_below)
}

/// What is to be protected of the repository whose directory is `git`, whether it exists or not.
pub fn config_paths(git: &Path) -> impl Iterator<Item = PathBuf> {
    let worktrees =
        std::fs::read_dir(git.join(WORKTREES)).into_iter().flatten().take(MAX_WORKTREES).flatten();
    let directories = std::iter::once(git.to_owned()).chain(worktrees.map(|entry| entry.path()));
    directories.flat_map(|directory| GIT_CONFIG_PATHS.map(|name| directory.join(name)))
}

/// Where the `.git` at `path` leads, a file or a link; `None` when it leads nowhere.
pub fn resolve_git_link(path: &Path) -> Option<GitLink> {
    let directory = if path.is_dir() {
        path.canonicalize().ok()?
    } else {
        pointer(path, path.parent().unwrap_or(path), "gitdir: ")?
    };
    let common = pointer(&directory.join("commondir"), &directory, "");
    Some(GitLink { directory, common })
}

/// The working tree that contains `directory`, and the repositories that its `.git` leads to.
pub(super) fn repositories_around(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let tree = directory.ancestors().find(|above| above.join(GIT).exists());
    let leads_to = tree.and_then(|tree| resolve_git_link(&tree.join(GIT)));
    let repositories = leads_to.into_iter().flat_map(|leads_to| [Some(leads_to.directory), leads_to.common]);
    let repositories = repositories.flatten().filter(|repository| repository.join(HEAD).exists());
    tree.map(Path::to_owned).into_iter().chain(repositories)
}

/// Whether all configuration of the repository whose directory is `git` is protected in `policy`.
pub fn is_protected(policy: &SandboxPolicy, git: &Path) -> bool {
    GIT_CONFIG_PATHS.iter().all(|name| policy.read_only.contains(&git.join(name)))
}

/// `policy` with the first of these repositories protected.
pub fn with_protected(mut policy: SandboxPolicy, repositories: &[PathBuf]) -> SandboxPolicy {
    let mut found = BTreeSet::new();
    for repository in repositories.iter().take(MAX_REPOSITORIES) {
        add(repository, &policy.writable, &mut found);
    }
    found.extend(policy.read_only.iter().filter(|path| !leads_through_link(path, &policy.writable)).cloned());
    policy.read_only = found.into_iter().collect();
    policy
}

/// Whether a directory above `path` is a link: then what it leads to is protected, if it is ours, and the link.
fn leads_through_link(path: &Path, writable: &[PathBuf]) -> bool {
    let inside = |ancestor: &&Path| !writable.iter().any(|root| root == ancestor);
    path.ancestors().skip(1).take_while(inside).any(Path::is_symlink)
}

/// Adds what is to be protected of the repository at `path`: a `.git`, or a directory that is one itself.
fn add(path: &Path, writable: &[PathBuf], found: &mut BTreeSet<PathBuf>) {
    let Ok(kind) = path.symlink_metadata() else { return };
    let tree = if path.ends_with(GIT) { path.parent().unwrap_or(path) } else { path };
    if kind.is_dir() {
        found.extend(config_paths(path));
        found.extend(referenced_paths(path, tree, writable));
        return;
    }
    found.insert(path.to_owned());
    let Some(destination) = resolve_git_link(path) else { return };
    for directory in [Some(destination.directory), destination.common].into_iter().flatten() {
        if writable.iter().any(|root| directory.starts_with(root)) {
            found.extend(config_paths(&directory));
        }
        found.extend(referenced_paths(&directory, tree, writable));
    }
}

/// What the configuration in `git` takes from the `writable` directories, for a working tree of which something is left.
fn referenced_paths(git: &Path, tree: &Path, writable: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let files = ["config", "config.worktree"].map(|name| git_config::referenced_paths(&git.join(name), tree));
    let is_changed =
        |path: &PathBuf| writable.iter().any(|root| path.starts_with(root)) && !tree.starts_with(path);
    files.into_iter().flatten().filter(is_changed)
}

/// What of the repository at `path`, a `.git` or a directory that is one itself, no tool changes.
pub fn protected_paths(path: &Path, workspace: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    add(path, &[workspace.to_owned()], &mut found);
    found
}

/// The directory that the file at `path` names behind `prefix`, relative to `base`, read as git reads it: to the first zero
/// byte, and without line ends.
fn pointer(path: &Path, base: &Path, prefix: &str) -> Option<PathBuf> {
    let text = git_config::read(path, MAX_POINTER_BYTES)?;
    let named = text.strip_prefix(prefix.as_bytes())?.split(|byte| *byte == 0).next()?;
    let end = named.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    base.join(OsStr::from_bytes(named.get(..=end)?)).canonicalize().ok()
}
