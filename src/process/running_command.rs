//! A started child, with or without a guard: waits for its end, or ends it with its whole tree.

use super::command::ExitReason;
use super::command_registry::Registration;
use super::fd_passing;
use super::fork_server::Guard;
use super::launch_protocol::LaunchReply;
use super::protected::{self, ActiveCommand, ProtectedChange};
use agent_fetch::command_proxy::{CommandProxy, ProxyTask};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;

/// Time to wait for killed processes to disappear.
const KILLED_GRACE: Duration = Duration::from_secs(1);

/// Reasons why a launcher process did not report the end of the command.
pub(super) enum GuardError {
    /// The kernel refused the confinement or the namespaces. Nothing was started.
    Refused(io::Error),
    /// The launcher process could not start the command.
    Failed(io::Error),
    /// The launcher process was killed.
    Killed,
}

impl From<io::Error> for GuardError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// Process that was started.
pub(super) enum RootProcess {
    /// The command itself.
    Command(Child),
    /// Guard that starts the command, with the request for it.
    Guard {
        guard: Guard,
        control: UnixStream,
        request: Vec<u8>,
        active: Option<ActiveCommand>,
        /// Serves the listener that the guard sends first.
        proxy: Option<CommandProxy>,
    },
}

/// Started child with its process tree. Dropping it ends the tree.
pub(super) struct RunningCommand {
    pub(super) main: RootProcess,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
    pub(super) reply: Vec<u8>,
    pub(super) running: Registration,
    pub(super) grace: Duration,
    /// Serves the listener in the network of this command.
    pub(super) served: Option<ProxyTask>,
}

impl RunningCommand {
    /// Waits until the command has ended by itself and its tree is gone.
    pub(super) async fn wait(&mut self) -> Result<ExitReason, GuardError> {
        use std::os::unix::process::ExitStatusExt;
        let (control, request, proxy) = match &mut self.main {
            RootProcess::Guard { control, request, proxy, .. } => {
                (control, std::mem::take(request), proxy.take())
            }
            RootProcess::Command(child) => {
                let status = child.wait().await?;
                return Ok(status
                    .signal()
                    .map_or_else(|| ExitReason::Code(status.code().unwrap_or(0)), ExitReason::Signal));
            }
        };
        let sent = control.write_all(&request).await;
        if let Some(proxy) = proxy {
            match receive_listener(control).await? {
                ListenerReply::Listener(listener) => self.served = Some(proxy.serve(listener.into())?),
                ListenerReply::None(start) => self.reply.extend(start),
            }
        }
        // The first reply counts. The end of the stream means that launcher and init are gone.
        listen(control, &mut self.reply).await?;
        match LaunchReply::decode(&self.reply) {
            Some(LaunchReply::Exited(code)) => Ok(ExitReason::Code(code)),
            Some(LaunchReply::Left { code, .. }) => Ok(ExitReason::Code(code.into())),
            Some(LaunchReply::Signalled(signal)) => Ok(ExitReason::Signal(signal)),
            Some(LaunchReply::Exceeded(excess)) => Ok(ExitReason::Exceeded(excess)),
            Some(LaunchReply::NotStarted(errno)) => Err(io::Error::from_raw_os_error(errno).into()),
            Some(LaunchReply::Refused(errno)) => {
                Err(GuardError::Refused(io::Error::from_raw_os_error(errno)))
            }
            None => Err(sent.err().map_or(GuardError::Killed, GuardError::Failed)),
        }
    }

    /// Returns the number of processes that the command left running, which were ended.
    pub(super) fn left_running(&self) -> usize {
        match LaunchReply::decode(&self.reply) {
            Some(LaunchReply::Left { processes, .. }) => usize::try_from(processes).unwrap_or(0),
            _ => 0,
        }
    }

    /// Waits until the tree is gone, including processes left by a killed guard.
    async fn wait_until_gone(&mut self) {
        let _may_fail = match &mut self.main {
            RootProcess::Guard { control, .. } => listen(control, &mut self.reply).await,
            RootProcess::Command(child) => child.wait().await.map(drop),
        };
    }

    /// Takes the mark that the command is active, if protected files are checked. Returns it only once.
    pub(super) fn take_active(&mut self) -> Option<ActiveCommand> {
        match &mut self.main {
            RootProcess::Guard { active, .. } => active.take(),
            RootProcess::Command(_) => None,
        }
    }

    /// Ends the rest of the tree and waits until it is gone. Returns the protected files that were restored, or `None` if the
    /// guard was killed before its report.
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

/// What a guard sends before its reply.
enum ListenerReply {
    /// A listener in the network of the command.
    Listener(OwnedFd),
    /// No listener, because it could not be created; the first byte of the reply, if there is one.
    None(Option<u8>),
}

async fn receive_listener(control: &UnixStream) -> io::Result<ListenerReply> {
    let mut byte = [0];
    let received = control.async_io(Interest::READABLE, || fd_passing::receive(control, &mut byte)).await;
    match received {
        Ok(mut descriptors) => Ok(match descriptors.pop() {
            Some(listener) => ListenerReply::Listener(listener),
            None => ListenerReply::None(byte.first().copied()),
        }),
        // The guard was killed.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(ListenerReply::None(None)),
        Err(error) => Err(error),
    }
}

/// Reads replies of the launcher process until it is gone. If cancelled, `reply` contains the bytes read so far.
async fn listen(control: &mut UnixStream, reply: &mut Vec<u8>) -> io::Result<()> {
    while reply.len() < protected::report::MAX_BYTES && control.read_buf(reply).await? > 0 {}
    Ok(())
}
