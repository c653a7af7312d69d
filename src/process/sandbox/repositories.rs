//! Recognises git repositories and lists the paths in them that make git run programs or use other locations.

use super::SandboxPolicy;
use super::git_config;
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of protected repositories. Each costs some mounts for each command.
const MAX_REPOSITORIES: usize = 32;

/// Maximum number of protected linked worktrees of one repository.
const MAX_WORKTREES: usize = 32;

/// Longest `.git` file or `commondir` to read, in bytes. It contains one path.
const MAX_POINTER_BYTES: u64 = 8192;

/// Name of a repository in its working tree.
pub const GIT: &str = ".git";

/// Paths in a repository's directory, and in that of each linked worktree, that make git run programs or use other locations.
/// Git itself writes the rest of `info` (`git gc`).
pub const GIT_CONFIG_PATHS: [&str; 7] =
    ["commondir", "config", "config.worktree", "gitdir", "hooks", "info/attributes", "modules"];

/// Directory of a repository's linked worktrees.
const WORKTREES: &str = "worktrees";

/// File in every repository's directory.
const HEAD: &str = "HEAD";

/// Target of a `.git` that is not a directory.
#[derive(Debug)]
pub struct GitLink {
    /// Directory of the repository or of a linked worktree.
    pub directory: PathBuf,
    /// Repository of the linked worktree.
    pub common: Option<PathBuf>,
}

/// Checks whether `name` is that of a repository. Ignores case, as some file systems do.
#[cfg(target_os = "linux")]
pub fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

/// Names by which [`is_bare`] decides.
pub const BARE: [&str; 4] = [HEAD, "commondir", "objects", "refs"];

/// Checks whether a directory with these names is itself a repository, such as a bare one.
pub fn is_bare(has: impl Fn(&str) -> bool) -> bool {
    let [head, common, objects, refs] = BARE;
    has(head) && (has(common) || has(objects) && has(refs))
}

/// Checks whether tools must not change the file at this path in a repository's directory. The parts are in lower case. `HEAD`
/// is included because without it the directory would not be a repository, and its other files would lose protection.
pub fn is_protected_from_tools(parts: &[String]) -> bool {
    let is_below = |name: &str| {
        let mut names = name.split('/').zip(parts);
        parts.len() >= name.split('/').count() && names.all(|(name, part)| name.eq_ignore_ascii_case(part))
    };
    GIT_CONFIG_PATHS.into_iter().chain([HEAD, WORKTREES]).any(is_below)
}

/// Returns the paths to protect in the repository with the directory `git`, whether they exist or not. Git works in a linked worktree when
/// that has its last file, `commondir`: one that is just being created would be taken for changed.
pub fn config_paths(git: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(git.join(WORKTREES)).into_iter().flatten().flatten();
    let worktrees = entries.map(|entry| entry.path()).filter(|path| path.join("commondir").exists());
    let directories = std::iter::once(git.to_owned()).chain(worktrees.take(MAX_WORKTREES));
    directories.flat_map(|directory| GIT_CONFIG_PATHS.map(|name| directory.join(name)))
}

/// Resolves the `.git` at `path`, a file or a link. `None` if it has no target.
pub fn resolve_git_link(path: &Path) -> Option<GitLink> {
    let directory = if path.is_dir() {
        path.canonicalize().ok()?
    } else {
        pointer(path, path.parent().unwrap_or(path), "gitdir: ")?
    };
    let common = pointer(&directory.join("commondir"), &directory, "");
    Some(GitLink { directory, common })
}

/// Returns the working tree that contains `directory`, and the repositories of its `.git`.
pub(super) fn repositories_around(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let tree = directory.ancestors().find(|above| above.join(GIT).exists());
    let leads_to = tree.and_then(|tree| resolve_git_link(&tree.join(GIT)));
    let repositories = leads_to.into_iter().flat_map(|leads_to| [Some(leads_to.directory), leads_to.common]);
    let repositories = repositories.flatten().filter(|repository| repository.join(HEAD).exists());
    tree.map(Path::to_owned).into_iter().chain(repositories)
}

/// Returns the directories outside `workspace` that git changes when it works there: that of the repository around the workspace, of
/// the repository of a linked worktree, or of a submodule. A `.git` file can name any directory, so only repositories that
/// themselves name this working tree are returned.
pub fn repositories_in_use(workspace: &Path) -> Vec<PathBuf> {
    let Some(tree) = working_tree_around(workspace) else { return Vec::new() };
    let git = tree.join(GIT);
    let is_directory = git.symlink_metadata().is_ok_and(|kind| kind.is_dir());
    let found = if is_directory { Some(git) } else { acknowledged(&git, tree) };
    found.into_iter().filter(|it| !it.starts_with(workspace) && it.join(HEAD).exists()).collect()
}

/// Returns a directory of git outside `workspace` that is not among [`repositories_in_use`].
pub fn unacknowledged_repository(workspace: &Path) -> Option<PathBuf> {
    let link = resolve_git_link(&working_tree_around(workspace)?.join(GIT))?;
    let directory = link.common.unwrap_or(link.directory);
    let is_other = !directory.starts_with(workspace) && !repositories_in_use(workspace).contains(&directory);
    is_other.then_some(directory)
}

