//! What a command sees of the file system, as a list of what differs from a read-only whole.

use super::{Reach, TEMPORARY};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What hosts keep their sockets in. It is empty for the command, but for [`KEPT_IN_RUN`].
const RUN: &str = "/run";

/// Programs of `NixOS`, and what names hosts.
const KEPT_IN_RUN: [&str; 6] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/systemd/resolve",
    "/run/resolvconf",
];

/// Places that are another for each command.
const COVERED: [&str; 3] = [TEMPORARY[0], TEMPORARY[1], RUN];

/// A change of the view at one path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// What is at this path of ours.
    Bind(PathBuf, Rights),
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
pub(super) enum Rights {
    /// It can be changed.
    Change,
    /// It can be seen.
    See,
}

/// What differs from the read-only whole, by path. Of two changes at one path the more careful counts.
pub(super) fn plan(reach: &Reach) -> BTreeMap<PathBuf, Change> {
    let mut changes = BTreeMap::new();
    let rooted = reach.writable.iter().filter(|path| *path != Path::new("/"));
    for path in rooted {
        changes.insert(path.clone(), Change::Bind(path.clone(), Rights::Change));
    }
    let kept = KEPT_IN_RUN.iter().map(Path::new).filter(|path| path.exists());
    let covered = |path: &&Path| COVERED.iter().any(|place| path.starts_with(place));
    let seen = reach.visible.iter().map(PathBuf::as_path).filter(covered).chain(kept);
    for path in seen {
        if let std::collections::btree_map::Entry::Vacant(free) = changes.entry(path.to_owned()) {
            free.insert(Change::Bind(path.to_owned(), Rights::See));
        }
    }
    for place in TEMPORARY.map(Path::new) {
        let place = if reach.is_private(place) { place } else { &reach.temporary };
        if place.is_dir() && !place.is_symlink() {
            changes.insert(place.to_owned(), Change::Bind(reach.temporary.clone(), Rights::Change));
        }
    }
    for path in reach.read_only.iter().filter(|path| is_real(path)) {
        pin_above(path, &reach.writable, &mut changes);
        changes.insert(path.clone(), Change::Protect);
    }
    let sockets = [Path::new(RUN)];
    let hidden = reach.hidden.iter().map(PathBuf::as_path).chain(sockets);
    for path in hidden.filter(|path| path.exists()) {
        pin_above(path, &reach.writable, &mut changes);
        changes.insert(path.to_owned(), Change::Hide);
    }
    changes.insert(PathBuf::from("/dev"), Change::Devices);
    let covered: Vec<PathBuf> = changes.keys().filter(|path| is_covered(path, &changes)).cloned().collect();
    changes.retain(|path, change| matches!(change, Change::Bind(..)) || !covered.contains(path));
    changes
}

/// Keeps the directories above `path` in their place, where they could be moved away with it.
fn pin_above(path: &Path, writable: &[PathBuf], changes: &mut BTreeMap<PathBuf, Change>) {
    let inside =
        |ancestor: &&Path| writable.iter().any(|root| ancestor.starts_with(root) && *ancestor != root);
    for ancestor in path.ancestors().skip(1).filter(inside) {
        changes.entry(ancestor.to_owned()).or_insert(Change::Pin);
    }
}

/// Whether something else is in the place of a directory above `path`, so that there is nothing to care for.
fn is_covered(path: &Path, changes: &BTreeMap<PathBuf, Change>) -> bool {
    let mut above = path.ancestors().skip(1);
    above.find_map(|above| match changes.get(above)? {
        Change::Bind(from, _) => Some(from != above),
        Change::Hide | Change::Devices => Some(true),
        Change::Pin | Change::Protect => None,
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
            let reach = Reach {
                writable: vec![root.clone()],
                read_only: vec![hidden.join("repository/.git"), "/dev/null".into()],
                hidden: vec![hidden.clone(), hidden.join("repository")],
                temporary: hidden.join("temporary"),
                ..Reach::default()
            };
            std::fs::create_dir(&reach.temporary).unwrap();
            let changes = plan(&reach);
            let own = Change::Bind(reach.temporary.clone(), Rights::Change);
            assert_eq!(changes.get(&reach.temporary), Some(&own), "{root:?}");
            let shared = changes.get(Path::new("/tmp"));
            assert!(shared.is_none_or(|shared| *shared != own), "{root:?}");
            assert_eq!(changes.get(&hidden), Some(&Change::Hide));
            assert_eq!(changes.get(place.path()), Some(&Change::Pin));
            let below = [hidden.join("repository"), hidden.join("repository/.git"), "/dev/null".into()];
            assert!(!below.iter().any(|path| changes.contains_key(path)), "{changes:?}");
        }
    }
}
