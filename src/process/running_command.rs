//! A child that was started, by a guard or without one: waits for its end, or ends it with everything below it.

use super::command::ExitReason;
use super::command_registry::Registration;
use super::fork_server::Guard;
use super::launch_protocol::LaunchReply;
use super::protected::{self, ActiveCommand, ProtectedChange};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;

/// How long what was killed may stay before nobody waits for it any longer.
const KILLED_GRACE: Duration = Duration::from_secs(1);

/// Why a launcher process did not say how the command ended.
pub(super) enum GuardError {
    /// The kernel refused what confines or holds the command; nothing was started.
    Refused(io::Error),
    /// It could not start the command.
    Failed(io::Error),
    /// Something killed it.
    Killed,
}

impl From<io::Error> for GuardError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What was started.
pub(super) enum RootProcess {
    /// The command itself.
    Command(Child),
    /// A guard that starts it, and the request that it waits for.
    Guard { guard: Guard, control: UnixStream, request: Vec<u8>, active: Option<ActiveCommand> },
}

/// A started child with everything below it; dropping it ends them.
pub(super) struct RunningCommand {
    pub(super) main: RootProcess,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
    pub(super) reply: Vec<u8>,
    pub(super) running: Registration,
    pub(super) grace: Duration,
}

impl RunningCommand {
    /// Waits until the command has ended by itself and its tree is gone.
    pub(super) async fn wait(&mut self) -> Result<ExitReason, GuardError> {
        use std::os::unix::process::ExitStatusExt;
        let (control, request) = match &mut self.main {
            RootProcess::Guard { control, request, .. } => (control, std::mem::take(request)),
            RootProcess::Command(child) => {
                let status = child.wait().await?;
                return Ok(status
                    .signal()
                    .map_or_else(|| ExitReason::Code(status.code().unwrap_or(0)), ExitReason::Signal));
            }
        };
        let sent = control.write_all(&request).await;
        // The first answer counts; the end of the stream says that launcher and init are gone.
        listen(control, &mut self.reply).await?;
        match LaunchReply::decode(&self.reply) {
            Some(LaunchReply::Exited(code)) => Ok(ExitReason::Code(code)),
            Some(LaunchReply::Signalled(signal)) => Ok(ExitReason::Signal(signal)),
            Some(LaunchReply::Exceeded(excess)) => Ok(ExitReason::Exceeded(excess)),
            Some(LaunchReply::NotStarted(errno)) => Err(io::Error::from_raw_os_error(errno).into()),
            Some(LaunchReply::Refused(errno)) => {
                Err(GuardError::Refused(io::Error::from_raw_os_error(errno)))
            }
            None => Err(sent.err().map_or(GuardError::Killed, GuardError::Failed)),
        }
    }

    /// Waits until the tree is gone, and what its guard left when something killed it.
    async fn wait_until_gone(&mut self) {
        let _broken_off = match &mut self.main {
            RootProcess::Guard { control, .. } => listen(control, &mut self.reply).await,
            RootProcess::Command(child) => child.wait().await.map(drop),
        };
    }

    /// What says that it runs, where protected files are looked at; once.
    pub(super) fn take_active(&mut self) -> Option<ActiveCommand> {
        match &mut self.main {
            RootProcess::Guard { active, .. } => active.take(),
            RootProcess::Command(_) => None,
        }
    }

    /// Ends what is left of the tree and waits until it is gone. The protected files that were put back; `None` when its guard
    /// was killed and has not reported.
    pub(super) async fn end(&mut self) -> Option<Vec<ProtectedChange>> {
        self.running.end();
        if tokio::time::timeout(self.grace, self.wait_until_gone()).await.is_err() {
            match &mut self.main {
                RootProcess::Guard { guard, .. } => guard.kill(),
                RootProcess::Command(child) => drop(child.start_kill()),
            }
            let _stuck_in_the_kernel = tokio::time::timeout(KILLED_GRACE, self.wait_until_gone()).await;
        }
        let never_ran = matches!(&self.main, RootProcess::Guard { request, .. } if !request.is_empty())
            || matches!(LaunchReply::decode(&self.reply), Some(LaunchReply::Refused(_)));
        let reported = protected::report::decode(&self.reply, LaunchReply::BYTES);
        if never_ran { Some(reported.unwrap_or_default()) } else { reported }
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.running.end();
    }
}

/// Reads what the launcher process says until it is gone. What was read when this is broken off is in `reply`.
async fn listen(control: &mut UnixStream, reply: &mut Vec<u8>) -> io::Result<()> {
    while reply.len() < protected::report::MAX_BYTES && control.read_buf(reply).await? > 0 {}
    Ok(())
}
