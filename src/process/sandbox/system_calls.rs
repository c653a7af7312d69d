//! Which system calls a command may not make, as a filter in the kernel.
//!
//! Calls of another architecture end the process, because the same numbers mean other calls there; the x32 form of each
//! call is refused with it. What has no flags to look at without memory (`clone3`), and what runs other calls for its
//! caller (`io_uring`), does not exist, so that programs do without it.

use super::View;
use rustix::process::Pid;
use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// What is refused of each call by its number: any of the rules, or always where there is none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The bit that marks a call as one of the x32 form (`__X32_SYSCALL_BIT` of the kernel's headers).
const X32: i64 = 0x4000_0000;

/// Calls that change what the walls are made of, reach around them, or open parts of the kernel that no build or test
/// needs.
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
    // Keys of the user, which belong to no namespace.
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

/// Calls that programs know how to do without.
const ABSENT: &[i64] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// New namespaces, in which a process has rights again.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests to a terminal that type into it, or paste from its console's selection.
const TERMINAL_INPUT: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Requests that say who is sent a signal when something happens to a file, in memory that a filter does not read.
const OWNERS: &[u64] = &[0x8901, 0x8902]; // FIOSETOWN and SIOCSPGRP of asm-generic/sockios.h

/// The same of `fcntl`, from asm-generic/fcntl.h.
const F_SETOWN_EX: libc::c_int = 15;

/// Refuses those calls to this process and all it will start, for good.
///
/// # Errors
/// When the kernel takes no filter.
pub fn restrict(network: bool, view: View) -> io::Result<()> {
    let always = |calls: &[i64]| calls.iter().map(|call| (*call, Vec::new())).collect::<Rules>();
    let mut refused = conditional(network, view).map_err(io::Error::other)?;
    refused.extend(always(REFUSED));
    install(refused, libc::EPERM)?;
    install(always(ABSENT), libc::ENOSYS)
}

/// Calls that are refused depending on what they ask for.
fn conditional(network: bool, view: View) -> Result<Rules, BackendError> {
    let namespaces = NAMESPACES.iter().map(|flag| {
        let flag = u64::from(flag.unsigned_abs());
        rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    let namespaces = namespaces.collect::<Result<Vec<_>, _>>()?;
    let typing = TERMINAL_INPUT.iter().map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]));
    let mut rules = BTreeMap::from([
        (libc::SYS_unshare, namespaces.clone()),
        (libc::SYS_clone, namespaces),
        (libc::SYS_ioctl, typing.collect::<Result<_, _>>()?),
    ]);
    if view == View::Shared {
        // No rule keeps a command from the limits of other processes of its user, the launcher's among them.
        rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, SeccompCmpOp::Ne, 0)])?]);
    }
    // Without a network of its own the command's only wall against ours is that it gets no socket; paths of sockets of
    // this machine cannot be told apart here either.
    let families: &[libc::c_int] = match view {
        View::Shared if !network => &[],
        View::Own | View::Shared => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let others: Vec<_> =
        families.iter().map(|family| (0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()))).collect();
    rules.insert(libc::SYS_socket, if others.is_empty() { Vec::new() } else { vec![rule(&others)?] });
    Ok(rules)
}

/// Makes `spared`, and the groups that they are in, unreachable for signals of this process and all it will start, as if
/// they were not there. Landlock does that for every process outside, but not before its version 6 (Linux 6.12).
///
/// # Errors
/// When the kernel takes no filter.
pub fn spare(spared: &[Pid]) -> io::Result<()> {
    let number = |id: i32| u64::from(id.cast_unsigned());
    let processes: Vec<u64> = spared.iter().map(|pid| number(pid.as_raw_nonzero().get())).collect();
    // A negative number is a group, and -1 everything.
    let mut all = vec![number(-1)];
    for pid in spared {
        all.push(number(-rustix::process::getpgid(Some(*pid))?.as_raw_nonzero().get()));
    }
    all.extend(&processes);
    install(signals_to(&processes, &all).map_err(io::Error::other)?, libc::ESRCH)
}

/// What would send a signal to one of `processes`, or to one of `all`, where groups can be named.
fn signals_to(processes: &[u64], all: &[u64]) -> Result<Rules, BackendError> {
    let equal = |argument: u8, values: &[u64]| -> Result<Vec<SeccompRule>, BackendError> {
        values.iter().map(|value| rule(&[(argument, SeccompCmpOp::Eq, *value)])).collect()
    };
    let thread = [equal(0, processes)?, equal(1, processes)?].concat();
    let command = |command: libc::c_int| (1, SeccompCmpOp::Eq, u64::from(command.unsigned_abs()));
    let owner = all.iter().map(|id| rule(&[command(libc::F_SETOWN), (2, SeccompCmpOp::Eq, *id)]));
    let owner = owner.chain([rule(&[command(F_SETOWN_EX)])]).collect::<Result<_, _>>()?;
    Ok(BTreeMap::from([
        (libc::SYS_kill, equal(0, all)?),
        (libc::SYS_tkill, equal(0, processes)?),
        (libc::SYS_tgkill, thread.clone()),
        (libc::SYS_rt_sigqueueinfo, equal(0, processes)?),
        (libc::SYS_rt_tgsigqueueinfo, thread),
        (libc::SYS_pidfd_open, equal(0, processes)?),
        // It takes a directory of `/proc` too.
        (libc::SYS_pidfd_send_signal, Vec::new()),
        (libc::SYS_fcntl, owner),
        (libc::SYS_ioctl, equal(1, OWNERS)?),
    ]))
}

/// All of `conditions` (argument, comparison, value), each on the lower half, which is all that the kernel reads.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(argument, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Adds a filter that answers the calls of `rules` with `errno`.
fn install(mut rules: Rules, errno: libc::c_int) -> io::Result<()> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> = rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(x32);
    }
    let program = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno.unsigned_abs()),
        std::env::consts::ARCH.try_into().map_err(io::Error::other)?,
    );
    let program: seccompiler::BpfProgram = program.and_then(TryInto::try_into).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
