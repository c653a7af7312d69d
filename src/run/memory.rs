//! The memory of a run: its tools, and the corrections in the prompts of the user.

use agent_config::settings::Settings;
use agent_core::event::{Event, NoticeLevel};
use agent_journal::memory::{Memory, MemoryKind};
use agent_messages as messages;
use agent_redactor::Redactor;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::EmitError;
use agent_session::Agent;
use agent_text::corrections::find_corrections;
use agent_tools::Tool;
use agent_tools::remember::{Forget, Remember};
use std::sync::Arc;

/// Returns the tools `remember` and `forget`, if the memory is enabled.
pub fn tools(settings: &Settings, source: &Clock) -> Vec<Box<dyn Tool>> {
    if !settings.memory.enabled {
        return Vec::new();
    }
    let memory = Memory::new(&settings.state);
    vec![Box::new(Remember { memory: memory.clone(), day: today(source) }), Box::new(Forget { memory })]
}

/// Stores the corrections of the user in the memory.
pub struct CorrectionStore {
    memory: Memory,
    redactor: Arc<Redactor>,
    day: String,
}

impl CorrectionStore {
    /// Returns the store of a run, if the memory is enabled.
    pub fn new(settings: &Settings, redactor: Arc<Redactor>, source: &Clock) -> Option<Self> {
        let memory = || Memory::new(&settings.state);
        settings.memory.enabled.then(|| Self { memory: memory(), redactor, day: today(source) })
    }

    /// Stores the corrections in `text`, which the user wrote; returns a notice about each that is new.
    pub fn store(&self, text: &str) -> Vec<String> {
        let has_secret = |text: &str| self.redactor.text(text) != text;
        let store = |correction: &String| match self.memory.add(
            &self.day,
            MemoryKind::Correction,
            correction,
            has_secret,
        ) {
            Ok(false) => None,
            Ok(true) => Some(messages::correction_stored(correction)),
            Err(error) => Some(messages::memory_problem(&error.to_string())),
        };
        find_corrections(text).iter().filter_map(store).collect()
    }
}

/// Stores the corrections in `prompt`, which the user wrote, if the memory is enabled; reports them.
///
/// # Errors
/// When the journal can no longer be written.
pub fn store_corrections(settings: &Settings, agent: &Agent, prompt: &str) -> Result<(), EmitError> {
    let store = CorrectionStore::new(settings, Arc::clone(agent.emitter.redactor()), &agent.source);
    for text in store.map(|store| store.store(prompt)).unwrap_or_default() {
        agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
    }
    Ok(())
}

fn today(source: &Clock) -> String {
    messages::day(u64::try_from(source.unix_time().as_millis()).unwrap_or(u64::MAX))
}
