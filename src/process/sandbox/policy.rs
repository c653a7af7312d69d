//! Builds the sandbox policy of a run: paths that are writable, read-only or hidden for every command.

use super::protected_names::{STARTUP_FILES, TOOL_CONFIGURATIONS, literal_path, protected_link_target};
use super::settings::{SandboxSettings, WorkspaceAccess};
use super::{SandboxPolicy, credentials, repositories};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Directories of the machine's service sockets besides `/run`.
const SOCKETS: &[&str] = &["/var/run", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"];

/// Variables with the location of build caches, and the subdirectory of our cache directory for each.
const CACHES: &[(&str, &str)] = &[
    ("CCACHE_DIR", "ccache"),
    ("GOCACHE", "go-build"),
    ("PIP_CACHE_DIR", "pip"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];

/// Variables with the location of download caches, with the option text before the path. Used only if commands have network
/// access. Without, they read the user's downloads but cannot add to them.
const DOWNLOAD_CACHES: &[(&str, &str, &str)] = &[
    ("BUN_INSTALL_CACHE_DIR", "", "bun"),
    ("CARGO_HOME", "", "cargo"),
    ("COMPOSER_CACHE_DIR", "", "composer"),
    ("DENO_DIR", "", "deno"),
    ("GOMODCACHE", "", "go-mod"),
    ("GRADLE_USER_HOME", "", "gradle"),
    ("MAVEN_OPTS", "-Dmaven.repo.local=", "maven"),
    ("NUGET_PACKAGES", "", "nuget"),
    ("npm_config_store_dir", "", "pnpm"),
];

/// Variable that points programs to a cache.
#[derive(Debug)]
pub(super) struct CacheVariable {
    /// Name of the variable.
    pub(super) name: &'static str,
    /// Value of the variable.
    pub(super) value: String,
    /// Value in the agent's own environment. Commands cannot write to that cache.
    pub(super) replaces: Option<String>,
}

/// Builds the policy for commands with `settings`, whose temporary directory is `temporary`.
pub(super) fn sandbox_policy(settings: &SandboxSettings, temporary: &Path) -> SandboxPolicy {
    let search_path = settings.variables.get("PATH").map_or("", String::as_str);
    let programs = search_path.split(':').map(Path::new).filter(|path| path.is_absolute());
    let programs = programs.map(program_prefix);
    let home = settings.home.as_deref();
    let own = std::env::current_exe().ok();
    let sockets = SOCKETS.iter().map(PathBuf::from);
    let workspace = &settings.workspace;
    let access = settings.access;
    let workspace_if = |wanted: WorkspaceAccess| (access == wanted).then_some(workspace).into_iter().cloned();
    let writable = [&settings.caches].into_iter().chain(&settings.writable).cloned();
    let in_use = workspace_if(WorkspaceAccess::Write).flat_map(|it| repositories::repositories_in_use(&it));
    let in_use: Vec<PathBuf> = in_use.collect();
    let writable = workspace_if(WorkspaceAccess::Write).chain(writable).chain(in_use.iter().cloned());
    let configurations = TOOL_CONFIGURATIONS.iter().map(|name| workspace.join(name));
    let repository = workspace.join(repositories::GIT);
    let of_git = repositories::config_paths(&repository);
    // A link cannot be mounted over, and a target outside the workspace is read-only anyway.
    let trusted = existing_real_paths(settings.trusted.iter().cloned())
        .into_iter()
        .filter(|file| file.starts_with(workspace));
    let from_patterns = literal_paths(&settings.protected, settings);
    let in_use = in_use.iter().flat_map(|it| repositories::protected_paths(it, workspace));
    let protected: Vec<PathBuf> = configurations.chain(of_git).chain(from_patterns).chain(in_use).collect();
    let link_targets: Vec<PathBuf> =
        protected.iter().filter_map(|path| protected_link_target(path, workspace)).collect();
    let own_files = settings
        .own_configuration
        .iter()
        .cloned()
        .chain(existing_real_paths(settings.own_configuration.iter().cloned()))
        .chain(startup_files(settings));
    let hidden = existing_real_paths(
        credentials::credential_paths(settings)
            .chain(sockets)
            .chain(settings.hidden.iter().cloned())
            .chain(workspace_if(WorkspaceAccess::None)),
    );
    let read_only = protected.into_iter().chain(link_targets).chain(trusted).chain(own_files);
    // Hidden paths cannot be changed either, and other programs may change them meanwhile.
    let read_only = read_only.filter(|path| !is_hidden(path, &hidden, workspace)).collect();
    let visible = programs
        .chain(home.map(Path::to_owned))
        .chain(own)
        .chain(repositories::repositories_around(workspace));
    let visible = existing_real_paths(visible).into_iter().filter(|path| !is_below(path, &hidden));
    SandboxPolicy {
        writable: existing_real_paths(writable),
        read_only,
        visible: visible.chain(existing_real_paths(workspace_if(WorkspaceAccess::Read))).collect(),
        hidden,
        temporary: temporary.to_owned(),
        network: settings.network,
        compared: Vec::new(),
    }
}

/// Checks whether `path` is hidden. A `workspace` below a hidden directory, such as a worktree, is not.
fn is_hidden(path: &Path, hidden: &[PathBuf], workspace: &Path) -> bool {
    hidden
        .iter()
        .filter(|hidden| path.starts_with(hidden))
        .any(|hidden| !path.starts_with(workspace) || !is_below(workspace, std::slice::from_ref(hidden)))
}

/// Checks whether `path` is in one of `directories`.
pub(super) fn is_below(path: &Path, directories: &[PathBuf]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory) && path != directory)
}

