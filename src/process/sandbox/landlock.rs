//! Landlock: which files may be opened for what, held by the kernel for this process and all it starts.

use super::{SHARED_TEMP_DIRS, SandboxPolicy, View};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The newest rules that are asked for; an older kernel enforces what it knows.
const NEWEST: ABI = ABI::V7;

/// The entries of one directory above what is hidden that are allowed, each of which is a rule; the others are out of reach.
const MAX_ENTRIES: usize = 10_000;

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

/// Restricts this process to `policy`.
///
/// # Errors
/// When the kernel refuses, or has no Landlock where nothing else holds the command.
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
    // A view of its own has something else where what is hidden was.
    let hidden: &[PathBuf] = if view == View::Own { &[] } else { &policy.hidden };
    let changed = policy.writable.iter().flat_map(|root| around(hidden, root));
    for path in changed.chain(places.iter().map(PathBuf::from)).chain([policy.temporary.clone()]) {
        rules = allow(rules, &path, all)?;
    }
    for path in around(hidden, Path::new("/")) {
        rules = allow(rules, &path, AccessFs::from_read(NEWEST))?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if status.ruleset == RulesetStatus::NotEnforced && view == View::Shared {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    Ok(())
}

/// Allows `access` below `path`; nothing where there is no such path, where we could not open it ourselves, or where a link
/// is in it: that may be a command's own, and lead to what is hidden.
fn allow(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
        return Ok(rules);
    };
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    let access = if kind == FileType::Directory { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(file, access)).map_err(io::Error::other)
}

/// The largest parts of `root` in which nothing of `hidden` is. A rule holds for all that is below it, so that directories
/// above what is hidden can be passed through, but neither be listed nor get new entries: those would be as open to the
/// command as what is hidden there.
fn around(hidden: &[PathBuf], root: &Path) -> BTreeSet<PathBuf> {
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
            let parts = around(&hidden, root);
            assert!(!parts.iter().any(|part| hidden.iter().any(|hidden| hidden.starts_with(part))));
            for name in ["work", ".config/git"] {
                assert!(parts.contains(&home.join(name)), "{name}");
            }
        }
        let [within, itself] =
            [home.join(".ssh/of_ours"), home.join(".ssh")].map(|root| around(&hidden, &root));
        assert!(itself.is_empty() && within == BTreeSet::from([home.join(".ssh/of_ours")]));
    }
}
