//! Slash commands of `agent chat`. Those on a session run the command of the same name with the session's id.

use super::conversation::{BUILD, Conversation, MAX_MESSAGE_BYTES, Next, PLAN};
use super::keyboard::Keyboard;
use agent_config::error::did_you_mean;
use agent_config::flag_values::{parse_effort, parse_mode};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_engine::policy::Mode;
use agent_journal::session_store::SessionStore;
use agent_llm::model_table::{built_in_models, look_up};
use agent_messages as messages;
use agent_process::editor::run_editor;
use agent_report::call_view::output_row;
use agent_report::chat_log::{ChatMemory, StoredCall, Viewed};
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::input_images::InputImages;
use agent_run::session::session_store;
use agent_run::user_commands::UserCommands;
use agent_terminal::line_editor::Candidate;
use agent_terminal::preview::Row;
use agent_terminal::{Style, one_line};
use agent_text::lines::as_shown;
use agent_tools::outputs::Outputs;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

/// Maximum characters of the title of a session.
const MAX_TITLE_CHARS: usize = 200;

/// Lines and bytes shown of a stored output.
const MAX_OUTPUT_LINES: usize = 10_000;
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

/// The built-in commands: name, arguments and meaning.
const COMMANDS: [(&str, &str, &str); 32] = [
    ("help", "", "list these commands"),
    ("model", "[PROVIDER/MODEL]", "show or change the model"),
    ("agent", "[NAME]", "show or change the agent"),
    ("mode", "[MODE]", "show or change which calls run without a prompt"),
    ("effort", "[EFFORT]", "show or change the reasoning effort"),
    ("plan", "[MESSAGE]", "use the agent `plan`, which changes nothing; `/agent build` goes back"),
    ("compact", "", "summarize the older messages before the next one is sent"),
    ("out", "[N]", "show all that the last call printed, or call N"),
    ("diff", "", "show the file changes of the session"),
    ("undo", "", "undo the file changes since the last message; again for the one before"),
    ("redo", "", "redo the last undo"),
    ("rewind", "[N [files|conversation]]", "list your messages, or go back to before one"),
    ("history", "", "list the steps that changed files"),
    ("context", "", "show what fills the window of the model"),
    ("cost", "", "show tokens and cost of the session"),
    ("report", "[--format F] [-o FILE]", "write a report on the session"),
    ("skills", "", "list the skills"),
    ("memory", "[add FACT|rm N|clear]", "list or change what is stored for later sessions"),
    ("sessions", "", "list the sessions of this workspace"),
    ("resume", "[ID]", "continue another session, or the newest"),
    ("name", "[TITLE|clear]", "show or change the name of the session in lists"),
    ("fork", "", "continue in a copy of the session"),
    ("new", "", "start a new session"),
    ("clear", "", "start a new session, as /new"),
    ("copy", "", "copy the last answer to the clipboard"),
    ("thinking", "", "show the thoughts of the model, or no longer"),
    ("queue", "[clear]", "show what waits for the agent, or remove it"),
    ("status", "", "show model, agent, mode, directory and session"),
    ("image", "[FILE …|clear]", "attach images to the next message, list them, or remove them"),
    ("edit", "", "write a message in $VISUAL or $EDITOR"),
    ("exit", "", "end the conversation"),
    ("quit", "", "end the conversation"),
];

/// The commands that are possible while the agent works.
const WHILE_WORKING: [&str; 13] = [
    "help", "model", "agent", "plan", "mode", "effort", "out", "copy", "cost", "thinking", "status", "queue",
    "image",
];

/// Returns all commands with their slash, for the menu.
pub fn candidates(user_commands: &UserCommands) -> Vec<Candidate> {
    let built_in = COMMANDS.iter().map(|(name, _, about)| (*name, *about));
    let all = built_in.chain(user_commands.names().map(|name| (name, "")));
    let candidate =
        |(name, about): (&str, &str)| Candidate { about: about.to_owned(), ..format!("/{name}").into() };
    let mut candidates: Vec<Candidate> = all.map(candidate).collect();
    candidates.sort_by(|one, other| one.text.cmp(&other.text));
    candidates.dedup_by(|one, other| one.text == other.text);
    candidates
}

