//! `agent chat`: a conversation at the terminal. Each message is a run on one session.

pub mod args;
mod completion;
mod conversation;
mod slash_commands;

use crate::commands::client_run::parse_total;
use crate::commands::run_args::RunOptions;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_report::OutputFormat;
use agent_report::chat_log::ChatMemory;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::session::session_store;
use agent_run::user_commands::UserCommands;
use agent_runtime::interrupt::Interrupt;
use agent_terminal::line_editor::{Input, LineEditor, LineEditorOptions, SavedModes};
use agent_terminal::{Style, one_line};
use args::ChatArgs;
use conversation::{Conversation, INTERRUPTED, Next};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Text before the input of the user.
const PROMPT: &str = "> ";

/// Time after an interrupt in which a second Ctrl+C ends the conversation with exit code 130.
const SECOND_INTERRUPT: Duration = Duration::from_secs(2);

/// Runs a conversation and returns the exit code.
///
/// # Errors
/// Fails without a terminal, and when the configuration or the session to continue is unusable.
pub fn chat(app: &App, args: ChatArgs) -> AppResult<u8> {
    if !app.terminal.can_ask() {
        let message = "`agent chat` needs a terminal; in scripts use `agent run \"what to do\"`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    if args.options.format() != OutputFormat::Text {
        let message = "`agent chat` has no JSON output; use `agent run … --json`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    let RunOptions { report, report_file, exit_code_on_partial, .. } = &args.options;
    if report.is_some() || report_file.is_some() || exit_code_on_partial.is_some() {
        let message = "--report, --report-file and --exit-code-on-partial are for one run; in a conversation use `/report`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    let runtime = app.runtime()?;
    let code = Chat::start(app, args, &runtime)?.run();
    runtime.shutdown_background();
    code
}

/// A conversation and the editor of its inputs.
struct Chat<'a> {
    conversation: Conversation<'a>,
    /// Absent while it reads, and after it failed.
    editor: Option<LineEditor>,
    /// The message of the command line, until it is sent.
    first: Option<String>,
    modes: Arc<SavedModes>,
}

impl<'a> Chat<'a> {
    fn start(app: &'a App, args: ChatArgs, runtime: &'a Runtime) -> AppResult<Self> {
        runtime.block_on(async { app.end_on_quit() })?;
        let ChatArgs { message, last, resume, budget_total, options } = args;
        let mut request = options.request();
        let loaded = app.load_and_notify(&request.effective_overrides())?;
        let shown: ChatMemory = loaded.notices.iter().map(|notice| app.redact(notice)).collect();
        request.chat = Some(shown);
        request.has_person = true;
        let settings = &loaded.settings;
        let session = if last { Some(session_store(settings).id_or_newest_own(None)?) } else { resume };
        let budget = budget_total.map(parse_total).transpose()?;
        let user_commands = UserCommands::find(app, &loaded);
        let editor = line_editor(app, settings, &user_commands)?;
        let mut conversation = Conversation::new(app, runtime, request, user_commands);
        // Fails now, not at the first message, if the session is unusable.
        let exchanges = conversation.change_session(session)?;
        conversation.left = budget;
        // A session brings its own agent and model.
        if conversation.session.is_some() {
            conversation.show_status()?;
        } else {
            conversation.show_header(settings);
        }
        conversation.show(&exchanges);
        let modes = Arc::new(SavedModes::save());
        Ok(Self { conversation, editor: Some(editor), first: message, modes })
    }

    /// Reads inputs until the user ends the conversation, and returns the exit code.
    fn run(&mut self) -> AppResult<u8> {
        loop {
            let input = match self.first.take() {
                Some(message) => {
                    self.conversation.app.notify(Style::Plain, &format!("{PROMPT}{message}"));
                    Input::Line(message)
                }
                None => self.read()?,
            };
            if self.is_terminated() {
                return Ok(INTERRUPTED);
            }
            let next = match input {
                Input::End => return Ok(ExitCode::Success.code()),
                Input::Unreadable => {
                    self.conversation.app.notify(Style::Error, messages::CHAT_UNREADABLE);
                    Next::Prompt
                }
                Input::Interrupted => self.interrupt(),
                Input::ShowOutput(typed) => {
                    self.conversation.typed = typed;
                    if let Err(error) = self.conversation.show_output(0) {
                        self.conversation.app.report_error(&error);
                    }
                    Next::Prompt
                }
                Input::Line(line) => self.handle(line.trim()),
            };
            let mut next = next;
            next = loop {
                next = match next {
                    Next::Message(text) => self.conversation.send(text),
                    Next::Queued(text) => self.conversation.send_queued(text),
                    next => break next,
                }
            };
            if self.is_terminated() {
                return Ok(INTERRUPTED);
            }
            if let Next::Exit(code) = next {
                return Ok(code);
            }
        }
    }

    /// Reads the next input. A signal meanwhile restores the terminal and ends the process.
    fn read(&mut self) -> AppResult<Input> {
        let Some(mut editor) = self.editor.take() else { return Ok(Input::End) };
        let typed =
            [std::mem::take(&mut self.conversation.typed), self.conversation.app.terminal.take_typed()];
        typed.join("\n").trim_matches('\n').clone_into(&mut editor.typed);
        if editor.is_plain() && !editor.typed.is_empty() {
            // The terminal cannot show a line that is edited.
            let text = messages::chat_not_sent(&one_line(&editor.typed, usize::MAX));
            self.conversation.app.notify(Style::Warning, &text);
        }
        if let Some(problem) = editor.take_problem() {
            let app = self.conversation.app;
            app.notify(Style::Warning, &messages::history_problem(&app.redact(&problem)));
        }
        let (app, modes) = (self.conversation.app, Arc::clone(&self.modes));
        let (editor, input) = self.conversation.runtime.block_on(async {
            let interrupt = app.interrupt()?;
            // A command of the program has run without the runtime: its signals arrive now, before the modes change.
            for _turn in 0..2 {
                tokio::task::yield_now().await;
            }
            if interrupt.ends_process() {
                return Ok((Some(editor), Ok(Input::End)));
            }
            interrupt.arm_exit(!editor.is_plain(), move || modes.restore());
            let read = editor.read(&app.terminal, PROMPT).await;
            interrupt.disarm();
            Ok::<_, AppError>(read)
        })?;
        self.editor = editor;
        if input.is_err() {
            self.modes.restore();
        }
        input.map_err(|error| AppError::new(FailureKind::Internal, messages::cannot_read_line(&error)))
    }

    /// Checks whether SIGTERM or SIGHUP was received.
    fn is_terminated(&self) -> bool {
        self.conversation.app.interrupt().is_ok_and(Interrupt::ends_process)
    }

    /// Handles Ctrl+C at the prompt: the second one ends the conversation.
    fn interrupt(&mut self) -> Next {
        let now = self.conversation.app.source.elapsed();
        let before = self.conversation.interrupted.replace((now, false));
        let is_soon = |at: Duration| now.saturating_sub(at) <= SECOND_INTERRUPT;
        match before {
            Some((at, true)) if is_soon(at) => Next::Exit(INTERRUPTED),
            Some((at, false)) if is_soon(at) => Next::Exit(ExitCode::Success.code()),
            _ => {
                self.conversation.app.notify(Style::Dim, messages::CHAT_INTERRUPT_AGAIN);
                Next::Prompt
            }
        }
    }

    /// Handles a line: a slash command, a shell command after `!`, or a message.
    fn handle(&mut self, line: &str) -> Next {
        self.conversation.interrupted = None;
        match line.chars().next() {
            None => Next::Prompt,
            // Words of a person who wants to leave, or to know how, cost no request.
            Some(_) if ["exit", "quit"].contains(&line) => Next::Exit(ExitCode::Success.code()),
            Some(_) if line == "?" => self.conversation.slash_command("/help"),
            Some('/') => self.conversation.slash_command(line),
            Some('!') => {
                self.conversation.run_command(line.trim_start_matches('!').trim());
                Next::Prompt
            }
            Some(_) => Next::Message(line.to_owned()),
        }
    }
}

/// Creates the editor, with the history of the workspace.
fn line_editor(app: &App, settings: &Settings, user_commands: &UserCommands) -> AppResult<LineEditor> {
    directories::prepare(settings)?;
    let redactor = app.redactor(settings);
    let (names, root) = (slash_commands::names(user_commands), settings.workspace.clone());
    let directory = app.environment.current_dir().to_owned();
    let editor = LineEditor::new(LineEditorOptions {
        history: settings.state.join("chat-history"),
        may_store: Box::new(move |line| redactor.text(line) == line),
        commands: Arc::new(move |typed| completion::names(&names, typed)),
        paths: Arc::new(move |typed| completion::paths(&root, typed)),
        arguments: Arc::new(move |line| completion::arguments(&directory, line)),
        term: app.environment.get("TERM").unwrap_or_default().to_owned(),
    });
    editor.map_err(|error| AppError::new(FailureKind::Config, messages::cannot_read_line(&error)))
}
