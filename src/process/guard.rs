//! Guard: the launcher process that starts one command and outlives its process tree.
//!
//! ```text
//! agent ──socket── guard ──── init (pid 1 of a new namespace) ──── command ──── whatever it starts
//! ```
//!
//! The guard is forked by the fork server, which is the agent's own binary, executed once more per run
//! ([`super::fork_server`]). Inside bubblewrap the guard is a separate execution of the binary.
//!
//! The socket is the guard's standard input. Its end means that the agent is dead, for example by `kill -9`, or has closed it
//! to end the command. The guard then kills init, and the kernel kills everything in the namespace. If the kernel refuses
//! namespaces, the guard is a subreaper and the command its child; at the end it kills descendants until none is left. Finally
//! it compares protected files with the fork server's snapshot and restores them. This work happens here because between fork
//! and exec the agent may only make async-signal-safe calls.

use super::code_pages::unmap_code;
use super::exec;
use super::fd_passing;
use super::fork_server::{SERVER_ARGUMENT, serve::serve};
use super::launch_protocol::{BUBBLEWRAP, LAUNCH_ARGUMENT, LaunchReply, LaunchRequest, StdinSource};
use super::limits::{self, LimitMonitor};
use super::network_namespace::NetworkNamespace;
use super::process_limit::ProcessLimit;
use super::process_tree;
use super::protected::{self, GuardSnapshot, Snapshot};
use super::proxy_listener;
use super::sandbox::{self, View};
use super::syscalls::{self, Fork};
use super::tier::Tier;
use super::watch::{Role, WatchOutcome, reply_for, watch};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::MemfdFlags;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::UnshareFlags;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Largest reply, in bytes, that is forwarded from inside bubblewrap.
const MAX_REPLY_BYTES: u64 = 2 * LaunchReply::BYTES as u64;

/// Maximum time until the process inside bubblewrap has sent its listener.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of processes that supervise a command: its guard, the fork server and the agent.
const HOLDERS: usize = 3;

/// OOM score adjustment of a command (-1000 to 1000). It makes the kernel kill a command before the agent.
const OOM_SCORE_ADJUSTMENT: &str = "500";

/// Runs the launcher if `args`, which start with the program's name, request it. Otherwise returns `None`.
pub fn launcher_main(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let first = args.into_iter().nth(1)?;
    let (serves, guards) = (first == OsStr::new(SERVER_ARGUMENT), first == OsStr::new(LAUNCH_ARGUMENT));
    (serves || guards).then(|| {
        let control = rustix::stdio::stdin().try_clone_to_owned();
        let control = if serves {
            control.and_then(|requests| serve(&requests))
        } else {
            control.map(|own| Some((File::from(own), None)))
        };
        let done = control.and_then(|beginning| {
            beginning.map_or(Ok(()), |(control, snapshot)| run_request(control, snapshot))
        });
        if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    })
}

/// Reads the request and carries it out. `snapshot` contains the protected files before the command.
fn run_request(mut control: File, snapshot: Option<GuardSnapshot>) -> io::Result<()> {
    let mut network = NetworkNamespace::receive(&control)?;
    let mut request = LaunchRequest::read(&mut control)?;
    let stdin = if request.stdin == StdinSource::Descriptor { network.take_last() } else { None };
    let snapshot = snapshot.filter(|_| request.tier.confines());
    if snapshot.is_none() && request.tier.confines() && !request.in_bubblewrap && !request.argv.is_empty() {
        let error = io::Error::other("the snapshot of protected files is missing");
        LaunchReply::not_started(&error).send(&mut control);
        return Err(error);
    }
    if request.tier == Tier::Bubblewrap && !request.in_bubblewrap {
        let result = through_bubblewrap(&mut request, snapshot, stdin.as_ref(), &mut control);
        return refused_if_failed(result, &mut control);
    }
    let stdin = match stdin {
        Some(passed) => passed,
        None => standard_input(&mut control, request.stdin.bytes())?,
    };
    // Kernels before 5.11 cannot mark a range. std already marks everything that it opens.
    let _best_effort = syscalls::close_others_on_exec();
    if request.makes_network {
        return make_network(&control, request.listens);
    }
    limits::apply()?;
    let _best_effort = write_proc("/proc/self/oom_score_adj", OOM_SCORE_ADJUSTMENT);
    let result = match request.tier {
        Tier::Bubblewrap => run_in_bubblewrap(&request, &stdin, &mut control),
        Tier::Full | Tier::Namespace => in_namespace(&request, snapshot, &network, &stdin, &mut control),
        Tier::Rules | Tier::Subreaper | Tier::Group => as_subreaper(&request, snapshot, &stdin, &mut control),
    };
    refused_if_failed(result, &mut control)
}

