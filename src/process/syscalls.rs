//! The system calls that have no safe form, or that `rustix` leaves out, for the launcher process only.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

/// Which side of a fork this is.
pub(super) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the new one's id.
    Parent(Pid),
}

/// Splits this process in two. Only for the launcher process, which has one thread.
#[expect(unsafe_code, reason = "fork has no safe form: its child may not touch what other threads held")]
pub(super) fn fork() -> io::Result<Fork> {
    // SAFETY: the launcher process is a fresh exec, or was forked from one, and has started no thread, so that no lock can be
    // held by one that the child does not have.
    let id = unsafe { libc::fork() };
    match id {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        id => Pid::from_raw(id).map(Fork::Parent).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// Ends this process at once: what a forked process inherited is nothing that it should flush or free, which only costs time.
#[expect(unsafe_code, reason = "std knows only an exit that runs what others have registered")]
pub(super) fn exit_immediately(succeeded: bool) -> ! {
    // SAFETY: the call takes no pointer and does not return; nothing of this process is buffered.
    unsafe { libc::_exit(i32::from(!succeeded)) }
}

/// Moves this process (mounts, users) and its future children (pids) into new namespaces.
#[expect(unsafe_code, reason = "unshare can split descriptor tables between threads")]
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the descriptor table is not among the flags that the launcher uses, and it has one thread.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Has this process, which a command may have stopped, go on when the agent is gone: the kernel wakes it with a hangup.
#[expect(unsafe_code, reason = "dispositions of signals are not in rustix")]
pub(super) fn ignore_hangup() {
    // SAFETY: no handler is installed, and none was.
    let _known_signal = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Marks every descriptor but the standard three as closed on exec, whoever left it open.
#[expect(unsafe_code, reason = "close_range is not in rustix")]
pub(super) fn close_others_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    const CLOSE_ON_EXEC: libc::c_int = 4; // CLOSE_RANGE_CLOEXEC of linux/close_range.h
    // SAFETY: no descriptor is closed here, only marked; the ones in use go on working.
    let result = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, CLOSE_ON_EXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What a mount forbids; the values are those of `linux/mount.h`.
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

/// Forbids `attributes` on the mount at `path` below `place` (at `place` itself when the path is empty), and on all
/// mounts below it.
pub(super) fn set_mount(place: impl AsFd, path: &Path, attributes: MountAttributes) -> io::Result<()> {
    mount_setattr(place.as_fd(), path, libc::AT_EMPTY_PATH | libc::AT_RECURSIVE, attributes)
}

/// The same for that mount alone.
pub(super) fn set_single_mount(place: impl AsFd, path: &Path, attributes: MountAttributes) -> io::Result<()> {
    mount_setattr(place.as_fd(), path, libc::AT_EMPTY_PATH, attributes)
}

#[expect(unsafe_code, reason = "mount_setattr is not in rustix")]
fn mount_setattr(
    place: BorrowedFd<'_>,
    path: &Path,
    flags: libc::c_int,
    attributes: MountAttributes,
) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_encoded_bytes())?;
    let wanted = libc::mount_attr { attr_set: attributes.0, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is terminated and the structure lives until the call returns; the kernel only reads them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            place.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const wanted,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings up the loopback device of this process's network, so that the tests of a program can talk to its servers.
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
