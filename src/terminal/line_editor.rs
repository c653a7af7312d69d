//! The input below the output: reads lines at the terminal with editing, history and completion, at the prompt and while the program works.

use super::input_line::InputLine;
use super::keys::{Keys, SavedModes, SignalKeys};
use super::live::InputView;
use super::preview::Row;
use super::prompt::read_line;
use super::sanitize::{columns, truncate_end};
use super::streams::{Style, Terminal};
use super::vi::{Vi, ViKey};
use agent_messages as messages;
use rustix::process::Signal;
use rustyline::config::Config;
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History, SearchDirection};
use std::borrow::Cow;
use std::fmt::Display;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use terminput::{Event, KeyCode, KeyEvent, KeyModifiers};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// Maximum number of lines in the history.
const HISTORY_LINES: usize = 1_000;
/// Text before the input.
pub const PROMPT: &str = "> ";
/// Most rows of the input; more are scrolled.
const MAX_ROWS: usize = 8;
/// The key that shows the help in an empty line.
const HELP_KEY: char = '?';
/// A menu takes at most this part of the screen, within these limits.
const MENU_SHARE: usize = 4;
const MIN_MENU_ROWS: usize = 6;
const MAX_MENU_ROWS: usize = 12;
/// Fewest columns of the names in a menu.
const MENU_NAME: usize = 24;

/// Input of the user.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// A line, or several lines that were continued.
    Line(String),
    /// A line that waits for the end of the work: Alt+Enter while the program works.
    Later(String),
    /// The path of an image was pasted.
    Image(PathBuf),
    /// Ctrl+O.
    ShowOutput,
    /// Ctrl+G, with the text so far.
    OpenEditor(String),
    /// Ctrl+C at the prompt.
    Interrupted,
    /// Esc while the program works.
    Stop,
    /// Up in an empty line while the program works.
    TakeBack,
    /// Shift+Tab.
    ChangeMode,
    /// Ctrl+B in an empty line while the program works.
    Leave,
    /// Ctrl+D on an empty line, or the end of the input.
    End,
}

/// What the program does while the user types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It waits for the input: Ctrl+C and Ctrl+Z are keys.
    Waits,
    /// It works: Ctrl+C sends a signal.
    Works,
}

impl Activity {
    fn signal_keys(self) -> SignalKeys {
        match self {
            Self::Waits => SignalKeys::None,
            Self::Works => SignalKeys::Interrupt,
        }
    }
}

/// A text that can stand in the place of what was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The text.
    pub text: String,
    /// The text that the menu shows instead.
    pub label: Option<String>,
    /// Whether it is in force.
    pub is_in_force: bool,
    /// What it is, in a few words.
    pub about: String,
}

impl From<String> for Candidate {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Candidate {
    /// Returns what the menu shows of it.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.text)
    }
}

/// Finds candidates for what is typed.
pub trait Completion {
    /// Returns the commands for a line that begins with `/`.
    fn commands(&self, typed: &str) -> Vec<Candidate>;
    /// Returns the paths for what stands after `@`.
    fn paths(&self, typed: &str) -> Vec<Candidate>;
    /// Returns the candidates for the last word of a line that begins with a command.
    fn values(&self, line: &str) -> Vec<Candidate>;
    /// Checks whether a command, with its slash, takes arguments.
    fn takes_arguments(&self, command: &str) -> bool;
    /// Checks whether what follows a command, with its slash, is chosen from the menu.
    fn is_choice(&self, command: &str) -> bool;
    /// Checks whether a line whose last word is one of these candidates is a whole command.
    fn is_complete(&self, line: &str) -> bool;
    /// Returns the image whose path is all of a pasted text, as when a file is dropped on the terminal.
    fn image(&self, pasted: &str) -> Option<PathBuf>;
}

/// Options of a [`LineEditor`].
pub struct LineEditorOptions {
    /// File of the history; created with mode 0600.
    pub history: PathBuf,
    /// Checks whether a line may be stored in the history.
    pub may_store: Box<dyn Fn(&str) -> bool + Send>,
    /// Finds candidates for the menu.
    pub completion: Box<dyn Completion>,
    /// Whether keys are those of vi.
    pub is_vi: bool,
}

