//! Standard output and standard error of the process: their kind, and the only functions that write to them.

use super::preview::{MAX_ROWS, MIN_ROWS, Preview, Row};
use super::sanitize::{sanitize, sanitize_prose};
use super::spinner::Spinner;
use agent_text::lines::one_line;
use rustix::fs::fstat;
use rustix::termios::isatty;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// Columns assumed if the width of the terminal is unknown.
const DEFAULT_WIDTH: u16 = 80;

/// Environment variables about terminals; read by `config::load`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalEnvironment {
    /// `NO_COLOR`, if it is not empty.
    pub no_color: Option<String>,
    /// `CLICOLOR_FORCE`; unless it is `0`, colour is used for pipes too.
    pub clicolor_force: Option<String>,
    /// `TERM`; with `dumb`, text replaces icons and no colour is used.
    pub term: Option<String>,
}

impl TerminalEnvironment {
    /// Finds the variables among those of a process.
    pub fn from_variables(variables: &BTreeMap<String, String>) -> Self {
        let [no_color, clicolor_force, term] =
            ["NO_COLOR", "CLICOLOR_FORCE", "TERM"].map(|name| variables.get(name).cloned());
        Self { no_color, clicolor_force, term }
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
    /// A pipe, a file, or nothing.
    #[default]
    Elsewhere,
    /// A terminal other than that of standard error.
    OtherTerminal,
    /// The same terminal as standard error: the output of both is mixed.
    SameTerminal,
}

/// Style of a line if colour is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Unchanged.
    Plain,
    /// Less important.
    Dim,
    /// A heading, or strong emphasis.
    Bold,
    /// Emphasis.
    Italic,
    /// Code.
    Code,
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
}

