//! Standard output and standard error of the process: their kind, and the only functions that write to them.

use super::hyperlink::{self, Link};
use super::keys::SavedModes;
use super::live::{Growing, InputView, Live, Look, Screen, paint_row};
use super::markdown;
use super::notify::Window;
use super::preview::{MAX_ROWS, MIN_ROWS, Preview, Row};
use super::sanitize::{sanitize, sanitize_prose, wrap_words};
use super::spinner::{ShowRow, Spinner};
use agent_text::lines::one_line;
use rustix::event::{Timespec, poll};
use rustix::fs::{FileType, Stat, fstat};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::isatty;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;

/// Columns assumed if the width of the terminal is unknown.
const DEFAULT_WIDTH: u16 = 80;
/// Rows assumed if the height of the terminal is unknown.
const DEFAULT_HEIGHT: u16 = 24;
/// Time in which the processes of the group stop after the signal.
const TIME_TO_STOP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Begins a screen anew: the cursor at its first row, and nothing on it (CUP and ED of ECMA-48).
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";
/// The beginnings of `TERM` of terminals that cut the rows of a smaller window instead of wrapping them.
const CUTTING_TERMINALS: [&str; 2] = ["linux", "rxvt"];

/// Environment variables about terminals; read by `config::load`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalEnvironment {
    /// `NO_COLOR`, if it is not empty.
    pub no_color: Option<String>,
    /// `CLICOLOR_FORCE`; unless it is `0`, colour is used for pipes too.
    pub clicolor_force: Option<String>,
    /// `TERM`; with `dumb`, text replaces icons and no colour is used.
    pub term: Option<String>,
    /// `XTERM_VERSION`, which xterm sets: it cuts the rows of a smaller window.
    pub xterm: Option<String>,
    /// `FORCE_HYPERLINK`; links are shown unless it is `0`.
    pub force_hyperlink: Option<String>,
    /// `TERM_PROGRAM`, the name of the terminal.
    pub term_program: Option<String>,
    /// `VTE_VERSION`, which GNOME's terminals and others set.
    pub vte: Option<String>,
}

impl TerminalEnvironment {
    /// Finds the variables among those of a process.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let value = |name: &str| variables.get(name).cloned();
        Self {
            no_color: value("NO_COLOR"),
            clicolor_force: value("CLICOLOR_FORCE"),
            term: value("TERM"),
            xterm: value("XTERM_VERSION"),
            force_hyperlink: value("FORCE_HYPERLINK"),
            term_program: value("TERM_PROGRAM"),
            vte: value("VTE_VERSION"),
        }
    }
}

/// Kind of the three standard streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamInfo {
    /// Whether standard input is a terminal.
    pub stdin: bool,
    /// Whether standard error is a terminal.
    pub stderr: bool,
    /// Target of standard output.
    pub stdout: StdoutTarget,
}

/// Target of standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StdoutTarget {
    /// Another file or pipe, or nothing.
    #[default]
    Elsewhere,
    /// What is read together with standard error: the same pipe or file, or a pipe beside a terminal, as in `agent run … | tee FILE`.
    BesideLog,
    /// A terminal other than that of standard error.
    OtherTerminal,
    /// The same terminal as standard error: the output of both is mixed.
    SameTerminal,
}

impl StdoutTarget {
    /// Checks whether a person sees what is written.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::OtherTerminal | Self::SameTerminal)
    }
}

/// Style of a line if colour is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// Unchanged.
    Plain,
    /// Less important.
    Dim,
    /// A heading, or strong emphasis.
    Bold,
    /// Emphasis.
    Italic,
    /// Text that is struck out.
    Struck,
    /// Code.
    Code,
    /// A keyword of code.
    Keyword,
    /// A string in code.
    Literal,
    /// A number, a key, a variable or the like in code.
    Constant,
    /// Success.
    Success,
    /// Warning.
    Warning,
    /// Error.
    Error,
    /// The changed part of an added line.
    AddedWord,
    /// The changed part of a removed line.
    RemovedWord,
    /// Text of a link.
    Link(Link),
}

