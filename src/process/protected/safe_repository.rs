//! Checks whether a repository that a command created, as `git init` does, could run programs.

use super::openat;
use crate::sandbox::repositories::GIT_CONFIG_PATHS;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// Longest configuration to read, in bytes. That of a new repository has about a hundred.
const MAX_CONFIG_BYTES: u64 = 16 * 1024;

/// Maximum number of hooks to check. Git installs about fifteen samples.
const MAX_HOOKS: usize = 100;

/// Keys that git and its tools write into the configuration of a new repository or a clone, and names of people. None of them
/// names a program or a path that git reads by itself. A key listed with values is safe only with these values.
const SAFE_KEYS: &[(&str, &[&str])] = &[
    ("advice", &["detachedhead"]),
    ("branch", &["merge", "rebase", "remote"]),
    ("commit", &["gpgsign"]),
    (
        "core",
        &[
            "autocrlf",
            "bare",
            "eol",
            "filemode",
            "fsmonitor=false",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "precomposeunicode",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
        ],
    ),
    ("extensions", &["objectformat", "partialclone", "refstorage", "worktreeconfig"]),
    ("gc", &["auto"]),
    ("index", &["sparse"]),
    ("init", &["defaultbranch"]),
    ("pull", &["ff", "rebase"]),
    ("push", &["autosetupremote", "default"]),
    ("remote", &["fetch", "mirror", "partialclonefilter", "promisor", "pushurl", "tagopt", "url"]),
    ("tag", &["gpgsign"]),
    ("user", &["email", "name"]),
];

/// Entries of a repository's configuration that are safe if they name no program.
const CHECKED_BY_CONTENT: [&str; 3] = ["config", "config.worktree", "hooks"];

/// Checks whether nothing in the new repository `git` makes a program run.
pub(super) fn is_safe(git: &OwnedFd) -> bool {
    let absent = |name: &str| openat::stat_at(git, OsStr::new(name)).is_ok_and(|stat| stat.is_none());
    GIT_CONFIG_PATHS.into_iter().filter(|name| !CHECKED_BY_CONTENT.contains(name)).all(absent)
        && has_safe_config(git, "config")
        && has_safe_config(git, "config.worktree")
        && has_only_samples(git)
}

/// Checks whether nothing in `git`, the directory of a new worktree, makes a program run. Its repository is checked separately.
pub(super) fn is_safe_worktree(git: &OwnedFd) -> bool {
    let no_modules = openat::stat_at(git, OsStr::new("modules")).is_ok_and(|stat| stat.is_none());
    no_modules && has_safe_config(git, "config.worktree")
}

fn has_safe_config(git: &OwnedFd, name: &str) -> bool {
    let name = OsStr::new(name);
    match openat::stat_at(git, name) {
        Ok(None) => true,
        Ok(Some(stat)) if openat::kind(&stat) == FileType::RegularFile => {
            let bytes = openat::read_file_at(git, name, MAX_CONFIG_BYTES).ok().flatten();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).is_some_and(|text| is_safe_config(&text))
        }
        _ => false,
    }
}

fn has_only_samples(git: &OwnedFd) -> bool {
    entries(git, "hooks")
        .is_some_and(|names| names.iter().all(|name| name.to_string_lossy().ends_with(".sample")))
}

/// Lists a directory of the repository. Empty if it is missing, `None` if it is not a directory.
fn entries(git: &OwnedFd, name: &str) -> Option<Vec<std::ffi::OsString>> {
    let name = OsStr::new(name);
    if openat::stat_at(git, name).ok()?.is_none() {
        return Some(Vec::new());
    }
    let names = openat::names(&openat::open_directory(git, name).ok()?, MAX_HOOKS).ok()?;
    (names.len() < MAX_HOOKS).then_some(names)
}

/// Checks whether each line of a configuration is a known section or a known key of it.
pub(super) fn is_safe_config(text: &str) -> bool {
    let mut keys: &[&str] = &[];
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (section, rest) = section.split_once([' ', '\t']).unwrap_or((section, ""));
            let known = SAFE_KEYS
                .iter()
                .find(|(name, _)| section.eq_ignore_ascii_case(name) && is_one_name(rest.trim()));
            keys = known.map_or(&[], |(_, keys)| keys);
            return known.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        // A backslash at the end would join the next line to this one.
        let is_key = |known: &str| key.trim().eq_ignore_ascii_case(known);
        let is_known = |known: &&str| match known.split_once('=') {
            Some((known, harmless)) => is_key(known) && value.trim().eq_ignore_ascii_case(harmless),
            None => is_key(known),
        };
        !value.contains(['\\', '"']) && keys.iter().any(is_known)
    })
}

/// Checks whether a section's line contains nothing after its name.
fn is_one_name(rest: &str) -> bool {
    let name = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    rest.is_empty() || name.is_some_and(|name| !name.contains(['"', '\\']))
}
