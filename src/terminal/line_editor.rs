//! Reads lines of input at the terminal with editing, history and completion, through rustyline.

use super::streams::{Style, Terminal};
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::config::{Behavior, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Editor, Event, EventContext, EventHandler, ExternalPrinter,
    Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// Maximum number of lines in the history.
const HISTORY_LINES: usize = 1_000;

/// Text before the line that is drawn again: begins bracketed paste (DECSET 2004), and goes one row up, because the editor ends the
/// row of a text.
const DRAWN_AGAIN: &str = "\x1b[?2004h\x1b[A\n";

/// End of the escape sequence that ends bracketed paste (xterm control sequences, DECRST 2004).
const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Values of `TERM` for which rustyline reads lines without editing; it then writes the prompt to standard output.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Input of the user at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A line, or several lines that were continued.
    Line(String),
    /// Ctrl+O, with the line that is not finished.
    ShowOutput(String),
    /// Ctrl+C.
    Interrupted,
    /// Bytes that are not UTF-8.
    Unreadable,
    /// Ctrl+D on an empty line, or the end of the input.
    End,
}

/// Returns the candidates for the text from the start of a line or word to the cursor.
pub type Complete = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

/// Writes a text above the line that is edited.
type AboveLine = Arc<Mutex<dyn ExternalPrinter + Send>>;

/// Options of a [`LineEditor`].
pub struct LineEditorOptions {
    /// File of the history; created with mode 0600.
    pub history: PathBuf,
    /// Checks whether a line may be stored in the history.
    pub may_store: Box<dyn Fn(&str) -> bool + Send>,
    /// Completes a line that begins with `/`.
    pub commands: Complete,
    /// Completes a path after `@`.
    pub paths: Complete,
    /// Completes the last word of a line that begins with `/`; it receives the line.
    pub arguments: Complete,
    /// The environment variable `TERM`.
    pub term: String,
}

/// Editor of one line after another.
pub struct LineEditor {
    editor: Editor<LineHelper, FileHistory>,
    history: PathBuf,
    may_store: Box<dyn Fn(&str) -> bool + Send>,
    /// Writes a text above the line that is edited, which is drawn again; absent without editing.
    above_line: Option<AboveLine>,
    /// Whether lines are read without editing.
    is_plain: bool,
    /// Text at the beginning of the next line.
    pub typed: String,
    /// Whether the line was ended by Ctrl+O.
    shows_output: Arc<AtomicBool>,
    /// Why the history cannot be read or written, until it is reported.
    problem: Option<String>,
    /// Whether lines are added to the file of the history; not to one that could not be read.
    stores_history: bool,
}

