//! Runs the binary at a terminal: what a person sees and types.

use super::run::{Finished, KEY, Lab, PATIENCE};
use super::server::Server;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// The end of every question.
pub const QUESTION: &str = "stop the run:";

/// Size of the screen.
const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// What a prompt of `agent chat` begins with: bracketed paste is turned on.
pub const PASTE_ON: &str = "\u{1b}[?2004h";

/// What a terminal has received.
struct Output {
    /// All of it.
    text: String,
    /// Whether nobody holds the other end any more.
    is_closed: bool,
    emulator: vt100::Parser,
}

/// Rows that the emulator stores above its screen.
const SCROLLBACK: usize = 5_000;

/// A run at a terminal: standard input and standard error are one, standard output is a pipe.
pub struct AtTerminal {
    child: Child,
    keyboard: File,
    screen: Arc<(Mutex<Output>, Condvar)>,
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

    /// Starts `command` with all three streams at a terminal.
    pub fn launch_on_screen(command: Command) -> Self {
        Self::launch_with(command, true)
    }

    /// The same; standard output is the terminal too if `shows_stdout`.
    fn launch_with(mut command: Command, shows_stdout: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(ptsname(&master, Vec::new()).unwrap(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&slave, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
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
        let output = Output {
            text: String::new(),
            is_closed: false,
            emulator: vt100::Parser::new(cells(ROWS), cells(COLUMNS), SCROLLBACK),
        };
        let screen = Arc::new((Mutex::new(output), Condvar::new()));
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

    /// Starts `agent chat` as a job of a shell, which continues it after a line of input if it is stopped.
    pub fn chat_in_shell(lab: &Lab, server: &Server) -> Self {
        let url = server.url();
        let chat = ["chat", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        let script = "set -m; \"$@\"; echo has stopped; read -r line; fg";
        let shell = within(&["bash", "-c", script, "bash"], &lab.command(&chat));
        Self::launch_with(controlled(&shell), true)
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
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // A screen that is drawn meanwhile is drawn again for the new size.
        self.screen.0.lock().unwrap().emulator.screen_mut().set_size(cells(ROWS), cells(columns));
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
        self.see(&format!("question {}", self.answered), |text| questions(text) >= self.answered);
        let shown = self.wait("question", |_| true);
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
        self.wait_for(what, |output| ready(&output.text).then(|| output.text.clone()))
    }

    /// Waits until what a person sees, with what has scrolled out of the screen, is as `ready` wants it.
    #[track_caller]
    pub fn see(&self, what: &str, ready: impl Fn(&str) -> bool) -> String {
        self.wait_for(what, |output| Some(seen(&mut output.emulator)).filter(|text| ready(text)))
    }

    #[track_caller]
    fn wait_for(&self, what: &str, ready: impl Fn(&mut Output) -> Option<String>) -> String {
        let (screen, changed) = &*self.screen;
        let mut found = None;
        let waiting = |output: &mut Output| {
            found = ready(output);
            found.is_none() && !output.is_closed
        };
        let (mut output, _) = changed.wait_timeout_while(screen.lock().unwrap(), PATIENCE, waiting).unwrap();
        let seen = seen(&mut output.emulator);
        let shown = format!("{}\n--- seen:\n{seen}", output.text);
        drop(output);
        found.unwrap_or_else(|| panic!("there was no {what}:\n{shown}"))
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for the end, which is when nobody holds the terminal any more.
    pub fn finish(mut self) -> Finished {
        let (screen, changed) = &*self.screen;
        let open = |output: &mut Output| !output.is_closed;
        let (state, late) = changed.wait_timeout_while(screen.lock().unwrap(), PATIENCE, open).unwrap();
        if late.timed_out() {
            self.child.kill().unwrap();
            panic!("the run did not end:\n{}", state.text);
        }
        let code = self.child.wait().unwrap().code();
        Finished { code, stdout: self.stdout.join().unwrap(), stderr: state.text.clone() }
    }
}

/// The same command in a session of its own, which its standard input controls.
fn controlled(command: &Command) -> Command {
    within(&["setsid", "--ctty"], command)
}

/// The same command as further arguments of `outer`.
fn within(outer: &[&str], command: &Command) -> Command {
    let mut within = Command::new(outer[0]);
    within
        .args(&outer[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdout(Stdio::piped());
    within
}

/// The number of questions on a screen, whose rows can cut their words.
pub fn questions(seen: &str) -> usize {
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    letters(seen).matches(&letters(QUESTION)).count()
}

/// What a person sees at the end of what a terminal has received.
pub fn shown(text: &str) -> String {
    let mut emulator = vt100::Parser::new(cells(ROWS), cells(COLUMNS), SCROLLBACK);
    emulator.process(text.as_bytes());
    seen(&mut emulator)
}

/// What a person sees of what was written to a wide and high terminal.
pub fn wide_screen(text: &str) -> String {
    let mut emulator = vt100::Parser::new(cells(200), cells(400), SCROLLBACK);
    emulator.process(text.replace('\n', "\r\n").as_bytes());
    format!("{}\n", seen(&mut emulator))
}

fn cells(count: u16) -> NonZero<u16> {
    NonZero::new(count).unwrap()
}

/// Returns the rows of the screen, after those that scrolled out of it.
fn seen(emulator: &mut vt100::Parser) -> String {
    let screen = emulator.screen_mut();
    screen.set_scrollback(usize::MAX);
    let above = screen.scrollback();
    let columns = screen.size().1.get();
    let mut rows = Vec::new();
    for back in (1..=above).rev() {
        screen.set_scrollback(back);
        rows.extend(screen.rows(0, columns).next());
    }
    screen.set_scrollback(0);
    rows.extend(screen.rows(0, columns));
    rows.iter().map(|row| row.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn follow(mut terminal: File, screen: Arc<(Mutex<Output>, Condvar)>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        loop {
            let length = terminal.read(&mut bytes).unwrap_or(0);
            let mut state = screen.0.lock().unwrap();
            state.text.push_str(&String::from_utf8_lossy(&bytes[..length]));
            state.emulator.process(&bytes[..length]);
            state.is_closed = length == 0;
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