/// Candidates that are shown, and which of them is selected.
struct Menu {
    candidates: Vec<Candidate>,
    /// Beginning of the text that a candidate replaces, in bytes.
    from: usize,
    selected: Option<usize>,
    /// The candidate that Enter takes if none is selected.
    proposed: Option<usize>,
}

impl Menu {
    /// Returns the rows of the candidates around the one that Enter takes, at most `most` on a screen of `width` columns.
    fn rows(&self, most: usize, width: usize) -> Vec<Row> {
        let marked = self.marked();
        let first = marked.map_or(0, |at| (at + 1).saturating_sub(most));
        let shown = self.candidates.iter().enumerate().skip(first).take(most);
        let longest = shown.clone().map(|(_, one)| columns(one.shown())).max().unwrap_or_default();
        let name = longest.clamp(MENU_NAME, (width / 2).max(MENU_NAME));
        let row = |(at, candidate): (usize, &Candidate)| {
            let (style, mark) = if marked == Some(at) { (Style::Bold, "→") } else { (Style::Dim, " ") };
            let (text, _) = truncate_end(candidate.shown(), name);
            let pad = " ".repeat(name.saturating_sub(columns(&text)));
            let about = Cow::from(candidate.about.as_str());
            let about = if candidate.is_in_force { messages::choice_in_force(&about).into() } else { about };
            vec![(style, format!("{mark} {text}{pad} {about}").trim_end().to_owned())]
        };
        let mut rows: Vec<Row> = shown.map(row).collect();
        if let Some(more) = self.candidates.len().checked_sub(first + most).filter(|more| *more > 0) {
            rows.push(vec![(Style::Dim, format!("  {}", messages::menu_more(more)))]);
        }
        rows
    }

    /// Returns the candidate that Enter takes.
    fn marked(&self) -> Option<usize> {
        self.selected.or(self.proposed)
    }
}

/// A search in the history: Ctrl+R.
struct Search {
    text: String,
    /// Index of the line that was found.
    at: Option<usize>,
}

/// Editor of one line after another.
pub struct LineEditor {
    line: InputLine,
    /// The modes of vi, if keys are those of vi.
    vi: Option<Vi>,
    keys: Keys,
    modes: Arc<SavedModes>,
    options: LineEditorOptions,
    history: FileHistory,
    /// The line of the history that is shown, and the text that was typed before.
    shown: Option<(usize, String)>,
    menu: Option<Menu>,
    search: Option<Search>,
    /// Signals that a window was resized, and that the process was stopped and goes on.
    resized: Option<SignalStream>,
    continued: Option<SignalStream>,
    /// Whether Ctrl+Z stopped the process, which has left the screen in order.
    is_stopping: bool,
    /// Why the history cannot be read or written, until it is reported.
    problem: Option<String>,
    /// Whether lines are added to the file of the history; not to one that could not be read.
    stores_history: bool,
    /// The row below the input.
    pub footer: Row,
}

