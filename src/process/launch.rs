//! Starts a child through our own launcher process, limits it, and ends its whole tree.

use super::capture::{self, Capture, Captured, Kept};
use super::environment;
use super::limits::{CommandLimits, Excess};
use super::network::Network;
use super::order::{Answer, LAUNCH_ARGUMENT, Order};
use super::protected::{self, Disturbance};
use super::recent::Recent;
use super::remembered;
use super::running::{Handle, Registration};
use super::sandbox::Confinement;
use super::umask;
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, Seek, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(target_os = "linux")]
pub use super::guard::child_main;
pub use super::order::Tier;
pub use super::running::Running;

/// The running binary itself, whatever has become of its file since.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// How long a tree that was told to end may take before its launcher is killed too.
const END_GRACE: Duration = Duration::from_secs(1);

/// How long we go on reading after the command ended: a process that left the tree may hold the pipe for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(250);

/// How long the launcher may take to say whether a tier works.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// What to start and how far it may go.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Program and arguments; no shell is involved unless it is named here.
    pub argv: Vec<String>,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Variables on top of the launcher's allow-listed environment.
    pub env: BTreeMap<String, String>,
    /// Bytes for standard input; empty means `/dev/null`.
    pub stdin: Vec<u8>,
    /// Wall time after which the tree is ended.
    pub timeout: Duration,
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up; the tree was killed.
    TimedOut,
    /// It wrote nothing for as long as it may; the tree was killed.
    Idle,
    /// It took too much of the machine; the tree was killed.
    Exceeded(Excess),
    /// The run was interrupted or ended; the tree was killed.
    Cancelled,
}

/// What else is wanted of a child's output.
#[derive(Debug)]
pub struct Keeping<Open> {
    /// Makes the file for an output too long for memory.
    pub open: Option<Open>,
    /// How long it may write nothing before it is ended; without it, as long as it runs.
    pub idle: Option<Duration>,
    /// Where the output can be read while it runs.
    pub recent: Option<Recent>,
}

/// What became of a child.
#[derive(Debug)]
pub struct Exit {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to standard output.
    pub stdout: Captured,
    /// What it wrote to standard error.
    pub stderr: Captured,
    /// What the file of a long output holds.
    pub kept: Kept,
    /// The protected files that it did not leave as they were, which have been put back.
    pub disturbed: Vec<Disturbance>,
    /// How long it ran.
    pub duration: Duration,
}

/// A child could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}: {reason}")]
pub struct LaunchError {
    /// The program.
    pub program: String,
    /// Why.
    pub reason: String,
}

/// Starts children. One per process; a clone is the same launcher.
#[derive(Debug, Clone)]
pub struct Launcher {
    environment: Arc<BTreeMap<String, String>>,
    secrets: Arc<[Secret]>,
    executable: Arc<Path>,
    tier: Arc<OnceLock<Tier>>,
    pub(super) confinement: Option<Arc<Confinement>>,
    limits: CommandLimits,
    network: Arc<OnceLock<Option<Network>>>,
    running: Running,
}

impl Launcher {
    /// A launcher whose children get `environment` and never a variable that holds one of `secrets`.
    pub fn new(environment: BTreeMap<String, String>, secrets: Vec<Secret>) -> Self {
        let tier = OnceLock::new();
        if cfg!(test) {
            // The unit-test binary is no launcher.
            let _empty = tier.set(Tier::Group);
        }
        Self {
            environment: environment.into(),
            secrets: secrets.into(),
            executable: Path::new(OWN_EXECUTABLE).into(),
            tier: tier.into(),
            confinement: None,
            limits: CommandLimits::default(),
            network: Arc::default(),
            running: Running::default(),
        }
    }

    /// The same launcher going through another copy of the `agent` binary, held by `tier` where one is given.
    #[must_use]
    pub fn with_executable(self, executable: PathBuf, tier: Option<Tier>) -> Self {
        let tier = Arc::new(tier.map(OnceLock::from).unwrap_or_default());
        Self { executable: executable.into(), tier, ..self }
    }

