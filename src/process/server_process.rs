//! Long-lived child that the agent talks to over its standard input and output, confined and ended like a command.

use super::command::{CommandSpec, ExitReason, ServerInput};
use super::fork_server::ForkServer;
use super::launch::{DRAIN_GRACE, Launcher};
use super::protected::ProtectedChange;
use super::running_command::{GuardError, RunningCommand};
use super::sandbox::confinement::Confinement;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes kept of the end of the standard error of a server.
const STDERR_BYTES: usize = 64 * 1024;

/// Time between SIGTERM and SIGKILL.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);

impl Launcher {
    /// Returns a launcher for a server with a `confinement` of its own: it shares neither the temporary directory, the snapshot
    /// of protected files nor the network of the commands.
    #[must_use]
    pub fn for_server(&self, confinement: Option<Confinement>) -> Self {
        let mut launcher = self.clone();
        launcher.confinement = confinement.map(Arc::new);
        launcher.fork_server = ForkServer::default();
        launcher.network = Arc::default();
        launcher.proxy = None;
        launcher
    }
}

/// A started server.
#[derive(Debug)]
pub struct ServerProcess {
    /// Its standard input.
    pub stdin: pipe::Sender,
    /// Its standard output.
    pub stdout: pipe::Receiver,
    /// Its end and its standard error.
    pub handle: ServerHandle,
}

/// How a server ended.
#[derive(Debug, Clone, Default)]
pub struct ServerEnd {
    /// Description of its end: `it exited with code 1`.
    pub reason: String,
    /// Protected files that it changed and that were restored.
    pub protected_changes: Vec<ProtectedChange>,
}

/// Handle of a server. Clones share it; when the last one is dropped, the server is ended.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stop: Arc<StopOnDrop>,
    ending: ServerEnding,
}

/// Ends a server and waits for that; unlike a handle, it does not keep the server running.
#[derive(Debug, Clone)]
pub struct ServerEnding {
    stop: CancellationToken,
    ended: watch::Receiver<Option<ServerEnd>>,
}

impl ServerEnding {
    /// Sends the server's processes SIGTERM, kills them after 2 s, and waits until they are gone.
    pub async fn end(self) -> ServerEnd {
        self.stop.cancel();
        self.wait().await
    }

    async fn wait(mut self) -> ServerEnd {
        let end = self.ended.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or_default()
    }
}

/// Stops a server when it is dropped.
#[derive(Debug)]
struct StopOnDrop(CancellationToken);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl ServerHandle {
    /// Returns how the server ended; `None` while it runs.
    pub fn end_state(&self) -> Option<ServerEnd> {
        self.ending.ended.borrow().clone()
    }

    /// Returns what ends the server.
    pub fn ending(&self) -> ServerEnding {
        self.ending.clone()
    }

    /// Returns the end of its standard error.
    pub fn stderr(&self) -> String {
        let bytes = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = bytes.as_slices();
        String::from_utf8_lossy(&[first, second].concat()).into_owned()
    }

    /// Sends its processes SIGTERM, and kills them after 2 s.
    pub fn stop(&self) {
        self.stop.0.cancel();
    }

    /// Waits until the server and everything that it started is gone.
    pub async fn wait(&self) -> ServerEnd {
        self.ending().wait().await
    }
}

impl Launcher {
    /// Starts a server with the variables `env`, which may contain secrets. Must be called inside a tokio runtime, in which a task
    /// watches the server. `spec.stdin` and `spec.timeout` are not used.
    ///
    /// # Errors
    /// Fails if the program could not be started; a program that does not exist may also end at once.
    pub fn start_server(
        &self,
        spec: CommandSpec,
        env: BTreeMap<String, String>,
    ) -> io::Result<ServerProcess> {
        let (stdin, writer) = io::pipe()?;
        let program = spec.argv.first().cloned().unwrap_or_default();
        let mut command = self.start(spec, Some(ServerInput { stdin, env }))?;
        let stdin = pipe::Sender::from_owned_fd(writer.into())?;
        let (stdout, stderr) = (command.stdout.take(), command.stderr.take());
        let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let tail = Arc::default();
        let (report, ended) = watch::channel(None);
        let stop = CancellationToken::new();
        let reading = tokio::spawn(keep_tail(stderr, Arc::clone(&tail)));
        tokio::spawn(supervise(self.clone(), program, command, stop.clone(), reading, report));
        let ending = ServerEnding { stop: stop.clone(), ended };
        let handle = ServerHandle { stderr: tail, stop: Arc::new(StopOnDrop(stop)), ending };
        Ok(ServerProcess { stdin, stdout, handle })
    }
}

/// Reads `stderr` to its end and keeps the last [`STDERR_BYTES`] in `tail`.
async fn keep_tail(mut stderr: pipe::Receiver, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(buffer.iter().take(count));
        let surplus = tail.len().saturating_sub(STDERR_BYTES);
        tail.drain(..surplus);
    }
}

/// Waits until `command` has ended or `stop` is cancelled, ends its tree, waits until `reading` has come to the end of its
/// standard error, and sends the result to `report`.
async fn supervise(
    launcher: Launcher,
    program: String,
    mut command: RunningCommand,
    stop: CancellationToken,
    reading: JoinHandle<()>,
    report: watch::Sender<Option<ServerEnd>>,
) {
    let mut exited = None;
    let registration = command.running.clone();
    {
        let wait = command.wait();
        tokio::pin!(wait);
        tokio::select! {
            reason = &mut wait => exited = Some(reason),
            () = stop.cancelled() => {
                registration.terminate();
                let _killed_below = tokio::time::timeout(TERMINATE_GRACE, wait).await;
            }
        }
    }
    let reported = command.end().await;
    let protected_changes =
        command.take_active().map(|active| launcher.check_protected(active, reported)).unwrap_or_default();
    let _may_be_held_open = tokio::time::timeout(DRAIN_GRACE, reading).await;
    let reason = exited.map_or_else(|| "it was stopped".to_owned(), |exited| describe(&program, exited));
    report.send_replace(Some(ServerEnd { reason, protected_changes }));
}

fn describe(program: &str, exited: Result<ExitReason, GuardError>) -> String {
    match exited {
        Ok(ExitReason::Code(code)) => format!("it exited with code {code}"),
        Ok(ExitReason::Signal(signal)) => format!("signal {signal} ended it"),
        Ok(ExitReason::Exceeded(limit)) => format!("it was ended: {}", limit.advice()),
        Ok(ExitReason::TimedOut | ExitReason::Idle | ExitReason::Cancelled) => "it was stopped".to_owned(),
        Err(GuardError::Failed(error)) => format!("{program} cannot be started: {error}"),
        Err(GuardError::Refused(error)) => format!("the kernel refuses its sandbox: {error}"),
        Err(GuardError::Killed) => "its launcher process was killed".to_owned(),
    }
}
