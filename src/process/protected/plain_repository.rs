//! Tells a repository that a command has just made, as `git init` does, from one that would run programs.

use super::place;
use rustix::fs::FileType;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;

/// The longest configuration that is read, in bytes; that of a new repository has about a hundred.
const MAX_CONFIG_BYTES: u64 = 16 * 1024;

/// The most hooks that are looked at; git brings some fifteen samples.
const MAX_HOOKS: usize = 100;

/// What git writes into the configuration of a new repository or a clone, and names of people. None of these is a program,
/// or a path that git reads by itself.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "bare",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "repositoryformatversion",
            "symlinks",
        ],
    ),
    ("user", &["email", "name"]),
    ("init", &["defaultbranch"]),
    ("remote", &["fetch", "url"]),
    ("branch", &["merge", "rebase", "remote"]),
];

/// What must not be in it: paths that lead git elsewhere, and attributes that name filters.
const ABSENT: [&str; 5] = ["commondir", "gitdir", "config.worktree", "modules", "worktrees"];

/// Whether nothing in the new repository `git` makes a program run.
pub(super) fn is_plain(git: &OwnedFd) -> bool {
    let absent = |name: &str| place::look(git, OsStr::new(name)).is_ok_and(|stat| stat.is_none());
    ABSENT.into_iter().all(absent) && has_plain_config(git) && has_only_samples(git) && has_plain_info(git)
}

fn has_plain_config(git: &OwnedFd) -> bool {
    let name = OsStr::new("config");
    match place::look(git, name) {
        Ok(None) => true,
        Ok(Some(stat)) if place::kind(&stat) == FileType::RegularFile => {
            let bytes = place::content(git, name, MAX_CONFIG_BYTES).ok().flatten();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).is_some_and(|text| is_plain_config(&text))
        }
        _ => false,
    }
}

fn has_only_samples(git: &OwnedFd) -> bool {
    entries(git, "hooks")
        .is_some_and(|names| names.iter().all(|name| name.to_string_lossy().ends_with(".sample")))
}

fn has_plain_info(git: &OwnedFd) -> bool {
    entries(git, "info").is_some_and(|names| names.iter().all(|name| name == "exclude" || name == "refs"))
}

/// The names in a directory of the repository: none where it is missing, `None` where it is no directory.
fn entries(git: &OwnedFd, name: &str) -> Option<Vec<std::ffi::OsString>> {
    let name = OsStr::new(name);
    if place::look(git, name).ok()?.is_none() {
        return Some(Vec::new());
    }
    let names = place::names(&place::open_directory(git, name).ok()?, MAX_HOOKS).ok()?;
    (names.len() < MAX_HOOKS).then_some(names)
}

/// Whether each line of a configuration is a known section or a known key of it.
pub(super) fn is_plain_config(text: &str) -> bool {
    let mut keys: &[&str] = &[];
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let section = section.split([' ', '\t']).next().unwrap_or_default();
            let known = HARMLESS.iter().find(|(name, _)| section.eq_ignore_ascii_case(name));
            keys = known.map_or(&[], |(_, keys)| keys);
            return known.is_some();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        // A backslash at the end would join the next line to this one.
        !value.contains(['\\', '"']) && keys.iter().any(|known| key.trim().eq_ignore_ascii_case(known))
    })
}
