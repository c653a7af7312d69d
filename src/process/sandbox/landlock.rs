//! Landlock: which files may be opened for what, held by the kernel for this process and all it starts.

use super::{Reach, View};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The newest rules that are asked for; an older kernel enforces what it knows.
const NEWEST: ABI = ABI::V7;

/// The devices that may be written to where the command shares our `/dev`.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Restricts this process to `reach`.
///
/// # Errors
/// When the kernel refuses, or has no Landlock where nothing else holds the command.
pub fn restrict(reach: &Reach, view: View) -> io::Result<()> {
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let write: Vec<&Path> = match view {
        View::Own => ["/tmp", "/var/tmp", "/dev"].map(Path::new).to_vec(),
        View::Shared => DEVICES.map(Path::new).into_iter().chain([reach.temporary.as_path()]).collect(),
    };
    for path in reach.writable.iter().map(PathBuf::as_path).chain(write) {
        rules = allow(rules, path, all)?;
    }
    let readable = match view {
        View::Own => BTreeSet::from([PathBuf::from("/")]),
        View::Shared => around(&reach.hidden),
    };
    for path in readable {
        rules = allow(rules, &path, AccessFs::from_read(NEWEST))?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced && view == View::Shared {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(())
}

/// Allows `access` below `path`; nothing where there is no such path, or where we could not open it ourselves.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(file, access)).map_err(io::Error::other)
}

/// The largest parts of the file system in which nothing of `hidden` is. A rule holds for all that is below it, so that
/// the directories above what is hidden can be passed through but not listed.
fn around(hidden: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut parts = BTreeSet::new();
    let mut open = vec![PathBuf::from("/")];
    while let Some(path) = open.pop() {
        if hidden.contains(&path) {
            continue;
        }
        if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            parts.insert(path);
        } else if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_in_none_of_the_parts_and_its_neighbours_are() {
        let home = tempfile::tempdir().unwrap();
        for name in [".ssh", "work", ".config/gh", ".config/git"] {
            std::fs::create_dir_all(home.path().join(name)).unwrap();
        }
        let home = home.path().canonicalize().unwrap();
        let hidden = [home.join(".ssh"), home.join(".config/gh")];
        let parts = around(&hidden);
        assert!(!parts.iter().any(|part| hidden.iter().any(|hidden| hidden.starts_with(part))));
        for name in ["work", ".config/git"] {
            assert!(parts.contains(&home.join(name)), "{name}");
        }
    }
}