impl Style {
    /// Returns the parameter of the ECMA-48 SGR sequence.
    pub(super) fn code(&self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Link(_) => None,
            Self::Dim => Some("2"),
            Self::Bold => Some("1"),
            Self::Italic => Some("3"),
            Self::Struck => Some("9"),
            Self::Keyword => Some("35"),
            Self::Code | Self::Constant => Some("36"),
            Self::Literal | Self::Success => Some("32"),
            Self::Warning => Some("33"),
            Self::Error => Some("31"),
            Self::AddedWord => Some("7;32"),
            Self::RemovedWord => Some("7;31"),
        }
    }

    pub(super) fn paint(&self, text: &str) -> String {
        if let Self::Link(link) = self {
            return link.paint(text);
        }
        self.code().map_or_else(|| text.to_owned(), |code| format!("\u{1b}[{code}m{text}\u{1b}[0m"))
    }
}

/// Outcome of writing to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrintOutcome {
    /// The text was written.
    Written,
    /// The reader has closed the pipe.
    Closed,
}

/// The standard streams of the process. All output through it is sanitized, written in whole lines above the live area, and not mixed with it.
pub struct Terminal {
    info: StreamInfo,
    /// Whether standard output is coloured.
    out_color: bool,
    /// Whether standard output shows links.
    has_hyperlinks: bool,
    rich: bool,
    out: Mutex<Box<dyn Write + Send>>,
    err: Arc<Mutex<ErrorStream>>,
    spinner: Mutex<Spinner>,
    /// Shows the row of the spinner.
    show_row: ShowRow,
    /// Number of open questions, which read what the user types.
    pub(super) questions: watch::Sender<u32>,
    /// Held while keys or lines are read.
    pub(super) reading: AsyncMutex<()>,
    /// Text that was typed before questions.
    pub(super) typed: Mutex<String>,
    /// Time of the last key of the input.
    last_key: Mutex<Option<Instant>>,
    /// Whether the user has begun to write a message.
    pub(super) has_draft: AtomicBool,
    /// The window of a conversation.
    pub(super) window: Window,
    /// The preview of the last question that was answered with yes.
    pub(super) approved: Mutex<Option<String>>,
}

/// Standard error and what stands below its last line.
struct ErrorStream {
    out: Box<dyn Write + Send>,
    /// Whether the last text did not end its line, on a terminal without a live area.
    line_open: bool,
    /// Whether there is a live area.
    rich: bool,
    look: Look,
    live: Live,
}

impl ErrorStream {
    /// Returns what ends an open line, left by streamed text or a prompt.
    fn close_line(&mut self) -> String {
        let mut text = String::new();
        if !self.live.open.is_empty() {
            paint_row(&mut text, &std::mem::take(&mut self.live.open), self.look.color);
            text.push('\n');
        }
        if std::mem::take(&mut self.line_open) {
            text.push('\n');
        }
        text
    }

    /// Writes whole lines, above the live area.
    fn write(&mut self, lines: &str) -> io::Result<()> {
        let text = if self.rich { &self.live.draw(lines, self.screen()) } else { lines };
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush())
    }

    /// Adds text that need not end its line.
    fn append(&mut self, pieces: &[(Style, &str)]) -> io::Result<()> {
        if !self.rich {
            let painted: String = pieces.iter().map(|(style, text)| self.paint(style, text)).collect();
            if let Some((_, last)) = pieces.iter().rfind(|(_, text)| !text.is_empty()) {
                self.line_open = !last.ends_with('\n');
            }
            return self.out.write_all(painted.as_bytes()).and_then(|()| self.out.flush());
        }
        let mut lines = String::new();
        for (style, text) in pieces {
            for part in text.split_inclusive('\n') {
                let line = part.strip_suffix('\n');
                match self.live.open.last_mut().filter(|(last, _)| last == style) {
                    Some((_, open)) => open.push_str(line.unwrap_or(part)),
                    None => self.live.open.push((style.clone(), line.unwrap_or(part).to_owned())),
                }
                if line.is_some() {
                    lines.push_str(&self.close_line());
                }
            }
        }
        if lines.is_empty() { self.draw_soon() } else { self.write(&lines) }
    }

    fn paint(&self, style: &Style, text: &str) -> String {
        if self.look.color { style.paint(text) } else { text.to_owned() }
    }

    /// Draws the live area if it has changed.
    fn draw_soon(&mut self) -> io::Result<()> {
        let text = if self.rich { self.live.draw_soon(self.screen()) } else { String::new() };
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush())
    }

    fn screen(&self) -> Screen {
        let size = console::Term::stderr().size_checked().unwrap_or((DEFAULT_HEIGHT, DEFAULT_WIDTH));
        let (height, width) = (usize::from(size.0), usize::from(size.1).max(1));
        Screen { width, height, look: self.look }
    }
}