impl LineEditor {
    /// Creates an editor and loads its history. A history that cannot be read is left alone and reported by [`take_problem`](Self::take_problem).
    ///
    /// # Errors
    /// When the history cannot have the size it should.
    pub fn new(options: LineEditorOptions, modes: Arc<SavedModes>) -> io::Result<Self> {
        let config = Config::builder().max_history_size(HISTORY_LINES).map_err(io_error)?.build();
        let mut history = FileHistory::with_config(&config);
        let problem = match history.load(&options.history) {
            Err(ReadlineError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            loaded => loaded.err().map(|error| error.to_string()),
        };
        Ok(Self {
            line: InputLine::default(),
            vi: options.is_vi.then(Vi::default),
            keys: Keys::default(),
            modes,
            options,
            history,
            shown: None,
            menu: None,
            search: None,
            resized: None,
            continued: None,
            is_stopping: false,
            stores_history: problem.is_none(),
            problem,
            footer: Row::new(),
        })
    }

    /// Returns why the history cannot be read or written, once.
    pub fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Puts `text` before what is typed.
    pub fn put_back(&mut self, text: &str) {
        if !text.is_empty() {
            self.menu = None;
            let typed = self.line.text();
            let end = if typed.is_empty() { "" } else { "\n" };
            self.line.set(&format!("{text}{end}{typed}"));
        }
    }

    /// Lets Ctrl+C, Ctrl+Z and Ctrl+\ send signals until the next input.
    pub fn begin_work(&self) {
        self.modes.deliver_keys(SignalKeys::All);
    }

    /// Types `text`, and opens the menu for it.
    pub fn begin_with(&mut self, text: &str) {
        self.line.set(text);
        self.update_menu();
    }

    /// Reads the next input, and stores a line in the history. A wait that is abandoned loses nothing. While a question is open, the question has the keys.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub async fn next(&mut self, terminal: &Terminal, activity: Activity) -> io::Result<Input> {
        if !terminal.has_icons() {
            return self.next_plain(terminal, activity).await;
        }
        self.modes.deliver_keys(activity.signal_keys());
        let mut questions = terminal.questions.subscribe();
        loop {
            if *questions.borrow() > 0 {
                self.after_questions(terminal).await?;
                self.modes.deliver_keys(activity.signal_keys());
            }
            let typed = terminal.take_typed();
            if !typed.is_empty() {
                self.line.insert(typed.trim_matches('\n'));
                self.menu = None;
            }
            self.show(terminal);
            let _reading = terminal.reading.lock().await;
            let resized = stream(&mut self.resized, SignalKind::window_change())?;
            let continued = stream(&mut self.continued, SignalKind::from_raw(Signal::CONT.as_raw()))?;
            let event = tokio::select! {
                biased;
                _opened = questions.wait_for(|open| *open > 0) => continue,
                _resized = resized.recv() => continue,
                () = terminal.until_call() => continue,
                _continued = continued.recv() => {
                    let was_stopped_by_others = !std::mem::take(&mut self.is_stopping);
                    if was_stopped_by_others {
                        self.modes.forget();
                    }
                    // Before anything is drawn: what the user types at the sight of it are keys.
                    self.modes.deliver_keys(activity.signal_keys());
                    if was_stopped_by_others {
                        terminal.begin_again();
                    }
                    continue;
                }
                event = self.keys.next() => event?,
            };
            let Some(event) = event else { return Ok(Input::End) };
            terminal.note_key();
            terminal.forget_call();
            self.is_stopping = false;
            if let Some(input) = self.press(event, terminal, activity) {
                if let Input::Line(text) | Input::Later(text) = &input {
                    self.store(text);
                }
                self.show(terminal);
                return Ok(input);
            }
        }
    }

    /// Waits for the end of the questions, at which Ctrl+Z sends a signal.
    async fn after_questions(&mut self, terminal: &Terminal) -> io::Result<()> {
        let mut questions = terminal.questions.subscribe();
        let continued = stream(&mut self.continued, SignalKind::from_raw(Signal::CONT.as_raw()))?;
        while *questions.borrow_and_update() > 0 {
            self.modes.deliver_keys(SignalKeys::All);
            tokio::select! {
                _changed = questions.changed() => {}
                _continued = continued.recv() => {
                    self.modes.forget();
                    terminal.begin_again();
                }
            }
        }
        Ok(())
    }

    /// Reads a line at a terminal that cannot be drawn on.
    async fn next_plain(&mut self, terminal: &Terminal, activity: Activity) -> io::Result<Input> {
        let mut questions = terminal.questions.subscribe();
        loop {
            drop(questions.wait_for(|open| *open == 0).await);
            let _reading = terminal.reading.lock().await;
            if activity == Activity::Waits {
                terminal.stream(Style::Plain, PROMPT)?;
            }
            let line = tokio::select! {
                biased;
                _opened = questions.wait_for(|open| *open > 0) => continue,
                line = read_line() => line?,
            };
            terminal.end_prompt();
            let Some(line) = line else { return Ok(Input::End) };
            self.store(line.trim_end_matches('\n'));
            return Ok(Input::Line(line));
        }
    }

