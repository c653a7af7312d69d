//! Mounts a command's file system view: read-only except for writable paths, and without hidden ones.
//!
//! Runs in a new mount namespace before the command starts. A mount point cannot be renamed or removed, so every protected path
//! inside a writable directory becomes a mount of its own, and so does every directory above it.

use super::SandboxPolicy;
use super::mount_plan::{self, MountAccess, MountChange, open_real};
use crate::syscalls::{self, MountAttributes};
use rustix::fs::{CWD, FileType, Mode};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

/// How often a path may be replaced while something is mounted there.
const MAX_REPLACEMENTS: u32 = 10;

/// Devices that programs require.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links in `/dev` to descriptors and terminals, with their targets.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Mount options that limit a command's shared memory, which uses the machine's memory.
const SHARED_MEMORY: &str = "mode=755,size=1g";

/// Mount options of an empty directory for mount points only.
const EMPTY: &str = "mode=755,size=64k";

/// Mounts the view for `policy`.
///
/// # Errors
/// Fails if the kernel refuses a step. Nothing may be started then.
pub fn apply(policy: &SandboxPolicy) -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let mut changes = Vec::new();
    for (path, change) in mount_plan::plan(policy) {
        // Clones the mounts before everything becomes read-only.
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
            MountChange::Pin => if_there(&path, || attach(&clone_tree(&path)?, &open_real(&path)?))?,
            MountChange::Protect => {
                if_there(&path, || attach(&clone_read_only(&path)?, &open_real(&path)?))?;
            }
            MountChange::Hide if path.is_dir() => {
                mount_new("tmpfs", &path, EMPTY)?;
                hidden.push(path);
            }
            MountChange::Hide => {
                if_there(&path, || attach(&clone_dev_null(&devices)?, &open_real(&path)?))?;
            }
            MountChange::Devices => mount_devices(&path, &devices)?,
        }
    }
    for path in hidden {
        syscalls::set_single_mount(CWD, &path, MountAttributes::READ_ONLY)?;
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    Ok(rustix::mount::mount("proc", "/proc", "proc", flags, None)?)
}

/// Mounts something at `path`, unless another program has removed the path meanwhile, such as the data of another worktree. If it has replaced
/// the path, mounts on the new one.
fn if_there(path: &Path, mount: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 1..MAX_REPLACEMENTS {
        match mount() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => return done,
        }
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
    }
    mount()
}

/// Clones the mounts at `path` without attaching them.
fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    Ok(rustix::mount::open_tree(CWD, path, flags)?)
}

/// Clones `/dev/null` to cover a hidden file. A clone is created for each use because the kernel is slow to remove one that is
/// never attached.
fn clone_dev_null(devices: &[(&str, OwnedFd)]) -> io::Result<OwnedFd> {
    let null = devices.iter().find(|(name, _)| *name == "null").ok_or(io::ErrorKind::NotFound)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(rustix::mount::open_tree(&null.1, "", flags)?)
}

/// Clones the mounts at `path` as writable, without devices and set-user-id rights.
fn clone_writable(path: &Path) -> io::Result<OwnedFd> {
    let tree = clone_tree(path)?;
    syscalls::set_mount(&tree, Path::new(""), MountAttributes::NO_SETUID | MountAttributes::NO_DEVICES)?;
    Ok(tree)
}

/// Clones the mounts at `path` as read-only.
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

/// Opens the mount point `path`, and creates it first if another change covered it. Its type (file or directory) is that of
/// `tree`.
fn create_mount_point(path: &Path, tree: &OwnedFd) -> io::Result<OwnedFd> {
    if let Ok(target) = open_real(path) {
        return Ok(target);
    }
    let make = |directory: &Path| DirBuilder::new().recursive(true).mode(0o755).create(directory);
    if FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode) == FileType::Directory {
        make(path)?;
    } else {
        path.parent().map_or(Ok(()), make)?;
        // A concurrent command may have created it.
        drop(std::fs::File::create_new(path));
    }
    Ok(open_real(path)?)
}

fn mount_new(kind: &str, path: &Path, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount(kind, path, kind, flags, options.as_c_str())?)
}

/// Mounts a device directory with harmless devices, private terminals and private shared memory.
fn mount_devices(dir: &Path, devices: &[(&str, OwnedFd)]) -> io::Result<()> {
    mount_new("tmpfs", dir, SHARED_MEMORY)?;
    for (name, device) in devices {
        let path = dir.join(name);
        drop(std::fs::File::create_new(&path)?);
        attach(device, &open_real(&path)?)?;
    }
    for (name, destination) in DEVICE_LINKS {
        symlink(destination, dir.join(name))?;
    }
    let shared = dir.join("shm");
    DirBuilder::new().mode(0o700).create(&shared)?;
    rustix::fs::chmod(&shared, Mode::from_raw_mode(0o1777))?;
    let terminals = dir.join("pts");
    std::fs::create_dir(&terminals)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    // Few programs need a terminal, and some containers refuse a new devpts instance.
    let _best_effort =
        rustix::mount::mount("devpts", &terminals, "devpts", flags, c"newinstance,ptmxmode=0666,mode=620");
    Ok(())
}
