//! Seccomp filter that refuses system calls to a command.
//!
//! A call of another architecture ends the process, and calls of the x32 form fail with ENOSYS. So do calls whose flags are in
//! memory that a filter cannot read (`clone3`) and calls that run others (`io_uring`), so that programs fall back.

use super::View;
use super::seccomp_program::{Comparison, SeccompProgram};
use std::io;

/// Calls that change or bypass the sandbox, or open parts of the kernel that no build or test needs.
const REFUSED: &[i64] = &[
    // Mounts.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Keyrings of the user, which have no namespace.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls without which programs work.
const ABSENT: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Overrides for new namespaces, in which a process has capabilities again.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Terminal requests that insert input, or paste from the console's selection.
const TERMINAL_INPUT: [libc::Ioctl; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Socket families that only reach the command's own network and paths.
const FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Refuses these calls permanently to this process and everything that it starts.
///
/// # Errors
/// Fails if the kernel refuses the filter.
pub fn restrict(network: bool, view: View) -> io::Result<()> {
    let mut filter = SeccompProgram::new()?;
    filter.refuse(ABSENT, libc::ENOSYS)?;
    filter.refuse(REFUSED, libc::EPERM)?;
    for call in [libc::SYS_unshare, libc::SYS_clone] {
        filter.refuse_where(call, 0, &[Comparison::AnyOf(NAMESPACES.unsigned_abs())])?;
    }
    let typing = TERMINAL_INPUT.into_iter().map(|request| u32::try_from(request).map(Comparison::Equal));
    let typing = typing.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    filter.refuse_where(libc::SYS_ioctl, 1, &typing)?;
    if view == View::Shared {
        // Otherwise a command could change the limits of its user's other processes, including the launcher.
        filter.refuse_unless(libc::SYS_prlimit64, 0, &[Comparison::Equal(0)])?;
    }
    // Without a separate network, refusing sockets is the only protection of the host's network. The filter cannot distinguish
    // the paths of Unix sockets, so these are refused too.
    if view == View::Shared && !network {
        filter.refuse(&[libc::SYS_socket], libc::EPERM)?;
    } else {
        filter.refuse_unless(
            libc::SYS_socket,
            0,
            &FAMILIES.map(|family| Comparison::Equal(family.unsigned_abs())),
        )?;
    }
    filter.install()
}
