//! The agent under a debugger that lets it die, or refuses something, at the n-th system call that changes what is on disk.

use super::run::{Lab, PATIENCE, program};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// Runs that are interrupted at the same time: each waits most of its time for its disk and its commands.
const AT_ONCE: u64 = 2;

/// Calls `interrupt` with each number below `points`, and prints the sum of what it returns: calls whose outcome is unknown or that failed.
pub fn at_each_of(points: u64, what: &str, interrupt: impl Fn(u64) -> usize + Sync) {
    let (next, disturbed, begun) = (AtomicU64::new(0), AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(point) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|it| *it < points) {
                    let calls = interrupt(point);
                    disturbed.fetch_add(calls.try_into().unwrap(), Ordering::Relaxed);
                }
            });
        }
    });
    eprintln!("{what}: {points} points, {disturbed:?} calls disturbed, {:?}", begun.elapsed());
}

/// Tells a copy of this test binary to become the agent with these arguments, stopped at what changes files.
const ARGUMENTS: &str = "AGENT_TEST_DYING";

/// What a call does to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Write,
    Rename,
    Sync,
    Link,
    Unlink,
}

const KINDS: [Kind; 5] = [Kind::Write, Kind::Rename, Kind::Sync, Kind::Link, Kind::Unlink];

/// What happens at the n-th call, counted from the first that makes something durable, which is number 0: until then nothing
/// is changed but in the directory of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The agent is killed before it.
    Death(usize),
    /// The call fails with this number.
    Refusal(usize, Errno),
    /// From it on this disk is full: of what is written at it half arrives, and then nothing more can be written or synced.
    Full(usize, Disk),
}

/// What lies on the disk that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// Workspace and sessions.
    Both,
    Workspace,
    /// The directory of the user, which holds the sessions.
    State,
}

impl Disk {
    fn of(self, lab: &Lab) -> PathBuf {
        match self {
            Self::Both => lab.outside(),
            Self::Workspace => lab.ws(),
            Self::State => lab.home(),
        }
    }
}

/// A run that was watched to its end.
#[derive(Debug)]
pub struct Watched {
    /// What it did from there on, up to its death.
    pub calls: Vec<Kind>,
    /// What it exited with; nothing when it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the agent of `lab` with `fault`; nothing where nobody may watch another process.
pub fn watched(lab: &Lab, args: &[&str], fault: Fault) -> Option<Watched> {
    let [answer, log] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let mut stand_in = Command::new(std::env::current_exe().unwrap());
    stand_in
        .args(["--exact", "support::syscall_faults::stand_in_dying", "--nocapture", "--test-threads", "1"])
        .current_dir(lab.ws())
        .env_clear()
        .envs(lab.command(args).get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(ARGUMENTS, serde_json::to_string(args).unwrap())
        .stdin(Stdio::null())
        .stdout(answer.reopen().unwrap())
        .stderr(log.reopen().unwrap());
    if let Some(uid) = lab.uid() {
        stand_in.uid(uid).gid(uid);
    }
    let agent = Pid::from_raw(stand_in.spawn().unwrap().id().try_into().unwrap());
    let disk = match fault {
        Fault::Full(_, disk) => disk.of(lab).canonicalize().unwrap(),
        _ => PathBuf::new(),
    };
    let (calls, code) = ended_in_time(agent, || watch(agent, fault, &disk));
    let [stdout, stderr] = [answer, log].map(|file| fs::read_to_string(file.path()).unwrap());
    if stderr.contains(NOT_ALLOWED) {
        eprintln!("nobody may watch another process here");
        return None;
    }
    Some(Watched { calls, code, stdout, stderr })
}

/// What the stand-in says where it may not be watched.
const NOT_ALLOWED: &str = "cannot be watched";

/// Kills `agent` when `watching` it takes too long: what hangs has no exit code.
fn ended_in_time<T>(agent: Pid, watching: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        scope.spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = signal::kill(agent, Signal::SIGKILL);
            }
        });
        let watched = watching();
        drop(ended);
        watched
    })
}

