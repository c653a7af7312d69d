//! Builds the engines of subagents from the settings, with at most the permissions of the parent agent.

use crate::app::App;
use crate::assemble;
use crate::costs::definitions_size;
use crate::mcp::with_tools;
use crate::system_message;
use crate::toolbox::toolbox_for;
use agent_config::agents::{self, SubagentSettings};
use agent_config::instructions;
use agent_config::settings::Settings;
use agent_engine::Engine;
use agent_mcp::tool::McpTool;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::Emitter;
use agent_session::Agent;
use agent_session::session::SubagentLimits;
use agent_session::subagent::{
    DispatchSubagent, SubagentContext, SubagentHost, SubagentRequest, SubagentSetup, SubagentType,
};
use agent_session::system_prompt::Knowledge;
use agent_tools::toolbox::Toolbox;
use agent_tools::{Access, Tool};
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// Creates the tool that runs subagents, if the run may use any; `host` is installed later.
pub fn dispatch_tool(settings: &Settings, host: &Rc<OnceCell<SubagentHost>>) -> Option<Box<dyn Tool>> {
    if settings.subagents.max_per_run == 0 {
        return None;
    }
    let available = settings.agents.iter().filter(|agent| agent.subagent_settings.is_some());
    let kinds = available
        .map(|agent| SubagentType { name: agent.name.clone(), description: agent.description.clone() });
    let tool = DispatchSubagent::new(kinds.collect(), Rc::clone(host))?;
    Some(Box::new(tool))
}

/// Installs the `host` of the subagents of `agent`, whose engine was built from `settings`. `mcp_tools` are the tools of MCP servers
/// that the run offers.
pub fn install_host(
    app: &App,
    settings: &Settings,
    agent: &Agent,
    mcp_tools: &[McpTool],
    host: &OnceCell<SubagentHost>,
) {
    let kit = SubagentFactory {
        settings: settings.clone(),
        source: Rc::clone(&app.source),
        mcp_tools: mcp_tools.to_vec(),
    };
    let equip = move |engine: &Engine, ask: SubagentRequest<'_>, emitter: Rc<Emitter>| {
        kit.equip(engine, ask, emitter)
    };
    host.get_or_init(|| SubagentHost::new(agent, Box::new(equip), settings.subagents.max_per_run));
}

/// Builds the subagents of a run.
struct SubagentFactory {
    settings: Settings,
    source: Rc<Clock>,
    /// The tools of MCP servers; a subagent gets those that its list of tools names.
    mcp_tools: Vec<McpTool>,
}

impl SubagentFactory {
    /// Builds the engine and limits of a subagent.
    fn equip(
        &self,
        engine: &Engine,
        ask: SubagentRequest<'_>,
        emitter: Rc<Emitter>,
    ) -> Result<SubagentSetup, String> {
        let (settings, name) = (&self.settings, ask.agent);
        let agent = agents::select(&settings.agents, name).map_err(|error| error.to_string())?;
        let own = SubagentSettings { mode: agent.mode, max_steps: agent.max_steps };
        let SubagentSettings { mode, max_steps } = agent.subagent_settings.unwrap_or(own);
        let toolbox = toolbox_for(settings, settings.llm.model.as_deref().unwrap_or_default());
        let toolbox = toolbox.map_err(|error| error.to_string())?;
        let tools: Vec<String> = match agent.allowed_tools.as_slice() {
            [] => toolbox.names().filter(|name| is_read_only(&toolbox, name)).map(str::to_owned).collect(),
            named => {
                let may_use = |name: &&String| !ask.read_only || is_read_only(&toolbox, name);
                named.iter().filter(may_use).cloned().collect()
            }
        };
        // An empty list would permit all tools.
        if tools.is_empty() {
            return Err(no_tool(name));
        }
        let policy = engine.policy.for_subagent(name, mode, tools, &settings.policy.rules);
        let policy = Arc::new(policy.map_err(|error| error.to_string())?);
        let named = self.mcp_tools.iter().filter(|tool| policy.allows_tool(tool.name())).cloned();
        let toolbox = with_tools(toolbox, named.collect(), settings.mcp.listing);
        let copied = Rc::new(engine.instructions.as_ref().clone());
        let engine = engine.for_subagent(policy, toolbox, emitter, ask.call_id);
        let definitions = assemble::allowed_tool_definitions(&engine);
        if definitions.is_empty() {
            return Err(no_tool(name));
        }
        let can_write = definitions.iter().any(|tool| !is_read_only(&engine.toolbox, &tool.name));
        let (tools_tokens, tools_bytes) = definitions_size(&definitions);
        let room = SubagentLimits { max_steps, tools_tokens, tools_bytes };
        let prompt = format!("{}\n\n{}", agent.prompt, messages::UNATTENDED_INSTRUCTIONS);
        let (opening, engine) = match ask.memory {
            SubagentContext::Clean => (self.system(&engine.launcher, &prompt), engine),
            SubagentContext::Fork => (prompt, Engine { instructions: copied, ..engine }),
        };
        Ok(SubagentSetup { engine, definitions, opening, room, can_write })
    }

    /// Returns the system message of an agent with this prompt. Problems with project files were reported when the run started.
    fn system(&self, launcher: &Launcher, prompt: &str) -> String {
        let found = instructions::read(&self.settings.workspace, &self.settings.directories.config);
        system_message::system_message_text(
            &self.settings,
            &self.source,
            launcher,
            prompt,
            &found.files,
            Knowledge::default(),
        )
        .0
    }
}

fn no_tool(agent: &str) -> String {
    format!("The agent `{agent}` has no tool that you may use: do the work yourself.")
}

/// Checks whether a tool only reads the workspace.
fn is_read_only(toolbox: &Toolbox, name: &str) -> bool {
    toolbox.get(name).is_ok_and(|tool| tool.access() == Access::Read)
}