    /// Shows the input, the menu or the search, and the footer.
    pub fn show(&mut self, terminal: &Terminal) {
        terminal.has_draft.store(!self.line.is_empty(), Ordering::Relaxed);
        let width = usize::from(terminal.width());
        let (rows, cursor) = self.line.rows(PROMPT, width, MAX_ROWS);
        let mut below = Vec::new();
        if let Some(search) = &self.search {
            let is_missing = search.at.is_none() && !search.text.is_empty();
            below.push(vec![(Style::Dim, messages::history_search(&search.text, is_missing))]);
        }
        let menu = self.menu.as_ref().filter(|menu| !menu.candidates.is_empty());
        if let Some(menu) = menu {
            let most = usize::from(terminal.height().unwrap_or_default()) / MENU_SHARE;
            below.extend(menu.rows(most.clamp(MIN_MENU_ROWS, MAX_MENU_ROWS), width));
        } else if !self.footer.is_empty() {
            let mode = self
                .vi
                .as_ref()
                .filter(|vi| vi.is_normal())
                .map(|_| (Style::Bold, messages::VI_NORMAL.to_owned()));
            below.push(mode.into_iter().chain(self.footer.clone()).collect());
        }
        terminal.show_input(Some(InputView { rows, cursor, below }));
    }

    fn press(&mut self, event: Event, terminal: &Terminal, activity: Activity) -> Option<Input> {
        let key = match event {
            Event::Paste(text) => {
                self.search = None;
                let is_message = !self.line.before_cursor().starts_with(['/', '!']);
                if let Some(image) = self.options.completion.image(&text).filter(|_| is_message) {
                    return Some(Input::Image(image));
                }
                self.line.paste(&text);
                self.update_menu();
                return None;
            }
            Event::Key(key) => key,
            _ => return None,
        };
        let key = self.press_in_mode(key)?;
        if let KeyCode::Char(char) = key.code
            && key.modifiers.contains(KeyModifiers::CTRL)
            && let ControlFlow::Break(input) = self.press_ctrl(char, terminal, activity)
        {
            return input;
        }
        match key.code {
            KeyCode::Enter => return self.enter(key, activity),
            KeyCode::Up if !self.select(false) => {
                if !self.line.press(key) {
                    return self.move_up(activity);
                }
            }
            KeyCode::Down if !self.select(true) => {
                if !self.line.press(key) {
                    self.move_down();
                }
            }
            KeyCode::Up | KeyCode::Down => {}
            KeyCode::Tab if key.modifiers.contains(KeyModifiers::SHIFT) => return Some(Input::ChangeMode),
            KeyCode::Tab => self.tab(),
            KeyCode::Esc if self.menu.take().is_some() => {}
            KeyCode::Esc if self.vi.as_mut().is_some_and(|vi| vi.escape(&mut self.line)) => {}
            KeyCode::Esc if activity == Activity::Works => return Some(Input::Stop),
            _ => {
                let is_help = key.code == KeyCode::Char(HELP_KEY) && self.line.is_empty();
                if is_help {
                    // The footer offers it; a message does not begin so.
                    return Some(Input::Line(HELP_KEY.to_string()));
                }
                if self.line.press(key) {
                    self.shown = None;
                    self.update_menu();
                }
            }
        }
        None
    }

    /// Gives a key to the search or to vi; returns the key that is left to handle.
    fn press_in_mode(&mut self, key: KeyEvent) -> Option<KeyEvent> {
        if self.search.is_some() && self.press_in_search(key) {
            return None;
        }
        match self.vi.as_mut().and_then(|vi| vi.press(key, &mut self.line)) {
            Some(ViKey::Used) => {
                (self.shown, self.menu) = (None, None);
                None
            }
            Some(ViKey::As(key)) => Some(key),
            None => Some(key),
        }
    }

