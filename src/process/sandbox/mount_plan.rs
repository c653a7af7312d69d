//! What a command sees of the file system, as a list of what differs from a read-only whole.

use super::{SHARED_TEMP_DIRS, SandboxPolicy};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What hosts keep their sockets in. It is empty for the command, but for [`VISIBLE_IN_RUN`].
const RUN: &str = "/run";

/// Programs of `NixOS`, and what names hosts.
const VISIBLE_IN_RUN: [&str; 6] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/systemd/resolve",
    "/run/resolvconf",
];

/// Places that are another for each command.
const REPLACED_DIRS: [&str; 3] = [SHARED_TEMP_DIRS[0], SHARED_TEMP_DIRS[1], RUN];

/// A change of the view at one path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MountChange {
    /// What is at this path of ours.
    Bind(PathBuf, MountAccess),
    /// The same as without, as a mount of its own.
    Pin,
    /// The same, read-only.
    Protect,
    /// Nothing.
    Hide,
    /// Devices.
    Devices,
}

/// What may be done with what is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    /// It can be changed.
    Writable,
    /// It can be seen.
    ReadOnly,
}

/// What differs from the read-only whole, by path. Of two changes at one path the more careful counts.
pub(super) fn plan(policy: &SandboxPolicy) -> BTreeMap<PathBuf, MountChange> {
    let mut changes = BTreeMap::new();
    let rooted = policy.writable.iter().filter(|path| *path != Path::new("/"));
    for path in rooted {
        changes.insert(path.clone(), MountChange::Bind(path.clone(), MountAccess::Writable));
    }
    let kept = VISIBLE_IN_RUN.iter().map(Path::new);
    let seen = policy.visible.iter().map(PathBuf::as_path).filter(|path| is_lost(path, policy)).chain(kept);
    for path in seen.filter(|path| path.exists()) {
        changes
            .entry(path.to_owned())
            .or_insert_with(|| MountChange::Bind(path.to_owned(), MountAccess::ReadOnly));
    }
    for place in SHARED_TEMP_DIRS.map(Path::new) {
        let place = if policy.is_private(place) { place } else { &policy.temporary };
        if place.is_dir() && !place.is_symlink() {
            changes
                .insert(place.to_owned(), MountChange::Bind(policy.temporary.clone(), MountAccess::Writable));
        }
    }
    for path in policy.read_only.iter().filter(|path| is_real(path)) {
        pin_above(path, &policy.writable, &mut changes);
        changes.insert(path.clone(), MountChange::Protect);
    }
    let sockets = [Path::new(RUN)];
    let hidden = policy.hidden.iter().map(PathBuf::as_path).chain(sockets);
    for path in hidden.filter(|path| path.exists()) {
        pin_above(path, &policy.writable, &mut changes);
        changes.insert(path.to_owned(), MountChange::Hide);
    }
    changes.insert(PathBuf::from("/dev"), MountChange::Devices);
    let covered: Vec<PathBuf> = changes.keys().filter(|path| is_covered(path, &changes)).cloned().collect();
    changes.retain(|path, change| matches!(change, MountChange::Bind(..)) || !covered.contains(path));
    changes
}

/// Whether `path` lies in a place that is covered, and in no directory below that place that the command may change.
fn is_lost(path: &Path, policy: &SandboxPolicy) -> bool {
    let covers =
        |place: &&str| path.starts_with(place) && (*place == RUN || policy.is_private(Path::new(place)));
    let mut rooted = policy.writable.iter().filter(|root| *root != Path::new("/"));
    REPLACED_DIRS.iter().any(covers) && !rooted.any(|root| path.starts_with(root))
}

/// Keeps the directories above `path` in their place, where they could be moved away with it.
fn pin_above(path: &Path, writable: &[PathBuf], changes: &mut BTreeMap<PathBuf, MountChange>) {
    let inside =
        |ancestor: &&Path| writable.iter().any(|root| ancestor.starts_with(root) && *ancestor != root);
    for ancestor in path.ancestors().skip(1).filter(inside) {
        changes.entry(ancestor.to_owned()).or_insert(MountChange::Pin);
    }
}

/// Whether something else is in the place of a directory above `path`, so that there is nothing to care for.
fn is_covered(path: &Path, changes: &BTreeMap<PathBuf, MountChange>) -> bool {
    let mut above = path.ancestors().skip(1);
    above.find_map(|above| match changes.get(above)? {
        MountChange::Bind(from, _) => Some(from != above),
        MountChange::Hide | MountChange::Devices => Some(true),
        MountChange::Pin | MountChange::Protect => None,
    }) == Some(true)
}

/// Whether `path` exists and no part of it is a link. A link cannot be a mount point: the guard keeps it.
fn is_real(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // Most do not exist, which this finds out in half the time.
    path.symlink_metadata().is_ok()
        && rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_changed_is_never_covered_and_what_is_covered_needs_no_care() {
        for root in ["/", "/tmp"].map(PathBuf::from) {
            let place = tempfile::tempdir_in("/tmp").unwrap();
            let hidden = place.path().join("hidden");
            std::fs::create_dir_all(hidden.join("repository/.git")).unwrap();
            let policy = SandboxPolicy {
                writable: vec![root.clone()],
                read_only: vec![hidden.join("repository/.git"), "/dev/null".into()],
                hidden: vec![hidden.clone(), hidden.join("repository")],
                temporary: hidden.join("temporary"),
                ..SandboxPolicy::default()
            };
            std::fs::create_dir(&policy.temporary).unwrap();
            let changes = plan(&policy);
            let own = MountChange::Bind(policy.temporary.clone(), MountAccess::Writable);
            assert_eq!(changes.get(&policy.temporary), Some(&own), "{root:?}");
            let shared = changes.get(Path::new("/tmp"));
            assert!(shared.is_none_or(|shared| *shared != own), "{root:?}");
            assert_eq!(changes.get(&hidden), Some(&MountChange::Hide));
            assert_eq!(changes.get(place.path()), Some(&MountChange::Pin));
            let below = [hidden.join("repository"), hidden.join("repository/.git"), "/dev/null".into()];
            assert!(!below.iter().any(|path| changes.contains_key(path)), "{changes:?}");
        }
    }
}
