//! Runs the real binary in a hermetic directory: its own workspace, home and environment.

use crate::support::server::Server;
use agent_config::environment::Environment;
use agent_run::app::App;
use agent_terminal::{StreamInfo, Terminal, TerminalEnvironment};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// How long a test waits for anything before it gives up.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A key that must never appear anywhere but in the Authorization header.
pub const KEY: &str = "sk-test-0123456789abcdef";

/// The configuration for tests whose model makes again and again what is looked at: no breaker ends the run.
pub const NO_BREAKERS: &str =
    "loop: {max_repeated_calls: 0, repeat_window: 0, max_consecutive_errors: 0, max_same_errors: 0}\n";

/// The options with which no call needs an approval.
pub const YOLO: [&str; 2] = ["--mode", "yolo"];

/// Names the program that is tested instead of the one that Cargo built: a copy in another place.
pub const PROGRAM: &str = "AGENT_TEST_PROGRAM";

/// The commands that need a process of their own: other programs of this project perform them, they talk with a client on standard input, or they look at
/// their own program.
const PROCESS_COMMANDS: [&str; 11] =
    ["submit", "tasks", "worker", "hub", "health", "acp", "exec", "mcp", "serve", "demo", "doctor"];

/// Returns the path of the program that is tested.
pub fn program() -> String {
    std::env::var(PROGRAM).unwrap_or_else(|_| env!("CARGO_BIN_EXE_agent").to_owned())
}

/// A workspace and a home of their own, and how the binary is called in them.
pub struct Lab {
    dir: tempfile::TempDir,
    env: Vec<(String, String)>,
    stdin: Option<Vec<u8>>,
    uid: Option<u32>,
    umask: Option<u32>,
    program: PathBuf,
    is_process: bool,
    forged: AtomicBool,
}

