//! Starts a child through our own launcher process, limits it, and ends its whole tree.

use super::barrier::Barrier;
use super::capture::{self, Capture};
use super::command_registry::KillHandle;
use super::environment;
use super::fork_server::{ForkServer, Guard};
use super::launch_protocol::{LaunchRequest, SnapshotRequest};
use super::limits::CommandLimits;
use super::network_namespace::NetworkNamespace;
use super::protected::{ActiveCommand, ProtectedChange};
use super::running_command::{GuardError, RootProcess, RunningCommand};
use super::sandbox::confinement::{Confinement, PreparedSandbox};
use super::tier_cache;
use super::umask;
use crate::core::secret::Secret;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use super::command::{CommandOutcome, CommandSpec, ExitReason, LaunchError, OutputOptions};
pub use super::command_registry::CommandRegistry;
#[cfg(target_os = "linux")]
pub use super::guard::launcher_main;
pub use super::tier::Tier;

/// The running binary itself, whatever has become of its file since.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// How long a tree that was told to end may take before its guard is killed too, which a command can have stopped.
const END_GRACE: Duration = Duration::from_secs(1);

/// The same for a confined command, which cannot touch its guard: longer than the sweep of a subreaper takes at most,
/// because after it protected files are put back.
const CONFINED_END_GRACE: Duration = Duration::from_secs(15);

/// How long we go on reading after the command ended: a process that left the tree may hold the pipe for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(250);

/// How long the launcher may take to say whether a tier works.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts children. One per process; a clone is the same launcher.
#[derive(Debug, Clone)]
pub struct Launcher {
    environment: Arc<BTreeMap<String, String>>,
    secrets: Arc<[Secret]>,
    executable: Arc<Path>,
    fork_server: ForkServer,
    tier: Tier,
    /// Where the tier that works here is kept.
    tier_cache: Option<Arc<Path>>,
    pub(super) confinement: Option<Arc<Confinement>>,
    limits: CommandLimits,
    network: Arc<OnceLock<Option<NetworkNamespace>>>,
    running: CommandRegistry,
    barrier: Barrier,
}

impl Launcher {
    /// A launcher whose children get `environment` and never a variable that holds one of `secrets`. Until it is
    /// [`with_detected_tier`](Self::with_detected_tier) it holds them by [`Tier::Group`].
    pub fn new(environment: BTreeMap<String, String>, secrets: Vec<Secret>) -> Self {
        Self {
            environment: environment.into(),
            secrets: secrets.into(),
            executable: Path::new(OWN_EXECUTABLE).into(),
            fork_server: ForkServer::default(),
            tier: Tier::Group,
            tier_cache: None,
            confinement: None,
            limits: CommandLimits::default(),
            network: Arc::default(),
            running: CommandRegistry::default(),
            barrier: Barrier::default(),
        }
    }

    /// The same launcher going through another copy of the `agent` binary.
    #[must_use]
    pub fn with_executable(self, executable: PathBuf) -> Self {
        Self { executable: executable.into(), fork_server: ForkServer::default(), ..self }
    }

    /// The same launcher, whose children are confined as far as the kernel can hold them to that.
    #[must_use]
    pub fn with_confinement(self, confinement: Confinement) -> Self {
        Self { confinement: Some(confinement.into()), ..self }
    }

    /// The same launcher, which keeps in `file` by which tier its children are held here. What confines has another file than
    /// what does not.
    #[must_use]
    pub fn with_tier_cache(self, file: &Path) -> Self {
        Self { tier_cache: Some(file.into()), ..self }
    }

    /// The same launcher, each of whose children may take that much.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same launcher, whose children are got ready and begin when `barrier` is lifted.
    #[must_use]
    pub fn with_barrier(self, barrier: Barrier) -> Self {
        Self { barrier, ..self }
    }

    /// The same launcher, whose children are held by `tier`.
    #[must_use]
    pub fn with_tier(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }

    /// The same launcher, whose children are held by the strongest tier that works here, which may have to be tried out
    /// (10 ms).
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn with_detected_tier(self) -> io::Result<Self> {
        match self.tier_cache.as_ref().and_then(|file| tier_cache::load(file, &self.executable)) {
            Some(tier) => Ok(self.with_tier(tier)),
            None => self.with_probed_tier(),
        }
    }

