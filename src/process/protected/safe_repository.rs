//! Tells a repository that a command has just made, as `git init` does, from one that would run programs.

use super::openat;
use crate::process::sandbox::repositories::GIT_CONFIG_PATHS;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// The longest configuration that is read, in bytes; that of a new repository has about a hundred.
const MAX_CONFIG_BYTES: u64 = 16 * 1024;

/// The most hooks that are looked at; git brings some fifteen samples.
const MAX_HOOKS: usize = 100;

/// What git and programs that use it write into the configuration of a new repository or a clone, and names of people. None
/// of these is a program, or a path that git reads by itself. What stands with a value is harmless with that value only.
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

/// What of a repository's configuration may be there, when nothing in it is a program.
const CHECKED_BY_CONTENT: [&str; 3] = ["config", "config.worktree", "hooks"];

/// Whether nothing in the new repository `git` makes a program run.
pub(super) fn is_safe(git: &OwnedFd) -> bool {
    let absent = |name: &str| openat::stat_at(git, OsStr::new(name)).is_ok_and(|stat| stat.is_none());
    GIT_CONFIG_PATHS.into_iter().filter(|name| !CHECKED_BY_CONTENT.contains(name)).all(absent)
        && has_safe_config(git, "config")
        && has_safe_config(git, "config.worktree")
        && has_only_samples(git)
}

/// Whether nothing in `git` makes a program run, the directory of a new worktree, whose repository is another's to judge.
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

/// The names in a directory of the repository: none where it is missing, `None` where it is no directory.
fn entries(git: &OwnedFd, name: &str) -> Option<Vec<std::ffi::OsString>> {
    let name = OsStr::new(name);
    if openat::stat_at(git, name).ok()?.is_none() {
        return Some(Vec::new());
    }
    let names = openat::names(&openat::open_directory(git, name).ok()?, MAX_HOOKS).ok()?;
    (names.len() < MAX_HOOKS).then_some(names)
}

/// Whether each line of a configuration is a known section or a known key of it.
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

/// Whether nothing else follows in the line of a section than what the section is of.
fn is_one_name(rest: &str) -> bool {
    let name = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    rest.is_empty() || name.is_some_and(|name| !name.contains(['"', '\\']))
}