impl Terminal {
    /// Opens the streams of this process.
    pub fn new(environment: &TerminalEnvironment) -> Self {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let info = StreamInfo {
            stdin: isatty(&stdin),
            stderr: isatty(&stderr),
            stdout: stdout_target(&stdout, &stderr),
        };
        Self::with_streams(info, environment, Box::new(stdout), Box::new(stderr))
    }

    /// Creates a terminal that writes to `out` and `err`, with the given kind of streams.
    pub fn with_streams(
        info: StreamInfo,
        environment: &TerminalEnvironment,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
    ) -> Self {
        let set = |value: &Option<String>| value.as_deref().is_some_and(|value| !value.is_empty());
        let dumb = environment.term.as_deref() == Some("dumb");
        let forced = set(&environment.clicolor_force) && environment.clicolor_force.as_deref() != Some("0");
        let rich = info.stderr && !dumb;
        let color = !set(&environment.no_color) && (forced || rich);
        let term = environment.term.as_deref().unwrap_or_default();
        let reflows =
            environment.xterm.is_none() && !CUTTING_TERMINALS.iter().any(|cuts| term.starts_with(cuts));
        let err = ErrorStream {
            out: err,
            line_open: false,
            rich,
            look: Look { color, reflows },
            live: Live::default(),
        };
        let err = Arc::new(Mutex::new(err));
        let shown = Arc::downgrade(&err);
        Self {
            info,
            out_color: !set(&environment.no_color) && (forced || !dumb && info.stdout.is_terminal()),
            has_hyperlinks: hyperlink::are_shown(environment),
            rich,
            out: Mutex::new(out),
            err,
            spinner: Mutex::default(),
            show_row: Arc::new(move |row| show_row(&shown, row)),
            questions: watch::Sender::new(0),
            reading: AsyncMutex::default(),
            typed: Mutex::default(),
            last_key: Mutex::default(),
            has_draft: AtomicBool::new(false),
            window: Window::default(),
            approved: Mutex::default(),
        }
    }

    /// Returns the kind of the three streams.
    pub fn stream_info(&self) -> StreamInfo {
        self.info
    }

    /// Checks whether icons and a spinner may be shown on standard error.
    pub fn has_icons(&self) -> bool {
        self.rich
    }

    /// Checks whether standard output is coloured.
    pub fn has_output_color(&self) -> bool {
        self.out_color
    }

    /// Checks whether links on standard output hide their addresses.
    pub(super) fn has_hyperlinks(&self) -> bool {
        self.has_hyperlinks
    }

    /// Returns the view of a diff or a command that fits on the screen together with `rows_around` rows.
    pub fn preview(&self, text: &str, rows_around: u16) -> Preview {
        let rows = self.height().map_or(MAX_ROWS, |rows| usize::from(rows.saturating_sub(rows_around)));
        Preview::fitting(text, rows.clamp(MIN_ROWS, MAX_ROWS), usize::from(self.width()))
    }

    /// Returns the rows of the terminal of standard error, if they are known.
    pub fn height(&self) -> Option<u16> {
        console::Term::stderr().size_checked().map(|(rows, _columns)| rows)
    }

    /// Returns the columns of the terminal of standard error.
    pub fn width(&self) -> u16 {
        columns_of_screen()
    }

