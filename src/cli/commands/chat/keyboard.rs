//! Input of the user in a conversation, at the prompt and during a run.

use super::completion::{ChatCompletion, InForce};
use agent_config::chat::{ChatNotification, Editing};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_process::notifier::Notifier;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::user_commands::UserCommands;
use agent_terminal::line_editor::{Activity, Input, LineEditor, LineEditorOptions, PROMPT};
use agent_terminal::{Calls, Notification, SavedModes, Style, Terminal, one_line};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Lines shown of a message after it was typed.
const SHOWN_LINES: usize = 12;

/// The keyboard of a conversation. While it exists, the terminal delivers each key to it.
pub struct Keyboard {
    editor: LineEditor,
    modes: Arc<SavedModes>,
    terminal: Arc<Terminal>,
    /// Whether the terminal is gone, or its input has ended.
    is_closed: bool,
    /// The command that notifies the user, for its failure.
    notifier: Notifier,
}

impl Keyboard {
    /// Opens the keyboard, with the history of the workspace.
    ///
    /// # Errors
    /// When the state directory cannot be used.
    pub fn open(
        app: &App,
        settings: &Settings,
        user_commands: &UserCommands,
        in_force: Rc<RefCell<InForce>>,
    ) -> AppResult<Self> {
        directories::prepare(settings)?;
        let redactor = app.redactor(settings);
        let modes = Arc::new(SavedModes::save());
        let options = LineEditorOptions {
            history: settings.state.join("chat-history"),
            may_store: Box::new(move |line| redactor.text(line) == line),
            completion: Box::new(ChatCompletion::new(app, settings, user_commands, in_force)),
            is_vi: settings.chat.editing == Editing::Vi,
        };
        let editor = LineEditor::new(options, Arc::clone(&modes)).map_err(|error| unreadable(&error))?;
        let at_exit = (Arc::clone(&app.terminal), Arc::clone(&modes));
        app.interrupt()?.before_exit(move || {
            at_exit.0.leave();
            at_exit.1.restore();
        });
        let how = match settings.chat.notify {
            ChatNotification::Bell => Some(Notification::Bell),
            ChatNotification::Osc9 => Some(Notification::Osc9),
            ChatNotification::Osc777 => Some(Notification::Osc777),
            ChatNotification::None => None,
        };
        let folder = settings.workspace.file_name().unwrap_or_default().to_string_lossy();
        let after = Duration::from_secs(settings.chat.notify_after);
        let notifier = Notifier::new(&settings.chat.notify_command, app.environment.variables());
        let caller = notifier.clone();
        let has_command = !settings.chat.notify_command.is_empty();
        app.terminal.begin_calls(Calls {
            how,
            command: has_command.then(|| Arc::new(move |text: &str| caller.notify(text)) as _),
            after,
            name: messages::window_name(&folder),
        });
        Ok(Self { editor, modes, terminal: Arc::clone(&app.terminal), is_closed: false, notifier })
    }

    /// Waits for the next input at the prompt.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub async fn at_prompt(&mut self, app: &App, typed: &str) -> AppResult<Input> {
        if self.is_closed {
            return Ok(Input::End);
        }
        if let Some(problem) = self.editor.take_problem() {
            app.notify(Style::Warning, &messages::history_problem(&app.redact(&problem)));
        }
        if let Some(failure) = self.notifier.take_failure() {
            app.notify(Style::Warning, &messages::notification_failed(&failure.to_string()));
        }
        if self.is_plain() && !typed.is_empty() {
            // The terminal cannot show a line that is edited.
            app.notify(Style::Warning, &messages::chat_not_sent(&one_line(typed, usize::MAX)));
        } else {
            self.put_back(typed);
        }
        let input =
            self.editor.next(&self.terminal, Activity::Waits).await.map_err(|error| unreadable(&error))?;
        self.terminal.show_input(None);
        // Commands of the program can be interrupted.
        self.editor.begin_work();
        Ok(input)
    }

    /// Waits for the next input during a run. Never returns after the input has ended.
    pub async fn while_working(&mut self) -> Input {
        if !self.is_closed {
            match self.editor.next(&self.terminal, Activity::Works).await {
                Ok(input) if input != Input::End => return input,
                // Without a terminal nothing is typed any more; the run goes on.
                _ => self.is_closed = true,
            }
        }
        std::future::pending().await
    }

    /// Gives `text` back to the input.
    pub fn put_back(&mut self, text: &str) {
        self.editor.put_back(text);
    }

    /// Types `text`, and opens its menu.
    pub fn begin_with(&mut self, text: &str) {
        self.editor.begin_with(text);
    }

    /// Sets the row below the input.
    pub fn set_footer(&mut self, text: String) {
        self.editor.footer = vec![(Style::Dim, text)];
    }

    /// Checks whether lines are read without editing: Ctrl+C is a signal then, and the terminal shows what is typed.
    pub fn is_plain(&self) -> bool {
        !self.terminal.has_icons()
    }

    /// Shows a message that was sent, as it was typed.
    pub fn show_sent(&self, text: &str) {
        if !self.is_plain() {
            let lines: Vec<&str> = text.lines().collect();
            let mut shown = lines.iter().take(SHOWN_LINES).copied().collect::<Vec<_>>().join("\n  ");
            if let Some(more) = lines.len().checked_sub(SHOWN_LINES).filter(|more| *more > 0) {
                shown = format!("{shown}\n  {}", messages::more_lines(more));
            }
            // A terminal that is gone is noticed by the next prompt.
            drop(self.terminal.eprintln(Style::Bold, &format!("{PROMPT}{shown}")));
        }
    }

    /// Restores the modes of the terminal, for another program that reads from it.
    pub fn release(&self) {
        self.modes.restore();
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.terminal.show_input(None);
        self.terminal.end_calls();
        self.release();
    }
}

fn unreadable(error: &io::Error) -> AppError {
    AppError::new(FailureKind::Internal, messages::cannot_read_line(error))
}
