//! The memory of a run: its tools, and the corrections in the prompts of the user.

use crate::agent::Agent;
use crate::config::settings::Settings;
use crate::core::event::{Event, NoticeLevel};
use crate::journal::memory::{Memory, MemoryKind};
use crate::messages;
use crate::runtime::clock::Clock;
use crate::runtime::emitter::EmitError;
use crate::text::corrections::find_correction;
use crate::tools::Tool;
use crate::tools::remember::{Forget, Remember};

/// Returns the tools `remember` and `forget`, if the memory is enabled.
pub fn tools(settings: &Settings, source: &Clock) -> Vec<Box<dyn Tool>> {
    if !settings.memory.enabled {
        return Vec::new();
    }
    let memory = Memory::new(&settings.state);
    vec![Box::new(Remember { memory: memory.clone(), day: today(source) }), Box::new(Forget { memory })]
}

/// Stores the correction in `prompt`, which the user wrote, if there is one and the memory is enabled; reports it.
///
/// # Errors
/// When the journal can no longer be written.
pub fn store_correction(settings: &Settings, agent: &Agent, prompt: &str) -> Result<(), EmitError> {
    let Some(text) = settings.memory.enabled.then(|| find_correction(prompt)).flatten() else {
        return Ok(());
    };
    let redactor = agent.emitter.redactor();
    let has_secret = |text: &str| redactor.text(text) != text;
    let added =
        Memory::new(&settings.state).add(&today(&agent.source), MemoryKind::Correction, &text, has_secret);
    let text = match added {
        Ok(false) => return Ok(()),
        Ok(true) => messages::correction_stored(&text),
        Err(error) => messages::memory_problem(&error.to_string()),
    };
    agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }).map(drop)
}

fn today(source: &Clock) -> String {
    messages::day(u64::try_from(source.unix_time().as_millis()).unwrap_or(u64::MAX))
}
