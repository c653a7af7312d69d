//! Runs the binary at a terminal: what a person sees and types.

use super::run::{Finished, KEY, Lab, PATIENCE};
use super::server::Server;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// The end of every question.
pub const QUESTION: &str = "stop the run: ";

/// What a prompt of `agent chat` begins with: bracketed paste is turned on.
pub const PASTE_ON: &str = "\u{1b}[?2004h";

/// A run at a terminal: standard input and standard error are one, standard output is a pipe.
pub struct AtTerminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<(String, bool)>, Condvar)>,
    stdout: JoinHandle<String>,
    answered: usize,
    before: Termios,
    /// The modes of the terminal before the start.
    pub modes_before: String,
}

impl AtTerminal {
    /// Starts `agent run task` against `server`.
    pub fn start(lab: &Lab, server: &Server, more: &[&str]) -> Self {
        let url = server.url();
        let args = ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        Self::launch(lab.command(&[&args, more].concat()))
    }

    /// Starts `command` at a terminal of 24 rows and 80 columns.
    pub fn launch(command: Command) -> Self {
        Self::launch_with(command, false)
    }

    /// The same; standard output is the terminal too if `shows_stdout`.
    fn launch_with(mut command: Command, shows_stdout: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(ptsname(&master, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let (before, modes_before) = (tcgetattr(&slave).unwrap(), modes(&slave));
        command
            .stdin(Stdio::from(slave.try_clone().unwrap()))
            .stderr(Stdio::from(slave.try_clone().unwrap()));
        if shows_stdout {
            command.stdout(Stdio::from(slave));
        } else {
            drop(slave);
        }
        let mut child = command.spawn().unwrap();
        // The command holds the other end of the terminal, which has to close for the screen to end.
        drop(command);
        let out = child.stdout.take();
        let stdout = std::thread::spawn(move || {
            let mut text = String::new();
            out.map(|mut out| out.read_to_string(&mut text).unwrap());
            text
        });
        let keyboard = File::from(master);
        let screen = Arc::new((Mutex::new((String::new(), false)), Condvar::new()));
        follow(keyboard.try_clone().unwrap(), Arc::clone(&screen));
        Self { child, keyboard, screen, stdout, answered: 0, before, modes_before }
    }

    /// Starts `agent chat` against `server` at a terminal that controls it, as a shell does.
    pub fn chat(lab: &Lab, server: &Server, more: &[&str]) -> Self {
        let url = server.url();
        let args = ["chat", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        Self::launch_controlled(&lab.command(&[&args, more].concat()))
    }

    /// Starts `agent chat` with all three streams at that terminal.
    pub fn chat_on_screen(lab: &Lab, server: &Server, more: &[&str]) -> Self {
        let url = server.url();
        let args = ["chat", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        Self::launch_with(controlled(&lab.command(&[&args, more].concat())), true)
    }

    /// Starts `command` at a terminal that controls it.
    pub fn launch_controlled(command: &Command) -> Self {
        Self::launch(controlled(command))
    }

    /// The memory that belongs to the process alone, in KiB. Pages of the program file are not counted, because the kernel reads and drops pages by itself.
    pub fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Waits until the `number`th prompt of a conversation is shown; gives back the screen until there.
    #[track_caller]
    pub fn prompt(&self, number: usize) -> String {
        self.wait(&format!("prompt {number}"), |text| text.matches(PASTE_ON).count() >= number)
    }

    /// Changes the number of columns, as a window that is made smaller does.
    pub fn resize(&self, columns: u16) {
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// The modes of the terminal.
    pub fn modes(&self) -> String {
        modes(&self.keyboard)
    }

    /// Stops the process, sets the modes that the terminal had before the start, as a shell does, and continues the process.
    pub fn stop_and_continue(&self) {
        self.signal(Signal::STOP);
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        waitid(WaitId::Pid(pid.unwrap()), WaitIdOptions::STOPPED).unwrap();
        tcsetattr(&self.keyboard, OptionalActions::Now, &self.before).unwrap();
        self.signal(Signal::CONT);
    }

    /// Waits for the next question and types `keys`; gives back what the screen shows until there.
    #[track_caller]
    pub fn answer(&mut self, keys: &str) -> String {
        self.answered += 1;
        let shown = self.wait(&format!("question {}", self.answered), |text| {
            text.matches(QUESTION).count() >= self.answered
        });
        self.types(keys);
        shown
    }

    /// Types `keys`, whatever is on the screen.
    pub fn types(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Types bytes that may be no text.
    pub fn types_bytes(&mut self, bytes: &[u8]) {
        self.keyboard.write_all(bytes).unwrap();
    }

    /// Waits until the screen is as `ready` wants it.
    #[track_caller]
    pub fn wait(&self, what: &str, ready: impl Fn(&str) -> bool) -> String {
        let (screen, changed) = &*self.screen;
        let waiting = |state: &mut (String, bool)| !ready(&state.0) && !state.1;
        let (state, _) = changed.wait_timeout_while(screen.lock().unwrap(), PATIENCE, waiting).unwrap();
        assert!(ready(&state.0), "there was no {what}:\n{}", state.0);
        state.0.clone()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, which is when nobody holds the terminal any more.
    pub fn finish(mut self) -> Finished {
        let (screen, changed) = &*self.screen;
        let open = |state: &mut (String, bool)| !state.1;
        let (state, late) = changed.wait_timeout_while(screen.lock().unwrap(), PATIENCE, open).unwrap();
        if late.timed_out() {
            self.child.kill().unwrap();
            panic!("the run did not end:\n{}", state.0);
        }
        let code = self.child.wait().unwrap().code();
        Finished { code, stdout: self.stdout.join().unwrap(), stderr: state.0.clone() }
    }
}

/// The same command in a session of its own, which its standard input controls.
fn controlled(command: &Command) -> Command {
    let mut controlled = Command::new("setsid");
    controlled
        .arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdout(Stdio::piped());
    controlled
}

fn follow(mut terminal: File, screen: Arc<(Mutex<(String, bool)>, Condvar)>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            let length = terminal.read(&mut bytes).unwrap_or(0);
            let mut state = screen.0.lock().unwrap();
            state.0.push_str(&String::from_utf8_lossy(&bytes[..length]));
            state.1 = length == 0;
            screen.1.notify_all();
            if length == 0 {
                return;
            }
        }
    });
}

fn modes(terminal: impl AsFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}