    /// The same launcher, whose children are confined as far as the kernel can hold them to that.
    #[must_use]
    pub fn confined(self, confinement: Confinement) -> Self {
        Self { confinement: Some(confinement.into()), ..self }
    }

    /// The same launcher, each of whose children may take that much.
    #[must_use]
    pub fn limited(self, limits: CommandLimits) -> Self {
        Self { limits, ..self }
    }

    /// How children are confined and held together here. The first call may have to try it out (10 ms).
    pub fn tier(&self) -> Tier {
        *self.tier.get_or_init(|| {
            let remembered = self.confinement.as_ref().map(|confinement| confinement.remembered.as_path());
            let recalled = remembered.and_then(|file| remembered::recall(file, &self.executable));
            recalled.unwrap_or_else(|| {
                let tier = self.find_tier();
                if let Some(file) = remembered {
                    remembered::remember(file, &self.executable, tier);
                }
                tier
            })
        })
    }

    /// Whether children share our network.
    pub fn has_network(&self) -> bool {
        self.confinement.as_ref().is_none_or(|confinement| confinement.reach.network)
    }

    /// A handle for the signal thread that ends all children at once.
    pub fn running(&self) -> Running {
        self.running.clone()
    }

    /// Runs `spec` to its end, its time limit or `cancel`, whichever is first; nothing of its tree survives.
    ///
    /// # Errors
    /// When the program could not be started.
    pub async fn launch(&self, spec: Spec, cancel: &CancellationToken) -> Result<Exit, LaunchError> {
        let keeping = Keeping { open: None::<fn() -> io::Result<io::Sink>>, idle: None, recent: None };
        self.launch_keeping(spec, keeping, cancel).await
    }

    /// Like [`launch`](Self::launch), with more care for its output.
    ///
    /// # Errors
    /// When the program could not be started.
    pub async fn launch_keeping<Open: FnOnce() -> io::Result<File>, File: Write>(
        &self,
        spec: Spec,
        keeping: Keeping<Open>,
        cancel: &CancellationToken,
    ) -> Result<Exit, LaunchError> {
        let program = spec.argv.first().cloned().unwrap_or_default();
        let begun = Instant::now();
        let capture = Mutex::new(Capture::new(keeping.open, keeping.recent));
        let mut ended = Ended::Cancelled;
        let mut disturbed = Vec::new();
        if !cancel.is_cancelled() {
            let (timeout, cwd) = (spec.timeout, spec.cwd.clone());
            let mut tree = self.start(spec).map_err(|error| {
                let is_there = cwd.is_dir();
                let reason =
                    if is_there { error.to_string() } else { format!("{} is no directory", cwd.display()) };
                failure(&program, &reason)
            })?;
            let pump = capture::pump(tree.child.stdout.take(), tree.child.stderr.take(), &capture);
            let mut pump = std::pin::pin!(futures_util::future::maybe_done(pump));
            ended = tokio::select! {
                biased;
                () = cancel.cancelled() => Ended::Cancelled,
                () = tokio::time::sleep(timeout) => Ended::TimedOut,
                () = capture::silence(keeping.idle, &capture) => Ended::Idle,
                answer = tree.answer() => answer.map_err(|error| self.unanswered(&program, error))?,
                () = async { pump.as_mut().await; std::future::pending().await } => Ended::Cancelled,
            };
            disturbed = tree.end().await;
            if pump.as_mut().output_mut().is_none() {
                let _held_open = tokio::time::timeout(DRAIN_GRACE, pump).await;
            }
        }
        let mut capture = capture.into_inner().unwrap_or_else(PoisonError::into_inner);
        let kept = capture.finish();
        let (stdout, stderr, duration) = (capture.stdout, capture.stderr, begun.elapsed());
        Ok(Exit { ended, stdout, stderr, kept, disturbed, duration })
    }