/// Returns startup and configuration files in the home directory, if the home directory is writable as a whole.
pub fn startup_files(settings: &SandboxSettings) -> impl Iterator<Item = PathBuf> {
    let home = settings.home.as_ref().and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| {
        [&settings.workspace].into_iter().chain(&settings.writable).any(|root| home.starts_with(root))
    });
    home.into_iter().flat_map(|home| STARTUP_FILES.iter().map(move |name| home.join(name)))
}

/// Returns the paths in the workspace, existing or not, that are hidden from commands and forbidden to tools.
pub fn hidden_in_workspace(settings: &SandboxSettings) -> BTreeSet<PathBuf> {
    let places = || credentials::credential_paths(settings).chain(settings.hidden.iter().cloned());
    places()
        .chain(existing_real_paths(places()))
        .filter(|path| path.starts_with(&settings.workspace) && *path != settings.workspace)
        .collect()
}

/// Returns the paths below the workspace of the `patterns` without wildcards, except those above a directory with other rules.
/// Finding matches of a wildcard or of a name at any depth would need a search.
pub(super) fn literal_paths(patterns: &[String], settings: &SandboxSettings) -> Vec<PathBuf> {
    let apart = || settings.writable.iter().chain(&settings.hidden).chain([&settings.caches]);
    let names = patterns.iter().filter_map(|pattern| literal_path(pattern));
    let paths = names.map(|name| settings.workspace.join(name));
    paths.filter(|path| !apart().any(|other| other.starts_with(path))).collect()
}

/// Returns the variables that point programs to caches that other workspaces do not share.
pub(super) fn cache_variables(settings: &SandboxSettings) -> Vec<CacheVariable> {
    let downloads = DOWNLOAD_CACHES.iter().filter(|_| settings.network || settings.has_proxy).copied();
    let all = CACHES.iter().map(|(name, directory)| (*name, "", *directory)).chain(downloads);
    let is_writable = |path: &String| settings.writable.iter().any(|root| Path::new(path).starts_with(root));
    let variable = |(name, before, directory): (&'static str, &str, &str)| {
        let replaces = settings.variables.get(name).cloned();
        let cache_dir = settings.caches.join(directory).to_string_lossy().into_owned();
        // Options are split at whitespace.
        let is_whole = before.is_empty() || !cache_dir.contains(char::is_whitespace);
        (is_whole && !replaces.as_ref().is_some_and(is_writable)).then(|| CacheVariable {
            name,
            value: format!("{before}{cache_dir}"),
            replaces,
        })
    };
    all.filter_map(variable).collect()
}

/// Returns the parent of a `bin` directory, which contains what its programs need, unless the parent is a top-level directory.
/// Otherwise returns the directory itself.
fn program_prefix(programs: &Path) -> PathBuf {
    let above = programs.parent().filter(|above| programs.ends_with("bin") && above.components().count() > 2);
    above.unwrap_or(programs).to_owned()
}

/// Returns the existing `paths` without symbolic links.
pub(super) fn existing_real_paths(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    // Most do not exist, many because their directory is missing, so each directory is checked once. Resolving a path checks
    // every directory of it. The key is text because hashing a path goes through its components.
    let mut directories = HashMap::new();
    let mut is_there = |directory: &Path| {
        *directories.entry(directory.as_os_str().to_owned()).or_insert_with(|| directory.is_dir())
    };
    let present = paths
        .into_iter()
        .filter(|path| path.parent().is_none_or(&mut is_there) && path.symlink_metadata().is_ok());
    present.filter_map(|path| path.canonicalize().ok()).collect()
}
