//! A NATS server of a test, with `JetStream`, on a port of its own.

use rustix::fs::inotify;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where Debian installs it.
const PROGRAM: &str = "/usr/sbin/nats-server";

/// A server. Dropping it ends it and removes what it stored.
pub struct NatsServer {
    program: PathBuf,
    directory: tempfile::TempDir,
    /// More arguments.
    arguments: Vec<String>,
    port: u16,
    process: Child,
}

impl NatsServer {
    /// Starts a server; `None` unless `AGENT_TEST_ALL=1` demands it. `AGENT_TEST_NATS_SERVER` names another program.
    pub fn start() -> Option<Self> {
        Self::start_in(&std::env::temp_dir(), &[])
    }

    /// The same, with what it stores in a new directory below `parent`, and with more arguments.
    pub fn start_in(parent: &Path, arguments: &[&str]) -> Option<Self> {
        std::env::var_os("AGENT_TEST_ALL")?;
        let program =
            std::env::var_os("AGENT_TEST_NATS_SERVER").map_or_else(|| PROGRAM.into(), PathBuf::from);
        assert!(program.exists(), "{} does not exist", program.display());
        let directory = tempfile::tempdir_in(parent).unwrap();
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let (process, port) = spawn(&program, &directory, &arguments, None);
        Some(Self { program, directory, arguments, port, process })
    }

    /// Returns its address.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, on the same port and with what it stored.
    pub fn restart(&mut self) {
        (self.process, _) = spawn(&self.program, &self.directory, &self.arguments, Some(self.port));
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the program and waits for its file of ports; returns its process and port.
fn spawn(
    program: &PathBuf,
    directory: &tempfile::TempDir,
    arguments: &[String],
    port: Option<u16>,
) -> (Child, u16) {
    let ports = tempfile::tempdir().unwrap();
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, ports.path(), inotify::WatchFlags::CLOSE_WRITE).unwrap();
    let wanted = port.map_or_else(|| "-1".to_owned(), |port| port.to_string());
    let mut process = Command::new(program)
        .args(["-js", "-a", "127.0.0.1", "-p", &wanted, "-sd"])
        .arg(directory.path())
        .arg("--ports_file_dir")
        .arg(ports.path())
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A server that ends at once writes no such file.
    let (mut stderr, ended) = (process.stderr.take().unwrap(), ports.path().join("ended"));
    std::thread::spawn(move || {
        let mut log = Vec::new();
        stderr.read_to_end(&mut log).and_then(|_| File::create(ended)?.write_all(&log))
    });
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    let name = events.next().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(ports.path().join(name)).unwrap();
    let found: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    let port = found.and_then(|ports| ports["nats"][0].as_str()?.rsplit(':').next()?.parse().ok());
    (process, port.unwrap_or_else(|| panic!("{text}")))
}