    fn unanswered(&self, program: &str, error: NoAnswer) -> LaunchError {
        match error {
            NoAnswer::Failed(error) => failure(program, &error),
            NoAnswer::Refused(error) => {
                if let Some(confinement) = &self.confinement {
                    remembered::forget(&confinement.remembered);
                }
                failure(
                    program,
                    &format!("the kernel refuses what confined commands before ({error}); nothing ran"),
                )
            }
        }
    }

    /// Starts the launcher process, or where there is none the command itself.
    fn start(&self, spec: Spec) -> io::Result<Tree> {
        let mut env = BTreeMap::clone(&self.environment);
        env.extend(spec.env);
        environment::drop_secrets(&mut env, &self.secrets);
        let tier = self.tier();
        let mut command;
        let (agent_end, order) = if tier == Tier::Group {
            let (program, args) =
                spec.argv.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
            command = program_command(program);
            command.args(args).env_clear().envs(env).stdin(group_stdin(&spec.stdin)?);
            (None, Vec::new())
        } else {
            let confinement = self.confinement.as_ref();
            let reach = confinement.map(|confinement| confinement.reach().clone()).unwrap_or_default();
            let quarantine = confinement.map(|confinement| confinement.quarantine()).unwrap_or_default();
            self.lead(&mut env, tier);
            let stdin_bytes = spec.stdin.len() as u64;
            let network = (tier == Tier::Full && !reach.network).then(|| self.network()).flatten();
            let (argv, limits, question) = (spec.argv, self.limits, Order::question(tier));
            let umask = umask::of_the_user();
            let order = Order { argv, reach, limits, quarantine, env, umask, stdin_bytes, ..question };
            let mut bytes = order.encode()?;
            bytes.extend(spec.stdin);
            let agent_end;
            (command, agent_end) = self.launcher_command()?;
            Network::send(network, &agent_end)?;
            (Some(agent_end), bytes)
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(spec.cwd).process_group(0);
        let mut command = tokio::process::Command::from(command);
        let child =
            if tier == Tier::Group { umask::with_the_users(|| command.spawn()) } else { command.spawn() }?;
        Tree::new(child, agent_end, order, &self.running)
    }

    /// The network that all confined commands of this run share, made when the first of them starts. Without one, where
    /// the kernel refuses it, each has its own and cannot reach the servers of others.
    fn network(&self) -> Option<&Network> {
        self.network.get_or_init(|| self.make_network().ok()).as_ref()
    }

    fn make_network(&self) -> io::Result<Network> {
        let (mut command, control) = self.launcher_command()?;
        let mut launcher = command.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        drop(command);
        let order = Order { makes_network: true, ..Order::question(Tier::Full) };
        let made = control
            .set_read_timeout(Some(PROBE_TIMEOUT))
            .and_then(|()| Network::send(None, &control))
            .and_then(|()| (&control).write_all(&order.encode()?))
            .and_then(|()| Network::receive(&control));
        drop(control);
        launcher.kill()?;
        launcher.wait()?;
        made.and_then(|made| if made.is_none() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(made) })
    }

    /// Leads programs to places that they may change.
    fn lead(&self, env: &mut BTreeMap<String, String>, tier: Tier) {
        let Some(confinement) = self.confinement.as_ref().filter(|_| tier.confines()) else { return };
        for (name, value) in &confinement.variables {
            env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        let place = if tier.has_own_view() {
            "/tmp".to_owned()
        } else {
            confinement.reach.temporary.display().to_string()
        };
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), place.clone())));
    }

    /// The launcher process to be, and our end of its control socket.
    pub(super) fn launcher_command(&self) -> io::Result<(Command, UnixStream)> {
        let (agent_end, launcher_end) = UnixStream::pair()?;
        let mut command = program_command(self.executable.as_os_str());
        command.arg(LAUNCH_ARGUMENT).env_clear().stdin(Stdio::from(std::os::fd::OwnedFd::from(launcher_end)));
        Ok((command, agent_end))
    }
}

