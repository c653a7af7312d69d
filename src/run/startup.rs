//! The start event of a run, and the changes since the previous run of a resumed session.

use agent_config::settings::Settings;
use agent_core::event::Event;
use agent_core::limits::RunLimits;
use agent_journal::offered_tools::ToolChanges;
use agent_mcp::tool::McpTool;
use agent_messages as messages;
use agent_session::Agent;
use agent_session::session_state::{SessionInfo, SessionState};
use agent_tools::Tool;

/// Returns the start event of a run of `agent` with these limits and the tools `of_servers`; `about` is what its session was before.
pub fn start_event(
    agent: &Agent,
    settings: &Settings,
    about: &SessionInfo,
    bounds: RunLimits,
    of_servers: &[McpTool],
) -> Event {
    let usable = of_servers.iter().filter(|tool| agent.engine.toolbox.get(tool.name()).is_ok());
    Event::RunStart {
        agent: settings.agent.name.clone(),
        model: agent.models.first.model().to_owned(),
        mode: settings.agent.mode.name().to_owned(),
        tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
        mcp_tools: usable.map(|tool| (tool.name().to_owned(), tool.hash().to_owned())).collect(),
        max_steps: settings.agent.max_steps,
        resumed: about.next_seq > 0,
        sandbox: agent.engine.launcher.tier().name().to_owned(),
        bounds: Some(Box::new(bounds)),
    }
}

/// Returns what the model needs to know about the time since the previous run: added and removed tools, background commands
/// that ended with it, restored files.
pub fn model_messages(agent: &Agent, known: &SessionState, tools: Option<&ToolChanges>) -> Vec<String> {
    agent.engine.background.resume(&known.commands);
    let gone = &known.commands.gone;
    let restored: Vec<String> = known.restored.iter().cloned().collect();
    let tools = tools.map(|tools| messages::tool_list_changed(lists(tools)));
    let gone = (!gone.is_empty()).then(|| messages::background_commands_lost(gone));
    let restored = (!restored.is_empty()).then(|| messages::files_restored(&restored));
    tools.into_iter().chain(gone).chain(restored).collect()
}

fn lists(tools: &ToolChanges) -> [&[String]; 3] {
    [&tools.removed, &tools.added, &tools.changed]
}

/// Returns notices for the user on changes since the previous run.
pub fn change_notices(before: Option<&Event>, run: &Event, tools: Option<&ToolChanges>) -> Vec<String> {
    let changes = before.map(|before| changes(before, run)).unwrap_or_default();
    let settings = (!changes.is_empty()).then(|| messages::settings_changed(&changes));
    let tools = tools.map(|tools| messages::tool_list_changed_notice(lists(tools)));
    settings.into_iter().chain(tools).collect()
}

/// Describes each changed setting.
fn changes(before: &Event, now: &Event) -> Vec<String> {
    let pairs = settings(now).into_iter().zip(settings(before));
    let changed = pairs.filter(|((_, now), (_, before))| now != before);
    changed.map(|((what, now), (_, before))| messages::changed_setting(what, &now, &before)).collect()
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
