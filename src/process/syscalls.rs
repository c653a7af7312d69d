//! System calls of the launcher process that have no safe form or are missing in `rustix`.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

/// Result of a fork.
pub(super) enum Fork {
    /// This is the new process.
    Child,
    /// This is the old process. Contains the id of the new one.
    Parent(Pid),
}

/// Forks this process. Only for the launcher process, which has one thread.
#[expect(unsafe_code, reason = "fork has no safe form: its child may not touch what other threads held")]
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the launcher process is a fresh exec, or was forked from one, and has started no thread. No other thread can hold
    // a lock that the child would lack.
    let id = unsafe { libc::fork() };
    match id {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        id => Pid::from_raw(id).map(Fork::Parent).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// Ends this process at once. A forked process must not flush or free inherited data, which would only cost time.
#[expect(unsafe_code, reason = "std only has an exit that runs registered handlers")]
pub(super) fn exit_immediately(succeeded: bool) -> ! {
    // SAFETY: the call takes no pointer and does not return. This process has no buffered output.
    unsafe { libc::_exit(i32::from(!succeeded)) }
}

/// Moves this process (mount and user namespaces) and its future children (pid namespace) into new namespaces.
#[expect(unsafe_code, reason = "unshare can split descriptor tables between threads")]
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the launcher never passes the flag for the descriptor table, and it has one thread.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Ignores SIGHUP, so that this process continues if a command stopped it and the agent ends: the kernel then sends SIGHUP and
/// SIGCONT.
#[expect(unsafe_code, reason = "dispositions of signals are not in rustix")]
pub(super) fn ignore_hangup() {
    // SAFETY: no handler is installed, and none was before.
    let _known_signal = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Marks every descriptor except the standard three as closed on exec, including inherited ones.
#[expect(unsafe_code, reason = "close_range is not in rustix")]
pub(super) fn close_others_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    const CLOSE_ON_EXEC: libc::c_int = 4; // CLOSE_RANGE_CLOEXEC of linux/close_range.h
    // SAFETY: the call closes no descriptor, it only marks them.
    let result = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, CLOSE_ON_EXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Restrictions of a mount. The values are those of `linux/mount.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MountAttributes(u64);

impl MountAttributes {
    pub(super) const READ_ONLY: Self = Self(0x1);
    pub(super) const NO_SETUID: Self = Self(0x2);
    pub(super) const NO_DEVICES: Self = Self(0x4);
}

impl std::ops::BitOr for MountAttributes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Adds the restrictions `attributes` to the mount at `path` below `base` (at `base` itself if `path` is empty) and to all
/// mounts below it.
pub(super) fn set_mount(base: impl AsFd, path: &Path, attributes: MountAttributes) -> io::Result<()> {
    mount_setattr(base.as_fd(), path, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)
}

/// Adds the restrictions to that mount only.
pub(super) fn set_single_mount(base: impl AsFd, path: &Path, attributes: MountAttributes) -> io::Result<()> {
    mount_setattr(base.as_fd(), path, libc::AT_EMPTY_PATH, attributes)
}

#[expect(unsafe_code, reason = "mount_setattr is not in rustix")]
fn mount_setattr(
    base: BorrowedFd<'_>,
    path: &Path,
    flags: libc::c_int,
    attributes: MountAttributes,
) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let wanted = libc::mount_attr { attr_set: attributes.0, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is terminated and the structure lives until the call returns. The kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            base.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Enables the loopback device of this network namespace, so that tests can connect to local servers.
#[expect(unsafe_code, reason = "the request that changes a device's flags is not in rustix")]
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes_with_nul()) {
        *to = libc::c_char::try_from(*from).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    // SAFETY: the request is initialised and lives until the call returns.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
