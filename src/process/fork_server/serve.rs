//! The process that forks: waits for requests, and for the guards that it made.

use super::GUARD_DESCRIPTORS;
use crate::process::fd_passing;
use crate::process::launch_protocol::LaunchReply;
use crate::process::pids_cgroup::PidsCgroup;
use crate::process::process_tree;
use crate::process::protected::{GuardSnapshot, SharedSnapshotJob};
use crate::process::syscalls::{self, Fork};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// The guards that are not reaped yet, by number.
type Guards = BTreeMap<u64, GuardProcess>;

/// A guard, from outside.
struct GuardProcess {
    pid: Pid,
    /// What tells that it has ended, where the kernel has such a thing.
    end: Option<OwnedFd>,
    /// Held open so that the agent waits for us when the guard was killed and could not end what it held together; not
    /// where its end is not told to us.
    _control: Option<File>,
}

/// What a guard begins with: its control socket, and how the protected files were before the first of the commands that run at
/// the same time; nothing where nobody knows.
pub type GuardStart = (File, Option<GuardSnapshot>);

/// Serves until nobody wants guards any more. Returns in each guard, and at last in the server, without anything. A guard
/// must close `requests`.
///
/// # Errors
/// In a guard that cannot take its place.
pub fn serve(requests: &OwnedFd) -> io::Result<Option<GuardStart>> {
    syscalls::ignore_hangup();
    // What a killed guard leaves comes to us.
    let _every_kernel_can = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut guards = Guards::new();
    let (mut due, mut baseline) = (None, None);
    loop {
        await_request(requests, &mut guards);
        let mut number = [0; size_of::<u64>()];
        let Ok(descriptors) = fd_passing::receive(requests, &mut number) else {
            guards.values().for_each(send_continue);
            return Ok(None);
        };
        let number = u64::from_le_bytes(number);
        let [control, stdout, stderr, place] = match <[OwnedFd; GUARD_DESCRIPTORS]>::try_from(descriptors) {
            Ok(descriptors) => descriptors,
            Err(mut other) => {
                match other.pop() {
                    Some(pipe) => (due, baseline) = (SharedSnapshotJob::read(pipe), None),
                    None => kill(guards.get(&number)),
                }
                continue;
            }
        };
        let mut control = File::from(control);
        match syscalls::fork() {
            Ok(Fork::Parent(pid)) => {
                let end = rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok();
                let control = end.is_some().then_some(control);
                guards.insert(number, GuardProcess { pid, end, _control: control });
                // The look takes a while, and the guard has everything else to do meanwhile: it may be waiting for this processor.
                std::thread::yield_now();
                baseline = due.take().map(SharedSnapshotJob::of_server).or(baseline);
            }
            Ok(Fork::Child) => {
                guards.clear();
                become_guard(&control, &stdout, &stderr, &place)
                    .inspect_err(|error| not_started(error, &mut control))?;
                let snapshot = due.map(SharedSnapshotJob::of_guard).or(baseline.map(GuardSnapshot::Taken));
                return Ok(Some((control, snapshot)));
            }
            Err(error) => not_started(&error, &mut control),
        }
    }
}

/// Lets a guard that its command stopped see that the agent is gone. The kernel does that for those that have stopped when we
/// end; one whose stop is still on its way would stop for good, which this takes back too.
fn send_continue(guard: &GuardProcess) {
    let _already_gone = rustix::process::kill_process(guard.pid, Signal::CONT);
}

fn kill(guard: Option<&GuardProcess>) {
    if let Some(guard) = guard {
        let _already_gone = rustix::process::kill_process(guard.pid, Signal::KILL);
    }
}

/// Waits for the next request, and reaps guards meanwhile.
fn await_request(requests: &OwnedFd, guards: &mut Guards) {
    loop {
        let ends = guards.values().filter_map(|guard| guard.end.as_ref());
        let mut watched: Vec<PollFd<'_>> =
            std::iter::once(requests).chain(ends).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let _interrupted = rustix::event::poll(&mut watched, None);
        let wanted = watched.first().is_some_and(|requests| !requests.revents().is_empty());
        reap(guards);
        if wanted {
            return;
        }
    }
}

/// Reaps the guards that have ended, and ends what those left that were killed, before the agent is told that they are gone.
fn reap(guards: &mut Guards) {
    let mut killed = Vec::new();
    let ended = guards.extract_if(.., |_, guard| {
        let ended = rustix::process::waitpid(Some(guard.pid), WaitOptions::NOHANG);
        killed.extend(matches!(&ended, Ok(Some((_, status))) if status.signaled()).then_some(guard.pid));
        !matches!(ended, Ok(None))
    });
    let _told_when_all_is_done: Vec<GuardProcess> = ended.map(|(_, guard)| guard).collect();
    if !killed.is_empty() {
        process_tree::sweep_others(&guards.values().map(|guard| guard.pid.as_raw_nonzero().get()).collect());
        killed.into_iter().for_each(PidsCgroup::remove_of);
    }
}

/// Makes this process what a freshly started launcher is.
fn become_guard(control: &File, stdout: &OwnedFd, stderr: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    rustix::process::fchdir(place)?;
    rustix::stdio::dup2_stdin(control)?;
    rustix::stdio::dup2_stdout(stdout)?;
    Ok(rustix::stdio::dup2_stderr(stderr)?)
}

fn not_started(error: &io::Error, control: &mut File) {
    LaunchReply::not_started(error).send(control);
}
