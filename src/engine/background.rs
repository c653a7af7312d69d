//! What becomes of background commands, told in its place, and their end with the run.

use crate::emit::EmitError;
use crate::engine::Engine;
use crate::event::{Event, Level, Origin};
use crate::messages;
use crate::tools::background::{Command, News};
use crate::tools::command_output::outcome;

impl Engine {
    /// Tells what became of background commands; of an end that the model has not seen, the model too.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub fn tell_background(&self) -> Result<(), EmitError> {
        for news in self.background.news() {
            let (command, known) = match news {
                News::Started(command) => {
                    let (id, command) = (command.id.clone(), command.text.clone());
                    self.emitter.emit(Event::BackgroundStart { id, command })?;
                    continue;
                }
                News::Ended { command, known } => (command, known),
            };
            let outcome = self.record_end(&command, false)?;
            if !known {
                let text = messages::background_ended(&command.id, &command.text, &outcome);
                self.emitter.emit(Event::UserMessage { text, origin: Origin::Background })?;
            }
        }
        Ok(())
    }

    /// Ends the background commands with the run.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn end_background(&self) -> Result<(), EmitError> {
        let background = &self.background;
        let running: Vec<_> =
            background.list().into_iter().filter(|command| command.end().is_none()).collect();
        background.end_all().await;
        for news in background.news() {
            let News::Ended { command, .. } = news else { continue };
            let with_run = running.iter().any(|one| one.id == command.id);
            self.record_end(&command, with_run)?;
        }
        Ok(())
    }

    /// Records that a background command ended; how, in words for the model.
    fn record_end(&self, command: &Command, with_run: bool) -> Result<String, EmitError> {
        let Some(end) = command.end() else { return Ok(String::new()) };
        if let Some(warning) = end.warning() {
            let text = messages::background_disturbed(&command.id, &warning);
            self.emitter.emit(Event::Notice { level: Level::Warn, text })?;
        }
        let outcome = outcome(command, end);
        let (id, text) = (command.id.clone(), command.text.clone());
        self.emitter.emit(Event::BackgroundEnd { id, command: text, outcome: outcome.clone(), with_run })?;
        Ok(outcome)
    }
}
