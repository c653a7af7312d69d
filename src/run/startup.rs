//! The start event of a run, and the changes since the previous run of a resumed session.

use agent_config::settings::Settings;
use agent_core::event::Event;
use agent_core::limits::RunLimits;
use agent_journal::offered_tools::ToolChanges;
use agent_mcp::tool::McpTool;
use agent_messages as messages;
use agent_session::Agent;
use agent_session::session_state::SessionState;
use agent_tools::Tool;

/// The start of a run.
pub struct RunStartup {
    /// The event that starts the run.
    pub start_event: Event,
    /// Messages for the model on what happened since the previous run: added and removed tools, background commands that
    /// ended with it, restored files.
    pub model_messages: Vec<String>,
    /// Notices for the user on changes since the previous run.
    pub change_notices: Vec<String>,
}

impl RunStartup {
    /// Creates the start of a run of `agent` with the limits `bounds` and the tools `of_servers`; `known` is the state of the
    /// session.
    pub fn new(
        agent: &Agent,
        settings: &Settings,
        known: &SessionState,
        bounds: RunLimits,
        of_servers: &[McpTool],
    ) -> Self {
        let usable = of_servers.iter().filter(|tool| agent.engine.toolbox.get(tool.name()).is_ok());
        let start_event = Event::RunStart {
            agent: settings.agent.name.clone(),
            model: agent.models.first.model().to_owned(),
            mode: settings.agent.mode.name().to_owned(),
            tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
            mcp_tools: usable.map(|tool| (tool.name().to_owned(), tool.hash().to_owned())).collect(),
            max_steps: settings.agent.max_steps,
            resumed: known.about.next_seq > 0,
            sandbox: agent.engine.launcher.tier().name().to_owned(),
            bounds: Some(Box::new(bounds)),
        };
        let tools = ToolChanges::since(&known.offered, &start_event);
        let model_messages = model_messages(agent, known, tools.as_ref());
        let change_notices = change_notices(known.about.last_run.as_ref(), &start_event, tools.as_ref());
        Self { start_event, model_messages, change_notices }
    }
}

fn model_messages(agent: &Agent, known: &SessionState, tools: Option<&ToolChanges>) -> Vec<String> {
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

fn change_notices(before: Option<&Event>, run: &Event, tools: Option<&ToolChanges>) -> Vec<String> {
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
