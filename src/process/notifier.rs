//! Starts the user's command that notifies. It runs as the user, outside of every sandbox tier, because it reaches the desktop or another machine.

use super::umask::with_user_umask;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::process::Child;

/// Time after which a notification is ended.
const TIME: Duration = Duration::from_secs(10);

/// Why a notification failed.
#[derive(Debug, thiserror::Error)]
pub enum NotifierError {
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] io::Error),
    /// The program has failed.
    #[error("{0}")]
    Failed(ExitStatus),
    /// The program took too long and was ended.
    #[error("it took longer than {} seconds", TIME.as_secs())]
    TimedOut,
}

/// The first failure of a notifier, which is reported once.
#[derive(Debug, Default)]
enum Failure {
    #[default]
    None,
    Unreported(NotifierError),
    Reported,
}

/// The command that notifies the user.
#[derive(Debug, Clone)]
pub struct Notifier {
    command: Vec<String>,
    variables: BTreeMap<String, String>,
    failure: Arc<Mutex<Failure>>,
}

impl Notifier {
    /// Creates a notifier of `command`, a program with its arguments, which has the environment `variables`.
    pub fn new(command: &[String], variables: &BTreeMap<String, String>) -> Self {
        Self { command: command.to_vec(), variables: variables.clone(), failure: Arc::default() }
    }

    /// Starts the command with `text` as its last argument and does not wait for it. Must be called inside a tokio runtime, with which the command ends.
    pub fn notify(&self, text: &str) {
        let child = match self.start(text) {
            Ok(child) => child,
            Err(error) => return fail(&self.failure, error.into()),
        };
        let failure = Arc::clone(&self.failure);
        drop(tokio::spawn(async move {
            if let Err(error) = wait(child, TIME).await {
                fail(&failure, error);
            }
        }));
    }

    /// Returns the first failure, once.
    pub fn take_failure(&self) -> Option<NotifierError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*failure, Failure::Unreported(_)) {
            return None;
        }
        match std::mem::replace(&mut *failure, Failure::Reported) {
            Failure::Unreported(error) => Some(error),
            Failure::None | Failure::Reported => None,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the sandbox would keep the command from the desktop")]
    fn start(&self, text: &str) -> io::Result<Child> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).arg(text).env_clear().envs(&self.variables);
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        with_user_umask(|| command.spawn())
    }
}

/// Stores the first failure.
fn fail(failure: &Mutex<Failure>, error: NotifierError) {
    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*failure, Failure::None) {
        *failure = Failure::Unreported(error);
    }
}

/// Waits for the end of a command, which is ended with its process group after `time`.
async fn wait(mut child: Child, time: Duration) -> Result<(), NotifierError> {
    // Also when the program ends before.
    let _group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).map(Group);
    match tokio::time::timeout(time, child.wait()).await {
        Ok(status) => Some(status?)
            .filter(|status| !status.success())
            .map_or(Ok(()), |status| Err(NotifierError::Failed(status))),
        Err(_elapsed) => Err(NotifierError::TimedOut),
    }
}

/// The process group of a command, which ends with it.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // A group that has just ended needs no signal.
        let _ended = kill_process_group(self.0, Signal::KILL);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;

    fn notifier(command: &[&str]) -> Notifier {
        Notifier::new(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &BTreeMap::new())
    }

    /// Waits for the failure of `notifier` by letting its tasks run.
    async fn failure(notifier: &Notifier) -> String {
        loop {
            match notifier.take_failure() {
                Some(error) => return error.to_string(),
                None => tokio::task::yield_now().await,
            }
        }
    }

    #[tokio::test]
    async fn u14_the_text_is_the_last_argument_and_no_shell_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("said");
        let script = format!("printf '%s|%s' \"$1\" \"$2\" > {}", file.display());
        let child = notifier(&["/bin/sh", "-c", &script, "sh", "a b"]).start("$(touch x); y").unwrap();
        wait(child, TIME).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "a b|$(touch x); y");
    }

    #[tokio::test]
    async fn u14_a_failure_is_reported_once_and_a_notification_does_not_last() {
        let missing = notifier(&["/nowhere/notify"]);
        missing.notify("text");
        missing.notify("text");
        assert!(failure(&missing).await.contains("No such file"));
        missing.notify("text");
        assert!(missing.take_failure().is_none());
        let failing = notifier(&["/bin/sh", "-c", "exit 3"]);
        failing.notify("text");
        assert!(failure(&failing).await.contains('3'));
        let lasting = notifier(&["/bin/sh", "-c", "sleep 1000 & wait"]).start("text").unwrap();
        assert!(matches!(wait(lasting, Duration::ZERO).await, Err(NotifierError::TimedOut)));
    }
}