/// Checks whether `workspace` is in a working tree of git that belongs to the user: an empty `.git`, or the one of somebody else in a directory
/// above, shows nothing of what was changed.
pub fn is_in_own_work_tree(workspace: &Path) -> bool {
    let Some(tree) = working_tree_around(workspace) else { return false };
    let is_own = |path: &Path| rustix::fs::stat(path).is_ok_and(|about| about.st_uid == geteuid().as_raw());
    let leads_to = resolve_git_link(&tree.join(GIT));
    let is_repository = leads_to.is_some_and(|link| {
        let common = link.common.as_deref().unwrap_or(&link.directory);
        link.directory.join(HEAD).is_file() && common.join("objects").is_dir() && common.join("refs").is_dir()
    });
    is_repository && is_own(tree) && is_own(&tree.join(GIT))
}

/// Returns the working tree of git that contains `workspace`.
pub fn working_tree_around(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().find(|above| above.join(GIT).symlink_metadata().is_ok())
}

/// Longest `HEAD` to read, in bytes: the name of a branch is at most a path.
const MAX_HEAD_BYTES: u64 = 4096;

/// Returns the branch of the repository around `workspace`, or the beginning of its commit without one.
pub fn branch(workspace: &Path) -> Option<String> {
    let tree = working_tree_around(workspace)?;
    let repository = resolve_git_link(&tree.join(GIT))?.directory;
    let head = git_config::read(&repository.join("HEAD"), MAX_HEAD_BYTES)?;
    let head = str::from_utf8(&head).ok()?.trim();
    Some(head.strip_prefix("ref: refs/heads/").map_or_else(|| head.chars().take(8).collect(), str::to_owned))
}

/// Returns the repository to which the `.git` file of `tree` leads, if its data names `tree`.
fn acknowledged(git: &Path, tree: &Path) -> Option<PathBuf> {
    let GitLink { directory, common } = resolve_git_link(git)?;
    let Some(common) = common else {
        let configured =
            ["config.worktree", "config"].map(|name| git_config::working_tree(&directory.join(name)));
        return configured.into_iter().flatten().any(|it| it == tree).then_some(directory);
    };
    let is_registered = directory.parent() == Some(&*common.join(WORKTREES));
    let names_tree = pointer(&directory.join("gitdir"), &directory, "").is_some_and(|it| it == git);
    (is_registered && names_tree).then_some(common)
}

/// Checks whether `path` is the data of a linked worktree: it is in `worktrees` of a repository's directory. Working trees and submodules may
/// have that name too.
pub fn is_linked_worktree(path: &Path) -> bool {
    let Some(git) = path.parent().filter(|parent| parent.ends_with(WORKTREES)).and_then(Path::parent) else {
        return false;
    };
    git.components().any(|part| part.as_os_str() == GIT) && git.join(HEAD).exists()
}

/// Checks whether `policy` protects all configuration of the repository with the directory `git`.
pub fn is_protected(policy: &SandboxPolicy, git: &Path) -> bool {
    GIT_CONFIG_PATHS.iter().all(|name| policy.read_only.contains(&git.join(name)))
}

/// Returns `policy` with protection for the first `repositories`.
pub fn with_protected(mut policy: SandboxPolicy, repositories: &[PathBuf]) -> SandboxPolicy {
    let mut found = BTreeSet::new();
    for repository in repositories.iter().take(MAX_REPOSITORIES) {
        add(repository, &policy.writable, &mut found);
    }
    found.extend(policy.read_only.iter().filter(|path| !leads_through_link(path, &policy.writable)).cloned());
    policy.read_only = found.into_iter().collect();
    policy
}

/// Checks whether a directory above `path` is a link. Then the link and its target, if writable, are protected.
fn leads_through_link(path: &Path, writable: &[PathBuf]) -> bool {
    let inside = |ancestor: &&Path| !writable.iter().any(|root| root == ancestor);
    path.ancestors().skip(1).take_while(inside).any(Path::is_symlink)
}

/// Adds the paths to protect in the repository at `path`: a `.git`, or a directory that is itself a repository.
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

/// Returns the paths in `writable` directories to which the configuration in `git` refers.
fn referenced_paths(git: &Path, tree: &Path, writable: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    let files = ["config", "config.worktree"].map(|name| git_config::referenced_paths(&git.join(name), tree));
    let is_changed =
        |path: &PathBuf| writable.iter().any(|root| path.starts_with(root)) && !tree.starts_with(path);
    files.into_iter().flatten().filter(is_changed)
}

/// Returns the paths of the repository at `path` that tools must not change. `path` is a `.git` or itself a repository.
pub fn protected_paths(path: &Path, workspace: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    add(path, &[workspace.to_owned()], &mut found);
    found
}

/// Reads a directory from the file at `path`: the text after `prefix`, relative to `base`. As in git, it ends at the first zero
/// byte and has no line ends.
fn pointer(path: &Path, base: &Path, prefix: &str) -> Option<PathBuf> {
    let text = git_config::read(path, MAX_POINTER_BYTES)?;
    let named = text.strip_prefix(prefix.as_bytes())?.split(|byte| *byte == 0).next()?;
    let end = named.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    base.join(OsStr::from_bytes(named.get(..=end)?)).canonicalize().ok()
}
