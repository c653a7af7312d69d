//! What subagents work with, out of the settings: never more than the agent that asks them.

use crate::agent::Agent;
use crate::agent::session::SubagentRoom;
use crate::agent::subagent::{DispatchSubagent, Equipped, Host, Kind};
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
use crate::engine::policy::{Policy, PolicyOptions};
use crate::source::Source;
use crate::tools::outputs::{Outputs, PREFIX};
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
    let policy = compose::policy_options(app, settings, agent.engine.launcher.tier());
    let kit = Kit { settings: settings.clone(), policy, source: Rc::clone(&app.source) };
    let equip = move |engine: &Engine, name: &str, emitter: Rc<Emitter>, call_id: &str| {
        kit.equip(engine, name, emitter, call_id)
    };
    host.get_or_init(|| Host::new(agent, Box::new(equip), settings.subagents.max_per_run));
}

/// What all subagents of a run are put together from.
struct Kit {
    settings: Settings,
    /// What the agent that asks them is held to.
    policy: PolicyOptions,
    source: Rc<Source>,
}

impl Kit {
    /// What the agent of this name works with, for the call with this id.
    fn equip(
        &self,
        engine: &Engine,
        name: &str,
        emitter: Rc<Emitter>,
        call_id: &str,
    ) -> Result<Equipped, String> {
        let settings = &self.settings;
        let agent = agents::select(&settings.agents, name).map_err(|error| error.to_string())?;
        let own = AsSubagent { mode: agent.mode, max_steps: agent.max_steps };
        let AsSubagent { mode, max_steps } = agent.as_subagent.unwrap_or(own);
        let toolbox = compose::toolbox_for(settings, settings.llm.model.as_deref().unwrap_or_default());
        let toolbox = toolbox.map_err(|error| error.to_string())?;
        let allowed_tools = self.tools_of(&agent.allowed_tools, &toolbox);
        if allowed_tools.is_empty() {
            return Err(format!(
                "The agent `{name}` may use no tool that you may use: do the work yourself."
            ));
        }
        let acts = allowed_tools
            .iter()
            .any(|tool| toolbox.get(tool).is_ok_and(|tool| tool.access() != Access::Read));
        let policy = Policy::new(PolicyOptions {
            mode: mode.min(self.policy.mode),
            agent: name.to_owned(),
            allowed_tools,
            ..self.policy.clone()
        });
        let policy = policy.map_err(|error| error.to_string())?;
        let kept = Outputs::name(call_id).replace(PREFIX, "subagent-");
        let outputs = engine.outputs.dir.join(kept);
        let engine = engine.for_subagent(Arc::new(policy), toolbox, emitter, outputs);
        let definitions = compose::definitions(&engine);
        let (tools_tokens, tools_bytes) = measured(&definitions);
        let (instructions, _told_when_the_run_began) = instructions::read(&settings.workspace);
        let (system, _) = briefing::system(settings, &self.source, &agent.prompt, instructions.as_ref());
        let room = SubagentRoom { max_steps, tools_tokens, tools_bytes };
        Ok(Equipped { engine, definitions, instructions: agent.prompt.clone(), system, room, acts })
    }

    /// Of the tools that a subagent may use those that the agent which asks it may use too; those that only look where its file
    /// names none.
    fn tools_of(&self, named: &[String], toolbox: &Toolbox) -> Vec<String> {
        let allowed = &self.policy.allowed_tools;
        let is_theirs = |tool: &dyn Tool| match named {
            [] => tool.access() == Access::Read,
            named => named.iter().any(|name| name == tool.name()),
        };
        let may = |name: &&str| allowed.is_empty() || allowed.iter().any(|allowed| allowed == name);
        let names = toolbox.names().filter(may);
        names.filter(|name| toolbox.get(name).is_ok_and(is_theirs)).map(str::to_owned).collect()
    }
}
