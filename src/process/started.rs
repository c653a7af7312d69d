//! A child that was started, by a guard or without one: waits for its end, or ends it with everything below it.

use super::child::Ended;
use super::fork_server::Guard;
use super::order::Answer;
use super::protected::{self, Begun, Disturbance};
use super::running::Registration;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::Child;

/// How long what was killed may stay before nobody waits for it any longer.
const KILLED_GRACE: Duration = Duration::from_secs(1);

/// Why a launcher process did not say how the command ended.
pub(super) enum NoAnswer {
    /// The kernel refused what confines or holds the command; nothing was started.
    Refused(io::Error),
    /// It could not start the command.
    Failed(io::Error),
    /// Something killed it.
    Killed,
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// What was started.
pub(super) enum Main {
    /// The command itself.
    Command(Child),
    /// A guard that starts it, and the order that it waits for.
    Guard { guard: Guard, control: UnixStream, order: Vec<u8>, begun: Option<Begun> },
}

/// A started child with everything below it; dropping it ends them.
pub(super) struct Tree {
    pub(super) main: Main,
    pub(super) stdout: Option<pipe::Receiver>,
    pub(super) stderr: Option<pipe::Receiver>,
    pub(super) reply: Vec<u8>,
    pub(super) running: Registration,
    pub(super) grace: Duration,
}

impl Tree {
    /// Waits until the command has ended by itself and its tree is gone.
    pub(super) async fn answer(&mut self) -> Result<Ended, NoAnswer> {
        use std::os::unix::process::ExitStatusExt;
        let (control, order) = match &mut self.main {
            Main::Guard { control, order, .. } => (control, std::mem::take(order)),
            Main::Command(child) => {
                let status = child.wait().await?;
                return Ok(status
                    .signal()
                    .map_or_else(|| Ended::Code(status.code().unwrap_or(0)), Ended::Signal));
            }
        };
        let sent = control.write_all(&order).await;
        // The first answer counts; the end of the stream says that launcher and init are gone.
        listen(control, &mut self.reply).await?;
        match Answer::decode(&self.reply) {
            Some(Answer::Exited(code)) => Ok(Ended::Code(code)),
            Some(Answer::Signalled(signal)) => Ok(Ended::Signal(signal)),
            Some(Answer::Exceeded(excess)) => Ok(Ended::Exceeded(excess)),
            Some(Answer::NotStarted(errno)) => Err(io::Error::from_raw_os_error(errno).into()),
            Some(Answer::Refused(errno)) => Err(NoAnswer::Refused(io::Error::from_raw_os_error(errno))),
            None => Err(sent.err().map_or(NoAnswer::Killed, NoAnswer::Failed)),
        }
    }

    /// Waits until the tree is gone, and what its guard left when something killed it.
    async fn gone(&mut self) {
        let _broken_off = match &mut self.main {
            Main::Guard { control, .. } => listen(control, &mut self.reply).await,
            Main::Command(child) => child.wait().await.map(drop),
        };
    }

    /// What says that it runs, where protected files are looked at; once.
    pub(super) fn begun(&mut self) -> Option<Begun> {
        match &mut self.main {
            Main::Guard { begun, .. } => begun.take(),
            Main::Command(_) => None,
        }
    }

    /// Ends what is left of the tree and waits until it is gone. The protected files that were put back; `None` when its guard
    /// was killed and has not told.
    pub(super) async fn end(&mut self) -> Option<Vec<Disturbance>> {
        self.running.end();
        if tokio::time::timeout(self.grace, self.gone()).await.is_err() {
            match &mut self.main {
                Main::Guard { guard, .. } => guard.kill(),
                Main::Command(child) => drop(child.start_kill()),
            }
            let _stuck_in_the_kernel = tokio::time::timeout(KILLED_GRACE, self.gone()).await;
        }
        let never_ran = matches!(&self.main, Main::Guard { order, .. } if !order.is_empty())
            || matches!(Answer::decode(&self.reply), Some(Answer::Refused(_)));
        let told = protected::report::decode(&self.reply, Answer::BYTES);
        if never_ran { Some(told.unwrap_or_default()) } else { told }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.running.end();
    }
}

/// Reads what the launcher process says until it is gone. What was read when this is broken off is in `reply`.
async fn listen(control: &mut UnixStream, reply: &mut Vec<u8>) -> io::Result<()> {
    while reply.len() < protected::report::MAX_BYTES && control.read_buf(reply).await? > 0 {}
    Ok(())
}