/// The one place from which the agent starts a process.
#[expect(clippy::disallowed_methods, reason = "this is the address of child processes")]
fn program_command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Standard input where no launcher passes it on: nothing, or an unnamed file.
fn group_stdin(bytes: &[u8]) -> io::Result<Stdio> {
    if bytes.is_empty() {
        return Ok(Stdio::null());
    }
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

fn failure(program: &str, reason: &impl ToString) -> LaunchError {
    LaunchError { program: program.to_owned(), reason: reason.to_string() }
}

/// Why a launcher process did not say how the command ended.
enum NoAnswer {
    /// The kernel refused what confines or holds the command; nothing was started.
    Refused(io::Error),
    /// It could not start the command, or is gone.
    Failed(io::Error),
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// A started child with everything below it; dropping it ends them.
struct Tree {
    child: Child,
    control: Option<tokio::net::UnixStream>,
    order: Vec<u8>,
    reply: Vec<u8>,
    running: Registration,
}

/// Reads what the launcher process says until it is gone. What was read when this is broken off is in `reply`.
async fn listen(control: &mut tokio::net::UnixStream, reply: &mut Vec<u8>) -> io::Result<()> {
    while reply.len() < protected::report::MAX_BYTES && control.read_buf(reply).await? > 0 {}
    Ok(())
}

impl Tree {
    fn new(child: Child, control: Option<UnixStream>, order: Vec<u8>, running: &Running) -> io::Result<Self> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it ended before it began"))?;
        let handle = match &control {
            Some(control) => Handle::Control(control.try_clone()?),
            None => Handle::Group(pid),
        };
        let running = running.add(handle);
        let control = control.map(|control| {
            control.set_nonblocking(true)?;
            tokio::net::UnixStream::from_std(control)
        });
        Ok(Self { child, control: control.transpose()?, order, reply: Vec::new(), running })
    }

    /// Waits until the command has ended by itself and its tree is gone.
    async fn answer(&mut self) -> Result<Ended, NoAnswer> {
        use std::os::unix::process::ExitStatusExt;
        let Some(control) = &mut self.control else {
            let status = self.child.wait().await?;
            return Ok(status
                .signal()
                .map_or_else(|| Ended::Code(status.code().unwrap_or(0)), Ended::Signal));
        };
        let sent = control.write_all(&self.order).await;
        self.order = Vec::new();
        // The first answer counts; the end of the stream says that launcher and init are gone.
        listen(control, &mut self.reply).await?;
        match Answer::decode(&self.reply) {
            Some(Answer::Exited(code)) => Ok(Ended::Code(code)),
            Some(Answer::Signalled(signal)) => Ok(Ended::Signal(signal)),
            Some(Answer::Exceeded(excess)) => Ok(Ended::Exceeded(excess)),
            Some(Answer::NotStarted(errno)) => Err(io::Error::from_raw_os_error(errno).into()),
            Some(Answer::Refused(errno)) => Err(NoAnswer::Refused(io::Error::from_raw_os_error(errno))),
            None => Err(sent.err().unwrap_or_else(|| io::Error::other("its launcher was killed")).into()),
        }
    }

    /// Ends what is left of the tree and waits until it is gone. The protected files that were put back.
    async fn end(&mut self) -> Vec<Disturbance> {
        self.running.end();
        let gone = async {
            if let Some(control) = &mut self.control {
                let _broken_off = listen(control, &mut self.reply).await;
            }
            self.child.wait().await
        };
        if tokio::time::timeout(END_GRACE, gone).await.is_err() {
            let _already_gone = self.child.start_kill();
        }
        protected::report::decode(&self.reply, Answer::BYTES)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.running.end();
    }
}

/// Elsewhere there is no launcher process.
#[cfg(not(target_os = "linux"))]
pub fn child_main(_args: impl IntoIterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}
