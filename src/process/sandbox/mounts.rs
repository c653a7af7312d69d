//! A view of the file system for one command: everything read-only but what it may change, and nothing of what it must
//! not see.
//!
//! Runs in a mount namespace of its own, before anything of the command does. A mount point cannot be renamed or removed,
//! so what is protected inside a writable directory is a mount of its own, and so is every directory above it.

use super::SandboxPolicy;
use super::mount_plan::{self, MountAccess, MountChange};
use crate::process::syscalls::{self, MountAttributes};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

/// The devices that programs expect everywhere.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Where the names of other descriptors and terminals are expected, and what they are.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// The most that a command may keep in shared memory, where it counts against the machine's.
const SHARED_MEMORY: &str = "mode=755,size=1g";

/// An empty directory, in which only mount points are made.
const EMPTY: &str = "mode=755,size=64k";

/// Arranges the view that `policy` describes.
///
/// # Errors
/// When the kernel refuses a step; then nothing may be started.
pub fn apply(policy: &SandboxPolicy) -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mut changes = Vec::new();
    for (path, change) in mount_plan::plan(policy) {
        // What there was before everything became read-only.
        let tree = match &change {
            MountChange::Bind(from, MountAccess::Writable) => Some(clone_writable(from)?),
            MountChange::Bind(from, MountAccess::ReadOnly) => Some(clone_read_only(from)?),
            MountChange::Pin | MountChange::Protect | MountChange::Hide | MountChange::Devices => None,
        };
        changes.push((path, change, tree));
    }
    let devices =
        DEVICES.iter().filter_map(|name| Some((*name, clone_tree(&Path::new("/dev").join(name)).ok()?)));
    let devices: Vec<_> = devices.collect();
    let harmless = MountAttributes::NO_SETUID | MountAttributes::NO_DEVICES;
    let whole = policy.writable.iter().any(|path| path == Path::new("/"));
    let everything = if whole { harmless } else { harmless | MountAttributes::READ_ONLY };
    syscalls::set_mount(CWD, Path::new("/"), everything)?;
    let mut hidden = Vec::new();
    // A path sorts before everything below it.
    for (path, change, tree) in changes {
        match change {
            MountChange::Bind(..) => {
                tree.iter().try_for_each(|tree| attach(tree, &create_mount_point(&path, tree)?))?;
            }
            MountChange::Pin => attach(&clone_tree(&path)?, &open_mount_point(&path)?)?,
            MountChange::Protect => attach(&clone_read_only(&path)?, &open_mount_point(&path)?)?,
            MountChange::Hide if path.is_dir() => {
                mount_new("tmpfs", &path, EMPTY)?;
                hidden.push(path);
            }
            MountChange::Hide => attach(&clone_dev_null(&devices)?, &open_mount_point(&path)?)?,
            MountChange::Devices => mount_devices(&path, &devices)?,
        }
    }
    for path in hidden {
        syscalls::set_single_mount(CWD, &path, MountAttributes::READ_ONLY)?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, None)?)
}

/// A copy of the mounts at `path`, attached nowhere yet.
fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// What a hidden file is covered with. A copy is made for each, because the kernel is slow to take down one that nobody
/// attaches.
fn clone_dev_null(devices: &[(&str, OwnedFd)]) -> io::Result<OwnedFd> {
    let null = devices.iter().find(|(name, _)| *name == "null").ok_or(io::ErrorKind::NotFound)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(rustix::mount::open_tree(&null.1, "", flags)?)
}

/// Such a copy in which files can be changed, but neither devices nor other users' rights be had.
fn clone_writable(path: &Path) -> io::Result<OwnedFd> {
    let tree = clone_tree(path)?;
    syscalls::set_mount(&tree, Path::new(""), MountAttributes::NO_SETUID | MountAttributes::NO_DEVICES)?;
    Ok(tree)
}

/// Such a copy in which nothing can be changed.
fn clone_read_only(path: &Path) -> io::Result<OwnedFd> {
    let tree = clone_tree(path)?;
    let attributes = MountAttributes::READ_ONLY | MountAttributes::NO_SETUID | MountAttributes::NO_DEVICES;
    syscalls::set_mount(&tree, Path::new(""), attributes)?;
    Ok(tree)
}

fn attach(tree: &OwnedFd, target: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(tree.as_fd(), "", target.as_fd(), "", flags)?)
}

/// Where to attach: the path itself, which a link planted by an earlier command cannot lead elsewhere.
fn open_mount_point(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?)
}

/// The same for a path that another change may have covered: a file or a directory, as `tree` is.
fn create_mount_point(path: &Path, tree: &OwnedFd) -> io::Result<OwnedFd> {
    if let Ok(target) = open_mount_point(path) {
        return Ok(target);
    }
    let make = |directory: &Path| DirBuilder::new().recursive(true).mode(0o755).create(directory);
    if FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) == FileType::Directory {
        make(path)?;
    } else {
        path.parent().map_or(Ok(()), make)?;
        // A command that runs at the same time may have made it.
        drop(std::fs::File::create_new(path));
    }
    open_mount_point(path)
}

fn mount_new(kind: &str, path: &Path, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount(kind, path, kind, flags, options.as_c_str())?)
}

/// Devices that lead nowhere, terminals and shared memory of the command's own.
fn mount_devices(place: &Path, devices: &[(&str, OwnedFd)]) -> io::Result<()> {
    mount_new("tmpfs", place, SHARED_MEMORY)?;
    for (name, device) in devices {
        let path = place.join(name);
        drop(std::fs::File::create_new(&path)?);
        attach(device, &open_mount_point(&path)?)?;
    }
    for (name, destination) in DEVICE_LINKS {
        symlink(destination, place.join(name))?;
    }
    let shared = place.join("shm");
    DirBuilder::new().mode(0o700).create(&shared)?;
    rustix::fs::chmod(&shared, Mode::from_raw_mode(0o1777))?;
    let terminals = place.join("pts");
    std::fs::create_dir(&terminals)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    // Few programs need a terminal, and some containers refuse a new set of them.
    let _without =
        rustix::mount::mount("devpts", &terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=620");
    Ok(())
}
