//! Landlock rules: file access rights that the kernel enforces for this process and everything that it starts.

use super::mount_plan::open_real;
use super::policy::is_below;
use super::{SHARED_TEMP_DIRS, SandboxPolicy, View};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Newest Landlock version to use. An older kernel enforces the rights that it supports.
const NEWEST: ABI = ABI::V7;

/// Maximum number of entries to allow in one directory above a hidden path. Each is a rule. Further entries are inaccessible.
const MAX_ENTRIES: usize = 10_000;

/// Writable devices if the command shares the host's `/dev`.
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

/// Restricts this process to `policy`.
///
/// # Errors
/// Fails if the kernel refuses, or if it lacks Landlock and the command has no view of its own.
pub fn restrict(policy: &SandboxPolicy, view: View) -> io::Result<()> {
    let all = AccessFs::from_all(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let places: &[&str] = match view {
        View::Own => &[SHARED_TEMP_DIRS[0], SHARED_TEMP_DIRS[1], "/dev"],
        View::Shared => &DEVICES,
    };
    // In a separate view, hidden paths are already covered.
    let hidden: &[PathBuf] = if view == View::Own { &[] } else { &policy.hidden };
    let changed = policy.writable.iter().flat_map(|root| parts_without(hidden, root));
    for path in changed.chain(places.iter().map(PathBuf::from)).chain([policy.temporary.clone()]) {
        rules = allow(rules, &path, all)?;
    }
    // Such as the worktree of a run, which is below the state directory.
    let visible = policy.visible.iter().filter(|path| is_below(path, hidden)).cloned();
    for path in parts_without(hidden, Path::new("/")).into_iter().chain(visible) {
        rules = allow(rules, &path, AccessFs::from_read(NEWEST))?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced && view == View::Shared {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(())
}

/// Allows `access` below `path`. Skips a path that is missing, that this process cannot open, or that contains a link, because
/// a command may have created the link to reach a hidden path.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let Ok(file) = open_real(path) else { return Ok(rules) };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let access = if kind == FileType::Directory { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(file, access)).map_err(io::Error::other)
}

/// Returns the largest parts of `root` that contain nothing of `hidden`. A rule covers everything below its path, so
/// directories above a hidden path can be traversed but neither be listed nor get new entries: rules that allowed this would
/// also allow it below the hidden path.
fn parts_without(hidden: &[PathBuf], root: &Path) -> BTreeSet<PathBuf> {
    let mut parts = BTreeSet::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        if hidden.contains(&path) {
            continue;
        }
        if !hidden.iter().any(|hidden| hidden.starts_with(&path)) {
            parts.insert(path);
        } else if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path()));
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
        for root in [Path::new("/"), &home] {
            let parts = parts_without(&hidden, root);
            assert!(!parts.iter().any(|part| hidden.iter().any(|hidden| hidden.starts_with(part))));
            for name in ["work", ".config/git"] {
                assert!(parts.contains(&home.join(name)), "{name}");
            }
        }
        let [within, itself] =
            [home.join(".ssh/of_ours"), home.join(".ssh")].map(|root| parts_without(&hidden, &root));
        assert!(itself.is_empty() && within == BTreeSet::from([home.join(".ssh/of_ours")]));
    }
}
