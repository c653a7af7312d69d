//! Watches a command's process tree until it ends, exceeds a limit, or the agent closes the connection.

use super::launch_protocol::LaunchReply;
use super::limits::{ExceededLimit, LimitMonitor, LimitStatus, Usage};
use super::process_tree;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// Maximum time between two checks of the tree, in which the guard also reaps orphans.
const REAP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Interval while a tree is close to a limit, while the kernel does not limit its processes, or without a pidfd, because the
/// command's end is then found by polling.
const SHORT_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Maximum number of short intervals between two checks of a tree that is far from its limits.
const INTERVALS_PER_CHECK: u32 = 25;

/// Reason why the guard stopped watching.
pub(super) enum WatchOutcome {
    /// The command has ended by itself.
    Ended(WaitStatus),
    /// The command has ended, and nothing is left of it except process 1 of its namespace, which is about to end.
    Alone,
    /// The agent closed the connection or is dead.
    Abandoned,
    /// The tree exceeds a limit.
    Exceeded(ExceededLimit),
}

/// What the watched child is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The command.
    Command,
    /// The parent of the command, whose end would kill it: process 1 of its namespace, or bubblewrap.
    Wrapper,
}

/// Watches `child` and its descendants and reaps orphans, until it has ended or the descriptor `alone` is readable. Sends the
/// processes of the command SIGTERM when the agent requests it.
pub(super) fn watch(
    control: &mut File,
    child: Pid,
    role: Role,
    alone: Option<BorrowedFd<'_>>,
    monitor: &LimitMonitor,
) -> WatchOutcome {
    let pidfd = rustix::process::pidfd_open(child, PidfdFlags::empty()).ok();
    let needs_short = pidfd.is_none() || !monitor.process_limit.is_exact();
    let mut interval = if needs_short { SHORT_INTERVAL } else { REAP_INTERVAL };
    let mut passed = 0;
    let mut is_near = false;
    loop {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == child {
                return WatchOutcome::Ended(status);
            }
        }
        let descriptors = alone.into_iter().chain([control.as_fd()]).chain(pidfd.iter().map(AsFd::as_fd));
        let mut watched: Vec<PollFd<'_>> =
            descriptors.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let woken = rustix::event::poll(&mut watched, Some(&interval));
        let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
        if alone.is_some() && ready.next() == Some(true) {
            return WatchOutcome::Alone;
        }
        let ready = ready.next() == Some(true);
        drop(watched);
        if ready {
            let mut request = [0];
            match control.read(&mut request) {
                Ok(1) if request == [LaunchReply::TERMINATE] => {
                    process_tree::terminate((role == Role::Wrapper).then_some(child));
                }
                Ok(1) => {}
                _ => return WatchOutcome::Abandoned,
            }
        }
        passed += 1;
        let is_due = is_near || !needs_short || passed >= INTERVALS_PER_CHECK || monitor.may_be_near();
        if woken == Ok(0) && is_due {
            let reading = monitor.check(process_tree::usage());
            if let LimitStatus::Exceeded(excess) = reading {
                return WatchOutcome::Exceeded(excess);
            }
            (passed, is_near) = (0, reading == LimitStatus::Near);
            interval = if needs_short || is_near { SHORT_INTERVAL } else { REAP_INTERVAL };
        }
    }
}

/// Builds the reply for a command that has ended by itself. If it failed while the kernel refused it processes, that is
/// reported as the reason, because most programs and some shells do not retry.
pub(super) fn reply_for(status: WaitStatus, monitor: &LimitMonitor) -> LaunchReply {
    if let Some(signal) = status.terminating_signal() {
        return LaunchReply::Signalled(signal);
    }
    let code = status.exit_status().unwrap_or(0);
    let is_full = || {
        let usage = process_tree::usage();
        let with_it_and_init = Usage { tasks: usage.tasks.saturating_add(2), ..usage };
        monitor.check(with_it_and_init) == LimitStatus::Exceeded(ExceededLimit::Processes)
    };
    let is_refused = code != 0 && monitor.process_limit.is_exact() && is_full();
    match (is_refused, process_tree::running_orphans(), u8::try_from(code)) {
        (true, ..) => LaunchReply::Exceeded(ExceededLimit::Processes),
        (false, processes @ 1.., Ok(code)) => LaunchReply::Left { code, processes },
        _ => LaunchReply::Exited(code),
    }
}