fn refused_if_failed(result: io::Result<()>, control: &mut File) -> io::Result<()> {
    if let Err(error) = &result {
        LaunchReply::refused(error).send(control);
    }
    result
}

/// Starts this binary inside bubblewrap and forwards the request to it.
#[expect(clippy::disallowed_methods, reason = "this is where commands are started")]
fn through_bubblewrap(
    request: &mut LaunchRequest,
    snapshot: Option<GuardSnapshot>,
    stdin: Option<&OwnedFd>,
    control: &mut File,
) -> io::Result<()> {
    let baseline = snapshot.map(GuardSnapshot::wait);
    let own = File::open("/proc/self/exe")?;
    rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::empty())?;
    let is_root = rustix::process::geteuid().is_root();
    let arguments = sandbox::bubblewrap::arguments(&request.policy, &std::env::current_dir()?, is_root);
    let (mut ours, theirs) = UnixStream::pair()?;
    // Once bubblewrap was killed, this process must wait for the first process inside, and so for all others there.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    request.in_bubblewrap = true;
    let monitor = limit_monitor(request);
    if matches!(monitor.process_limit, ProcessLimit::Cgroup(_)) {
        monitor.enter()?;
    }
    let wrapper = {
        // Dropping the command closes this process's copy of the other end.
        let mut command = Command::new(BUBBLEWRAP);
        command.args(arguments).arg(format!("/proc/self/fd/{}", own.as_raw_fd())).arg(LAUNCH_ARGUMENT);
        command.env_clear().stdin(OwnedFd::from(theirs)).process_group(0).spawn()?
    };
    let wrapper = Pid::from_raw(i32::try_from(wrapper.id()).unwrap_or(0)).ok_or(io::ErrorKind::NotFound)?;
    let sent = NetworkNamespace::send(None, stdin.map(AsFd::as_fd), &ours)
        .and_then(|()| io::Write::write_all(&mut ours, &request.encode()?))
        .and_then(|()| io::copy(&mut control.take(request.stdin.bytes()), &mut ours));
    let reply_start = if request.listens && sent.is_ok() { forward_listener(&ours, control) } else { None };
    let watched = watch(control, wrapper, Role::Wrapper, None, &monitor);
    if !matches!(watched, WatchOutcome::Ended(_)) {
        let _already_gone = rustix::process::kill_process(wrapper, Signal::KILL);
    }
    process_tree::sweep();
    monitor.process_limit.leave();
    drop(monitor);
    let mut answer = match watched {
        WatchOutcome::Exceeded(excess) => LaunchReply::Exceeded(excess).encode().to_vec(),
        WatchOutcome::Ended(_) | WatchOutcome::Alone | WatchOutcome::Abandoned => {
            reply_start.into_iter().collect()
        }
    };
    // The end of the stream means that no process inside can still reply.
    let _may_be_partial = (&mut ours).take(MAX_REPLY_BYTES).read_to_end(&mut answer);
    if answer.is_empty() {
        let why = sent.err().and_then(|error| error.raw_os_error());
        answer.extend(LaunchReply::Refused(why.unwrap_or(rustix::io::Errno::PERM.raw_os_error())).encode());
    }
    restore_protected(baseline.as_ref(), request, control, &answer);
    Ok(())
}

