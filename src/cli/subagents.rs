//! What subagents work with, out of the settings: never more than the agent that asks them.

use crate::agent::Agent;
use crate::agent::session::SubagentRoom;
use crate::agent::subagent::{Ask, DispatchSubagent, Equipped, Host, Kind, Memory};
use crate::cli::app::App;
use crate::cli::briefing;
use crate::cli::compose;
use crate::cli::costs::measured;
use crate::cli::error::CliResult;
use crate::config::agents::{self, AsSubagent};
use crate::config::instructions;
use crate::config::settings::Settings;
use crate::emit::Emitter;
use crate::engine::Engine;
use crate::source::Source;
use crate::tools::toolbox::Toolbox;
use crate::tools::{Access, Tool};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// The tool that asks subagents, where the run may ask any; `host` is put in when the run is put together.
pub fn tool(settings: &Settings, host: &Rc<OnceCell<Host>>) -> Option<Box<dyn Tool>> {
    if settings.subagents.max_per_run == 0 {
        return None;
    }
    let asked = settings.agents.iter().filter(|agent| agent.as_subagent.is_some());
    let kinds = asked.map(|agent| Kind { name: agent.name.clone(), description: agent.description.clone() });
    let tool = DispatchSubagent::new(kinds.collect(), Rc::clone(host))?;
    Some(Box::new(tool))
}

/// The tools that the model called `name` is offered, that which asks subagents among them.
///
/// # Errors
/// When the embedded table of edit formats is not well-formed, which a test rules out.
pub fn toolbox(settings: &Settings, name: &str, host: &Rc<OnceCell<Host>>) -> CliResult<Toolbox> {
    Ok(compose::toolbox_for(settings, name)?.with(tool(settings, host)))
}

/// Puts in the `host` of the subagents that `agent` may ask, whose engine was put together from `settings`.
pub fn host(app: &App, settings: &Settings, agent: &Agent, host: &OnceCell<Host>) {
    let kit = Kit { settings: settings.clone(), source: Rc::clone(&app.source) };
    let equip = move |engine: &Engine, ask: Ask<'_>, emitter: Rc<Emitter>| kit.equip(engine, ask, emitter);
    host.get_or_init(|| Host::new(agent, Box::new(equip), settings.subagents.max_per_run));
}

/// What all subagents of a run are put together from.
struct Kit {
    settings: Settings,
    source: Rc<Source>,
}

impl Kit {
    /// What the agent that is asked works with.
    fn equip(&self, engine: &Engine, ask: Ask<'_>, emitter: Rc<Emitter>) -> Result<Equipped, String> {
        let (settings, name) = (&self.settings, ask.agent);
        let agent = agents::select(&settings.agents, name).map_err(|error| error.to_string())?;
        let own = AsSubagent { mode: agent.mode, max_steps: agent.max_steps };
        let AsSubagent { mode, max_steps } = agent.as_subagent.unwrap_or(own);
        let toolbox = compose::toolbox_for(settings, settings.llm.model.as_deref().unwrap_or_default());
        let toolbox = toolbox.map_err(|error| error.to_string())?;
        let tools = match agent.allowed_tools.as_slice() {
            [] => toolbox.names().filter(|name| looks(&toolbox, name)).map(str::to_owned).collect(),
            named => named.to_vec(),
        };
        let policy = engine.policy.of_subagent(name, mode, tools, &settings.policy.rules);
        let policy = Arc::new(policy.map_err(|error| error.to_string())?);
        let engine = engine.for_subagent(policy, toolbox, emitter, ask.call_id);
        let definitions = compose::definitions(&engine);
        if definitions.is_empty() {
            return Err(format!(
                "The agent `{name}` may use no tool that you may use: do the work yourself."
            ));
        }
        let acts = definitions.iter().any(|tool| !looks(&engine.toolbox, &tool.name));
        let (tools_tokens, tools_bytes) = measured(&definitions);
        let room = SubagentRoom { max_steps, tools_tokens, tools_bytes };
        let opening = match ask.memory {
            Memory::Clean => self.system(&agent.prompt),
            Memory::Fork => agent.prompt.clone(),
        };
        Ok(Equipped { engine, definitions, opening, room, acts })
    }

    /// The system message of an agent with this prompt. What cannot be used of the project was told when the run began.
    fn system(&self, prompt: &str) -> String {
        let (instructions, _) = instructions::read(&self.settings.workspace);
        briefing::system(&self.settings, &self.source, prompt, instructions.as_ref()).0
    }
}

/// Whether a tool only looks at the workspace.
fn looks(toolbox: &Toolbox, name: &str) -> bool {
    toolbox.get(name).is_ok_and(|tool| tool.access() == Access::Read)
}
