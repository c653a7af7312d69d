//! Slash commands of `agent chat`. Those on a session run the command of the same name with the session's id.

use super::conversation::{Conversation, MAX_MESSAGE_BYTES, Next};
use super::user_commands::UserCommands;
use crate::cli::commands::run_args::{parse_effort, parse_mode};
use crate::cli::compose::session::session_store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::exit_code::ExitCode;
use crate::config::error::did_you_mean;
use crate::config::text_file::read_text;
use crate::core::failure::FailureKind;
use crate::messages;
use crate::process::editor::run_editor;
use crate::terminal::Style;
use std::fmt::{Display, Write as _};
use std::io::Write as _;

/// The built-in commands: name, arguments and meaning.
const COMMANDS: [(&str, &str, &str); 22] = [
    ("help", "", "list these commands"),
    ("model", "[PROVIDER/MODEL]", "show or change the model"),
    ("agent", "[NAME]", "show or change the agent"),
    ("mode", "[MODE]", "show or change which calls run without a prompt"),
    ("effort", "[EFFORT]", "show or change the reasoning effort"),
    ("plan", "", "use the agent `plan`, which changes nothing; `/agent build` goes back"),
    ("compact", "", "summarize the older messages before the next one is sent"),
    ("diff", "", "show the file changes of the session"),
    ("undo", "", "undo the file changes since the last message; again for the one before"),
    ("redo", "", "redo the last undo"),
    ("history", "", "list the steps that changed files"),
    ("cost", "", "show tokens and cost of the session"),
    ("report", "[--format F] [-o FILE]", "write a report on the session"),
    ("skills", "", "list the skills"),
    ("memory", "[add FACT|rm N|clear]", "list or change what is stored for later sessions"),
    ("sessions", "", "list the sessions of this workspace"),
    ("resume", "[ID]", "continue another session, or the newest"),
    ("fork", "", "continue in a copy of the session"),
    ("new", "", "start a new session"),
    ("edit", "", "write a message in $VISUAL or $EDITOR"),
    ("exit", "", "end the conversation"),
    ("quit", "", "end the conversation"),
];

