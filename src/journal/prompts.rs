//! The prompts of a session, to which `/rewind` of a conversation goes back.

use crate::read;
use crate::session_store::{SessionError, SessionStore};
use crate::step_counter::StepCounter;
use agent_core::event::{Event, MessageOrigin, Record};

/// A message with which the user began a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its text.
    pub text: String,
    /// Number of steps of the session before it, for an undo of the later ones.
    pub steps_before: u32,
    /// Number of records of the session before its run.
    pub records_before: usize,
    /// Number of its images.
    pub images: usize,
    /// The files that changed until the next prompt, each once.
    pub files: Vec<String>,
}

impl SessionStore {
    /// Returns the prompts of session `id`, oldest first.
    ///
    /// # Errors
    /// Fails for an unknown or unreadable session.
    pub fn prompts(&self, id: &str) -> Result<Vec<Prompt>, SessionError> {
        let contents = read::read(&self.journal_path(id)?)
            .map_err(|error| SessionError::Unreadable(id.to_owned(), error.to_string()))?;
        Ok(prompts(&contents.records))
    }
}

/// Returns the prompts in the records of a session, oldest first.
pub fn prompts(records: &[Record]) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = Vec::new();
    let mut counter = StepCounter::default();
    let mut records_before = 0;
    for (at, record) in records.iter().enumerate() {
        let steps_before = counter.next(record);
        if matches!(record.event, Event::RunStart { .. }) {
            records_before = at;
        }
        if let Event::UserMessage { text, origin: MessageOrigin::Prompt, images } = &record.event {
            let (text, images, files) = (text.clone(), images.len(), Vec::new());
            prompts.push(Prompt { text, steps_before, records_before, images, files });
        } else if let Some(prompt) = prompts.last_mut() {
            for change in record.event.changed() {
                if !prompt.files.contains(&change.path) {
                    prompt.files.push(change.path.clone());
                }
            }
        }
    }
    prompts
}

/// Returns the position of the `count`th last prompt, or of the first one.
pub fn last_prompts(records: &[Record], count: usize) -> usize {
    let is_prompt =
        |record: &Record| matches!(record.event, Event::UserMessage { origin: MessageOrigin::Prompt, .. });
    let prompts = records.iter().enumerate().filter(|(_, record)| is_prompt(record)).map(|(at, _)| at);
    prompts.rev().take(count).last().unwrap_or(records.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(step: u32, event: &serde_json::Value) -> Record {
        let record =
            json!({"v": 1, "seq": 0, "run": "r", "step": step, "wall_ms": 1, "mono_us": 0, "event": event});
        serde_json::from_value(record).unwrap()
    }

    // A run without a step, and a run whose model was replaced in a step, do not move the place of a prompt.
    #[test]
    fn u13_a_prompt_stands_after_the_records_of_the_runs_before_it() {
        let run = json!({"type": "run_start", "agent": "", "model": "", "mode": "", "tools": [], "max_steps": 1, "resumed": false, "sandbox": ""});
        let prompt = |text: &str| json!({"type": "user_message", "text": text, "origin": "prompt"});
        let step = json!({"type": "step_start", "purpose": "step", "messages": 1});
        let events = [
            (0, run.clone()),
            (0, prompt("one")),
            (1, step.clone()),
            (1, step.clone()),
            (0, run.clone()),
            (0, prompt("two")),
            (0, run),
            (0, prompt("three")),
            (1, step),
        ];
        let records: Vec<Record> = events.into_iter().map(|(step, event)| record(step, &event)).collect();
        let found = prompts(&records);
        let found: Vec<(&str, u32, usize)> =
            found.iter().map(|it| (it.text.as_str(), it.steps_before, it.records_before)).collect();
        assert_eq!(found, [("one", 0, 0), ("two", 1, 4), ("three", 1, 6)]);
        assert_eq!(last_prompts(&records, 2), 5);
    }
}