/// What a finished run left.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("ws")).unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        Self {
            dir,
            env: Vec::new(),
            stdin: None,
            uid: None,
            umask: None,
            program: program().into(),
            is_process: false,
            forged: AtomicBool::new(false),
        }
    }

    /// A workspace with the file `a.txt`, which has one line, `alpha`.
    pub fn with_a_txt() -> Self {
        Self::new().file("a.txt", "alpha\n")
    }

    /// A workspace that is a repository of one commit, with the file `a.txt`, which has one line, `first`.
    pub fn repository() -> Self {
        Self::new().file("a.txt", "first\n").committed()
    }

    pub fn ws(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A directory beside the workspace.
    pub fn outside(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    /// Writes a file of the workspace.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.ws().join(path), content.as_ref());
        self
    }

    /// Writes an executable file of the workspace.
    pub fn script(self, path: &str, content: &str) -> Self {
        let lab = self.file(path, content);
        fs::set_permissions(lab.ws().join(path), fs::Permissions::from_mode(0o755)).unwrap();
        lab
    }

    /// Writes the user's configuration.
    pub fn config(self, yaml: &str) -> Self {
        write(&self.home().join("config.yaml"), yaml.as_bytes());
        self
    }

    /// Writes a pipeline beside the workspace, `../p.yaml`.
    pub fn pipeline(self, yaml: impl AsRef<[u8]>) -> Self {
        self.file("../p.yaml", yaml)
    }

    /// Makes a repository of the workspace with one commit of all files on the branch `main`.
    pub fn committed(self) -> Self {
        self.commit_all();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What comes through a pipe on standard input; without it standard input is `/dev/null`.
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(bytes.as_ref().to_vec());
        self
    }

    /// Runs as the unprivileged user 65534 when the tests run as root.
    pub fn unprivileged(mut self) -> Self {
        if rustix::process::geteuid().is_root() {
            self.uid = Some(65534);
            let mut todo = vec![self.dir.path().to_owned()];
            while let Some(path) = todo.pop() {
                std::os::unix::fs::lchown(&path, Some(65534), Some(65534)).unwrap();
                if path.is_dir() && !path.is_symlink() {
                    todo.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                }
            }
        }
        self
    }

    /// Starts the program for every command: the test is about what only a process has, such as its memory, its children or its limits.
    pub fn started(mut self) -> Self {
        self.is_process = true;
        self
    }

    /// Runs under this umask.
    pub fn umask(mut self, umask: u32) -> Self {
        self.umask = Some(umask);
        self
    }

    /// Runs this copy of the binary.
    pub fn executable(mut self, program: &Path) -> Self {
        program.clone_into(&mut self.program);
        self
    }

    /// The binary that it runs.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The user it runs as, when that is another.
    pub fn uid(&self) -> Option<u32> {
        self.uid
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.ws().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.ws().join(path).symlink_metadata().is_ok()
    }

    /// A pipe with a name in the workspace, held open so that nobody waits for its other end.
    pub fn pipe(&self, name: &str) -> fs::File {
        let path = self.ws().join(name);
        let mode = rustix::fs::Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        fs::File::options().read(true).write(true).open(path).unwrap()
    }

    /// Waits until a file of the workspace is there: the sign that a command or a hook has begun.
    #[track_caller]
    pub fn wait_for_file(&self, path: &str) {
        let file = self.ws().join(path);
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        let appears = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&watch, file.parent().unwrap(), appears).unwrap();
        let patience = Timespec::try_from(PATIENCE).unwrap();
        while !self.exists(path) {
            let mut ready = [PollFd::new(&watch, PollFlags::IN)];
            assert!(poll(&mut ready, Some(&patience)).unwrap() > 0, "waited too long for {path}");
            inotify::Reader::new(&watch, &mut [MaybeUninit::uninit(); 4096]).next().unwrap();
        }
    }

    /// The newest session's journal.
    pub fn journal(&self) -> PathBuf {
        self.journals().pop().expect("there is a session")
    }

    /// The test writes journals itself: they need not go the same way again.
    pub fn forges(&self) {
        self.forged.store(true, Ordering::Relaxed);
    }

    /// The journals of all sessions, oldest first.
    pub fn journals(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.home()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.ends_with("journal.jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The directory of session `id`.
    pub fn session_dir(&self, id: &str) -> PathBuf {
        let mut newest = self.journal();
        newest.pop();
        newest.with_file_name(id)
    }

    /// Lets session `id` look as if nothing had happened in it for so many days.
    pub fn age(&self, id: &str, days: u64) {
        let journal = self.session_dir(id).join("journal.jsonl");
        let journal = fs::File::options().append(true).open(journal).unwrap();
        journal.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400 + 60)).unwrap();
    }

    /// Runs git in the workspace and returns its standard output; new repositories have the branch `main`.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").args(identity).args(args).current_dir(self.ws()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    /// Makes a repository of the workspace with one commit of all files on the branch `main`.
    pub fn commit_all(&self) {
        self.git(&["init", "-q"]);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", "first"]);
    }

    /// Checks that the newest session, replayed, is the same to its end.
    #[track_caller]
    pub fn assert_replays(&self) {
        let replayed = self.agent(&["replay"]).exits(0);
        assert!(replayed.stdout.contains("identical to its end"), "{}", replayed.stdout);
    }

    /// The command with these arguments, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = match self.umask {
            None => Command::new(&self.program),
            Some(umask) => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("umask {umask:03o}; exec \"$0\" \"$@\"")]).arg(&self.program);
                shell
            }
        };
        command
            .args(args)
            .current_dir(self.ws())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("AGENT_HOME", self.home())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Starts the binary.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().unwrap();
        if let (Some(bytes), Some(mut pipe)) = (self.stdin.clone(), child.stdin.take()) {
            std::thread::spawn(move || {
                let _ = pipe.write_all(&bytes);
            });
        }
        Running::new(child)
    }

    /// Runs the command to its end: in this process, unless it needs a process of its own.
    pub fn agent(&self, args: &[&str]) -> Finished {
        if self.needs_process(args) { self.start(args).finish() } else { self.agent_here(args) }
    }

    /// Whether something is set that a process has only once, or the program is not the one of this build.
    fn needs_process(&self, args: &[&str]) -> bool {
        self.is_process
            || self.stdin.is_some()
            || self.uid.is_some()
            || self.umask.is_some()
            || args.first().is_none_or(|first| PROCESS_COMMANDS.contains(first) || first.starts_with('-'))
            || self.program != Path::new(env!("CARGO_BIN_EXE_agent"))
    }

    /// Runs the command in this process, on a thread of its own.
    fn agent_here(&self, args: &[&str]) -> Finished {
        let arguments = std::iter::once("agent").chain(args.iter().copied()).map(OsString::from).collect();
        let mut variables: BTreeMap<String, String> = self.env.iter().cloned().collect();
        let home = self.home().to_str().unwrap().to_owned();
        variables.entry("PATH".to_owned()).or_insert_with(|| std::env::var("PATH").unwrap_or_default());
        variables.entry("HOME".to_owned()).or_insert_with(|| home.clone());
        variables.entry("AGENT_HOME".to_owned()).or_insert(home);
        let terminal = TerminalEnvironment::from_variables(&variables);
        let environment = Environment::from_variables(variables, &self.ws());
        let (stdout, stderr, launcher) = (Captured::default(), Captured::default(), self.program.clone());
        let streams: [Box<dyn Write + Send>; 2] = [Box::new(stdout.clone()), Box::new(stderr.clone())];
        let (directory, (sender, receiver)) = (self.ws(), std::sync::mpsc::channel());
        let run = move || {
            // This thread and those that it starts have a current directory of their own.
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_FS).unwrap();
            std::env::set_current_dir(directory).unwrap();
            let [out, err] = streams;
            let terminal = Terminal::with_streams(StreamInfo::default(), &terminal, out, err);
            let app = App::embedded(environment, terminal, launcher);
            let _ = sender.send(agent_cli::run_arguments(&app, arguments));
        };
        // As much as the main thread of a process has.
        std::thread::Builder::new().stack_size(8 << 20).spawn(run).unwrap();
        let code = receiver.recv_timeout(PATIENCE).unwrap_or_else(|error| {
            panic!("the run did not end in {PATIENCE:?} ({error}); stderr:\n{}", stderr.text());
        });
        Finished { code: Some(code.into()), stdout: stdout.text(), stderr: stderr.text() }
    }

    /// Starts the binary with these arguments and the model of `server`.
    pub fn start_on(&self, server: &Server, args: &[&str]) -> Running {
        let url = server.url();
        self.start(&[args, &["--model", "openai/mock", "--api-base", &url, "--api-key", KEY]].concat())
    }

    /// Runs the binary to its end with these arguments and the model of `server`.
    pub fn agent_on(&self, server: &Server, args: &[&str]) -> Finished {
        self.start_on(server, args).finish()
    }

    /// Starts `agent run task` against `server`.
    pub fn start_run(&self, server: &Server, more: &[&str]) -> Running {
        self.start_on(server, &[&["run", "task"], more].concat())
    }

    /// `agent run task` against `server`.
    pub fn run(&self, server: &Server, more: &[&str]) -> Finished {
        self.start_run(server, more).finish()
    }

    /// `agent run task --mode yolo` against `server`.
    pub fn run_yolo(&self, server: &Server, more: &[&str]) -> Finished {
        self.run(server, &[&["--mode", "yolo"], more].concat())
    }

    /// `agent run task` against a server that answers `done`.
    pub fn run_done(&self, more: &[&str]) -> Finished {
        self.run(&Server::done(), more)
    }

    /// `agent run task` with a model of the endpoint at `url`.
    pub fn run_model(&self, model: &str, url: &str, more: &[&str]) -> Finished {
        let args = ["run", "task", "--model", model, "--api-base", url, "--api-key", KEY];
        self.agent(&[&args, more].concat())
    }

    /// `agent resume --last` against `server`.
    pub fn resume(&self, server: &Server, more: &[&str]) -> Finished {
        self.agent_on(server, &[&["resume", "--last"], more].concat())
    }
}

