//! Watches a command and what it started until it has ended, takes too much, or nobody wants it any more.

use super::launch_protocol::LaunchReply;
use super::limits::{ExceededLimit, LimitMonitor, LimitStatus, Usage};
use super::process_tree;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};

/// How long the guard sleeps at most before it reaps orphans that were given to it and looks at the tree.
const REAP_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// The same while a tree is close to a limit, where the kernel does not hold the number of its processes, and where it has no
/// pidfd, so that the end of the command itself is noticed by it.
const SHORT_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// How many of the short intervals pass at most between two looks at a tree that is far from its limits.
const INTERVALS_PER_LOOK: u32 = 25;

/// Why the guard no longer watches.
pub(super) enum WatchOutcome {
    /// The command has ended by itself.
    Ended(WaitStatus),
    /// It has, and but for process 1 of its namespace, which is about to end, nothing is left of it.
    Alone,
    /// The agent wants it dead, or is dead itself.
    Abandoned,
    /// Its tree takes too much.
    Exceeded(ExceededLimit),
}

/// Watches `child` and what it started, reaping orphans meanwhile, until it has ended or, where it can tell that, is `alone`.
pub(super) fn watch(
    control: &mut File,
    child: Pid,
    alone: Option<BorrowedFd<'_>>,
    gauge: &LimitMonitor,
) -> WatchOutcome {
    let pidfd = rustix::process::pidfd_open(child, PidfdFlags::empty()).ok();
    let needs_short = pidfd.is_none() || !gauge.process_limit.is_exact();
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
        let mut told = watched.iter().map(|fd| !fd.revents().is_empty());
        if alone.is_some() && told.next() == Some(true) {
            return WatchOutcome::Alone;
        }
        let told = told.next() == Some(true);
        drop(watched);
        if told && !matches!(control.read(&mut [0; 1]), Ok(1)) {
            return WatchOutcome::Abandoned;
        }
        passed += 1;
        let is_due = is_near || !needs_short || passed >= INTERVALS_PER_LOOK || gauge.may_be_near();
        if woken == Ok(0) && is_due {
            let reading = gauge.check(process_tree::usage());
            if let LimitStatus::Exceeded(excess) = reading {
                return WatchOutcome::Exceeded(excess);
            }
            (passed, is_near) = (0, reading == LimitStatus::Near);
            interval = if needs_short || is_near { SHORT_INTERVAL } else { REAP_INTERVAL };
        }
    }
}

/// The answer for a command that has ended by itself. One that failed while the kernel refused it more processes has failed
/// for that reason: most programs, and some shells, do not try again.
pub(super) fn reply_for(status: WaitStatus, gauge: &LimitMonitor) -> LaunchReply {
    if let Some(signal) = status.terminating_signal() {
        return LaunchReply::Signalled(signal);
    }
    let code = status.exit_status().unwrap_or(0);
    let is_full = || {
        let usage = process_tree::usage();
        let with_it_and_init = Usage { tasks: usage.tasks.saturating_add(2), ..usage };
        gauge.check(with_it_and_init) == LimitStatus::Exceeded(ExceededLimit::Processes)
    };
    let is_refused = code != 0 && gauge.process_limit.is_exact() && is_full();
    if is_refused { LaunchReply::Exceeded(ExceededLimit::Processes) } else { LaunchReply::Exited(code) }
}
