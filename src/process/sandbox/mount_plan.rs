//! Computes the changes of a command's file system view relative to a read-only copy of the host's.

use super::policy::is_below;
use super::{SHARED_TEMP_DIRS, SandboxPolicy};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Directory of the host's sockets. It is empty for the command except for [`VISIBLE_IN_RUN`].
const RUN: &str = "/run";

/// Programs of `NixOS`, and files for host name resolution.
const VISIBLE_IN_RUN: [&str; 6] = [
    "/run/current-system",
    "/run/booted-system",
    "/run/wrappers",
    "/run/opengl-driver",
    "/run/systemd/resolve",
    "/run/resolvconf",
];

/// Directories that are replaced for each command.
const REPLACED_DIRS: [&str; 3] = [SHARED_TEMP_DIRS[0], SHARED_TEMP_DIRS[1], RUN];

/// Change of the view at one path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MountChange {
    /// Mounts this path of the host.
    Bind(PathBuf, MountAccess),
    /// Mounts the path on itself, so that it cannot be moved.
    Pin,
    /// Mounts the path on itself, read-only.
    Protect,
    /// Covers the path with something empty.
    Hide,
    /// Mounts a device directory.
    Devices,
}

/// Access to a mounted path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    /// It can be changed.
    Writable,
    /// It can only be read.
    ReadOnly,
}

/// Computes the changes by path. Of two changes at one path the more restrictive one applies.
pub(super) fn plan(policy: &SandboxPolicy) -> BTreeMap<PathBuf, MountChange> {
    let mut changes = BTreeMap::new();
    let roots = policy.writable.iter().filter(|path| *path != Path::new("/"));
    for path in roots {
        changes.insert(path.clone(), MountChange::Bind(path.clone(), MountAccess::Writable));
    }
    let in_run = VISIBLE_IN_RUN.iter().map(Path::new);
    let visible = policy
        .visible
        .iter()
        .map(PathBuf::as_path)
        .filter(|path| is_in_replaced_dir(path, policy) || is_below(path, &policy.hidden))
        .chain(in_run);
    for path in visible.filter(|path| path.exists()) {
        changes
            .entry(path.to_owned())
            .or_insert_with(|| MountChange::Bind(path.to_owned(), MountAccess::ReadOnly));
    }
    for dir in SHARED_TEMP_DIRS.map(Path::new) {
        let dir = if policy.is_private(dir) { dir } else { &policy.temporary };
        if dir.is_dir() && !dir.is_symlink() {
            changes
                .insert(dir.to_owned(), MountChange::Bind(policy.temporary.clone(), MountAccess::Writable));
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

/// Checks whether `path` is below a covered directory and not below a writable directory in it.
fn is_in_replaced_dir(path: &Path, policy: &SandboxPolicy) -> bool {
    let covers = |dir: &&str| path.starts_with(dir) && (*dir == RUN || policy.is_private(Path::new(dir)));
    let mut roots = policy.writable.iter().filter(|root| *root != Path::new("/"));
    REPLACED_DIRS.iter().any(covers) && !roots.any(|root| path.starts_with(root))
}

/// Pins the directories above `path`, because moving one of them would move `path` with it.
fn pin_above(path: &Path, writable: &[PathBuf], changes: &mut BTreeMap<PathBuf, MountChange>) {
    let inside =
        |ancestor: &&Path| writable.iter().any(|root| ancestor.starts_with(root) && *ancestor != root);
    for ancestor in path.ancestors().skip(1).filter(inside) {
        changes.entry(ancestor.to_owned()).or_insert(MountChange::Pin);
    }
}

/// Checks whether a directory above `path` is covered, so that `path` needs no change.
fn is_covered(path: &Path, changes: &BTreeMap<PathBuf, MountChange>) -> bool {
    let mut above = path.ancestors().skip(1);
    above.find_map(|above| match changes.get(above)? {
        MountChange::Bind(from, _) => Some(from != above),
        MountChange::Hide | MountChange::Devices => Some(true),
        MountChange::Pin | MountChange::Protect => None,
    }) == Some(true)
}

/// Checks whether `path` exists and no part of it is a link. A link cannot be a mount point, so the guard restores it instead.
fn is_real(path: &Path) -> bool {
    // Most do not exist. This check takes half the time.
    path.symlink_metadata().is_ok() && open_real(path).is_ok()
}

/// Opens `path` as a location. Fails if any part of it is a link, which an earlier command may have created.
pub(super) fn open_real(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_changed_is_never_covered_and_what_is_covered_needs_no_care() {
        for root in ["/", "/tmp"].map(PathBuf::from) {
            let dir = tempfile::tempdir_in("/tmp").unwrap();
            let hidden = dir.path().join("hidden");
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
            assert_eq!(changes.get(dir.path()), Some(&MountChange::Pin));
            let below = [hidden.join("repository"), hidden.join("repository/.git"), "/dev/null".into()];
            assert!(!below.iter().any(|path| changes.contains_key(path)), "{changes:?}");
        }
    }
}
