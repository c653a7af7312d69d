//! Seccomp filter that protects the supervising processes from signals of a command, for kernels whose Landlock does not.
//!
//! It is separate from that of [`super::seccomp`] because it compares several arguments of a call. The other filter also
//! applies and refuses calls of other forms and architectures.

use rustix::process::Pid;
use seccompiler::{
    BackendError, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Rules by call number. A call without conditions always matches.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Requests that set the receiver of a file's signals through memory, which a filter cannot read.
const OWNER_REQUESTS: &[u64] = &[0x8901, 0x8902]; // FIOSETOWN and SIOCSPGRP of asm-generic/sockios.h

/// The same request of `fcntl`, from asm-generic/fcntl.h.
const F_SETOWN_EX: libc::c_int = 15;

/// Refuses signals from this process and everything that it starts to `spared` and their groups, as if they did not exist.
/// Landlock does that for all outside processes since its version 6 (Linux 6.12).
///
/// # Errors
/// Fails if the kernel refuses the filter.
pub fn refuse_signals_to(spared: &[Pid]) -> io::Result<()> {
    let number = |id: i32| u64::from(id.cast_unsigned());
    let processes: Vec<u64> = spared.iter().map(|pid| number(pid.as_raw_nonzero().get())).collect();
    // A negative number is a group, and -1 all processes.
    let mut all = vec![number(-1)];
    for pid in spared {
        all.push(number(-rustix::process::getpgid(Some(*pid))?.as_raw_nonzero().get()));
    }
    all.extend(&processes);
    install(signals_to(&processes, &all).map_err(io::Error::other)?, libc::ESRCH)
}

/// Returns rules for calls that signal one of `processes`, or one of `all` if groups are possible.
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
        // It also takes a directory of `/proc`.
        (libc::SYS_pidfd_send_signal, Vec::new()),
        (libc::SYS_fcntl, owner),
        (libc::SYS_ioctl, equal(1, OWNER_REQUESTS)?),
    ]))
}

/// Builds a rule that matches if all `conditions` (argument, comparison, value) match. Compares lower halves, which are all
/// that the kernel reads.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let condition = |(argument, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    SeccompRule::new(conditions.iter().map(condition).collect::<Result<_, _>>()?)
}

/// Installs a filter that refuses the calls of `rules` with `errno`.
fn install(rules: Rules, errno: libc::c_int) -> io::Result<()> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, arch).map_err(io::Error::other)?;
    let program: seccompiler::BpfProgram = filter.try_into().map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}
