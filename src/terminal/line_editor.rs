//! Reads lines of input at the terminal with editing, history and completion, through rustyline.

use super::streams::{Style, Terminal};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::config::{Behavior, CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Context, Editor, Helper, KeyCode, KeyEvent, Modifiers};
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of lines in the history.
const HISTORY_LINES: usize = 1_000;

/// End of the escape sequence that ends bracketed paste (xterm control sequences, DECRST 2004).
const BRACKETED_PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Values of `TERM` for which rustyline reads lines without editing; it then writes the prompt to standard output.
const PLAIN_TERMINALS: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Input of the user at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A line, or several lines that were continued.
    Line(String),
    /// Ctrl+C.
    Interrupted,
    /// Ctrl+D on an empty line, or the end of the input.
    End,
}

/// Returns the candidates for the text from the start of a line or word to the cursor.
pub type Complete = Arc<dyn Fn(&str) -> Vec<String> + Send + Sync>;

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
    /// The environment variable `TERM`.
    pub term: String,
}

/// Editor of one line after another.
pub struct LineEditor {
    editor: Editor<LineHelper, FileHistory>,
    history: PathBuf,
    may_store: Box<dyn Fn(&str) -> bool + Send>,
    /// Whether lines are read without editing.
    is_plain: bool,
}

impl LineEditor {
    /// Creates an editor on the controlling terminal and loads its history.
    ///
    /// # Errors
    /// When the terminal cannot be used, or the history exists and cannot be read.
    pub fn new(options: LineEditorOptions) -> io::Result<Self> {
        let LineEditorOptions { history, may_store, commands, paths, term } = options;
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .map_err(io_error)?
            .completion_type(CompletionType::List)
            .behavior(Behavior::PreferTerm)
            .build();
        let mut editor = Editor::with_config(config).map_err(io_error)?;
        editor.set_helper(Some(LineHelper { commands, paths }));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        match editor.load_history(&history) {
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {}
            loaded => loaded.map_err(io_error)?,
        }
        let is_plain = PLAIN_TERMINALS.contains(&term.as_str());
        Ok(Self { editor, history, may_store, is_plain })
    }

    /// Reads the next input on a thread of its own, which ends with it, and stores it in the history.
    ///
    /// # Errors
    /// When the thread cannot be started, the terminal cannot be read, or the history cannot be written; with the editor
    /// if it is still usable.
    pub async fn read(self, terminal: &Terminal, prompt: &str) -> (Option<Self>, io::Result<Input>) {
        let (sender, receiver) = tokio::sync::oneshot::channel();
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
        let received = receiver.await;
        drop(thread.join());
        match received {
            Ok((editor, input)) => (Some(editor), input),
            Err(_) => (None, Err(io::Error::other("the line editor failed"))),
        }
    }

    fn read_blocking(&mut self, prompt: &str) -> io::Result<Input> {
        match self.editor.readline(prompt) {
            Ok(line) => {
                let line = line.replace("\\\n", "\n");
                if !line.trim().is_empty() && (self.may_store)(&line) {
                    self.editor.add_history_entry(line.as_str()).map_err(io_error)?;
                    self.editor.append_history(&self.history).map_err(io_error)?;
                }
                Ok(Input::Line(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Input::Interrupted),
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(error) => Err(io_error(error)),
        }
    }

    /// Returns the lines of the history, oldest first.
    pub fn history(&self) -> impl Iterator<Item = &str> {
        self.editor.history().iter().map(String::as_str)
    }
}

fn io_error(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Completion and continuation of lines.
struct LineHelper {
    commands: Complete,
    paths: Complete,
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
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Ok((0, (self.commands)(before)));
        }
        let word = before.rfind(char::is_whitespace).map_or(0, |space| space.saturating_add(1));
        match before.get(word..).and_then(|word| word.strip_prefix('@')) {
            Some(path) => Ok((word.saturating_add(1), (self.paths)(path))),
            None => Ok((position, Vec::new())),
        }
    }
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if context.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

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

    /// Restores the modes and ends bracketed paste, for a process that ends while a line is read.
    pub fn restore(&self) {
        if let Some(modes) = &self.0 {
            // The process ends: a terminal that is gone needs no modes.
            let _restored = tcsetattr(io::stdin(), OptionalActions::Now, modes);
            drop(io::stderr().write_all(BRACKETED_PASTE_OFF));
        }
    }
}