/// Forwards the listener that the process inside bubblewrap sends first. If it could not create one, returns the first byte of its
/// reply.
fn forward_listener(inside: &UnixStream, control: &File) -> Option<u8> {
    let mut byte = [0];
    let _best_effort = inside.set_read_timeout(Some(LISTENER_TIMEOUT));
    let received = fd_passing::receive(inside, &mut byte);
    let _best_effort = inside.set_read_timeout(None);
    match received {
        Ok(listener) if listener.is_empty() => byte.first().copied(),
        Ok(listener) => {
            let listener: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
            let _peer_may_be_gone = fd_passing::send(control, &[0], &listener);
            None
        }
        // The process inside is gone, and so the command is too.
        Err(_) => None,
    }
}

/// Starts the command as process 1 of the namespaces that bubblewrap created.
fn run_in_bubblewrap(request: &LaunchRequest, stdin: &OwnedFd, control: &mut File) -> io::Result<()> {
    rustix::process::setsid()?;
    let monitor = limit_monitor(request);
    monitor.enter()?;
    if request.listens {
        let network = NetworkNamespace::default().with_listener(proxy_listener::listen()?);
        NetworkNamespace::send(Some(&network), None, &*control)?;
    }
    sandbox::confine(&request.policy, View::Own)?;
    start_and_reap(request, &monitor, stdin, control)
}

/// Returns the limit monitor for the command of `request`. A probe has no process limit, because it is killed and could not
/// remove its cgroup.
fn limit_monitor(request: &LaunchRequest) -> LimitMonitor {
    LimitMonitor::new(&request.limits, if request.argv.is_empty() { Tier::Group } else { request.tier })
}

/// Opens the command's standard input: `/dev/null`, or a memory file with the bytes that follow the request.
fn standard_input(control: &mut File, bytes: u64) -> io::Result<OwnedFd> {
    if bytes == 0 {
        return Ok(File::open("/dev/null")?.into());
    }
    let mut file = File::from(rustix::fs::memfd_create("stdin", MemfdFlags::CLOEXEC)?);
    io::copy(&mut control.take(bytes), &mut file)?;
    file.rewind()?;
    Ok(file.into())
}

/// Starts the command below an init process in a new pid namespace.
fn in_namespace(
    request: &LaunchRequest,
    snapshot: Option<GuardSnapshot>,
    network: &NetworkNamespace,
    stdin: &OwnedFd,
    control: &mut File,
) -> io::Result<()> {
    enter_namespaces(request, network)?;
    let (guard_end, lifeline) = UnixStream::pair()?;
    let alone = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
    let monitor = limit_monitor(request);
    match syscalls::fork()? {
        Fork::Child => {
            drop(guard_end);
            let has_own_network = !request.policy.network && network.is_empty();
            let done = init(request, &monitor, has_own_network, stdin, control, &lifeline);
            if done.is_ok() && has_no_children() {
                release_output(control);
                let _exit_signals_it_too = rustix::io::write(&alone, &1_u64.to_ne_bytes());
            }
            syscalls::exit_immediately(refused_if_failed(done, control).is_ok())
        }
        Fork::Parent(init) => {
            drop(lifeline);
            let baseline = snapshot.map(GuardSnapshot::wait);
            let _init_may_have_failed = io::Write::write_all(&mut &guard_end, &[0]);
            unmap_code();
            let watched = watch(control, init, Role::Wrapper, Some(alone.as_fd()), &monitor);
            // Waiting for init includes waiting for the whole namespace.
            let await_init = || rustix::process::waitpid(Some(init), WaitOptions::empty());
            if matches!(watched, WatchOutcome::Abandoned | WatchOutcome::Exceeded(_)) {
                let _already_gone = rustix::process::kill_process(init, Signal::KILL);
                let _reaped = await_init();
            }
            if let WatchOutcome::Exceeded(excess) = watched {
                LaunchReply::Exceeded(excess).send(control);
            }
            restore_protected(baseline.as_ref(), request, control, &[]);
            hang_up(control);
            if matches!(watched, WatchOutcome::Alone) {
                let _reaped = await_init();
            }
            drop(monitor);
            syscalls::exit_immediately(true)
        }
    }
}