    /// Like [`with_detected_tier`](Self::with_detected_tier), by trying. A kernel can refuse today what it did not yesterday, which a remembered
    /// tier does not show.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn with_probed_tier(self) -> io::Result<Self> {
        let tier = self.find_tier()?;
        if let Some(file) = &self.tier_cache {
            tier_cache::store(file, &self.executable, tier);
        }
        Ok(self.with_tier(tier))
    }

    /// How children are confined and held together.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Whether children share our network.
    pub fn has_network(&self) -> bool {
        self.confinement.as_ref().is_none_or(|confinement| confinement.has_network())
    }

    /// Tells which directories were those of repositories before the first command, whatever has become of them since.
    pub fn repository_check(&self) -> impl Fn(&Path) -> bool + Send + Sync + 'static {
        let confinement = self.confinement.clone();
        move |directory| confinement.as_ref().is_some_and(|confinement| confinement.was_repository(directory))
    }

    /// A directory that children may change but neither list nor add to, because rules hold them and something is hidden below.
    pub fn unlistable_root(&self) -> Option<&Path> {
        (self.tier == Tier::Rules).then(|| self.sandbox())??.ok()?.first_root_with_hidden()
    }

    /// A handle for the signal thread that ends all children at once.
    pub fn registry(&self) -> CommandRegistry {
        self.running.clone()
    }

    /// Runs `spec` to its end, its time limit or `cancel`, whichever is first; nothing of its tree survives.
    ///
    /// # Errors
    /// When the program could not be started.
    pub async fn launch(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, LaunchError> {
        let keeping = OutputOptions {
            open_file: None::<fn() -> io::Result<io::Sink>>,
            idle_timeout: None,
            recent: None,
        };
        self.launch_with_output(spec, keeping, cancel).await
    }

    /// Like [`launch`](Self::launch), with more care for its output.
    ///
    /// # Errors
    /// When the program could not be started.
    pub async fn launch_with_output<Open: FnOnce() -> io::Result<Sink>, Sink: Write>(
        &self,
        spec: CommandSpec,
        keeping: OutputOptions<Open>,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, LaunchError> {
        let program = spec.argv.first().cloned().unwrap_or_default();
        let begun = Instant::now();
        let capture = Mutex::new(Capture::new(keeping.open_file, keeping.recent));
        let mut ended = Ok(ExitReason::Cancelled);
        let mut protected_changes = Vec::new();
        if self.tier == Tier::Group {
            self.wait_for_barrier(cancel).await.map_err(|error| failure(&program, &error))?;
        }
        if !cancel.is_cancelled() {
            let (timeout, cwd) = (spec.timeout, spec.cwd.clone());
            let mut tree = self.start(spec).map_err(|error| {
                let is_there = cwd.is_dir();
                let reason =
                    if is_there { error.to_string() } else { format!("{} is no directory", cwd.display()) };
                failure(&program, &reason)
            })?;
            let pump = capture::pump(tree.stdout.take(), tree.stderr.take(), &capture);
            let mut pump = std::pin::pin!(futures_util::future::maybe_done(pump));
            ended = if let Err(error) = self.wait_for_barrier(cancel).await {
                Err(failure(&program, &error))
            } else {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Ok(ExitReason::Cancelled),
                    () = tokio::time::sleep(timeout) => Ok(ExitReason::TimedOut),
                    () = capture::wait_until_idle(keeping.idle_timeout, &capture) => Ok(ExitReason::Idle),
                    answer = tree.wait() => answer.map_err(|error| self.launch_error(&program, error)),
                    () = async { pump.as_mut().await; std::future::pending().await } => Ok(ExitReason::Cancelled),
                }
            };
            let reported = tree.end().await;
            protected_changes =
                tree.take_active().map(|begun| self.check_protected(begun, reported)).unwrap_or_default();
            if pump.as_mut().output_mut().is_none() {
                let _held_open = tokio::time::timeout(DRAIN_GRACE, pump).await;
            }
        }
        let ended = ended?;
        let mut capture = capture.into_inner().unwrap_or_else(PoisonError::into_inner);
        let kept = capture.finish();
        let (stdout, stderr, duration) = (capture.stdout, capture.stderr, begun.elapsed());
        Ok(CommandOutcome { reason: ended, stdout, stderr, stored: kept, protected_changes, duration })
    }

    /// Waits until children may begin, or until they need not any more.
    async fn wait_for_barrier(&self, cancel: &CancellationToken) -> io::Result<()> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            lifted = self.barrier.wait() => lifted,
        }
    }

    /// What a command did to protected files, of which its guard has reported what it can see.
    fn check_protected(
        &self,
        begun: ActiveCommand,
        reported: Option<Vec<ProtectedChange>>,
    ) -> Vec<ProtectedChange> {
        let sandbox = self.sandbox().and_then(Result::ok);
        sandbox
            .map(|sandbox| sandbox.protection().finish_command(begun, reported, &sandbox.quarantine()))
            .unwrap_or_default()
    }

    /// What holds commands, where the tier confines them.
    fn sandbox(&self) -> Option<io::Result<&PreparedSandbox>> {
        self.confinement.as_ref().filter(|_| self.tier.confines()).map(|confinement| confinement.sandbox())
    }

    fn launch_error(&self, program: &str, error: GuardError) -> LaunchError {
        match error {
            GuardError::Failed(error) => failure(program, &error),
            GuardError::Killed => LaunchError::Orphaned { program: program.to_owned() },
            GuardError::Refused(error) => {
                if let Some(file) = &self.tier_cache {
                    tier_cache::clear(file);
                }
                failure(
                    program,
                    &format!(
                        "the kernel refuses what confined commands before ({error}), and a run goes on with no less than it \
                         began with; nothing ran. The next run finds what holds now"
                    ),
                )
            }
        }
    }

    /// Starts a guard, or where there is none the command itself.
    fn start(&self, spec: CommandSpec) -> io::Result<RunningCommand> {
        let mut env = BTreeMap::clone(&self.environment);
        env.extend(spec.env.clone());
        environment::drop_secrets(&mut env, &self.secrets);
        let (stdout, stderr) = (io::pipe()?, io::pipe()?);
        let tier = self.tier;
        let (main, handle) = if tier == Tier::Group {
            start_command(&spec, env, (stdout.1, stderr.1))?
        } else {
            self.start_guarded(tier, spec, env, [&stdout.1, &stderr.1])?
        };
        let output = |pipe: io::PipeReader| pipe::Receiver::from_owned_fd(pipe.into()).map(Some);
        let (stdout, stderr) = (output(stdout.0)?, output(stderr.0)?);
        let grace = if tier.confines() { CONFINED_END_GRACE } else { END_GRACE };
        Ok(RunningCommand {
            main,
            stdout,
            stderr,
            reply: Vec::new(),
            running: self.running.add(handle),
            grace,
        })
    }

    fn start_guarded(
        &self,
        tier: Tier,
        spec: CommandSpec,
        mut env: BTreeMap<String, String>,
        outputs: [&dyn AsFd; 2],
    ) -> io::Result<(RootProcess, KillHandle)> {
        let sandbox = self.sandbox().transpose()?;
        if let Some(reason) = sandbox.and_then(|sandbox| sandbox.protection().block_reason()) {
            return Err(io::Error::other(reason.to_owned()));
        }
        let policy = sandbox.map(|sandbox| sandbox.protection().policy().clone()).unwrap_or_default();
        let quarantine = sandbox.map(PreparedSandbox::quarantine).unwrap_or_default();
        if let Some(sandbox) = sandbox {
            sandbox.set_environment(&mut env, tier);
        }
        let stdin_bytes = spec.stdin.len() as u64;
        let network = (tier == Tier::Full && !policy.network).then(|| self.network()).flatten();
        let (argv, limits, question) = (spec.argv, self.limits, LaunchRequest::without_command(tier));
        let umask = umask::user_umask();
        let request = LaunchRequest {
            argv,
            policy: policy.clone(),
            limits,
            quarantine,
            env,
            umask,
            stdin_bytes,
            ..question
        };
        let mut request = request.encode()?;
        request.extend(spec.stdin);
        let fork_guard = |first: bool| {
            let baseline = SnapshotRequest { tier, policy: policy.clone() };
            self.fork_guard(&spec.cwd, outputs, first.then_some(&baseline))
        };
        let ((guard, control), begun) = match sandbox {
            Some(sandbox) => {
                sandbox.protection().start_command(fork_guard).map(|(split, begun)| (split, Some(begun)))?
            }
            None => (fork_guard(false)?, None),
        };
        NetworkNamespace::send(network, &control)?;
        let handle = KillHandle::Control(control.try_clone()?);
        control.set_nonblocking(true)?;
        let control = tokio::net::UnixStream::from_std(control)?;
        Ok((RootProcess::Guard { guard, control, request, active: begun }, handle))
    }

    /// The network that all confined commands of this run share, made when the first of them starts. Without one, where
    /// the kernel refuses it, each has its own and cannot reach the servers of others.
    fn network(&self) -> Option<&NetworkNamespace> {
        self.network.get_or_init(|| self.make_network().ok()).as_ref()
    }

    fn make_network(&self) -> io::Result<NetworkNamespace> {
        let (guard, control) =
            self.fork_guard(Path::new("/"), [&open_dev_null()?, &open_dev_null()?], None)?;
        let request = LaunchRequest { makes_network: true, ..LaunchRequest::without_command(Tier::Full) };
        let made = control
            .set_read_timeout(Some(PROBE_TIMEOUT))
            .and_then(|()| NetworkNamespace::send(None, &control))
            .and_then(|()| (&control).write_all(&request.encode()?))
            .and_then(|()| NetworkNamespace::receive(&control));
        // It ends by itself. After one that is killed every process of the machine would be looked at for what it left.
        let ended = made.is_ok() && (&control).read(&mut [0]).is_ok_and(|read| read == 0);
        if !ended {
            guard.kill();
        }
        made.and_then(|made| if made.is_empty() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(made) })
    }

    /// A guard in the directory `place`, whose command writes to `outputs`, and our end of its control socket.
    pub(super) fn fork_guard(
        &self,
        place: &Path,
        [stdout, stderr]: [&dyn AsFd; 2],
        baseline: Option<&SnapshotRequest>,
    ) -> io::Result<(Guard, UnixStream)> {
        let (control, theirs) = UnixStream::pair()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let place = rustix::fs::open(place, flags, Mode::empty())?;
        let descriptors = [theirs.as_fd(), stdout.as_fd(), stderr.as_fd(), place.as_fd()];
        Ok((self.fork_server.fork_guard(|| self.own_program(), descriptors, baseline)?, control))
    }

    /// Has the process begin that guards are split off from.
    pub(super) fn start_fork_server(&self) -> io::Result<()> {
        self.fork_server.start(|| self.own_program())
    }

    fn own_program(&self) -> Command {
        program_command(self.executable.as_os_str())
    }
}

/// The one place from which the agent starts a process.
#[expect(clippy::disallowed_methods, reason = "this is the address of child processes")]
fn program_command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Starts a command as our own child.
fn start_command(
    spec: &CommandSpec,
    env: BTreeMap<String, String>,
    (stdout, stderr): (io::PipeWriter, io::PipeWriter),
) -> io::Result<(RootProcess, KillHandle)> {
    let (program, args) = spec.argv.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
    let mut command = program_command(program);
    command.args(args).env_clear().envs(env).current_dir(&spec.cwd).process_group(0);
    command.stdin(group_stdin(&spec.stdin)?).stdout(stdout).stderr(stderr);
    let mut command = tokio::process::Command::from(command);
    let child = umask::with_user_umask(|| command.spawn())?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("it ended before it began"))?;
    Ok((RootProcess::Command(child), KillHandle::Group(pid)))
}

/// Where nothing is written to.
pub(super) fn open_dev_null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
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
    LaunchError::NotStarted { program: program.to_owned(), reason: reason.to_string() }
}

/// Elsewhere there is no launcher process.
#[cfg(not(target_os = "linux"))]
pub fn launcher_main(_args: impl IntoIterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}
