//! How a run begins, and what is told of what is no longer as it was when it goes on with a session.

use crate::agent::Agent;
use crate::agent::known::Known;
use crate::config::settings::Settings;
use crate::event::Event;
use crate::journal::offered::ToolChanges;
use crate::limits::Bounds;
use crate::messages;

/// The beginning of a run.
pub struct Beginning {
    /// The run, as it is told.
    pub run: Event,
    /// What the model is told of what happened since the run before: tools that came and went, background commands that
    /// ended with it, files that were put back.
    pub meanwhile: Vec<String>,
    /// What the person is told: what is other than in the run before.
    pub otherwise: Vec<String>,
}

impl Beginning {
    /// That of a run of `agent`, held to `bounds`, on the session of which this is known.
    pub fn of(agent: &Agent, settings: &Settings, known: &Known, bounds: Bounds) -> Self {
        let offered: Vec<String> = agent.definitions.iter().map(|tool| tool.name.clone()).collect();
        let tools = ToolChanges::since(&known.offered, &offered);
        let run = Event::RunStart {
            agent: settings.agent.name.clone(),
            model: agent.models.first.model().to_owned(),
            mode: settings.agent.mode.name().to_owned(),
            tools: offered,
            max_steps: settings.agent.max_steps,
            resumed: known.about.next_seq > 0,
            sandbox: agent.engine.launcher.tier().name().to_owned(),
            bounds: Some(Box::new(bounds)),
        };
        let meanwhile = meanwhile(agent, known, tools.as_ref());
        let otherwise = otherwise(known.about.last_run.as_ref(), &run, tools.as_ref());
        Self { run, meanwhile, otherwise }
    }
}

fn meanwhile(agent: &Agent, known: &Known, tools: Option<&ToolChanges>) -> Vec<String> {
    agent.engine.background.resume(&known.commands);
    let gone = &known.commands.gone;
    let restored: Vec<String> = known.restored.iter().cloned().collect();
    let tools = tools.map(|tools| messages::other_tools(&tools.removed, &tools.added));
    let gone = (!gone.is_empty()).then(|| messages::background_gone(gone));
    let restored = (!restored.is_empty()).then(|| messages::files_restored(&restored));
    tools.into_iter().chain(gone).chain(restored).collect()
}

fn otherwise(before: Option<&Event>, run: &Event, tools: Option<&ToolChanges>) -> Vec<String> {
    let changes = before.map(|before| changes(before, run)).unwrap_or_default();
    let settings = (!changes.is_empty()).then(|| messages::goes_on_otherwise(&changes));
    let tools = tools.map(|tools| messages::other_tools_told(&tools.removed, &tools.added));
    settings.into_iter().chain(tools).collect()
}

/// Each setting that has changed, in words.
fn changes(before: &Event, now: &Event) -> Vec<String> {
    let pairs = settings(now).into_iter().zip(settings(before));
    let changed = pairs.filter(|((_, now), (_, before))| now != before);
    changed.map(|((what, now), (_, before))| messages::other_now(what, &now, &before)).collect()
}

fn settings(run: &Event) -> Vec<(&'static str, String)> {
    let Event::RunStart { agent, model, mode, max_steps, sandbox, .. } = run else { return Vec::new() };
    vec![
        ("agent", agent.clone()),
        ("model", model.clone()),
        ("mode", mode.clone()),
        ("sandbox", sandbox.clone()),
        ("step limit", max_steps.to_string()),
    ]
}