/// Checks whether all processes of the command are gone. Orphans of the namespace become children of its process 1.
fn has_no_children() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Releases the command's output and directory and shuts the socket down. The agent, which reads the output to its end, then
/// need not wait until the kernel has removed the guard.
fn hang_up(control: &File) {
    release_output(control);
    let _peer_may_be_gone = rustix::net::shutdown(control, rustix::net::Shutdown::Both);
}

/// Releases the command's output and directory.
fn release_output(control: &File) {
    let _released_at_exit = rustix::stdio::dup2_stdout(control)
        .and_then(|()| rustix::stdio::dup2_stderr(control))
        .and_then(|()| rustix::process::chdir("/"));
}

/// Enters a new pid namespace, and for a confined command all other new namespaces except the mount namespace, which init
/// creates so that the guard still sees the host's mounts. Joins the network of the run if there is one. The user namespace is
/// not shared because the kernel counts processes per user namespace.
fn enter_namespaces(request: &LaunchRequest, network: &NetworkNamespace) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWPID;
    if request.tier == Tier::Full {
        flags |= UnshareFlags::NEWIPC;
        flags.set(UnshareFlags::NEWNET, !request.policy.network && network.is_empty());
    }
    network.join()?;
    unshare(flags)
}

/// Creates the network of a run and sends it to the agent.
fn make_network(control: &File, listens: bool) -> io::Result<()> {
    unshare(UnshareFlags::NEWNET)?;
    syscalls::loopback_up()?;
    let own_users = !rustix::process::geteuid().is_root();
    let mut network = NetworkNamespace::of_this_process(own_users)?;
    if listens {
        network = network.with_listener(proxy_listener::listen()?);
    }
    NetworkNamespace::send(Some(&network), None, control)
}

/// Moves into new namespaces. Without root, this includes a new user namespace that maps only the current user.
fn unshare(flags: UnshareFlags) -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        // Root without the capability is root of a container. A user namespace with one user would remove its access to other
        // users' files, so the subreaper is preferable.
        return syscalls::unshare(flags);
    }
    syscalls::unshare(UnshareFlags::NEWUSER | flags)?;
    write_proc("/proc/self/setgroups", "deny")?;
    write_proc("/proc/self/uid_map", &format!("{0} {0} 1", user.as_raw()))?;
    write_proc("/proc/self/gid_map", &format!("{0} {0} 1", group.as_raw()))
}

fn write_proc(path: &str, text: &str) -> io::Result<()> {
    io::Write::write_all(&mut File::options().write(true).open(path)?, text.as_bytes())
}

/// Runs process 1 of the namespace: starts the command once the guard has the snapshot of protected files, and reaps orphans.
/// Its exit ends the namespace.
fn init(
    request: &LaunchRequest,
    monitor: &LimitMonitor,
    has_own_network: bool,
    stdin: &OwnedFd,
    control: &mut File,
    lifeline: &UnixStream,
) -> io::Result<()> {
    die_with_parent(lifeline)?;
    monitor.enter()?;
    rustix::process::setsid()?;
    syscalls::unshare(UnshareFlags::NEWNS)?;
    pass_mounts_to_guard(lifeline);
    if request.tier == Tier::Full {
        let cwd = std::env::current_dir()?;
        sandbox::mounts::apply(&request.policy)?;
        rustix::process::chdir(cwd)?;
        if has_own_network {
            syscalls::loopback_up()?;
        }
        sandbox::confine(&request.policy, View::Own)?;
    } else {
        rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount("proc", "/proc", "proc", flags, None)?;
    }
    (&mut &*lifeline).read_exact(&mut [0])?;
    start_and_reap(request, monitor, stdin, control)
}

/// Sends the mount namespace over the lifeline, which the guard never reads, so that the mounts last until the guard is gone.
/// The command's end then does not wait for the kernel to unmount them, which is slow.
fn pass_mounts_to_guard(lifeline: &UnixStream) {
    let _best_effort = File::open("/proc/self/ns/mnt")
        .and_then(|mounts| fd_passing::send(lifeline, &[0], &[mounts.as_fd()]));
}