    /// Writes whole lines to standard error, sanitized, in one write.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn eprintln(&self, style: Style, text: &str) -> io::Result<()> {
        self.eprintln_locked(&mut self.lock_err(), style, text)
    }

    /// Like [`eprintln`](Self::eprintln), for a crash: does not wait for the lock, which the crashed code may hold.
    ///
    /// # Errors
    /// When standard error cannot be written, or the lock is held.
    pub fn try_eprintln(&self, style: Style, text: &str) -> io::Result<()> {
        match self.err.try_lock() {
            Ok(mut err) => self.eprintln_locked(&mut err, style, text),
            Err(TryLockError::Poisoned(held)) => self.eprintln_locked(&mut held.into_inner(), style, text),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn eprintln_locked(&self, err: &mut ErrorStream, style: Style, text: &str) -> io::Result<()> {
        let mut block = err.close_line();
        let text = sanitize(text);
        let text = if self.rich { wrap_words(&text, usize::from(self.width())) } else { text };
        paint_row(&mut block, &vec![(style, text.into_owned())], err.look.color);
        block.push('\n');
        err.write(&block)
    }

    /// Writes rows to standard error, in one write.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn eprint_rows(&self, rows: &[Row]) -> io::Result<()> {
        let mut err = self.lock_err();
        let mut block = err.close_line();
        for row in rows {
            block.extend(row.iter().map(|(style, text)| err.paint(style, &sanitize(text))));
            block.push('\n');
        }
        err.write(&block)
    }

    /// Writes rows to standard error; their last pieces, which are text, are wrapped between words.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn eprint_texts(&self, rows: &[Row]) -> io::Result<()> {
        let width = if self.rich { usize::from(self.width()) } else { usize::MAX };
        let rows: Vec<Row> = rows.iter().flat_map(|row| markdown::hang(row, width)).collect();
        self.eprint_rows(&rows)
    }

    /// Writes a piece of streamed text to standard error, sanitized.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn stream(&self, style: Style, piece: &str) -> io::Result<()> {
        self.lock_err().append(&[(style, &sanitize_prose(piece))])
    }

    /// Ends the line that streamed text left open, if any.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn end_line(&self) -> io::Result<()> {
        let mut err = self.lock_err();
        let end = err.close_line();
        if end.is_empty() { Ok(()) } else { err.write(&end) }
    }

    /// Writes text to standard output, sanitized, and ends its last line. A closed pipe is not an error, because it does
    /// not change the result of a run.
    ///
    /// # Errors
    /// When standard output cannot be written for another reason, such as a full disk.
    pub fn print(&self, text: &str) -> io::Result<PrintOutcome> {
        let text = sanitize_prose(text);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.deliver(&format!("{text}{end}"))
    }

    /// Like [`print`](Self::print), with a style for each line.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_lines(&self, lines: &[(Style, &str)]) -> io::Result<PrintOutcome> {
        let painted = lines.iter().map(|(style, line)| {
            let style = if self.out_color { style } else { &Style::Plain };
            format!("{}\n", style.paint(&sanitize_prose(line)))
        });
        self.deliver(&painted.collect::<String>())
    }

    /// Writes pieces of text to standard output, sanitized, each with its style; they may contain newlines and need not end
    /// a line.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_spans(&self, spans: &[(Style, &str)]) -> io::Result<PrintOutcome> {
        let style = |style: &Style| if self.out_color { style.clone() } else { Style::Plain };
        if self.has_live_output() {
            let clean: Vec<_> = spans.iter().map(|(of, text)| (style(of), sanitize_prose(text))).collect();
            let clean: Vec<_> = clean.iter().map(|(style, text)| (style.clone(), text.as_ref())).collect();
            return self.lock_err().append(&clean).map(|()| PrintOutcome::Written);
        }
        let painted = spans.iter().map(|(of, text)| style(of).paint(&sanitize_prose(text)));
        self.deliver(&painted.collect::<String>())
    }

    /// Writes rows to standard output.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_rows(&self, rows: &[Row]) -> io::Result<PrintOutcome> {
        let mut text = String::new();
        for row in rows {
            paint_row(&mut text, row, self.out_color);
            text.push('\n');
        }
        self.deliver(&text)
    }

    /// Writes rows to standard output, and shows those of a block of text that still grows below them, where that is possible.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub(super) fn print_growing(&self, finished: &[Row], growing: Growing) -> io::Result<PrintOutcome> {
        if self.has_live_output() {
            let mut err = self.lock_err();
            err.live.growing = growing;
            if finished.is_empty() {
                return err.draw_soon().map(|()| PrintOutcome::Written);
            }
        }
        if finished.is_empty() { Ok(PrintOutcome::Written) } else { self.print_rows(finished) }
    }

    /// Returns the screen, and how many counted characters are finished of the block that grows.
    pub(super) fn screen_and_finished(&self) -> (Screen, usize) {
        let mut err = self.lock_err();
        let screen = err.screen();
        if err.live.is_resized(screen) {
            // What the new size moves out of the screen is finished. A terminal that is gone is noticed by what is written next.
            drop(err.write(""));
        }
        (screen, err.live.growing.block.finished)
    }

    /// Checks whether standard output shares the live area of standard error.
    fn has_live_output(&self) -> bool {
        self.rich && self.info.stdout == StdoutTarget::SameTerminal
    }

    /// Like [`print`](Self::print), in place of the last `rows` rows of a terminal.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn redraw(&self, text: &str, rows: usize) -> io::Result<PrintOutcome> {
        // CPL and ED of ECMA-48: to the start of an earlier line, and erase what follows.
        let start = if rows > 0 { format!("\x1b[{rows}F\x1b[J") } else { String::new() };
        self.deliver(&format!("{start}{}", sanitize_prose(text)))
    }

    /// Writes to standard output: whole lines, unless it has no live area.
    fn deliver(&self, text: &str) -> io::Result<PrintOutcome> {
        if self.has_live_output() {
            let mut err = self.lock_err();
            let start = err.close_line();
            return err.write(&format!("{start}{text}")).map(|()| PrintOutcome::Written);
        }
        if self.info.stdout == StdoutTarget::SameTerminal {
            self.end_line()?;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(PrintOutcome::Written),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(PrintOutcome::Closed),
            Err(error) => Err(error),
        }
    }

    /// Shows a spinner with the waiting time and `label` in the live area, if standard error is a terminal.
    pub fn show_status(&self, label: &str) {
        if !self.rich {
            return;
        }
        let mut spinner = self.spinner.lock().unwrap_or_else(PoisonError::into_inner);
        spinner.show(&one_line(label, usize::from(u8::MAX)), columns_of_screen, &self.show_row);
    }

    /// Hides the spinner that [`show_status`](Self::show_status) shows, and what a command has printed; returns the label.
    pub fn hide_status(&self) -> Option<String> {
        let label = self.spinner.lock().unwrap_or_else(PoisonError::into_inner).hide()?;
        self.change_live(|live| {
            live.status.clear();
            live.tail.clear();
        });
        Some(label)
    }

    /// Shows the input in the live area, or removes it.
    pub fn show_input(&self, input: Option<InputView>) {
        self.change_live(|live| live.input = input);
    }

    /// Shows the messages that wait in the live area.
    pub fn show_queued(&self, queued: Vec<Row>) {
        self.change_live(|live| live.queued = queued);
    }

    /// Shows the last rows that a command has printed in the live area, while there is a status.
    pub fn show_tail(&self, tail: Vec<Row>) {
        self.change_live(|live| live.tail = tail);
    }

    /// Lets a question take the place of the input, or ends that.
    pub(super) fn set_asking(&self, is_asking: bool) {
        self.change_live(|live| (live.is_asking, live.answer) = (is_asking, None));
    }

    /// Shows the answer that is typed.
    pub(super) fn show_answer(&self, answer: Option<InputView>) {
        self.change_live(|live| live.answer = answer);
    }

    fn change_live(&self, change: impl FnOnce(&mut Live)) {
        let mut err = self.lock_err();
        change(&mut err.live);
        if self.rich {
            // A terminal that is gone is noticed by what is written next.
            drop(err.write(""));
        }
    }

    /// Draws the live area below what another program has written since the last time.
    pub fn begin_again(&self) {
        self.change_live(Live::forget);
    }

    /// Removes all from the screen but the live area; what scrolled out of it stays.
    pub fn clear_screen(&self) {
        let mut err = self.lock_err();
        err.live.forget();
        drop(err.write(CLEAR_SCREEN));
    }

    /// Stops the process group, as the terminal does at Ctrl+Z, without the live area and with the modes of the shell; draws the live area when it goes on.
    pub(super) fn stop_process(&self, modes: &SavedModes) {
        // Nothing is written meanwhile.
        let mut err = self.lock_err();
        let erased = err.live.erase();
        err.live.forget();
        // A terminal that is gone is noticed by what is written next.
        drop(err.out.write_all(erased.as_bytes()).and_then(|()| err.out.flush()));
        modes.restore();
        let _stopped = kill_current_process_group(Signal::TSTP);
        // This thread can run on for a moment, because another may take the signal. Without job control nothing stops.
        let _waited = poll(&mut [], Some(&TIME_TO_STOP));
        drop(err.write(""));
    }

    /// Leaves the live area where it is, with the cursor below, for a process that ends: does not wait for anybody who writes.
    pub fn leave(&self) {
        if let Ok(mut err) = self.err.try_lock() {
            let end = err.live.leave() + self.title_back();
            drop(err.out.write_all(end.as_bytes()).and_then(|()| err.out.flush()));
        }
    }

    /// Records that the user types, so that a question does not take what is typed for an answer.
    pub(super) fn note_key(&self) {
        *self.last_key.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns the time since the user typed last.
    pub(super) fn since_last_key(&self) -> Option<Duration> {
        self.last_key.lock().unwrap_or_else(PoisonError::into_inner).map(|last| last.elapsed())
    }

    /// Writes a sequence that moves nothing on the screen.
    pub(super) fn write_sequence(&self, sequence: &str) {
        let mut err = self.lock_err();
        // A terminal that is gone is noticed by what is written next.
        drop(err.out.write_all(sequence.as_bytes()).and_then(|()| err.out.flush()));
    }

    /// Writes the last line of a prompt to standard error, without a newline.
    pub(super) fn print_prompt(&self, question: &str) -> io::Result<()> {
        self.end_line()?;
        self.lock_err().append(&[(Style::Bold, &sanitize(question))])
    }

    /// Records that the user's answer ended the line of the prompt.
    pub(super) fn end_prompt(&self) {
        self.lock_err().line_open = false;
    }

    fn lock_err(&self) -> MutexGuard<'_, ErrorStream> {
        self.err.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the columns of the terminal of standard error.
fn columns_of_screen() -> u16 {
    console::Term::stderr().size_checked().map_or(DEFAULT_WIDTH, |(_rows, columns)| columns)
}

/// Shows the row of the spinner in the live area.
fn show_row(stream: &Weak<Mutex<ErrorStream>>, row: &str) {
    let Some(stream) = stream.upgrade() else { return };
    let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
    row.clone_into(&mut stream.live.status);
    // A terminal that is gone is noticed by what is written next.
    drop(stream.write(""));
}

fn stdout_target(stdout: &impl AsFd, stderr: &impl AsFd) -> StdoutTarget {
    let [out, err] = [fstat(stdout), fstat(stderr)].map(Result::ok);
    let same = |of: fn(&Stat) -> (u64, u64)| out.is_some() && out.as_ref().map(of) == err.as_ref().map(of);
    let is_pipe = || out.is_some_and(|out| FileType::from_raw_mode(out.st_mode) == FileType::Fifo);
    match (isatty(stdout), isatty(stderr)) {
        (false, true) if is_pipe() => StdoutTarget::BesideLog,
        (false, false) if same(|stat| (stat.st_dev, stat.st_ino)) => StdoutTarget::BesideLog,
        (false, _) => StdoutTarget::Elsewhere,
        (true, true) if same(|stat| (stat.st_rdev, 0)) => StdoutTarget::SameTerminal,
        (true, _) => StdoutTarget::OtherTerminal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A stream that captures what is written, or fails with the given error.
    #[derive(Clone, Default)]
    struct CapturedStream(Arc<Mutex<Vec<u8>>>, Option<io::ErrorKind>);

    impl CapturedStream {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(kind) = self.1 {
                return Err(kind.into());
            }
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn terminal(
        info: StreamInfo,
        environment: &TerminalEnvironment,
    ) -> (Terminal, CapturedStream, CapturedStream) {
        let (out, err) = (CapturedStream::default(), CapturedStream::default());
        (Terminal::with_streams(info, environment, Box::new(out.clone()), Box::new(err.clone())), out, err)
    }

    const ALL: StreamInfo = StreamInfo { stdin: true, stderr: true, stdout: StdoutTarget::SameTerminal };

    #[test]
    fn a_line_after_streamed_text_starts_on_its_own() {
        let (terminal, _, err) = terminal(StreamInfo::default(), &TerminalEnvironment::default());
        terminal.stream(Style::Plain, "half a").unwrap();
        terminal.stream(Style::Plain, " line").unwrap();
        terminal.eprintln(Style::Success, "next").unwrap();
        terminal.stream(Style::Plain, "whole\n").unwrap();
        terminal.eprintln(Style::Plain, "last").unwrap();
        assert_eq!(err.text(), "half a line\nnext\nwhole\nlast\n");
    }

    #[test]
    fn a_stream_that_breaks_while_it_is_written_is_not_waited_for() {
        let (terminal, _, err) = terminal(StreamInfo::default(), &TerminalEnvironment::default());
        let held = terminal.lock_err();
        assert_eq!(
            terminal.try_eprintln(Style::Error, "broken").unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(held);
        terminal.try_eprintln(Style::Error, "bro\u{1b}ken").unwrap();
        assert_eq!(err.text(), "bro\\u{1b}ken\n");
    }

    #[test]
    fn an_escape_sequence_split_over_deltas_stays_harmless() {
        let (terminal, _, err) = terminal(StreamInfo::default(), &TerminalEnvironment::default());
        terminal.stream(Style::Plain, "a\u{1b}").unwrap();
        terminal.stream(Style::Plain, "[2J").unwrap();
        assert_eq!(err.text(), "a\\u{1b}[2J");
    }

    #[test]
    fn colour_follows_the_terminal_and_the_wishes() {
        let color = |info, environment| terminal(info, &environment).0.lock_err().look.color;
        let wish = |value: &str| Some(value.to_owned());
        assert!(color(ALL, TerminalEnvironment::default()));
        assert!(!color(StreamInfo::default(), TerminalEnvironment::default()));
        assert!(!color(ALL, TerminalEnvironment { no_color: wish("1"), ..TerminalEnvironment::default() }));
        assert!(color(ALL, TerminalEnvironment { no_color: wish(""), ..TerminalEnvironment::default() }));
        assert!(!color(ALL, TerminalEnvironment { term: wish("dumb"), ..TerminalEnvironment::default() }));
        assert!(color(
            StreamInfo::default(),
            TerminalEnvironment { clicolor_force: wish("1"), ..TerminalEnvironment::default() }
        ));
        assert!(!color(
            StreamInfo::default(),
            TerminalEnvironment { clicolor_force: wish("0"), ..TerminalEnvironment::default() }
        ));
    }

    #[test]
    fn colour_surrounds_text_that_cannot_end_it() {
        let (terminal, _, err) = terminal(ALL, &TerminalEnvironment::default());
        terminal.eprintln(Style::Error, "no\u{1b}[0m").unwrap();
        assert_eq!(err.text(), "\u{1b}[31mno\\u{1b}[0m\u{1b}[0m\n");
    }

    #[test]
    fn a_closed_pipe_is_no_error_and_a_full_disk_is() {
        let failing = |kind| {
            let out = CapturedStream(Arc::default(), Some(kind));
            Terminal::with_streams(
                StreamInfo::default(),
                &TerminalEnvironment::default(),
                Box::new(out),
                Box::new(CapturedStream::default()),
            )
            .print("answer")
        };
        assert_eq!(failing(io::ErrorKind::BrokenPipe).unwrap(), PrintOutcome::Closed);
        assert_eq!(failing(io::ErrorKind::StorageFull).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_is_printed_ends_with_one_newline_and_without_control_bytes() {
        let (terminal, out, _) = terminal(StreamInfo::default(), &TerminalEnvironment::default());
        assert_eq!(terminal.print("one\u{7}").unwrap(), PrintOutcome::Written);
        terminal.print("two\n").unwrap();
        assert_eq!(out.text(), "one\\u{7}\ntwo\n");
    }

    #[test]
    fn u19_one_pipe_or_file_for_both_streams_is_read_together() {
        let ((_one, one), (_two, two)) = (io::pipe().unwrap(), io::pipe().unwrap());
        assert_eq!(stdout_target(&one, &one.try_clone().unwrap()), StdoutTarget::BesideLog);
        assert_eq!(stdout_target(&one, &two), StdoutTarget::Elsewhere);
        let file = tempfile::tempfile().unwrap();
        assert_eq!(stdout_target(&file, &file.try_clone().unwrap()), StdoutTarget::BesideLog);
        assert_eq!(stdout_target(&file, &two), StdoutTarget::Elsewhere);
    }
}
