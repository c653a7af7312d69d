//! Starts a child through the launcher process, limits it, and ends its whole process tree.

use super::barrier::Barrier;
use super::capture::{self, Capture};
use super::command::ServerInput;
use super::command_registry::KillHandle;
use super::environment;
use super::fork_server::{ForkServer, Guard};
use super::launch_protocol::{LaunchRequest, SnapshotRequest, StdinSource};
use super::limits::CommandLimits;
use super::network_namespace::NetworkNamespace;
use super::protected::{ActiveCommand, ProtectedChange};
use super::proxy_listener;
use super::running_command::{GuardError, RootProcess, RunningCommand};
use super::sandbox::confinement::{Confinement, PreparedSandbox};
use super::tier_cache;
use super::umask;
use agent_core::secret::Secret;
use agent_fetch::command_proxy::{CommandProxy, RefusalList};
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek, Write};
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

pub use super::command::{
    CommandOutcome, CommandSpec, ExitReason, LaunchError, OutputOptions, ended_by_signal,
};
pub use super::command_registry::CommandRegistry;
#[cfg(target_os = "linux")]
pub use super::guard::launcher_main;
pub use super::tier::Tier;

/// Path of the running binary, which stays valid when its file is replaced.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// Time that a tree may take to end before its guard is killed too. A command can have stopped the guard.
const END_GRACE: Duration = Duration::from_secs(1);

/// The same for a confined command, which cannot stop its guard. It exceeds the longest sweep of a subreaper, because protected
/// files are restored after it.
const CONFINED_END_GRACE: Duration = Duration::from_secs(15);

/// Time to read output after the command ended. A process that left the tree may hold the pipe open for ever.
pub(super) const DRAIN_GRACE: Duration = Duration::from_millis(250);

/// Time limit of one probe of a tier.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Starts children. One per process; clones share its state.
#[derive(Debug, Clone)]
pub struct Launcher {
    environment: Arc<BTreeMap<String, String>>,
    secrets: Arc<[Secret]>,
    /// Variables that the user has mapped for the children. They may contain secrets.
    mapped: Arc<BTreeMap<String, String>>,
    executable: Arc<Path>,
    pub(super) fork_server: ForkServer,
    tier: Tier,
    /// File that caches the tier for this machine.
    tier_cache: Option<Arc<Path>>,
    pub(super) confinement: Option<Arc<Confinement>>,
    limits: CommandLimits,
    pub(super) network: Arc<OnceLock<Option<NetworkNamespace>>>,
    running: CommandRegistry,
    barrier: Barrier,
    /// Connects confined commands to hosts; absent: they reach none.
    pub(super) proxy: Option<CommandProxy>,
    /// Whether sensitive files are hidden from the children.
    hides_sensitive: bool,
}

impl Launcher {
    /// Creates a launcher whose children get `environment` without variables that contain one of `secrets`. It uses
    /// [`Tier::Group`] until [`with_detected_tier`](Self::with_detected_tier) is called.
    pub fn new(environment: BTreeMap<String, String>, secrets: Vec<Secret>) -> Self {
        Self {
            environment: environment.into(),
            secrets: secrets.into(),
            mapped: Arc::default(),
            executable: Path::new(OWN_EXECUTABLE).into(),
            fork_server: ForkServer::default(),
            tier: Tier::Group,
            tier_cache: None,
            confinement: None,
            limits: CommandLimits::default(),
            network: Arc::default(),
            running: CommandRegistry::default(),
            barrier: Barrier::default(),
            proxy: None,
            hides_sensitive: false,
        }
    }

    /// Returns this launcher with another copy of the `agent` binary as launcher process.
    #[must_use]
    pub fn with_executable(self, executable: PathBuf) -> Self {
        Self { executable: executable.into(), fork_server: ForkServer::default(), ..self }
    }

    /// Returns this launcher with confinement for its children, as far as the tier supports it.
    #[must_use]
    pub fn with_confinement(self, confinement: Confinement) -> Self {
        Self { confinement: Some(confinement.into()), ..self }
    }

    /// Returns this launcher with `file` as cache of the tier. Confined and unconfined launchers need different files.
    #[must_use]
    pub fn with_tier_cache(self, file: &Path) -> Self {
        Self { tier_cache: Some(file.into()), ..self }
    }