/// What a command wrote to one of its streams.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// With `AGENT_TEST_REPLAY=1` every session that a test leaves must go the same way again.
impl Drop for Lab {
    fn drop(&mut self) {
        if std::env::var_os("AGENT_TEST_REPLAY").is_none()
            || self.forged.load(Ordering::Relaxed)
            || std::thread::panicking()
        {
            return;
        }
        for journal in self.journals() {
            let id = journal.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
            let told = self.command(&["replay", &id]).output().unwrap();
            let text = String::from_utf8_lossy(&told.stdout);
            assert_ne!(told.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&told.stderr));
        }
    }
}

/// Every file below `dir` whose content, or whose name, holds `text`.
pub fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if path.to_string_lossy().contains(text)
            || String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)
        {
            found.push(path.display().to_string());
        }
    }
    found
}

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A stream that grows while it is read.
#[derive(Default)]
struct Growing {
    text: Mutex<(String, bool)>,
    grew: Condvar,
}

impl Growing {
    fn follow(stream: impl Read + Send + 'static) -> Arc<Self> {
        let growing = Arc::new(Self::default());
        let target = Arc::clone(&growing);
        std::thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            loop {
                let (chunk, length) = match stream.fill_buf() {
                    Ok(bytes) => (String::from_utf8_lossy(bytes).into_owned(), bytes.len()),
                    Err(_) => (String::new(), 0),
                };
                stream.consume(length);
                let mut text = target.text.lock().unwrap();
                text.0.push_str(&chunk);
                text.1 |= length == 0;
                target.grew.notify_all();
                if length == 0 {
                    return;
                }
            }
        });
        growing
    }

    fn wait(&self, what: &str, ready: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let mut text = self.text.lock().unwrap();
        while !ready(&text.0) && !text.1 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited too long for {what}; so far:\n{}", text.0);
            text = self.grew.wait_timeout(text, left).unwrap().0;
        }
        text.0.clone()
    }
}