    /// Handles a key with Ctrl, unless it only edits the line.
    fn press_ctrl(
        &mut self,
        char: char,
        terminal: &Terminal,
        activity: Activity,
    ) -> ControlFlow<Option<Input>> {
        match char {
            'j' => {
                self.line.insert("\n");
                self.menu = None;
            }
            // What was typed is all that the key takes away.
            'c' if activity == Activity::Waits && !self.line.is_empty() => self.clear(),
            'c' => {
                self.clear();
                return ControlFlow::Break(Some(Input::Interrupted));
            }
            // While the program works, only the end of the input ends it.
            'd' if self.line.is_empty() => {
                return ControlFlow::Break((activity == Activity::Waits).then_some(Input::End));
            }
            'o' => return ControlFlow::Break(Some(Input::ShowOutput)),
            'g' if activity == Activity::Waits => {
                let text = self.line.text();
                self.clear();
                return ControlFlow::Break(Some(Input::OpenEditor(text)));
            }
            'b' if activity == Activity::Works && self.line.is_empty() => {
                return ControlFlow::Break(Some(Input::Leave));
            }
            'z' => {
                self.is_stopping = true;
                terminal.stop_process(&self.modes);
                self.modes.deliver_keys(activity.signal_keys());
            }
            'l' => terminal.clear_screen(),
            'r' => {
                self.menu = None;
                self.search = Some(Search { text: String::new(), at: None });
            }
            'p' => return ControlFlow::Break(self.move_up(activity)),
            'n' => self.move_down(),
            _ => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(None)
    }

    fn enter(&mut self, key: KeyEvent, activity: Activity) -> Option<Input> {
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        if self.accept_and_go_on() || self.open_choice() {
            return None;
        }
        let is_continued = self.line.is_at_end() && self.line.before_cursor().ends_with('\\');
        if is_continued {
            let end = self.line.before_cursor().len() - 1;
            self.line.complete(end, "\n");
            return None;
        }
        if key.modifiers.contains(KeyModifiers::SHIFT) || is_alt && activity == Activity::Waits {
            self.line.insert("\n");
            return None;
        }
        let text = self.line.text();
        self.clear();
        Some(if is_alt { Input::Later(text) } else { Input::Line(text) })
    }

    /// Takes the marked candidate on Enter; returns whether the line goes on. A command that takes arguments waits for them.
    fn accept_and_go_on(&mut self) -> bool {
        let Some((menu, at)) = self.menu.as_ref().and_then(|menu| Some((menu, menu.marked()?))) else {
            return false;
        };
        let is_path = self.line.before_cursor().get(..menu.from).is_some_and(|before| before.ends_with('@'));
        self.accept(at);
        let line = self.line.before_cursor().to_owned();
        if is_path || !line.starts_with('/') || !self.line.is_at_end() {
            return true;
        }
        if line.contains(char::is_whitespace) {
            return !self.options.completion.is_complete(&line);
        }
        let takes_arguments = self.options.completion.takes_arguments(&line);
        if takes_arguments {
            self.line.insert(" ");
            self.update_menu();
        }
        takes_arguments
    }

    /// Opens the menu of a command that stands alone, if what follows is chosen from one; returns whether there is such a menu.
    fn open_choice(&mut self) -> bool {
        let line = self.line.text();
        let completion = &self.options.completion;
        if !completion.is_choice(&line) || completion.values(&format!("{line} ")).is_empty() {
            return false;
        }
        self.line.set(&format!("{line} "));
        self.update_menu();
        true
    }

    fn clear(&mut self) {
        self.line.clear();
        if let Some(vi) = &mut self.vi {
            vi.insert();
        }
        (self.menu, self.shown, self.search) = (None, None, None);
    }

    fn move_up(&mut self, activity: Activity) -> Option<Input> {
        if activity == Activity::Works && self.line.is_empty() {
            return Some(Input::TakeBack);
        }
        let before = self.shown.as_ref().map_or(self.history.len(), |(at, _)| *at);
        if let Some(at) = before.checked_sub(1) {
            self.show_history(at);
        }
        None
    }

    fn move_down(&mut self) {
        self.menu = None;
        match self.shown.take() {
            Some((at, typed)) if at + 1 >= self.history.len() => self.line.set(&typed),
            Some((at, typed)) => {
                self.shown = Some((at, typed));
                self.show_history(at + 1);
            }
            None => {}
        }
    }

    fn show_history(&mut self, at: usize) {
        self.menu = None;
        if let Ok(Some(found)) = self.history.get(at, SearchDirection::Forward) {
            let typed = self.shown.take().map_or_else(|| self.line.text(), |(_, typed)| typed);
            self.line.set(&found.entry);
            self.shown = Some((at, typed));
        }
    }

    /// Handles a key of a search; returns false if it ends the search and has its usual meaning.
    fn press_in_search(&mut self, key: KeyEvent) -> bool {
        let Some(search) = &mut self.search else { return false };
        let is_ctrl = key.modifiers.contains(KeyModifiers::CTRL);
        let from = match key.code {
            KeyCode::Char('r') if is_ctrl => search.at.and_then(|at| at.checked_sub(1)),
            KeyCode::Char(char) if !is_ctrl => {
                search.text.push(char);
                search.at.or_else(|| self.history.len().checked_sub(1))
            }
            KeyCode::Backspace => {
                search.text.pop();
                self.history.len().checked_sub(1)
            }
            _ => {
                self.search = None;
                return matches!(key.code, KeyCode::Esc);
            }
        };
        let found = from.and_then(|from| {
            self.history.search(&search.text, from, SearchDirection::Reverse).ok().flatten()
        });
        search.at = found.as_ref().map(|found| found.idx);
        if let Some(found) = found {
            self.line.set(&found.entry);
        }
        true
    }

    /// Completes what all candidates have in common, or selects the next one.
    fn tab(&mut self) {
        if self.menu.as_ref().is_some_and(|menu| menu.selected.is_some()) {
            self.select(true);
            return;
        }
        self.update_menu();
        let Some(menu) = &mut self.menu else { return };
        let typed = self.line.before_cursor().get(menu.from..).unwrap_or_default();
        let common = common_beginning(&menu.candidates);
        if let [_] = menu.candidates.as_slice() {
            self.accept(0);
        } else if common.len() > typed.len() && common.starts_with(typed) {
            let from = menu.from;
            self.line.complete(from, &common);
            self.update_menu();
        } else {
            menu.selected = Some(0);
        }
    }

    /// Selects the next candidate, or the one before; returns false without a menu.
    fn select(&mut self, next: bool) -> bool {
        let Some(menu) = self.menu.as_mut().filter(|menu| !menu.candidates.is_empty()) else { return false };
        let count = menu.candidates.len();
        menu.selected = Some(match menu.marked() {
            None => {
                if next {
                    0
                } else {
                    count - 1
                }
            }
            Some(at) => (at + if next { 1 } else { count - 1 }) % count,
        });
        true
    }

    /// Puts a candidate in the place of what was typed.
    fn accept(&mut self, at: usize) {
        let Some(menu) = self.menu.take() else { return };
        if let Some(candidate) = menu.candidates.get(at) {
            self.line.complete(menu.from, &candidate.text);
            if candidate.text.ends_with('/') {
                self.update_menu();
            }
        }
    }

    /// Shows the candidates for the text before the cursor.
    fn update_menu(&mut self) {
        let before = self.line.before_cursor();
        let word = before.trim_end_matches(|char: char| !char.is_whitespace()).len();
        let path = before.get(word..).and_then(|word| word.strip_prefix('@'));
        let options = &self.options;
        let command = before.split(char::is_whitespace).next().unwrap_or_default();
        let is_choice = options.completion.is_choice(command);
        let (from, candidates) = if before.starts_with('/') && word == 0 {
            (0, options.completion.commands(before))
        } else if let Some(path) = path {
            (word + 1, options.completion.paths(path))
        } else if before.starts_with('/') {
            let rest = before.get(command.len()..).unwrap_or_default().trim_start();
            (if is_choice { before.len() - rest.len() } else { word }, options.completion.values(before))
        } else {
            (0, Vec::new())
        };
        // What is typed already needs no menu.
        let typed = before.get(from..).unwrap_or_default();
        let is_known = |candidate: &Candidate| typed == candidate.text;
        let ends_so = |candidate: &Candidate| {
            candidate.text.strip_suffix(typed).is_some_and(|rest| rest.ends_with('/'))
        };
        let is_complete = matches!(candidates.as_slice(), [only] if is_known(only));
        let known = candidates.iter().position(is_known);
        let in_force = || candidates.iter().position(|candidate| candidate.is_in_force);
        let proposed = match known {
            _ if !self.line.is_at_end() => None,
            _ if before.starts_with('/') && word == 0 => known.is_none().then_some(0),
            _ if path.is_some_and(|path| !path.is_empty()) => known.is_none().then_some(0),
            // The whole name of a model need not be known.
            // A session has a label, and the last one is proposed.
            _ if is_choice && typed.is_empty() => {
                in_force().or_else(|| candidates.first().and_then(|one| one.label.as_ref()).map(|_| 0))
            }
            _ if is_choice && !typed.contains('/') => {
                known.or_else(|| candidates.iter().position(ends_so)).or(Some(0))
            }
            _ => None,
        };
        self.menu = (!candidates.is_empty() && !is_complete).then_some(Menu {
            candidates,
            from,
            selected: None,
            proposed,
        });
    }

    /// Adds a line to the history, and to its file.
    fn store(&mut self, line: &str) {
        if line.trim().is_empty() || !(self.options.may_store)(line) {
            return;
        }
        let added = self.history.add(line);
        let stored = added.and_then(|_| {
            if self.stores_history { self.history.append(&self.options.history) } else { Ok(()) }
        });
        self.problem = stored.err().map(|error| error.to_string());
    }
}

/// Returns what all candidates begin with.
fn common_beginning(candidates: &[Candidate]) -> String {
    let Some((first, rest)) = candidates.split_first() else { return String::new() };
    let mut common = first.text.as_str();
    for Candidate { text, .. } in rest {
        let same = common.chars().zip(text.chars()).take_while(|(a, b)| a == b);
        let length = same.map(|(char, _)| char.len_utf8()).sum();
        common = common.get(..length).unwrap_or_default();
    }
    common.to_owned()
}

/// Returns the signals of a kind since the first call.
fn stream(stream: &mut Option<SignalStream>, kind: SignalKind) -> io::Result<&mut SignalStream> {
    if stream.is_none() {
        *stream = Some(signal(kind)?);
    }
    stream.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn io_error(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{StreamInfo, TerminalEnvironment};

    struct Paths;

    impl Completion for Paths {
        fn commands(&self, _: &str) -> Vec<Candidate> {
            vec!["/mode".to_owned().into()]
        }

        fn paths(&self, _: &str) -> Vec<Candidate> {
            vec!["src/".to_owned().into()]
        }

        fn values(&self, _: &str) -> Vec<Candidate> {
            vec!["value".to_owned().into()]
        }

        fn takes_arguments(&self, _: &str) -> bool {
            false
        }

        fn is_choice(&self, _: &str) -> bool {
            false
        }

        fn is_complete(&self, _: &str) -> bool {
            false
        }

        fn image(&self, _: &str) -> Option<PathBuf> {
            None
        }
    }

    fn typed(keys: &[KeyEvent]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let options = LineEditorOptions {
            history: directory.path().join("history"),
            may_store: Box::new(|_| true),
            completion: Box::new(Paths),
            is_vi: false,
        };
        let mut editor = LineEditor::new(options, Arc::new(SavedModes::save())).unwrap();
        editor.store("ls");
        let streams = (Box::new(io::sink()), Box::new(io::sink()));
        let terminal = Terminal::with_streams(
            StreamInfo::default(),
            &TerminalEnvironment::default(),
            streams.0,
            streams.1,
        );
        for key in keys {
            editor.press(Event::Key(*key), &terminal, Activity::Waits);
        }
        editor.line.text()
    }

    fn keys(text: &str) -> Vec<KeyEvent> {
        text.chars().map(|char| KeyEvent::new(KeyCode::Char(char))).collect()
    }

    #[test]
    fn u16_a_menu_never_outlives_the_text_that_it_is_for() {
        let ctrl = |char| KeyEvent::new(KeyCode::Char(char)).modifiers(KeyModifiers::CTRL);
        let choose = [KeyEvent::new(KeyCode::Down), KeyEvent::new(KeyCode::Enter)];
        for change in [vec![ctrl('p')], vec![ctrl('r'), KeyEvent::new(KeyCode::Char('l'))]] {
            typed(&[keys("hello @s"), change, choose.to_vec()].concat());
        }
        // White space of several bytes.
        assert_eq!(typed(&[keys("/mode\u{a0}"), choose.to_vec()].concat()), "/mode\u{a0}value");
        assert_eq!(typed(&[keys("see\u{3000}@s"), choose.to_vec()].concat()), "see\u{3000}@src/");
    }
}