impl LineEditor {
    /// Creates an editor on the controlling terminal and loads its history. A history that cannot be read is left alone and
    /// reported by [`take_problem`](Self::take_problem).
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub fn new(options: LineEditorOptions) -> io::Result<Self> {
        let LineEditorOptions { history, may_store, commands, paths, arguments, term } = options;
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(io_error)?
            .completion_type(CompletionType::List)
            .behavior(Behavior::PreferTerm)
            .build();
        let mut editor = Editor::with_config(config).map_err(io_error)?;
        let continues = Arc::new(AtomicBool::new(false));
        let helper = LineHelper { commands, paths, arguments, continues: Arc::clone(&continues) };
        editor.set_helper(Some(helper));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let enter = EventHandler::Conditional(Box::new(BackslashContinues(continues)));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), enter);
        let shows_output = Arc::new(AtomicBool::new(false));
        let show = EventHandler::Conditional(Box::new(EndsLineToShowOutput(Arc::clone(&shows_output))));
        editor.bind_sequence(KeyEvent::ctrl('O'), show);
        let problem = match editor.load_history(&history) {
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            loaded => loaded.err().map(|error| error.to_string()),
        };
        let is_plain = PLAIN_TERMINALS.contains(&term.as_str());
        let stores_history = problem.is_none();
        let above_line = editor.create_external_printer().ok();
        let above_line = above_line.map(|printer| Arc::new(Mutex::new(printer)) as AboveLine);
        let typed = String::new();
        Ok(Self {
            editor,
            history,
            may_store,
            above_line,
            is_plain,
            typed,
            shows_output,
            problem,
            stores_history,
        })
    }

    /// Checks whether lines are read without editing.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Returns why the history cannot be read or written, once.
    pub fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Reads the next input on a thread of its own, which ends with it, and stores it in the history.
    ///
    /// # Errors
    /// When the thread cannot be started or the terminal cannot be read; with the editor if it is still usable.
    pub async fn read(self, terminal: &Terminal, prompt: &str) -> (Option<Self>, io::Result<Input>) {
        let (sender, mut receiver) = tokio::sync::oneshot::channel();
        let mut continued = match signal(SignalKind::from_raw(Signal::CONT.as_raw())) {
            Ok(continued) => continued,
            Err(error) => return (Some(self), Err(error)),
        };
        let (modes, above_line) = (SavedModes::save(), self.above_line.clone());
        let prompt = if self.is_plain {
            if let Err(error) = terminal.stream(Style::Plain, prompt) {
                return (Some(self), Err(error));
            }
            String::new()
        } else {
            prompt.to_owned()
        };
        let work = move || {
            let mut editor = self;
            let input = editor.read_blocking(&prompt);
            // The receiver is gone only when the process ends.
            drop(sender.send((editor, input)));
        };
        let thread = match std::thread::Builder::new().name("line-editor".to_owned()).spawn(work) {
            Ok(thread) => thread,
            Err(error) => return (None, Err(error)),
        };
        let mut was_continued = false;
        let received = loop {
            tokio::select! {
                biased;
                received = &mut receiver => break received,
                _continued = continued.recv() => if let Some(above_line) = &above_line {
                    was_continued = true;
                    modes.set_raw();
                    draw_again(above_line);
                }
            }
        };
        drop(thread.join());
        if was_continued {
            // The line may have ended before the modes were set.
            modes.restore();
        }
        // The user's Enter has ended the line of the prompt.
        terminal.end_prompt();
        match received {
            Ok((editor, input)) => (Some(editor), input),
            Err(_) => (None, Err(io::Error::other("the line editor failed"))),
        }
    }

    fn read_blocking(&mut self, prompt: &str) -> io::Result<Input> {
        let typed = std::mem::take(&mut self.typed);
        match self.editor.readline_with_initial(prompt, (&typed, "")) {
            Ok(line) if self.shows_output.swap(false, Ordering::Relaxed) => Ok(Input::ShowOutput(line)),
            Ok(line) => {
                if !line.trim().is_empty() && (self.may_store)(&line) {
                    self.store(&line);
                }
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Ok(Input::Unreadable)
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Adds a line to the history, and to its file.
    fn store(&mut self, line: &str) {
        let added = self.editor.add_history_entry(line);
        let stored = added.and_then(|_| {
            if self.stores_history { self.editor.append_history(&self.history) } else { Ok(()) }
        });
        self.problem = stored.err().map(|error| error.to_string());
    }
}

/// Enter after a backslash at the end completes the backslash to a new line, because no other command of the editor both
/// removes and inserts. Pasted backslashes stay.
struct BackslashContinues(Arc<AtomicBool>);

impl ConditionalEventHandler for BackslashContinues {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        let is_continued = context.line().ends_with('\\') && context.pos() == context.line().len();
        is_continued.then(|| {
            self.0.store(true, Ordering::Relaxed);
            Cmd::Complete
        })
    }
}

/// Ctrl+O ends the line, which is then edited again below the output.
struct EndsLineToShowOutput(Arc<AtomicBool>);

impl ConditionalEventHandler for EndsLineToShowOutput {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, _: &EventContext<'_>) -> Option<Cmd> {
        self.0.store(true, Ordering::Relaxed);
        Some(Cmd::AcceptLine)
    }
}

/// Has the editor draw its line, on a thread that waits until the editor reads.
fn draw_again(above_line: &AboveLine) {
    let above_line = Arc::clone(above_line);
    drop(tokio::task::spawn_blocking(move || {
        let mut above_line = above_line.lock().unwrap_or_else(PoisonError::into_inner);
        // The editor reports a terminal that is gone.
        drop(above_line.print(DRAWN_AGAIN.to_owned()));
    }));
}

fn io_error(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Completion of lines.
struct LineHelper {
    commands: Complete,
    paths: Complete,
    arguments: Complete,
    /// Whether the next completion is that of a backslash to a new line.
    continues: Arc<AtomicBool>,
}

impl Completer for LineHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..position).unwrap_or_default();
        if self.continues.swap(false, Ordering::Relaxed)
            && let Some(text) = before.strip_suffix('\\')
        {
            return Ok((text.len(), vec!["\n".to_owned()]));
        }
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Ok((0, (self.commands)(before)));
        }
        let word = before.rfind(char::is_whitespace).map_or(0, |space| space.saturating_add(1));
        match before.get(word..).and_then(|word| word.strip_prefix('@')) {
            Some(path) => Ok((word.saturating_add(1), (self.paths)(path))),
            None if before.starts_with('/') => Ok((word, (self.arguments)(before))),
            None => Ok((position, Vec::new())),
        }
    }
}

impl Validator for LineHelper {}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Highlighter for LineHelper {}

impl Helper for LineHelper {}

/// Saved modes of the terminal of standard input.
pub struct SavedModes(Option<Termios>);

impl SavedModes {
    /// Saves the present modes.
    pub fn save() -> Self {
        Self(tcgetattr(io::stdin()).ok())
    }

    /// Sets the modes in which a line is edited, after a stop: the shell has set its own, possibly after the editor.
    fn set_raw(&self) {
        if let Some(modes) = &self.0 {
            let mut raw = modes.clone();
            raw.make_raw();
            raw.output_modes = modes.output_modes;
            // The editor reports a terminal that is gone.
            let _set = tcsetattr(io::stdin(), OptionalActions::Now, &raw);
        }
    }

    /// Restores the modes and ends bracketed paste, for a process that ends while a line is read.
    pub fn restore(&self) {
        if let Some(modes) = &self.0 {
            // The process ends: a terminal that is gone needs no modes.
            let _restored = tcsetattr(io::stdin(), OptionalActions::Now, modes);
            drop(io::stderr().write_all(BRACKETED_PASTE_OFF));
        }
    }
}