/// Returns all commands with their slash, for completion.
pub fn names(user_commands: &UserCommands) -> Vec<String> {
    let built_in = COMMANDS.iter().map(|(name, ..)| *name);
    let mut names: Vec<String> =
        built_in.chain(user_commands.names()).map(|name| format!("/{name}")).collect();
    names.sort();
    names.dedup();
    names
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

    fn try_slash_command(&mut self, name: &str, arguments: &str) -> CliResult<Next> {
        match name {
            "help" => self.say(&self.help()),
            "model" => self.set(arguments, |chat, value| {
                chat.options.model = Some(value.to_owned());
                Ok(())
            })?,
            "agent" => self.set(arguments, |chat, value| {
                chat.options.agent = Some(value.to_owned());
                Ok(())
            })?,
            "plan" => self.set("plan", |chat, value| {
                chat.options.agent = Some(value.to_owned());
                Ok(())
            })?,
            "mode" => self.set(arguments, |chat, value| {
                chat.options.mode = Some(parse_mode(value).map_err(usage)?);
                Ok(())
            })?,
            "effort" => self.set(arguments, |chat, value| {
                chat.options.effort = Some(parse_effort(value).map_err(usage)?);
                Ok(())
            })?,
            "diff" | "redo" | "history" | "report" => {
                self.on_session(&[name], arguments)?;
            }
            "compact" => match self.session {
                Some(_) => self.compact = true,
                None => return Err(usage(messages::CHAT_NO_SESSION)),
            },
            "undo" => self.undo()?,
            "cost" => match &self.result {
                Some(result) => {
                    let text =
                        messages::costs(&result.cost, result.usage, crate::core::language::Language::En);
                    self.say(&text);
                }
                None => self.say(messages::CHAT_NO_SESSION),
            },
            "skills" | "memory" => {
                self.dispatch(&[name], arguments)?;
            }
            "sessions" => {
                self.dispatch(&["sessions", "list"], arguments)?;
            }
            "resume" => self.resume(arguments)?,
            "fork" => {
                if self.on_session(&["sessions", "fork"], "")? {
                    self.session = Some(self.newest_session()?);
                    self.undo_points.clear();
                }
            }
            "new" => {
                self.session = None;
                self.undo_points.clear();
            }
            "edit" => return self.edit(arguments),
            "quit" | "exit" => return Ok(Next::Exit(ExitCode::Success.code())),
            name => return self.user_command(name, arguments),
        }
        Ok(Next::Prompt)
    }

    fn say(&self, text: &str) {
        self.app.notify(Style::Plain, text.trim_end());
    }

    fn help(&self) -> String {
        let mut text = String::new();
        for (name, arguments, meaning) in COMMANDS {
            let _infallible = writeln!(text, "  {:<32} {meaning}", format!("/{name} {arguments}"));
        }
        for name in self.user_commands.names() {
            let _infallible = writeln!(text, "  /{name}");
        }
        text + messages::CHAT_HELP
    }

    /// Changes an option of the following messages with `change`, unless the configuration then is invalid. Shows the
    /// options in force.
    fn set(&mut self, value: &str, change: impl FnOnce(&mut Self, &str) -> CliResult<()>) -> CliResult<()> {
        let before = self.options.clone();
        let changed = if value.is_empty() { Ok(()) } else { change(self, value) };
        let loaded = changed.and_then(|()| self.app.load(&self.options.flags()));
        match loaded {
            Ok(loaded) => {
                let settings = loaded.settings;
                let model = settings.llm.model.unwrap_or_default();
                let effort = settings.llm.effort.map_or("default", crate::llm::effort::Effort::name);
                let agent = settings.agent;
                self.say(&messages::chat_options(&model, &agent.name, agent.mode.name(), effort));
                Ok(())
            }
            Err(error) => {
                self.options = before;
                Err(error)
            }
        }
    }

    /// Runs a command of the program with `words` and the words of `arguments`; returns whether it succeeded.
    fn dispatch(&self, words: &[&str], arguments: &str) -> CliResult<bool> {
        let common = &self.options.common;
        let path = |flag: &str, path: &Option<std::path::PathBuf>| {
            path.iter().map(|path| format!("--{flag}={}", path.display())).collect::<Vec<_>>()
        };
        let words = words.iter().map(|word| (*word).to_owned());
        let arguments = arguments.split_whitespace().map(str::to_owned);
        let places = [path("config", &common.config), path("workspace", &common.workspace)].concat();
        let code = (self.run_words)(self.app, words.chain(arguments).chain(places).collect())?;
        Ok(code == ExitCode::Success.code())
    }

    /// Runs a command of the program on the session of the conversation; returns whether it succeeded.
    fn on_session(&self, words: &[&str], arguments: &str) -> CliResult<bool> {
        match &self.session {
            Some(id) => self.dispatch(&[words, &[id.as_str()]].concat(), arguments),
            None => Err(usage(messages::CHAT_NO_SESSION)),
        }
    }

    /// Undoes the changes since the last message of this conversation.
    fn undo(&mut self) -> CliResult<()> {
        let Some(step) = self.undo_points.last() else { return Err(usage(messages::CHAT_NOTHING_TO_UNDO)) };
        if self.on_session(&["undo"], &format!("--to-step {step}"))? {
            self.undo_points.pop();
        }
        Ok(())
    }

    /// Opens the user's editor; what was written is the message.
    fn edit(&self, text: &str) -> CliResult<Next> {
        let variable = |name| self.app.environment.get(name).filter(|value| !value.trim().is_empty());
        let editor = variable("VISUAL").or_else(|| variable("EDITOR"));
        let Some(editor) = editor else { return Err(usage(messages::CHAT_NO_EDITOR)) };
        let failed = |why: &dyn Display| usage(messages::chat_editor_failed(editor, &why.to_string()));
        let mut file = tempfile::Builder::new()
            .prefix("agent-message-")
            .suffix(".md")
            .tempfile()
            .map_err(|error| failed(&error))?;
        writeln!(file, "{text}").map_err(|error| failed(&error))?;
        let status = run_editor(editor, file.path(), self.app.environment.variables());
        let status = status.map_err(|error| failed(&error))?;
        if !status.success() {
            return Err(failed(&status));
        }
        let text = read_text(file.path(), MAX_MESSAGE_BYTES as u64).map_err(|error| failed(&error))?;
        let text = text.unwrap_or_default().trim().to_owned();
        Ok(if text.is_empty() { Next::Prompt } else { Next::Message(text) })
    }

    fn newest_session(&self) -> CliResult<String> {
        Ok(session_store(&self.app.load(&self.options.flags())?.settings).id_or_newest(None)?)
    }

    fn resume(&mut self, id: &str) -> CliResult<()> {
        let id = if id.is_empty() { self.newest_session()? } else { id.to_owned() };
        let settings = self.app.load(&self.options.flags())?.settings;
        drop(crate::cli::compose::session::LockedSession::open(&settings, Some(&id))?);
        self.say(&messages::chat_session(&id));
        self.session = Some(id);
        self.undo_points.clear();
        Ok(())
    }

    fn user_command(&mut self, name: &str, arguments: &str) -> CliResult<Next> {
        match self.user_commands.message(name, arguments) {
            Some(Ok(text)) => {
                self.is_from_file = true;
                Ok(Next::Message(text))
            }
            Some(Err(error)) => Err(CliError { kind: FailureKind::Config, cause: error.into() }),
            None => {
                let known = COMMANDS.iter().map(|(name, ..)| *name).chain(self.user_commands.names());
                let hint = did_you_mean(name, known).map_or_else(String::new, |hint| format!(" ({hint})"));
                Err(usage(messages::chat_unknown_command(name, &hint)))
            }
        }
    }
}

fn usage(message: impl Into<String>) -> CliError {
    CliError::new(FailureKind::Usage, message.into())
}