impl Style {
    /// Returns the parameter of the ECMA-48 SGR sequence.
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Dim => Some("2"),
            Self::Bold => Some("1"),
            Self::Italic => Some("3"),
            Self::Code => Some("36"),
            Self::Success => Some("32"),
            Self::Warning => Some("33"),
            Self::Error => Some("31"),
            Self::AddedWord => Some("7;32"),
            Self::RemovedWord => Some("7;31"),
        }
    }

    fn paint(self, text: &str) -> String {
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

/// The standard streams of the process. All output through it is sanitized, written in whole lines, and not mixed with the
/// spinner.
pub struct Terminal {
    info: StreamInfo,
    color: bool,
    /// Whether standard output is coloured.
    out_color: bool,
    rich: bool,
    out: Mutex<Box<dyn Write + Send>>,
    err: Mutex<ErrorStream>,
    /// Number of open questions, which read what the user types.
    pub(super) questions: watch::Sender<u32>,
    /// Held while lines are read.
    pub(super) reading: AsyncMutex<()>,
    /// Text that was typed before questions.
    pub(super) typed: Mutex<String>,
    /// The preview of the last question that was answered with yes.
    pub(super) approved: Mutex<Option<String>>,
}

/// Standard error and the state of its last line.
struct ErrorStream {
    out: Box<dyn Write + Send>,
    /// Whether the last text did not end its line.
    line_open: bool,
    spinner: Spinner,
}

impl ErrorStream {
    /// Returns the newline that ends an open line, left by streamed text or a prompt.
    fn close_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.line_open) { "\n" } else { "" }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let Self { out, spinner, .. } = self;
        spinner.suspend(|| out.write_all(text.as_bytes()).and_then(|()| out.flush()))
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
        Self {
            info,
            color: !set(&environment.no_color) && (forced || rich),
            out_color: !set(&environment.no_color)
                && (forced || !dumb && info.stdout != StdoutTarget::Elsewhere),
            rich,
            out: Mutex::new(out),
            err: Mutex::new(ErrorStream { out: err, line_open: false, spinner: Spinner::default() }),
            questions: watch::Sender::new(0),
            reading: AsyncMutex::default(),
            typed: Mutex::default(),
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

    /// Returns the view of a diff or a command that fits on the screen together with `rows_around` rows.
    pub fn preview(&self, text: &str, rows_around: u16) -> Preview {
        let height = console::Term::stderr().size_checked().map(|(rows, _columns)| rows);
        let rows = height.map_or(MAX_ROWS, |rows| usize::from(rows.saturating_sub(rows_around)));
        Preview::fitting(text, rows.clamp(MIN_ROWS, MAX_ROWS), usize::from(self.width()))
    }

    /// Returns the columns of the terminal of standard error.
    pub fn width(&self) -> u16 {
        console::Term::stderr().size_checked().map_or(DEFAULT_WIDTH, |(_rows, columns)| columns)
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
        let start = err.close_line();
        let block = format!("{start}{}\n", self.paint(style, &sanitize(text)));
        err.write(&block)
    }

    /// Writes rows to standard error, in one write.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn eprint_rows(&self, rows: &[Row]) -> io::Result<()> {
        let mut err = self.lock_err();
        let mut block = err.close_line().to_owned();
        for row in rows {
            block.extend(row.iter().map(|(style, text)| self.paint(*style, &sanitize(text))));
            block.push('\n');
        }
        err.write(&block)
    }

    /// Writes a piece of streamed text to standard error, sanitized; hides the spinner.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn stream(&self, style: Style, piece: &str) -> io::Result<()> {
        let text = sanitize_prose(piece);
        let Some(last) = text.chars().next_back() else { return Ok(()) };
        let mut err = self.lock_err();
        err.spinner.hide();
        err.write(&self.paint(style, &text))?;
        err.line_open = last != '\n';
        Ok(())
    }

    /// Ends the line that streamed text left open, if any.
    ///
    /// # Errors
    /// When standard error cannot be written.
    pub fn end_line(&self) -> io::Result<()> {
        let mut err = self.lock_err();
        let end = err.close_line();
        err.write(end)
    }

    /// Writes text to standard output, sanitized, and ends its last line. A closed pipe is not an error, because it does
    /// not change the result of a run.
    ///
    /// # Errors
    /// When standard output cannot be written for another reason, such as a full disk.
    pub fn print(&self, text: &str) -> io::Result<PrintOutcome> {
        let text = sanitize_prose(text);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.deliver(&text, end)
    }

    /// Like [`print`](Self::print), with a style for each line.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_lines(&self, lines: &[(Style, &str)]) -> io::Result<PrintOutcome> {
        let painted = lines.iter().map(|(style, line)| {
            let style = if self.out_color { *style } else { Style::Plain };
            format!("{}\n", style.paint(&sanitize_prose(line)))
        });
        self.deliver(&painted.collect::<String>(), "")
    }

    /// Writes pieces of text to standard output, sanitized, each with its style; they may contain newlines and need not end
    /// a line.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn print_spans(&self, spans: &[(Style, &str)]) -> io::Result<PrintOutcome> {
        let painted = spans.iter().map(|(style, text)| {
            let style = if self.out_color { *style } else { Style::Plain };
            style.paint(&sanitize_prose(text))
        });
        self.deliver(&painted.collect::<String>(), "")
    }

    /// Writes rows to standard output, from the beginning of the row that is `up` rows above the cursor; what stood there and below is erased. The last row is
    /// ended only if `ends`. It is one update for a terminal that knows synchronized output (DECSET 2026).
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn draw_rows(&self, up: usize, rows: &[Row], ends: bool) -> io::Result<PrintOutcome> {
        let up = if up > 0 { format!("\x1b[{up}A") } else { String::new() };
        let mut text = format!("\x1b[?2026h{up}\r\x1b[J");
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                text.push('\n');
            }
            for (style, piece) in row {
                let style = if self.out_color { *style } else { Style::Plain };
                text.push_str(&style.paint(&sanitize_prose(piece)));
            }
        }
        text.push_str(if ends { "\n\x1b[?2026l" } else { "\x1b[?2026l" });
        self.deliver(&text, "")
    }

    /// Like [`print`](Self::print), in place of the last `rows` rows of a terminal.
    ///
    /// # Errors
    /// As [`print`](Self::print).
    pub fn redraw(&self, text: &str, rows: usize) -> io::Result<PrintOutcome> {
        // CPL and ED of ECMA-48: to the start of an earlier line, and erase what follows.
        let start = if rows > 0 { format!("\x1b[{rows}F\x1b[J") } else { String::new() };
        self.deliver(&format!("{start}{}", sanitize_prose(text)), "")
    }

    fn deliver(&self, text: &str, end: &str) -> io::Result<PrintOutcome> {
        self.hide_status();
        if self.info.stdout == StdoutTarget::SameTerminal {
            self.end_line()?;
        }
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = out
            .write_all(text.as_bytes())
            .and_then(|()| out.write_all(end.as_bytes()))
            .and_then(|()| out.flush());
        match written {
            Ok(()) => Ok(PrintOutcome::Written),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(PrintOutcome::Closed),
            Err(error) => Err(error),
        }
    }

    /// Shows a spinner with `label` and the waiting time, if standard error is a terminal.
    pub fn show_status(&self, label: &str) {
        if self.rich {
            let mut err = self.lock_err();
            if !err.line_open {
                err.spinner.show(&one_line(label, usize::from(u8::MAX)));
            }
        }
    }

    /// Hides the spinner that [`show_status`](Self::show_status) shows; returns its label.
    pub fn hide_status(&self) -> Option<String> {
        self.lock_err().spinner.hide()
    }

    /// Writes the last line of a prompt to standard error, without a newline.
    pub(super) fn print_prompt(&self, question: &str) -> io::Result<()> {
        let mut err = self.lock_err();
        let start = err.close_line();
        let block = format!("{start}{}", self.paint(Style::Bold, &sanitize(question)));
        err.write(&block)?;
        err.line_open = true;
        Ok(())
    }

    /// Records that the user's answer ended the line of the prompt.
    pub(super) fn end_prompt(&self) {
        self.lock_err().line_open = false;
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.color { style.paint(text) } else { text.to_owned() }
    }

    fn lock_err(&self) -> MutexGuard<'_, ErrorStream> {
        self.err.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stdout_target(stdout: &impl AsFd, stderr: &impl AsFd) -> StdoutTarget {
    let device = |stat: rustix::io::Result<rustix::fs::Stat>| stat.map(|stat| stat.st_rdev).ok();
    match (isatty(stdout), isatty(stderr)) {
        (false, _) => StdoutTarget::Elsewhere,
        (true, true) if device(fstat(stdout)) == device(fstat(stderr)) => StdoutTarget::SameTerminal,
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
        let color = |info, environment| terminal(info, &environment).0.color;
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
}