/// Lets everything go on that `agent` starts, and it too until its fault; returns when all of them have ended.
fn watch(agent: Pid, fault: Fault, disk: &Path) -> (Vec<Kind>, Option<i32>) {
    let (mut calls, mut code, mut began) = (Vec::new(), None, false);
    // Other tests have children too.
    let ours = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        let (stopped, signal) = match waitpid(None, Some(ours)) {
            Ok(WaitStatus::Exited(pid, found)) => {
                code = if pid == agent { Some(found) } else { code };
                continue;
            }
            Ok(WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_SECCOMP)) => {
                if Path::new(&format!("/proc/{agent}/task/{pid}")).exists() {
                    let kind = KINDS[usize::try_from(ptrace::getevent(pid).unwrap()).unwrap()];
                    let counts = kind == Kind::Sync || !calls.is_empty();
                    if counts && !(kind == Kind::Write && only_tells(pid)) {
                        meet(pid, agent, calls.len(), kind, fault, disk);
                        calls.push(kind);
                    }
                }
                (pid, None)
            }
            Ok(WaitStatus::Stopped(pid, Signal::SIGTRAP)) if pid == agent && !began => {
                began = true;
                ptrace::setoptions(agent, everything()).unwrap();
                (pid, None)
            }
            // Each new thread and process is told, and begins stopped.
            Ok(WaitStatus::PtraceEvent(pid, ..) | WaitStatus::Stopped(pid, Signal::SIGSTOP)) => (pid, None),
            Ok(WaitStatus::Stopped(pid, signal)) => (pid, Some(signal)),
            Ok(_) => continue,
            Err(Errno::ECHILD) => return (calls, code),
            Err(error) => panic!("{error}"),
        };
        // One that was killed meanwhile cannot go on.
        let _ = ptrace::cont(stopped, signal);
    }
}

/// Whether what `thread` is about to write only wakes another thread, or tells another process what to get ready: it is a
/// matter of time whether one sleeps, and whether that comes before the first sync.
fn only_tells(thread: Pid) -> bool {
    let tells = |named: &Path| {
        named == Path::new("anon_inode:[eventfd]") || named.to_string_lossy().starts_with("pipe:")
    };
    file_of(thread).is_some_and(|named| tells(&named))
}

/// What the first argument of the call of `thread` is, as a file.
fn file_of(thread: Pid) -> Option<PathBuf> {
    let call = fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    let file = u32::from_str_radix(call.split(' ').nth(1)?.trim_start_matches("0x"), 16).ok()?;
    fs::read_link(format!("/proc/{thread}/fd/{file}")).ok()
}

/// What becomes of the call of `thread` when `disk` is full; of what the `first` writes half arrives.
fn overflow(thread: Pid, kind: Kind, first: bool, disk: &Path) {
    let needs_room = matches!(kind, Kind::Write | Kind::Sync);
    if !needs_room || !file_of(thread).is_some_and(|file| file.starts_with(disk)) {
        return;
    }
    if first && kind == Kind::Write { halve(thread) } else { refuse(thread, Errno::ENOSPC) }
}

fn everything() -> Options {
    Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL
}

/// What becomes of the call of `thread` with this number and of this kind.
fn meet(thread: Pid, agent: Pid, number: usize, kind: Kind, fault: Fault, disk: &Path) {
    match fault {
        Fault::Death(at) if at == number => signal::kill(agent, Signal::SIGKILL).unwrap(),
        Fault::Refusal(at, errno) if at == number => refuse(thread, errno),
        Fault::Full(from, _) if from <= number => overflow(thread, kind, from == number, disk),
        Fault::None | Fault::Death(_) | Fault::Refusal(..) | Fault::Full(..) => {}
    }
}

/// Whether calls can be refused here.
pub const REFUSES: bool = cfg!(target_arch = "x86_64");