/// A run in progress, which ends with the test.
pub struct Running {
    child: Child,
    stdout: Arc<Growing>,
    stderr: Arc<Growing>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped_before = self.child.wait();
    }
}

impl Running {
    pub fn new(mut child: Child) -> Self {
        let stdout = Growing::follow(child.stdout.take().unwrap());
        let stderr = Growing::follow(child.stderr.take().unwrap());
        Self { child, stdout, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until standard error holds `text`.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) -> String {
        let seen = self.stderr.wait(text, |all| all.contains(text));
        assert!(seen.contains(text), "the run ended without {text:?} on stderr:\n{seen}");
        seen
    }

    /// Waits until it has told so many bytes on standard output, or all that it tells, and returns what it has told.
    #[track_caller]
    pub fn wait_for_stdout(&self, bytes: usize) -> String {
        self.stdout.wait("more on stdout", |all| all.len() >= bytes)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Finished {
        let end = Instant::now() + PATIENCE;
        let (sender, receiver) = std::sync::mpsc::channel();
        let pid = self.child.id();
        let waiter = std::thread::spawn(move || {
            let status = self.child.wait();
            let _ = sender.send(());
            (status, Arc::clone(&self.stdout), Arc::clone(&self.stderr))
        });
        if receiver.recv_timeout(end.saturating_duration_since(Instant::now())).is_err() {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            let (_, _, stderr) = waiter.join().unwrap();
            panic!("the run did not end in {PATIENCE:?}; stderr:\n{}", stderr.wait("end", |_| true));
        }
        let (status, stdout, stderr) = waiter.join().unwrap();
        Finished {
            code: status.unwrap().code(),
            stdout: stdout.wait("end of stdout", |_| false),
            stderr: stderr.wait("end of stderr", |_| false),
        }
    }
}

impl Finished {
    /// Checks the exit code, showing everything when it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The `--json` document.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}; stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        })
    }
}