    /// Returns this launcher with `limits` for each child.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Self {
        Self { limits, ..self }
    }

    /// Returns this launcher with variables for each child, which may contain secrets.
    #[must_use]
    pub fn with_mapped_variables(self, mapped: BTreeMap<String, String>) -> Self {
        Self { mapped: mapped.into(), ..self }
    }

    /// Returns this launcher with `barrier`: children are prepared at once and start when it is lifted.
    #[must_use]
    pub fn with_barrier(self, barrier: Barrier) -> Self {
        Self { barrier, ..self }
    }

    /// Returns a launcher for commands of the model, from which sensitive files are hidden where the tier can hide files alone.
    #[must_use]
    pub fn for_model(&self) -> Self {
        Self { hides_sensitive: true, ..self.clone() }
    }

    /// Returns this launcher with `proxy`, which connects confined commands with a network of their own to hosts.
    #[must_use]
    pub fn with_proxy(self, proxy: CommandProxy) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// Returns a list of the refusals of the proxy from now on, until it is dropped.
    pub fn refusals_of_call(&self) -> Option<Arc<RefusalList>> {
        self.proxy.as_ref().map(CommandProxy::refusals_of_call)
    }

    /// Returns why the proxy refused requests of commands in the background since they were taken last, each in one line.
    pub fn take_refusals(&self) -> Vec<String> {
        self.proxy.as_ref().map(CommandProxy::take_refusals).unwrap_or_default()
    }

    /// Returns this launcher with `tier`.
    #[must_use]
    pub fn with_tier(self, tier: Tier) -> Self {
        Self { tier, ..self }
    }

    /// Returns this launcher with the strongest tier that works here. Without a cached tier this runs a probe (10 ms).
    ///
    /// # Errors
    /// Fails if the tier cannot be determined.
    pub fn with_detected_tier(self) -> io::Result<Self> {
        match self.tier_cache.as_ref().and_then(|file| tier_cache::load(file, &self.executable)) {
            Some(tier) => Ok(self.with_tier(tier)),
            None => self.with_probed_tier(),
        }
    }

    /// Like [`with_detected_tier`](Self::with_detected_tier), but always probes. The cached tier can be outdated because a
    /// kernel can start to refuse a tier.
    ///
    /// # Errors
    /// Fails if the tier cannot be determined.
    pub fn with_probed_tier(self) -> io::Result<Self> {
        let tier = self.find_tier()?;
        if let Some(file) = &self.tier_cache {
            tier_cache::store(file, &self.executable, tier);
        }
        Ok(self.with_tier(tier))
    }

    /// Returns the tier that confines children and holds their tree together.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Returns the confinement of children; `None` if they have none.
    pub fn confinement(&self) -> Option<&Confinement> {
        self.confinement.as_deref()
    }

    /// Returns a check for directories that belonged to repositories before the first command, even if they changed since.
    pub fn repository_check(&self) -> impl Fn(&Path) -> bool + Send + Sync + 'static {
        let confinement = self.confinement.clone();
        move |directory| confinement.as_ref().is_some_and(|confinement| confinement.was_repository(directory))
    }

    /// Returns a directory in which children may change files but neither list nor create entries, because Landlock rules apply
    /// and something below it is hidden.
    pub fn unlistable_root(&self) -> Option<&Path> {
        (self.tier == Tier::Rules).then(|| self.sandbox())??.ok()?.first_root_with_hidden()
    }

    /// Returns a handle for the signal thread that ends all children at once.
    pub fn registry(&self) -> CommandRegistry {
        self.running.clone()
    }

    /// Runs `spec` to its end, its time limit or `cancel`, whichever is first. No process of its tree survives.
    ///
    /// # Errors
    /// Fails if the program could not be started.
    pub async fn launch(
        &self,
        spec: CommandSpec,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, LaunchError> {
        let options = OutputOptions {
            open_file: None::<fn() -> io::Result<io::Sink>>,
            idle_timeout: None,
            recent: None,
        };
        self.launch_with_output(spec, options, cancel).await
    }

    /// Like [`launch`](Self::launch), with options for the output.
    ///
    /// # Errors
    /// Fails if the program could not be started.
    pub async fn launch_with_output<Open: FnOnce() -> io::Result<Sink>, Sink: Write>(
        &self,
        spec: CommandSpec,
        options: OutputOptions<Open>,
        cancel: &CancellationToken,
    ) -> Result<CommandOutcome, LaunchError> {
        let program = spec.argv.first().cloned().unwrap_or_default();
        let started = Instant::now();
        let capture = Mutex::new(Capture::new(options.open_file, options.recent));
        let mut ended = Ok(ExitReason::Cancelled);
        let mut protected_changes = Vec::new();
        let mut left_running = 0;
        if self.tier == Tier::Group {
            self.wait_for_barrier(cancel).await.map_err(|error| failure(&program, &error))?;
        }
        if !cancel.is_cancelled() {
            let (timeout, cwd) = (spec.timeout, spec.cwd.clone());
            let mut tree = self.start(spec, None).map_err(|error| {
                let is_there = cwd.is_dir();
                let reason = if is_there {
                    error.to_string()
                } else {
                    format!("{} is not a directory", cwd.display())
                };
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
                    () = capture::wait_until_idle(options.idle_timeout, &capture) => Ok(ExitReason::Idle),
                    answer = tree.wait() => answer.map_err(|error| self.launch_error(&program, error)),
                    () = async { pump.as_mut().await; std::future::pending().await } => Ok(ExitReason::Cancelled),
                }
            };
            let reported = tree.end().await;
            left_running = tree.left_running();
            protected_changes =
                tree.take_active().map(|active| self.check_protected(active, reported)).unwrap_or_default();
            if pump.as_mut().output_mut().is_none() {
                let _may_be_held_open = tokio::time::timeout(DRAIN_GRACE, pump).await;
            }
        }
        let ended = ended?;
        let mut capture = capture.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stored = capture.finish();
        let (stdout, stderr, duration) = (capture.stdout, capture.stderr, started.elapsed());
        Ok(CommandOutcome {
            reason: ended,
            stdout,
            stderr,
            stored,
            protected_changes,
            duration,
            left_running,
        })
    }

    /// Waits until children may start or `cancel` is set.
    ///
    /// # Errors
    /// Fails if the journal could not be synced.
    pub async fn wait_for_barrier(&self, cancel: &CancellationToken) -> io::Result<()> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            lifted = self.barrier.wait() => lifted,
        }
    }

    /// Returns the protected files that a command changed. `reported` contains those that its guard restored.
    pub(super) fn check_protected(
        &self,
        active: ActiveCommand,
        reported: Option<Vec<ProtectedChange>>,
    ) -> Vec<ProtectedChange> {
        let sandbox = self.sandbox().and_then(Result::ok);
        sandbox
            .map(|sandbox| sandbox.protection().finish_command(active, reported, &sandbox.quarantine()))
            .unwrap_or_default()
    }

    /// Returns the sandbox if the tier confines commands.
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
                        "the kernel now refuses the sandbox that this run started with ({error}); the command did not run. \
                         The next run detects the available sandbox again"
                    ),
                )
            }
        }
    }

    /// Starts a guard, or the command itself if the tier has no guard.
    pub(super) fn start(&self, spec: CommandSpec, server: Option<ServerInput>) -> io::Result<RunningCommand> {
        let mut env = BTreeMap::clone(&self.environment);
        env.extend(spec.env.clone());
        environment::drop_secrets(&mut env, &self.secrets);
        env.extend(self.mapped.iter().map(|(name, value)| (name.clone(), value.clone())));
        let stdin = server.map(|server| {
            env.extend(server.env);
            server.stdin
        });
        let (stdout, stderr) = (io::pipe()?, io::pipe()?);
        let tier = self.tier;
        let (main, handle) = if tier == Tier::Group {
            start_command(&spec, stdin, env, stdout.1, stderr.1)?
        } else {
            self.start_guarded(spec, stdin.as_ref(), env, [&stdout.1, &stderr.1])?
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
            served: None,
        })
    }

    fn start_guarded(
        &self,
        spec: CommandSpec,
        stdin: Option<&io::PipeReader>,
        mut env: BTreeMap<String, String>,
        outputs: [&dyn AsFd; 2],
    ) -> io::Result<(RootProcess, KillHandle)> {
        let tier = self.tier;
        let sandbox = self.sandbox().transpose()?;
        if let Some(reason) = sandbox.and_then(|sandbox| sandbox.protection().block_reason()) {
            return Err(io::Error::other(reason.to_owned()));
        }
        let policy = sandbox.map(|sandbox| sandbox.protection().policy().clone()).unwrap_or_default();
        let mut confined = policy.clone();
        if let Some(sandbox) = sandbox.filter(|_| self.hides_sensitive && tier.has_own_view()) {
            sandbox.hide_sensitive(&mut confined);
        }
        let quarantine = sandbox.map(PreparedSandbox::quarantine).unwrap_or_default();
        if let Some(sandbox) = sandbox {
            sandbox.set_environment(&mut env, tier);
        }
        let stdin_source = match stdin {
            Some(_) => StdinSource::Descriptor,
            None if spec.stdin.is_empty() => StdinSource::Null,
            None => StdinSource::Bytes(spec.stdin.len() as u64),
        };
        let network = (tier == Tier::Full && !policy.network).then(|| self.network()).transpose()?.flatten();
        let proxy = self.proxy.as_ref().filter(|_| tier.has_own_view() && !policy.network);
        if proxy.is_some() {
            env.extend(proxy_listener::environment());
        }
        let proxy = proxy.filter(|_| tier == Tier::Bubblewrap).cloned();
        let (argv, limits, question) = (spec.argv, self.limits, LaunchRequest::without_command(tier));
        let umask = umask::user_umask();
        let request = LaunchRequest {
            argv,
            policy: confined,
            limits,
            quarantine,
            env,
            umask,
            stdin: stdin_source,
            listens: proxy.is_some(),
            ..question
        };
        let mut request = request.encode()?;
        request.extend(spec.stdin);
        let fork_guard = |first: bool| {
            let baseline = SnapshotRequest { tier, policy: policy.clone() };
            self.fork_guard(&spec.cwd, outputs, first.then_some(&baseline))
        };
        let ((guard, control), active) = match sandbox {
            Some(sandbox) => {
                sandbox.protection().start_command(fork_guard).map(|(guard, active)| (guard, Some(active)))?
            }
            None => (fork_guard(false)?, None),
        };
        NetworkNamespace::send(network, stdin.map(AsFd::as_fd), &control)?;
        let handle = KillHandle::Control(control.try_clone()?);
        control.set_nonblocking(true)?;
        let control = tokio::net::UnixStream::from_std(control)?;
        Ok((RootProcess::Guard { guard, control, request, active, proxy }, handle))
    }

    /// Forks a guard in the directory `cwd` whose command writes to `outputs`. Returns it with this end of its control
    /// socket.
    pub(super) fn fork_guard(
        &self,
        cwd: &Path,
        [stdout, stderr]: [&dyn AsFd; 2],
        baseline: Option<&SnapshotRequest>,
    ) -> io::Result<(Guard, UnixStream)> {
        let (control, theirs) = UnixStream::pair()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let cwd = rustix::fs::open(cwd, flags, Mode::empty())?;
        let descriptors = [theirs.as_fd(), stdout.as_fd(), stderr.as_fd(), cwd.as_fd()];
        Ok((self.fork_server.fork_guard(|| self.own_program(), descriptors, baseline)?, control))
    }

    /// Starts the process from which guards are forked.
    pub(super) fn start_fork_server(&self) -> io::Result<()> {
        self.fork_server.start(|| self.own_program())
    }

    fn own_program(&self) -> Command {
        program_command(self.executable.as_os_str())
    }
}

