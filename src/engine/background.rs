//! Reports starts and ends of background commands as events, and ends them with the run.

use crate::Engine;
use agent_core::event::{Event, MessageOrigin, NoticeLevel};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_tools::background::{BackgroundCommand, CommandUpdate};
use agent_tools::command_output::background_end_text;

impl Engine {
    /// Emits the starts and ends of background commands, sends ends that the model has not seen to the model, reports hosts
    /// that the proxy has refused, and loads the skills and instructions that fit files of
    /// the last calls.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn report_background(&self) -> Result<(), EmitError> {
        self.report_refused_hosts()?;
        for update in self.background.take_updates() {
            let (command, is_known_to_model) = match update {
                CommandUpdate::Started(command) => {
                    let (id, command) = (command.id.clone(), command.text.clone());
                    self.emitter.emit(Event::BackgroundStart { id, command })?;
                    continue;
                }
                CommandUpdate::Ended { command, is_known_to_model } => (command, is_known_to_model),
            };
            let outcome = self.record_end(&command, false)?;
            if !is_known_to_model {
                let text = messages::background_ended(&command.id, &command.text, &outcome);
                self.emitter.emit(Event::user_message(text, MessageOrigin::Background))?;
            }
        }
        self.load_skills_for_files()?;
        self.add_nested_instructions()
    }

    /// Adds the messages that the user has typed while the run worked to the conversation.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn send_queued(&self) -> Result<(), EmitError> {
        for text in self.queue.take() {
            self.emitter.emit(Event::user_message(text, MessageOrigin::Queued))?;
        }
        Ok(())
    }

    /// Ends the background commands with the run.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn stop_background(&self) -> Result<(), EmitError> {
        let background = &self.background;
        let running: Vec<_> =
            background.list().into_iter().filter(|command| command.end().is_none()).collect();
        background.end_all().await;
        for update in background.take_updates() {
            let CommandUpdate::Ended { command, .. } = update else { continue };
            let ended_by_run_end = running.iter().any(|one| one.id == command.id);
            self.record_end(&command, ended_by_run_end)?;
        }
        self.report_refused_hosts()
    }

    /// Emits the end of a background command and returns how it ended, as text for the model.
    fn record_end(&self, command: &BackgroundCommand, ended_by_run_end: bool) -> Result<String, EmitError> {
        let Some(end) = command.end() else { return Ok(String::new()) };
        if let Some(warning) = end.warning() {
            let text = messages::background_command_damage(&command.id, &warning);
            self.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
        }
        let outcome = background_end_text(command, end);
        let (id, text) = (command.id.clone(), command.text.clone());
        self.emitter.emit(Event::BackgroundEnd {
            id,
            command: text,
            outcome: outcome.clone(),
            ended_by_run_end,
        })?;
        Ok(outcome)
    }
}
