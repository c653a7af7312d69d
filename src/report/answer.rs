//! The text of the model on its way to a person: drawn as Markdown on a terminal, or as lines of the log on standard error.

use agent_terminal::markdown::MarkdownStream;
use agent_terminal::{StdoutTarget, Style, Terminal};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of text stored to recognize the final answer in it; a longer answer is printed again.
const STORED_TEXT_BYTES: usize = 1 << 20;

/// Whether the final answer was shown on the terminal of standard output; known after the run has ended.
#[derive(Debug, Clone, Default)]
pub struct AnswerShown(Rc<Cell<bool>>);

impl AnswerShown {
    /// Checks whether printing the answer would show it twice.
    pub fn get(&self) -> bool {
        self.0.get()
    }

    /// Records whether the answer was shown.
    pub fn set(&self, shown: bool) {
        self.0.set(shown);
    }
}

/// Shows the text of the model while it arrives.
pub(super) struct AnswerText {
    terminal: Arc<Terminal>,
    place: Place,
    markdown: MarkdownStream,
    /// Style of the last piece on standard error.
    piece_style: Style,
    /// Whether the answer that arrives was shown.
    is_shown: bool,
    /// Text shown since the last tool call, if standard output is a terminal.
    shown: String,
    /// Whether the final answer was shown on standard output.
    outcome: AnswerShown,
}

/// Where the text of the model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On standard output, as Markdown.
    Output,
    /// On standard error.
    Log,
    /// Nowhere while it arrives: the answer on standard output is read together with the log.
    Held,
}

impl AnswerText {
    /// Creates the view for `terminal`.
    pub(super) fn new(terminal: Arc<Terminal>) -> Self {
        let place = match terminal.stream_info().stdout {
            target if target.is_terminal() => Place::Output,
            StdoutTarget::BesideLog => Place::Held,
            _ => Place::Log,
        };
        Self {
            terminal,
            place,
            markdown: MarkdownStream::default(),
            piece_style: Style::Plain,
            is_shown: false,
            shown: String::new(),
            outcome: AnswerShown::default(),
        }
    }

    /// Returns a flag that shows, after the run, whether the answer was already printed.
    pub(super) fn outcome(&self) -> AnswerShown {
        self.outcome.clone()
    }

    /// Checks whether the text stands on standard output.
    pub(super) fn is_on_output(&self) -> bool {
        self.place == Place::Output
    }

    /// Shows a piece of the answer that arrives.
    pub(super) fn push(&mut self, text: &str) -> io::Result<()> {
        if self.place == Place::Held {
            return Ok(());
        }
        self.is_shown = true;
        self.show(text)
    }

    /// Shows the whole `text` of an answer, unless it was shown while it arrived.
    pub(super) fn push_whole(&mut self, text: &str) -> io::Result<()> {
        if self.is_shown || text.trim().is_empty() {
            return Ok(());
        }
        self.show(text.trim_end())
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        if !self.is_on_output() {
            return self.piece(Style::Plain, text);
        }
        if std::mem::replace(&mut self.piece_style, Style::Plain) != Style::Plain {
            self.terminal.end_line()?;
        }
        if self.shown.len() <= STORED_TEXT_BYTES {
            self.shown.push_str(text);
        }
        self.markdown.push(&self.terminal, text).map(drop)
    }

    /// Shows a piece of text on standard error; pieces of different styles are on lines of their own.
    pub(super) fn piece(&mut self, style: Style, text: &str) -> io::Result<()> {
        if self.piece_style != style {
            self.piece_style = style.clone();
            self.end()?;
            self.terminal.end_line()?;
        }
        self.terminal.stream(style, text)
    }

    /// Ends the text, so that a line of the log can follow.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if self.is_on_output() { self.markdown.finish(&self.terminal).map(drop) } else { Ok(()) }
    }

    /// Records that the answer is complete.
    pub(super) fn end_answer(&mut self) {
        self.is_shown = false;
    }

    /// Records that a call of a tool follows: what was shown is not the final answer.
    pub(super) fn begin_call(&mut self) {
        self.shown.clear();
    }

    /// Records that the answer that arrives is abandoned; returns whether a part of it was shown.
    pub(super) fn abandon(&mut self) -> bool {
        self.shown.clear();
        std::mem::take(&mut self.is_shown)
    }

    /// Records the final answer of the run.
    pub(super) fn finish(&mut self, answer: &str) {
        let answer = answer.trim();
        self.outcome.set(!answer.is_empty() && self.shown.trim_end().ends_with(answer));
    }
}
