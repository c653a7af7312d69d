//! Main loop of the fork server: waits for requests and for the end of its guards.

use super::GUARD_DESCRIPTORS;
use crate::code_pages::unmap_code;
use crate::fd_passing;
use crate::launch_protocol::LaunchReply;
use crate::pids_cgroup::PidsCgroup;
use crate::process_tree;
use crate::protected::{GuardSnapshot, SharedSnapshotJob};
use crate::syscalls::{self, Fork};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Guards that are not reaped yet, by number.
type Guards = BTreeMap<u64, GuardProcess>;

/// The fork server's handle of a guard.
struct GuardProcess {
    pid: Pid,
    /// Descriptor that signals the guard's end, if the kernel supports pidfds.
    end: Option<OwnedFd>,
    /// Kept open so that the agent waits for this process when the guard was killed and its tree must still be ended. `None`
    /// without a pidfd, because the guard's end is then not signalled.
    _control: Option<File>,
}

/// Input of a guard: its control socket, and the snapshot of protected files from before the first of the commands that run
/// concurrently. `None` if there is no snapshot.
pub type GuardStart = (File, Option<GuardSnapshot>);

/// Serves requests until the agent closes `requests`. Returns in each guard with its input, and finally in the server with
/// `None`. A guard must close `requests`.
///
/// # Errors
/// Fails in a guard that cannot initialise.
pub fn serve(requests: &OwnedFd) -> io::Result<Option<GuardStart>> {
    syscalls::ignore_hangup();
    // The children of a killed guard become children of this process.
    let _always_supported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
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
        let [control, stdout, stderr, cwd] = match <[OwnedFd; GUARD_DESCRIPTORS]>::try_from(descriptors) {
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
                // Taking the snapshot is slow, and the guard, which has other work to do meanwhile, may be waiting for this
                // processor.
                std::thread::yield_now();
                baseline = due.take().map(SharedSnapshotJob::of_server).or(baseline);
                unmap_code();
            }
            Ok(Fork::Child) => {
                guards.clear();
                become_guard(&control, &stdout, &stderr, &cwd)
                    .inspect_err(|error| not_started(error, &mut control))?;
                let snapshot = due.map(SharedSnapshotJob::of_guard).or(baseline.map(GuardSnapshot::Taken));
                return Ok(Some((control, snapshot)));
            }
            Err(error) => not_started(&error, &mut control),
        }
    }
}

/// Continues a guard that its command stopped, so that it detects the agent's end. The kernel continues processes that are
/// stopped when this process ends. SIGCONT also cancels a stop signal that is still pending.
fn send_continue(guard: &GuardProcess) {
    let _already_gone = rustix::process::kill_process(guard.pid, Signal::CONT);
}

fn kill(guard: Option<&GuardProcess>) {
    if let Some(guard) = guard {
        let _already_gone = rustix::process::kill_process(guard.pid, Signal::KILL);
    }
}

/// Waits for the next request and reaps guards meanwhile.
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

/// Reaps the guards that have ended, and ends the trees of those that were killed before the agent is notified of their end.
fn reap(guards: &mut Guards) {
    let mut killed = Vec::new();
    let ended = guards.extract_if(.., |_, guard| {
        let ended = rustix::process::waitpid(Some(guard.pid), WaitOptions::NOHANG);
        killed.extend(matches!(&ended, Ok(Some((_, status))) if status.signaled()).then_some(guard.pid));
        !matches!(ended, Ok(None))
    });
    let _closed_at_the_end: Vec<GuardProcess> = ended.map(|(_, guard)| guard).collect();
    if !killed.is_empty() {
        process_tree::sweep_others(&guards.values().map(|guard| guard.pid.as_raw_nonzero().get()).collect());
        killed.into_iter().for_each(PidsCgroup::remove_of);
    }
}

/// Gives this process the state of a freshly started launcher.
fn become_guard(control: &File, stdout: &OwnedFd, stderr: &OwnedFd, cwd: &OwnedFd) -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    rustix::process::fchdir(cwd)?;
    rustix::stdio::dup2_stdin(control)?;
    rustix::stdio::dup2_stdout(stdout)?;
    Ok(rustix::stdio::dup2_stderr(stderr)?)
}

fn not_started(error: &io::Error, control: &mut File) {
    LaunchReply::not_started(error).send(control);
}
