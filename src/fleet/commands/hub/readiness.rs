//! What `agent doctor` prints about the Hub and the definitions of its agents.

use crate::commands::hub::context::HubContext;
use agent_config::agent_definition::AgentDefinition;
use agent_config::settings::Settings;
use agent_run::app::App;
use std::fmt::Write as _;
use std::path::Path;

/// Returns a line about the Hub if its key is set, which is asked with `online`, and one about each definition that cannot be used.
pub async fn hub_readiness(app: &App, settings: &Settings, online: bool) -> String {
    let hub = &settings.hub;
    let mut text = String::new();
    let state = match HubContext::new(app, settings) {
        // Most users have no Hub.
        Err(_) if app.environment.get(&hub.key_env).is_none() && hub.agents.is_none() => None,
        Err(error) => Some(format!("not usable: {error}")),
        Ok(_) if !online => Some(format!("not asked: {}; use `--online`", hub.url)),
        Ok(context) => Some(match context.client.with_notifications().await {
            Ok(agents) => format!("ok: {}, {} agents have notifications", hub.url, agents.len()),
            Err(error) => format!("not usable: {}: {error}", hub.url),
        }),
    };
    if let Some(state) = state {
        let _infallible = writeln!(text, "hub            {}", app.redact(&state));
    }
    if let Some(directory) = &hub.agents {
        text.push_str(&definitions(directory));
    }
    text
}

fn definitions(directory: &str) -> String {
    let ids = match AgentDefinition::ids(Path::new(directory)) {
        Ok(ids) => ids,
        Err(error) => return format!("agents         not usable: {directory}: {error}\n"),
    };
    let mut text = String::new();
    let mut valid = 0;
    for id in &ids {
        match AgentDefinition::read(Path::new(directory), id) {
            Ok(Some(definition)) => {
                valid += 1;
                for warning in &definition.warnings {
                    let _infallible = writeln!(text, "agent          {id}: {warning}");
                }
            }
            Ok(None) => {}
            Err(error) => {
                let _infallible = writeln!(text, "agent          {id}: not usable: {error}");
            }
        }
    }
    format!("agents         {valid} in {directory}\n{text}")
}