/// Starts the command, reaps orphans, and replies when the command has ended.
fn start_and_reap(
    request: &LaunchRequest,
    monitor: &LimitMonitor,
    stdin: &OwnedFd,
    control: &mut File,
) -> io::Result<()> {
    if request.argv.is_empty() {
        probe_reply(request, View::Own).send(control);
        return Ok(());
    }
    let main = match exec::start(request, stdin, |command| command.process_group(0).spawn()) {
        Ok(child) => Pid::from_raw(i32::try_from(child.id()).unwrap_or(0)),
        Err(error) => {
            LaunchReply::not_started(&error).send(control);
            return Ok(());
        }
    };
    unmap_code();
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == main => {
                reply_for(status, monitor).send(control);
                return Ok(());
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes this process die with the guard. If the guard's end of `lifeline` is open after the death signal was set, the guard
/// did not die before.
fn die_with_parent(lifeline: &impl AsFd) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut ends = [PollFd::new(lifeline, PollFlags::IN)];
    rustix::event::poll(&mut ends, Some(&Timespec::default()))?;
    if ends.iter().any(|end| end.revents().contains(PollFlags::HUP)) {
        return Err(io::Error::from(io::ErrorKind::BrokenPipe));
    }
    Ok(())
}

/// Starts the command as a child of this process and kills all descendants after it.
fn as_subreaper(
    request: &LaunchRequest,
    snapshot: Option<GuardSnapshot>,
    stdin: &OwnedFd,
    control: &mut File,
) -> io::Result<()> {
    let baseline = snapshot.map(GuardSnapshot::wait);
    let monitor = limit_monitor(request);
    let guard = rustix::process::getpid();
    let holders: Vec<Pid> =
        std::iter::successors(Some(guard), |pid| process_tree::parent(*pid)).take(HOLDERS).collect();
    rustix::process::set_child_subreaper(Some(guard))?;
    let (lifeline, guard_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match syscalls::fork()? {
        Fork::Child => {
            drop(guard_end);
            die_with_parent(&lifeline)?;
            rustix::process::setsid()?;
            monitor.enter()?;
            if request.tier == Tier::Rules {
                sandbox::confine(&request.policy, View::Shared)?;
                sandbox::signal_filter::refuse_signals_to(&holders)?;
            }
            if request.argv.is_empty() {
                probe_reply(request, View::Shared).send(control);
            } else if let Err(error) = exec::start::<()>(request, stdin, |command| Err(command.exec())) {
                LaunchReply::not_started(&error).send(control);
            }
        }
        Fork::Parent(main) => {
            syscalls::ignore_hangup();
            let answer = match watch(control, main, Role::Command, None, &monitor) {
                WatchOutcome::Ended(status) => Some(reply_for(status, &monitor)),
                WatchOutcome::Exceeded(excess) => {
                    // Killed first because it could start more processes during the sweep.
                    let _already_gone = rustix::process::kill_process(main, Signal::KILL);
                    Some(LaunchReply::Exceeded(excess))
                }
                WatchOutcome::Alone | WatchOutcome::Abandoned => None,
            };
            process_tree::sweep();
            if let Some(answer) = answer {
                answer.send(control);
            }
            restore_protected(baseline.as_ref(), request, control, &[]);
            hang_up(control);
            drop(monitor);
            syscalls::exit_immediately(true)
        }
    }
    Ok(())
}

/// Restores protected files once all processes of the command are gone, and sends the report after `answer`. An empty report is
/// sent too, so that a missing one is detected.
fn restore_protected(
    baseline: Option<&Snapshot>,
    request: &LaunchRequest,
    control: &mut File,
    answer: &[u8],
) {
    let _peer_may_be_gone = io::Write::write_all(control, answer);
    if let Some(baseline) = baseline.filter(|_| !request.argv.is_empty()) {
        let report = protected::report::encode(&baseline.restore(&request.quarantine)).unwrap_or_default();
        let _peer_may_be_gone = io::Write::write_all(control, &report);
    }
}

/// Runs the probe of `request` and returns its result. Without a probe the result is 0.
fn probe_reply(request: &LaunchRequest, view: View) -> LaunchReply {
    LaunchReply::Exited(request.probe.as_ref().map_or(0, |probe| sandbox::probe::run(probe, view).0))
}