/// Whether a disk can be full here. Which file a call is about only root sees: the agent lets nobody else look into it.
pub fn fills() -> bool {
    let fills = REFUSES && rustix::process::geteuid().is_root();
    if !fills {
        eprintln!("no disk can be full here");
    }
    fills
}

#[cfg(target_arch = "x86_64")]
fn refuse(thread: Pid, errno: Errno) {
    let mut registers = ptrace::getregs(thread).unwrap();
    // No call has this number, so that none is made; what it answers is what it fails with.
    registers.orig_rax = u64::MAX;
    registers.rax = i64::from(-(errno as i32)).cast_unsigned();
    ptrace::setregs(thread, registers).unwrap();
}

/// Lets a write take half of what it was given.
#[cfg(target_arch = "x86_64")]
fn halve(thread: Pid) {
    let mut registers = ptrace::getregs(thread).unwrap();
    if registers.orig_rax != u64::try_from(libc::SYS_writev).unwrap() {
        registers.rdx = registers.rdx.div_ceil(2);
        ptrace::setregs(thread, registers).unwrap();
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn halve(_thread: Pid) {}

#[cfg(not(target_arch = "x86_64"))]
fn refuse(_thread: Pid, _errno: Errno) {}

/// The calls of a kind that this architecture has; a write to the terminal changes no file.
fn calls(kind: Kind) -> Vec<(i64, Vec<SeccompRule>)> {
    let beyond = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Gt, 2).unwrap();
    let to_files = || vec![SeccompRule::new(vec![beyond.clone()]).unwrap()];
    match kind {
        Kind::Write => {
            [libc::SYS_write, libc::SYS_pwrite64, libc::SYS_writev].map(|call| (call, to_files())).into()
        }
        Kind::Rename => any(&[libc::SYS_renameat, libc::SYS_renameat2], &old::RENAME),
        Kind::Sync => any(&[libc::SYS_fsync, libc::SYS_fdatasync], &[]),
        Kind::Link => any(&[libc::SYS_linkat, libc::SYS_symlinkat], &old::LINK),
        Kind::Unlink => any(&[libc::SYS_unlinkat], &old::UNLINK),
    }
}

fn any(calls: &[i64], older: &[i64]) -> Vec<(i64, Vec<SeccompRule>)> {
    calls.iter().chain(older).map(|call| (*call, Vec::new())).collect()
}

/// Calls that newer architectures do not have.
#[cfg(target_arch = "x86_64")]
mod old {
    pub const RENAME: [i64; 1] = [libc::SYS_rename];
    pub const LINK: [i64; 2] = [libc::SYS_link, libc::SYS_symlink];
    pub const UNLINK: [i64; 2] = [libc::SYS_unlink, libc::SYS_rmdir];
}

#[cfg(not(target_arch = "x86_64"))]
mod old {
    pub const RENAME: [i64; 0] = [];
    pub const LINK: [i64; 0] = [];
    pub const UNLINK: [i64; 0] = [];
}

/// Stops this thread, and whatever it becomes, at the calls of each kind.
fn stop_at_changes() {
    let arch = std::env::consts::ARCH.try_into().unwrap();
    for (number, kind) in (0..).zip(KINDS) {
        let (rules, stop) = (calls(kind).into_iter().collect(), SeccompAction::Trace(number));
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, stop, arch).unwrap();
        let program: seccompiler::BpfProgram = filter.try_into().unwrap();
        seccompiler::apply_filter(&program).unwrap();
    }
}

/// Not a test: becomes the agent, watched by whoever started it.
#[test]
fn stand_in_dying() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let arguments: Vec<String> = serde_json::from_str(&arguments).unwrap();
    if let Err(error) = ptrace::traceme() {
        panic!("{NOT_ALLOWED}: {error}");
    }
    stop_at_changes();
    let error = Command::new(program()).args(arguments).env_remove(ARGUMENTS).exec();
    panic!("{error}");
}
