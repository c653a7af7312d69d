//! `agent config`: prints the settings in force and their origins.

use crate::args::ConfigCommand;
use crate::commands::common_args::CommonArgs;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::notices::unmatched_hooks;
use agent_run::output::print;
use agent_terminal::one_line;
use std::fmt::Write;

/// Maximum length of a displayed value in characters; the instructions of agents are longer.
const VALUE_CHARS: usize = 200;

/// Shows, checks or locates the configuration.
///
/// # Errors
/// Fails for an invalid configuration, and when standard output cannot be written.
pub fn config(app: &App, command: &ConfigCommand, common: &CommonArgs) -> AppResult<()> {
    let loaded = app.load_and_notify(&common.overrides())?;
    let mut text = String::new();
    match command {
        ConfigCommand::Show { origin } => {
            for entry in loaded.layers.entries() {
                let value = one_line(&entry.value, VALUE_CHARS);
                let _ = match origin {
                    true => writeln!(text, "{} = {value}    # {}", entry.key, entry.origin),
                    false => writeln!(text, "{} = {value}", entry.key),
                };
            }
            for (entry, why) in loaded.project.ineffective_settings(loaded.trust.status.is_trusted()) {
                let value = one_line(&entry.value, VALUE_CHARS);
                let _ = writeln!(text, "# {} = {value}    # {}: no effect, {why}", entry.key, entry.origin);
            }
        }
        ConfigCommand::Validate => {
            let settings = &loaded.settings;
            let model = settings.llm.model.as_deref().unwrap_or("none chosen");
            let hooks: usize = settings.hooks.values().map(Vec::len).sum();
            let _ = writeln!(text, "Valid configuration");
            let _ = writeln!(text, "  model: {model}");
            let _ = writeln!(text, "  agents: {}", settings.agents.len());
            let _ = writeln!(text, "  hooks: {hooks}");
            let _ = writeln!(text, "  MCP servers: {}", settings.mcp.servers.len());
            for notice in unmatched_hooks(settings, std::iter::empty()) {
                let _ = writeln!(text, "  {notice}");
            }
        }
        ConfigCommand::Path => {
            let directories = &loaded.settings.directories;
            let project = loaded.settings.workspace.join(agent_config::project::PROJECT_FILE);
            let rows = [
                ("user configuration", directories.config.join("config.yaml")),
                ("user agents", directories.config.join("agents")),
                ("project configuration", project),
                ("state of this workspace", loaded.settings.state.clone()),
                ("caches", directories.cache.clone()),
            ];
            for (what, path) in rows {
                let there = if path.exists() { "" } else { "  (does not exist)" };
                let _ = writeln!(text, "{what:<24} {}{there}", path.display());
            }
        }
    }
    print(&app.terminal, &app.redactor(&loaded.settings).text(&text))
}
