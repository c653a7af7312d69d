//! `agent agents`: lists the agents.

use crate::commands::common_args::CommonArgs;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::output::print;
use std::fmt::Write;

/// Prints the agents; `*` marks a built-in one that the configuration changes.
///
/// # Errors
/// Fails for an invalid configuration, and when standard output cannot be written.
pub fn agents(app: &App, common: &CommonArgs) -> AppResult<()> {
    let loaded = app.load_and_notify(&common.overrides())?;
    let mut text = String::new();
    for agent in &loaded.settings.agents {
        let mark = match (agent.built_in, agent.overridden) {
            (true, true) => "*",
            (true, false) => "",
            (false, _) => " (not built in)",
        };
        let tools = match agent.allowed_tools.as_slice() {
            [] => "all tools".to_owned(),
            tools => tools.join(", "),
        };
        let colon = if agent.description.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "{}{mark}{colon}{}", agent.name, agent.description);
        let _ = writeln!(text, "    {}, at most {} steps, {tools}", agent.mode.name(), agent.max_steps);
    }
    print(&app.terminal, &text)
}