/// Builds a command. The agent starts processes only through this function.
#[expect(clippy::disallowed_methods, reason = "every child process is started here")]
fn program_command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Starts a command as a direct child.
fn start_command(
    spec: &CommandSpec,
    stdin: Option<io::PipeReader>,
    env: BTreeMap<String, String>,
    stdout: io::PipeWriter,
    stderr: io::PipeWriter,
) -> io::Result<(RootProcess, KillHandle)> {
    let (program, args) =
        spec.argv.split_first().ok_or_else(|| io::Error::other("the command names no program"))?;
    let mut command = program_command(program);
    command.args(args).env_clear().envs(env).current_dir(&spec.cwd).process_group(0);
    let stdin = stdin.map_or_else(|| group_stdin(&spec.stdin), |pipe| Ok(pipe.into()))?;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    let mut command = tokio::process::Command::from(command);
    let child = umask::with_user_umask(|| command.spawn())?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the program exited at once"))?;
    Ok((RootProcess::Command(child), KillHandle::Group(pid)))
}

/// Opens `/dev/null` for writing.
pub(super) fn open_dev_null() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null")
}

/// Opens standard input for a command without launcher: `/dev/null`, or an unnamed file.
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

/// Returns `None`: only Linux has a launcher process.
#[cfg(not(target_os = "linux"))]
pub fn launcher_main(_args: impl IntoIterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}
