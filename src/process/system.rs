//! The system calls that have no safe form: `fork`, `unshare` and `close_range`, for the launcher process only.

use rustix::process::Pid;
use rustix::thread::UnshareFlags;
use std::io;

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
    // SAFETY: the launcher process is a fresh exec that has started no thread, so that no lock can be held by one
    // that the child does not have.
    let id = unsafe { libc::fork() };
    match id {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        id => Pid::from_raw(id).map(Fork::Parent).ok_or_else(|| io::Error::other("fork gave no process id")),
    }
}

/// Moves this process (mounts, users) and its future children (pids) into new namespaces.
#[expect(unsafe_code, reason = "unshare can split descriptor tables between threads")]
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: the descriptor table is not among the flags that the launcher uses, and it has one thread.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
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
