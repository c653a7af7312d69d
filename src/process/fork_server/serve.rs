//! The process that forks: waits for requests, and for the guards that it made.

use super::DESCRIPTORS;
use crate::process::descriptors;
use crate::process::order::Answer;
use crate::process::system::{self, Fork};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// The guards that are not reaped yet, by number, and what tells that one has ended, where the kernel has such a thing.
type Guards = BTreeMap<u64, (Pid, Option<OwnedFd>)>;

/// Serves until nobody wants guards any more. Returns in each guard, with its control socket, and at last in the server,
/// without. A guard must close `requests`.
///
/// # Errors
/// In a guard that cannot take its place.
pub fn serve(requests: &OwnedFd) -> io::Result<Option<File>> {
    let mut guards = Guards::new();
    loop {
        await_request(requests, &mut guards);
        let mut number = [0; size_of::<u64>()];
        let Ok(descriptors) = descriptors::receive(requests, &mut number) else { return Ok(None) };
        let number = u64::from_le_bytes(number);
        let Ok(descriptors) = <[OwnedFd; DESCRIPTORS]>::try_from(descriptors) else {
            if let Some((pid, _)) = guards.get(&number) {
                let _already_gone = rustix::process::kill_process(*pid, Signal::KILL);
            }
            continue;
        };
        let [control, stdout, stderr, place] = descriptors;
        let mut control = File::from(control);
        match system::fork() {
            Ok(Fork::Parent(pid)) => {
                let end = rustix::process::pidfd_open(pid, PidfdFlags::empty());
                guards.insert(number, (pid, end.ok()));
            }
            Ok(Fork::Child) => {
                take_place(&control, &stdout, &stderr, &place)
                    .inspect_err(|error| not_started(error, &mut control))?;
                return Ok(Some(control));
            }
            Err(error) => not_started(&error, &mut control),
        }
    }
}

/// Waits for the next request, and reaps guards meanwhile.
fn await_request(requests: &OwnedFd, guards: &mut Guards) {
    loop {
        let ends = guards.values().filter_map(|(_, end)| end.as_ref());
        let mut watched: Vec<PollFd<'_>> =
            std::iter::once(requests).chain(ends).map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let _interrupted = rustix::event::poll(&mut watched, None);
        let wanted = watched.first().is_some_and(|requests| !requests.revents().is_empty());
        guards.retain(|_, (pid, _)| {
            matches!(rustix::process::waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None))
        });
        if wanted {
            return;
        }
    }
}

/// Makes this process what a freshly started launcher is.
fn take_place(control: &File, stdout: &OwnedFd, stderr: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    rustix::process::setpgid(None, None)?;
    rustix::process::fchdir(place)?;
    rustix::stdio::dup2_stdin(control)?;
    rustix::stdio::dup2_stdout(stdout)?;
    Ok(rustix::stdio::dup2_stderr(stderr)?)
}

fn not_started(error: &io::Error, control: &mut File) {
    Answer::NotStarted(error.raw_os_error().unwrap_or(0)).send(control);
}
