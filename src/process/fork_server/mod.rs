//! Fork server: a launcher process that is executed once per run and forks a guard for each command.
//!
//! Executing the binary for each command would cost more than all layers of the sandbox together.
//!
//! A request is a number of eight bytes. With four descriptors it requests a guard, which the number then identifies: its
//! control socket, the standard output and error of its command, and its working directory. With one descriptor, the end of a
//! pipe, it requests a snapshot of protected files, described by JSON in the pipe, when the next guard is forked. That guard
//! and all later ones get the state of these files before its command. Without descriptors it requests that the guard is
//! killed.

#[cfg(target_os = "linux")]
pub(super) mod serve;

use super::fd_passing;
use super::launch_protocol::SnapshotRequest;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Hidden first argument that makes the binary a fork server.
pub(super) const SERVER_ARGUMENT: &str = "__fork_server";

/// Number of descriptors of a guard: control, output, error, directory.
pub(super) const GUARD_DESCRIPTORS: usize = 4;

/// Fork server of a run, started for the first guard. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ForkServer(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    process: Option<Process>,
    guards: u64,
}

/// Process that forks. Dropping it ends it but not its guards.
#[derive(Debug)]
struct Process {
    requests: UnixStream,
    child: Child,
}

/// A forked guard.
#[derive(Debug)]
pub(super) struct Guard {
    server: ForkServer,
    number: u64,
}

impl ForkServer {
    /// Starts the fork server unless it was started before.
    ///
    /// # Errors
    /// Fails if it cannot be started.
    pub(super) fn start(&self, binary: impl FnOnce() -> Command) -> io::Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.process.is_none() {
            state.process = Some(Process::start(binary())?);
        }
        Ok(())
    }

    /// Forks a new guard. If the fork server is missing or dead, `binary` starts one. With a `baseline`, a snapshot of
    /// protected files is taken before the command starts. Without, the guard uses the last snapshot.
    ///
    /// # Errors
    /// Fails if the guard cannot be started.
    pub(super) fn fork_guard(
        &self,
        binary: impl FnOnce() -> Command,
        descriptors: [BorrowedFd<'_>; GUARD_DESCRIPTORS],
        baseline: Option<&SnapshotRequest>,
    ) -> io::Result<Guard> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.guards += 1;
        let number = state.guards;
        let ask = |process: &Process| {
            baseline.map_or(Ok(()), |baseline| process.request_snapshot(number, baseline))?;
            fd_passing::send(&process.requests, &number.to_le_bytes(), &descriptors)
        };
        if state.process.as_ref().is_none_or(|process| ask(process).is_err()) {
            let process = Process::start(binary())?;
            ask(&process)?;
            state.process = Some(process);
        }
        Ok(Guard { server: self.clone(), number })
    }
}

impl Guard {
    /// Kills the guard, and with it the tree that it supervises.
    pub(super) fn kill(&self) {
        let state = self.server.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = &state.process {
            let _already_gone = fd_passing::send(&process.requests, &self.number.to_le_bytes(), &[]);
        }
    }
}

impl Process {
    fn start(mut binary: Command) -> io::Result<Self> {
        let (requests, theirs) = UnixStream::pair()?;
        binary.arg(SERVER_ARGUMENT).env_clear().current_dir("/").process_group(0);
        binary.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { requests, child: binary.spawn()? })
    }

    /// Requests a snapshot of protected files with the next guard.
    fn request_snapshot(&self, number: u64, baseline: &SnapshotRequest) -> io::Result<()> {
        let (theirs, mut ours) = io::pipe()?;
        fd_passing::send(&self.requests, &number.to_le_bytes(), &[theirs.as_fd()])?;
        drop(theirs);
        ours.write_all(&serde_json::to_vec(baseline)?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _already_gone = self.child.kill().and_then(|()| self.child.wait());
    }
}