/// Checks whether the command `name` takes arguments; a command of the user may.
pub fn takes_arguments(name: &str) -> bool {
    COMMANDS.iter().find(|(known, ..)| *known == name).is_none_or(|(_, arguments, _)| !arguments.is_empty())
}

/// Checks whether a line is `?` or a slash command that is possible while the agent works.
pub fn is_for_work(line: &str) -> bool {
    if line == "?" {
        return true;
    }
    let name = line.strip_prefix('/').unwrap_or_default().split_whitespace().next().unwrap_or_default();
    WHILE_WORKING.contains(&name)
}

/// Returns what a user means by the rest of a line: quotes around all of it do not belong to it, an apostrophe in it does.
fn free_text(text: &str) -> String {
    let text = text.trim();
    match shlex::split(text).as_deref() {
        Some([all]) => all.clone(),
        _ => text.to_owned(),
    }
}

impl Conversation<'_> {
    /// Runs a slash command; an unknown one is not sent to the model.
    pub fn slash_command(&mut self, line: &str) -> Next {
        let line = line.trim_start_matches('/');
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let arguments = arguments.trim();
        match self.try_slash_command(name, arguments) {
            Ok(next) => next,
            Err(error) => {
                self.app.report_error(&error);
                Next::Prompt
            }
        }
    }

    fn try_slash_command(&mut self, name: &str, arguments: &str) -> AppResult<Next> {
        let takes_none = |(known, takes, _): &(&str, &str, &str)| *known == name && takes.is_empty();
        if !arguments.is_empty() && COMMANDS.iter().any(takes_none) {
            return Err(usage(messages::chat_no_arguments(name)));
        }
        match name {
            "help" | "?" => self.show_help(),
            "model" | "agent" | "mode" | "effort" => self.set_option(name, arguments)?,
            "diff" | "history" | "report" => {
                self.on_session(&[name], arguments)?;
            }
            "redo" => {
                if self.on_session(&[name], "")? {
                    self.undo_points.extend(self.undone_points.pop());
                }
            }
            "plan" => return self.plan(arguments),
            "compact" => self.compact_before_next()?,
            "undo" => self.undo()?,
            "out" => {
                let which = if arguments.is_empty() {
                    Ok(Viewed::Last)
                } else {
                    arguments.parse().map(Viewed::Number)
                };
                self.show_output(which.map_err(|_| usage(messages::CHAT_NO_OUTPUT))?)?;
            }
            "context" => self.show_context()?,
            "cost" => self.show_cost(),
            "memory" if arguments.starts_with("add ") => {
                let fact = free_text(arguments.trim_start_matches("add "));
                self.dispatch_words(&["memory", "add"], vec!["--".to_owned(), fact])?;
            }
            "skills" | "memory" => {
                self.dispatch(&[name], arguments)?;
            }
            "sessions" => {
                self.dispatch(&["sessions", "list"], arguments)?;
            }
            "resume" => self.resume(arguments)?,
            "rewind" => self.rewind(arguments)?,
            "name" => self.name_session(arguments)?,
            "fork" => self.fork()?,
            "new" | "clear" => {
                self.change_session(None)?;
                self.refresh_footer()?;
                self.say(messages::CHAT_NEW_SESSION);
            }
            "copy" => self.copy()?,
            "thinking" => {
                let shows = self.request.chat.as_ref().is_some_and(ChatMemory::toggle_thoughts);
                self.say(messages::chat_thoughts(shows));
            }
            "queue" => self.show_waiting(arguments)?,
            "status" => self.show_status()?,
            "image" => self.attach_images(arguments)?,
            "edit" => return Ok(Next::Edit(arguments.to_owned())),
            "quit" | "exit" => return Ok(Next::Exit(ExitCode::Success.code())),
            name => return self.user_command(name, arguments),
        }
        Ok(Next::Prompt)
    }

    /// Uses the agent `plan`, and sends a message to it if there is one.
    fn plan(&mut self, message: &str) -> AppResult<Next> {
        self.set_option(PLAN, "")?;
        Ok(if message.is_empty() { Next::Prompt } else { Next::Message(message.to_owned()) })
    }

    /// Changes to the next mode: `confirm-sensitive`, `auto`, the agent `plan`.
    pub fn change_mode(&mut self) {
        let in_force = self.app.load(&self.request_in_force().effective_overrides());
        let changed = in_force.and_then(|loaded| {
            let (agent, mode) = (loaded.settings.agent.name, loaded.settings.agent.mode);
            self.apply(|flags| {
                (flags.agent, flags.mode) = match mode {
                    // The session would go on with its last agent, which is this one.
                    _ if agent == PLAN => (Some(BUILD.to_owned()), Some(Mode::ConfirmSensitive)),
                    Mode::ConfirmAll | Mode::ConfirmSensitive => (flags.agent.take(), Some(Mode::Auto)),
                    Mode::Auto | Mode::Yolo => (Some(PLAN.to_owned()), None),
                };
                Ok(())
            })
        });
        if let Err(error) = changed {
            self.app.report_error(&error);
        }
    }

    /// Changes the settings of the following messages with `change`, and shows the settings in force.
    pub fn set(&mut self, change: impl FnOnce(&mut Overrides) -> AppResult<()>) -> AppResult<()> {
        let settings = self.apply(change)?;
        let effort = settings.llm.effort.map_or("default", agent_llm::effort::Effort::name);
        let [model, agent, _] = self.header_parts(&settings);
        self.say(&messages::chat_options(&model, &agent, effort));
        Ok(())
    }

    /// Changes the option `name` of the following messages; without a value, shows it.
    fn set_option(&mut self, name: &str, value: &str) -> AppResult<()> {
        let text = || Some(value.to_owned());
        match (name, value) {
            ("plan", _) => self.set(|flags| {
                flags.agent = Some(PLAN.to_owned());
                Ok(())
            }),
            (_, "") => self.set(|_| Ok(())),
            ("model", _) if value.starts_with('/') || value.contains(char::is_whitespace) => {
                Err(usage(messages::chat_no_model_name(value)))
            }
            ("model", _) => {
                self.set(|flags| {
                    flags.model = text();
                    Ok(())
                })?;
                self.tell_of_unknown_model(value);
                Ok(())
            }
            ("agent", _) => self.set(|flags| {
                flags.agent = text();
                Ok(())
            }),
            ("mode", _) => self.set(|flags| {
                flags.mode = Some(parse_mode(value).map_err(usage)?);
                Ok(())
            }),
            _ => self.set(|flags| {
                flags.effort = Some(parse_effort(value).map_err(usage)?);
                Ok(())
            }),
        }
    }

    /// Says that a model is not in the table, and which is similar: it can be a slip, or the model of a server of the user.
    fn tell_of_unknown_model(&self, name: &str) {
        let provider = name.split_once('/').map_or("", |(provider, _)| provider);
        let similar = built_in_models(&format!("{provider}/"));
        if !similar.is_empty() && look_up(name, &BTreeMap::new()).is_none() {
            let hint = did_you_mean(name, similar.iter().map(|(known, _)| *known)).unwrap_or_default();
            self.app.notify(Style::Warning, &messages::chat_unknown_model(name, &hint));
        }
    }

    /// Shows all that a call printed.
    pub fn show_output(&self, which: Viewed) -> AppResult<()> {
        let output = self.request.chat.as_ref().and_then(|memory| memory.output(which));
        let Some(call) = output else { return Err(usage(messages::CHAT_NO_OUTPUT)) };
        let mut rows = call.command;
        self.app.notify(Style::Bold, &messages::chat_output_title(call.number, &call.title));
        match call.stored.map(|stored| self.stored_rows(&stored)).transpose() {
            Ok(stored) => rows.extend(stored.unwrap_or(call.rows)),
            Err(error) => {
                self.app.notify(Style::Warning, &messages::chat_output_lost(&error.to_string()));
                rows.extend(call.rows);
            }
        }
        // A terminal that is gone is noticed by the next prompt.
        drop(self.app.terminal.eprint_rows(&rows));
        Ok(())
    }

    /// Returns the rows of a stored output, of a very long one the last.
    fn stored_rows(&self, stored: &StoredCall) -> AppResult<Vec<Row>> {
        let settings = self.app.load(&self.request_in_force().effective_overrides())?.settings;
        let outputs = Outputs {
            dir: session_store(&settings).outputs_dir(&stored.session)?,
            parent: None,
            kept: None,
            redactor: self.app.redactor(&settings),
        };
        let path = outputs.path(&stored.call_id);
        let read = || -> io::Result<(Vec<u8>, u64)> {
            let mut file = outputs.open(&Outputs::name(&stored.call_id))?;
            let before = file.metadata()?.len().saturating_sub(MAX_OUTPUT_BYTES);
            let mut bytes = Vec::new();
            file.seek(SeekFrom::Start(before))?;
            file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
            Ok((bytes, before))
        };
        let (bytes, bytes_before) =
            read().map_err(|error| usage(format!("cannot read {}: {error}", path.display())))?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let before = lines.len().saturating_sub(MAX_OUTPUT_LINES);
        let cut = (before > 0 || bytes_before > 0)
            .then(|| messages::chat_output_before(&path.display().to_string()));
        let cut = cut.map(|cut| vec![(Style::Dim, cut)]);
        Ok(cut.into_iter().chain(lines.iter().skip(before).map(|line| output_row(&as_shown(line)))).collect())
    }

    fn compact_before_next(&mut self) -> AppResult<()> {
        if self.session.is_none() {
            return Err(usage(messages::CHAT_NO_SESSION));
        }
        self.compact = true;
        self.say(messages::CHAT_COMPACTS);
        Ok(())
    }

    fn show_cost(&self) {
        match &self.result {
            Some(result) => self.say(&messages::costs(&result.cost, result.usage, Language::En)),
            None => self.say(messages::CHAT_NO_MESSAGE),
        }
    }

    /// Copies the last answer to the clipboard.
    fn copy(&self) -> AppResult<()> {
        let Some(result) = &self.result else { return Err(usage(messages::CHAT_NO_MESSAGE)) };
        let answer = result.output.text();
        if !self.app.terminal.copy(&answer) {
            return Err(usage(messages::CHAT_CANNOT_COPY));
        }
        let is_in_tmux = self.app.environment.get("TMUX").is_some();
        self.say(&messages::chat_copied(answer.lines().count(), is_in_tmux));
        Ok(())
    }

    /// Attaches the images whose files `arguments` names to the next message, and lists what is attached.
    fn attach_images(&mut self, arguments: &str) -> AppResult<()> {
        let Some(files) = shlex::split(arguments) else { return Err(usage(messages::CHAT_OPEN_QUOTE)) };
        if arguments == "clear" {
            self.request.images.clear();
        } else {
            self.attach(files.into_iter().map(PathBuf::from))?;
        }
        if self.request.images.is_empty() {
            self.say(messages::CHAT_NO_IMAGE);
        }
        Ok(())
    }

    /// Attaches an image that was dropped on the terminal; if that fails, its path stands in the input.
    pub fn attach_dropped(&mut self, path: PathBuf, keyboard: &mut Keyboard) {
        let text = path.display().to_string();
        if let Err(error) = self.attach([path]) {
            self.app.report_error(&error);
            keyboard.put_back(&text);
        }
    }

    /// Attaches images to the next message, and lists what is attached.
    pub fn attach(&mut self, files: impl IntoIterator<Item = PathBuf>) -> AppResult<()> {
        let files: Vec<PathBuf> = self.request.images.iter().cloned().chain(files).collect();
        let images = InputImages::read(&files)?;
        self.request.images = files;
        for image in images.images() {
            self.say(&messages::image_label(image, Language::En));
        }
        Ok(())
    }

    /// Shows the messages that wait, or removes them.
    fn show_waiting(&mut self, arguments: &str) -> AppResult<()> {
        match arguments {
            "" => {}
            "clear" => drop(self.take_waiting()),
            _ => return Err(usage(messages::chat_no_arguments("queue"))),
        }
        let waiting = self.waiting();
        if waiting.is_empty() {
            self.say(messages::CHAT_EMPTY_QUEUE);
        }
        for (text, is_for_step) in waiting {
            self.say(&messages::chat_waits(&text, is_for_step));
        }
        Ok(())
    }

    pub(super) fn say(&self, text: &str) {
        self.app.notify(Style::Plain, text.trim_end());
    }

    fn show_help(&self) {
        let row = |name: String, meaning: &str| {
            vec![(Style::Plain, format!("  {name:<32} ")), (Style::Plain, meaning.to_owned())]
        };
        let built_in =
            COMMANDS.iter().map(|(name, arguments, about)| row(format!("/{name} {arguments}"), about));
        let own = self.user_commands.names().map(|name| row(format!("/{name}"), ""));
        let keys = messages::CHAT_HELP.lines().map(|line| {
            let (name, meaning) = line.trim_start().split_once("  ").unwrap_or((line, ""));
            if meaning.is_empty() {
                vec![(Style::Plain, line.to_owned())]
            } else {
                row(name.to_owned(), meaning.trim_start())
            }
        });
        // A terminal that is gone is noticed by the next prompt.
        drop(self.app.terminal.eprint_texts(&built_in.chain(own).chain(keys).collect::<Vec<_>>()));
    }

    /// Changes the settings of the following messages with `change`, unless the configuration then is invalid. Returns the settings in force.
    fn apply(&mut self, change: impl FnOnce(&mut Overrides) -> AppResult<()>) -> AppResult<Settings> {
        let before = self.request.overrides.clone();
        let changed = change(&mut self.request.overrides);
        let loaded = changed.and_then(|()| self.app.load(&self.request_in_force().effective_overrides()));
        match loaded {
            Ok(loaded) => {
                self.show_in_force(&loaded.settings);
                Ok(loaded.settings)
            }
            Err(error) => {
                self.request.overrides = before;
                Err(error)
            }
        }
    }

    /// Runs a command of the program with `words` and the words of `arguments`; returns whether it succeeded.
    fn dispatch(&self, words: &[&str], arguments: &str) -> AppResult<bool> {
        let Some(arguments) = shlex::split(arguments) else { return Err(usage(messages::CHAT_OPEN_QUOTE)) };
        self.dispatch_words(words, arguments)
    }

    fn dispatch_words(&self, words: &[&str], arguments: Vec<String>) -> AppResult<bool> {
        let overrides = &self.request.overrides;
        let path = |flag: &str, path: &Option<PathBuf>| {
            path.iter().map(|path| format!("--{flag}={}", path.display())).collect::<Vec<_>>()
        };
        let words = words.iter().map(|word| (*word).to_owned());
        let places = [path("config", &overrides.config), path("workspace", &overrides.workspace)].concat();
        let code = crate::parse_and_run(self.app, words.chain(places).chain(arguments).collect())?;
        Ok(code == ExitCode::Success.code())
    }

    /// Runs a command of the program on the session of the conversation; returns whether it succeeded.
    pub(super) fn on_session(&self, words: &[&str], arguments: &str) -> AppResult<bool> {
        match &self.session {
            Some(id) => self.dispatch(&[words, &[id.as_str()]].concat(), arguments),
            None => Err(usage(messages::CHAT_NO_SESSION)),
        }
    }

    /// Undoes the changes since the last message of this conversation.
    fn undo(&mut self) -> AppResult<()> {
        let Some(step) = self.undo_points.last() else { return Err(usage(messages::CHAT_NOTHING_TO_UNDO)) };
        if self.on_session(&["undo"], &format!("--to-step {step}"))? {
            self.undone_points.extend(self.undo_points.pop());
        }
        Ok(())
    }

    /// Puts what the user writes in an editor, which begins with `text`, into the input.
    pub fn write_input(&mut self, text: &str) -> Next {
        if let Next::Message(text) = self.write_message(text) {
            self.typed = text;
            self.draft = None;
        }
        Next::Prompt
    }

    /// Returns the message that the user writes in an editor, which begins with `text`.
    pub fn write_message(&mut self, text: &str) -> Next {
        self.edit(text).unwrap_or_else(|error| {
            self.app.report_error(&error);
            text.clone_into(&mut self.typed);
            Next::Prompt
        })
    }

    /// Opens the user's editor on a file of the state directory; the text that was written is the message.
    fn edit(&mut self, text: &str) -> AppResult<Next> {
        let variable = |name| self.app.environment.get(name).filter(|value| !value.trim().is_empty());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR"));
        let Some(editor) = editor else { return Err(usage(messages::CHAT_NO_EDITOR)) };
        let failed = |why: &dyn Display| usage(messages::chat_editor_failed(editor, &why.to_string()));
        let state = self.app.load(&self.request.effective_overrides())?.settings.state;
        let mut file = tempfile::Builder::new()
            .prefix("chat-message-")
            .suffix(".md")
            .tempfile_in(state)
            .map_err(|error| failed(&error))?;
        writeln!(file, "{text}").map_err(|error| failed(&error))?;
        let file = file.into_temp_path();
        let status = run_editor(editor, &file, self.app.environment.variables());
        let status = status.map_err(|error| failed(&error))?;
        if !status.success() {
            return Err(failed(&status));
        }
        let read = read_text(&file, MAX_MESSAGE_BYTES as u64);
        self.draft = Some(file);
        let text = match read {
            Ok(text) => text.unwrap_or_default().trim().to_owned(),
            Err(error) => {
                self.app.report_error(&failed(&error));
                return Ok(self.not_sent());
            }
        };
        if text.is_empty() {
            self.draft = None;
            return Ok(Next::Prompt);
        }
        Ok(Next::Message(text))
    }

    /// Continues in a copy of the session.
    fn fork(&mut self) -> AppResult<()> {
        let Some(id) = self.session.clone() else { return Err(usage(messages::CHAT_NO_SESSION)) };
        let fork = self.app.source.session_id();
        self.sessions()?.copy(&id, None, &fork)?;
        let (ran, compact) = (std::mem::take(&mut self.ran), self.compact);
        self.change_session(Some(fork.clone()))?;
        // It is the same conversation.
        (self.ran, self.compact) = (ran, compact);
        self.refresh_footer()?;
        self.say(&messages::chat_session(&fork));
        Ok(())
    }

    /// Shows or changes the title of the session; `clear` removes it.
    fn name_session(&self, title: &str) -> AppResult<()> {
        let Some(id) = &self.session else { return Err(usage(messages::CHAT_NO_SESSION)) };
        let store = self.sessions()?;
        let title = one_line(&self.app.redact(title), MAX_TITLE_CHARS);
        let named = match title.as_str() {
            "" => store.labels(id).title,
            "clear" => None,
            _ => Some(title.clone()),
        };
        if !title.is_empty() {
            store.change_labels(id, |labels| labels.title.clone_from(&named))?;
        }
        self.say(&messages::chat_named(named.as_deref()));
        Ok(())
    }

    pub(super) fn sessions(&self) -> AppResult<SessionStore> {
        Ok(session_store(&self.app.load(&self.request.effective_overrides())?.settings))
    }

    fn resume(&mut self, id: &str) -> AppResult<()> {
        let id = if id.is_empty() { self.sessions()?.id_or_newest_own(None)? } else { id.to_owned() };
        let exchanges = self.change_session(Some(id.clone()))?;
        self.refresh_footer()?;
        self.say(&messages::chat_session(&id));
        self.show(&exchanges);
        Ok(())
    }

    fn user_command(&mut self, name: &str, arguments: &str) -> AppResult<Next> {
        match self.user_commands.message(name, arguments) {
            Some(Ok(text)) => {
                self.is_from_file = true;
                Ok(Next::Message(text))
            }
            Some(Err(error)) => Err(AppError { kind: FailureKind::Config, cause: error.into() }),
            None => {
                let known = COMMANDS.iter().map(|(name, ..)| *name).chain(self.user_commands.names());
                let hint = did_you_mean(name, known).map_or_else(String::new, |hint| format!(" ({hint})"));
                Err(usage(messages::chat_unknown_command(name, &hint)))
            }
        }
    }
}

pub(super) fn usage(message: impl Into<String>) -> AppError {
    AppError::new(FailureKind::Usage, message.into())
}
