//! Which places every command finds hidden or unchangeable, whatever the workspace.

use super::protected_names::{STARTUP_FILES, TOOL_CONFIGURATIONS, literal_path, protected_link_target};
use super::settings::SandboxSettings;
use super::{SandboxPolicy, credentials, repositories};
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Where this machine keeps sockets of its services, besides `/run`.
const SOCKETS: &[&str] = &["/var/run", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket"];

/// Variables by which programs find their caches, and the directory of each below ours.
const CACHES: &[(&str, &str)] = &[
    ("CCACHE_DIR", "ccache"),
    ("GOCACHE", "go-build"),
    ("PIP_CACHE_DIR", "pip"),
    ("SCCACHE_DIR", "sccache"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("npm_config_cache", "npm"),
];

/// The same of what programs download, with what stands before the directory. Only where commands reach the network: without,
/// they find what the person has downloaded, which they cannot add to.
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

/// A variable that leads programs to a cache.
#[derive(Debug)]
pub(super) struct CacheVariable {
    /// Its name.
    pub(super) name: &'static str,
    /// Its value.
    pub(super) value: String,
    /// The value of our own environment, which leads to where commands cannot write.
    pub(super) replaces: Option<String>,
}

/// What commands on `settings` reach, whose temporary directory is `temporary`.
pub(super) fn sandbox_policy(settings: &SandboxSettings, temporary: &Path) -> SandboxPolicy {
    let search_path = settings.variables.get("PATH").map_or("", String::as_str);
    let programs = search_path.split(':').map(Path::new).filter(|path| path.is_absolute());
    let programs = programs.map(program_prefix);
    let home = settings.home.as_deref();
    let own = std::env::current_exe().ok();
    let sockets = SOCKETS.iter().map(PathBuf::from);
    let workspace = &settings.workspace;
    let writable = [workspace, &settings.caches].into_iter().chain(&settings.writable).cloned();
    let configurations = TOOL_CONFIGURATIONS.iter().map(|name| workspace.join(name));
    let repository = workspace.join(repositories::GIT);
    let of_git = repositories::config_paths(&repository);
    // A link cannot be mounted over, and what it leads to outside is unchangeable anyway.
    let trusted = existing_real_paths(settings.trusted.iter().cloned())
        .into_iter()
        .filter(|file| file.starts_with(workspace));
    let apart: Vec<&Path> = settings
        .writable
        .iter()
        .chain(&settings.hidden)
        .chain([&settings.caches])
        .map(PathBuf::as_path)
        .collect();
    let kept = literal_paths(&settings.protected, workspace, &apart);
    let protected: Vec<PathBuf> = configurations.chain(of_git).chain(kept).collect();
    let led_to: Vec<PathBuf> =
        protected.iter().filter_map(|path| protected_link_target(path, workspace)).collect();
    let settled = settings
        .own_configuration
        .iter()
        .cloned()
        .chain(existing_real_paths(settings.own_configuration.iter().cloned()))
        .chain(startup_files(settings));
    let hidden = existing_real_paths(
        credentials::credential_paths(settings).chain(sockets).chain(settings.hidden.iter().cloned()),
    );
    let read_only = protected.into_iter().chain(led_to).chain(trusted).chain(settled);
    // What is hidden cannot be changed either, and others may work there meanwhile.
    let read_only = read_only.filter(|path| !hidden.iter().any(|hidden| path.starts_with(hidden))).collect();
    SandboxPolicy {
        writable: existing_real_paths(writable),
        read_only,
        visible: existing_real_paths(
            programs
                .chain(home.map(Path::to_owned))
                .chain(own)
                .chain(repositories::repositories_around(workspace)),
        ),
        hidden,
        temporary: temporary.to_owned(),
        network: settings.network,
        compared: Vec::new(),
    }
}

/// What the person's programs start or obey in the home directory, where that may be changed as a whole.
pub fn startup_files(settings: &SandboxSettings) -> impl Iterator<Item = PathBuf> {
    let home = settings.home.as_ref().and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| {
        [&settings.workspace].into_iter().chain(&settings.writable).any(|root| home.starts_with(root))
    });
    home.into_iter().flat_map(|home| STARTUP_FILES.iter().map(move |name| home.join(name)))
}

/// What of the workspace commands do not see, and tools must not: what is there, and what may come.
pub fn hidden_in_workspace(settings: &SandboxSettings) -> BTreeSet<PathBuf> {
    let places = || credentials::credential_paths(settings).chain(settings.hidden.iter().cloned());
    places()
        .chain(existing_real_paths(places()))
        .filter(|path| path.starts_with(&settings.workspace) && *path != settings.workspace)
        .collect()
}

/// What those of `patterns` that have no wildcard name from the root of the workspace, unless one of `apart` is
/// below it, of which something else is said. What a wildcard or a name at any depth stands for would have to be searched.
fn literal_paths(patterns: &[String], workspace: &Path, apart: &[&Path]) -> Vec<PathBuf> {
    let paths = patterns.iter().filter_map(|pattern| literal_path(pattern)).map(|name| workspace.join(name));
    paths.filter(|path| !apart.iter().any(|other| other.starts_with(path))).collect()
}

/// The variables that lead programs to caches which other workspaces do not share.
pub(super) fn cache_variables(settings: &SandboxSettings) -> Vec<CacheVariable> {
    let downloads = DOWNLOAD_CACHES.iter().filter(|_| settings.network).copied();
    let all = CACHES.iter().map(|(name, directory)| (*name, "", *directory)).chain(downloads);
    let of_use = |place: &String| settings.writable.iter().any(|root| Path::new(place).starts_with(root));
    let lead = |(name, before, directory): (&'static str, &str, &str)| {
        let replaces = settings.variables.get(name).cloned();
        let place = settings.caches.join(directory).to_string_lossy().into_owned();
        // Options are taken apart at white space.
        let is_whole = before.is_empty() || !place.contains(char::is_whitespace);
        (is_whole && !replaces.as_ref().is_some_and(of_use)).then(|| CacheVariable {
            name,
            value: format!("{before}{place}"),
            replaces,
        })
    };
    all.filter_map(lead).collect()
}

/// The directory of programs, or the one above a `bin`, where what they are made of is; of a place of everybody's only it.
fn program_prefix(programs: &Path) -> PathBuf {
    let above = programs.parent().filter(|above| programs.ends_with("bin") && above.components().count() > 2);
    above.unwrap_or(programs).to_owned()
}

/// Those that exist, without symbolic links.
fn existing_real_paths(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    // Most do not exist, many of them because their directory does not: that is looked at once. To resolve a path
    // takes a look at each directory of it. As a text: a path is hashed by its components.
    let mut directories = HashMap::new();
    let mut is_there = |directory: &Path| {
        *directories.entry(directory.as_os_str().to_owned()).or_insert_with(|| directory.is_dir())
    };
    let present = paths
        .into_iter()
        .filter(|path| path.parent().is_none_or(&mut is_there) && path.symlink_metadata().is_ok());
    present.filter_map(|path| path.canonicalize().ok()).collect()
}
