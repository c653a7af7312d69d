//! Which places every command finds hidden or unchangeable, whatever the workspace.

use super::configurations::{CONFIGURATIONS, STARTUP, led_to, literal};
use super::ground::Ground;
use super::{Reach, credentials, repositories};
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
const DOWNLOADS: &[(&str, &str, &str)] = &[
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
pub(super) struct Lead {
    /// Its name.
    pub(super) name: &'static str,
    /// Its value.
    pub(super) value: String,
    /// The value of our own environment, which leads to where commands cannot write.
    pub(super) instead_of: Option<String>,
}

/// What commands on `ground` reach, whose temporary directory is `temporary`.
pub(super) fn reach(ground: &Ground, temporary: &Path) -> Reach {
    let search_path = ground.variables.get("PATH").map_or("", String::as_str);
    let programs = search_path.split(':').map(Path::new).filter(|path| path.is_absolute());
    let programs = programs.map(with_libraries);
    let home = ground.home.as_deref();
    let sockets = SOCKETS.iter().map(PathBuf::from);
    let workspace = &ground.workspace;
    let writable = [workspace, &ground.caches].into_iter().chain(&ground.writable).cloned();
    let configurations = CONFIGURATIONS.iter().map(|name| workspace.join(name));
    let repository = workspace.join(repositories::GIT);
    let of_git = repositories::configuration(&repository);
    // A link cannot be mounted over, and what it leads to outside is unchangeable anyway.
    let trusted = real(ground.trusted.iter().cloned()).into_iter().filter(|file| file.starts_with(workspace));
    let apart: Vec<&Path> =
        ground.writable.iter().chain(&ground.hidden).chain([&ground.caches]).map(PathBuf::as_path).collect();
    let kept = named(&ground.protected, workspace, &apart);
    let protected: Vec<PathBuf> = configurations.chain(of_git).chain(kept).collect();
    let led_to: Vec<PathBuf> = protected.iter().filter_map(|path| led_to(path, workspace)).collect();
    let settled =
        ground.settled.iter().cloned().chain(real(ground.settled.iter().cloned())).chain(startup(ground));
    let hidden = real(credentials::places(ground).chain(sockets).chain(ground.hidden.iter().cloned()));
    let read_only = protected.into_iter().chain(led_to).chain(trusted).chain(settled);
    // What is hidden cannot be changed either, and others may work there meanwhile.
    let read_only = read_only.filter(|path| !hidden.iter().any(|hidden| path.starts_with(hidden))).collect();
    Reach {
        writable: real(writable),
        read_only,
        visible: real(programs.chain(home.map(Path::to_owned))),
        hidden,
        temporary: temporary.to_owned(),
        network: ground.network,
        compared: Vec::new(),
    }
}

/// What the person's programs start or obey in the home directory, where that may be changed as a whole.
pub fn startup(ground: &Ground) -> impl Iterator<Item = PathBuf> {
    let home = ground.home.as_ref().and_then(|home| home.canonicalize().ok());
    let home = home.filter(|home| {
        [&ground.workspace].into_iter().chain(&ground.writable).any(|root| home.starts_with(root))
    });
    home.into_iter().flat_map(|home| STARTUP.iter().map(move |name| home.join(name)))
}

/// What of the workspace commands do not see, and tools must not: what is there, and what may come.
pub fn unseen(ground: &Ground) -> BTreeSet<PathBuf> {
    let places = || credentials::places(ground).chain(ground.hidden.iter().cloned());
    places()
        .chain(real(places()))
        .filter(|path| path.starts_with(&ground.workspace) && *path != ground.workspace)
        .collect()
}

/// What those of `patterns` that have no wildcard name from the root of the workspace, unless one of `apart` is
/// below it, of which something else is said. What a wildcard or a name at any depth stands for would have to be searched.
fn named(patterns: &[String], workspace: &Path, apart: &[&Path]) -> Vec<PathBuf> {
    let paths = patterns.iter().filter_map(|pattern| literal(pattern)).map(|name| workspace.join(name));
    paths.filter(|path| !apart.iter().any(|other| other.starts_with(path))).collect()
}

/// The variables that lead programs to caches which other workspaces do not share.
pub(super) fn caches(ground: &Ground) -> Vec<Lead> {
    let downloads = DOWNLOADS.iter().filter(|_| ground.network).copied();
    let all = CACHES.iter().map(|(name, directory)| (*name, "", *directory)).chain(downloads);
    let of_use = |place: &String| ground.writable.iter().any(|root| Path::new(place).starts_with(root));
    let lead = |(name, before, directory): (&'static str, &str, &str)| {
        let instead_of = ground.variables.get(name).cloned();
        let place = ground.caches.join(directory).to_string_lossy().into_owned();
        // Options are taken apart at white space.
        let is_whole = before.is_empty() || !place.contains(char::is_whitespace);
        (is_whole && !instead_of.as_ref().is_some_and(of_use)).then(|| Lead {
            name,
            value: format!("{before}{place}"),
            instead_of,
        })
    };
    all.filter_map(lead).collect()
}

/// The directory of programs, or the one above a `bin`, where what they are made of is; of a place of everybody's only it.
fn with_libraries(programs: &Path) -> PathBuf {
    let above = programs.parent().filter(|above| programs.ends_with("bin") && above.components().count() > 2);
    above.unwrap_or(programs).to_owned()
}

/// Those that exist, without symbolic links.
fn real(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
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
