//! `agent config`: prints the settings in force and their origins, and changes a configuration file.

use crate::args::ConfigCommand;
use crate::commands::common_args::CommonArgs;
use agent_config::error::ConfigError;
use agent_config::key_rules::{self, KeyRule};
use agent_config::layers::{LayerKind, Layers, shown_value};
use agent_config::project::{PROJECT_FILE, text_layer};
use agent_config::validate;
use agent_config::yaml_edit;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::config_file::ConfigFile;
use agent_run::error::{AppError, AppResult};
use agent_run::notices::unmatched_hooks;
use agent_run::output::print;
use agent_terminal::one_line;
use serde_json::Value;
use std::fmt::Write;

/// Maximum length of a displayed value in characters; the instructions of agents are longer.
const VALUE_CHARS: usize = 200;

/// Maximum length of the value that `get` prints in characters: more than any real value.
const PRINTED_CHARS: usize = 1 << 20;

/// Shows, changes, checks or locates the configuration.
///
/// # Errors
/// Fails for an invalid configuration, for a change that cannot be made, and when standard output cannot be written.
pub fn config(app: &App, command: &ConfigCommand, common: &CommonArgs) -> AppResult<()> {
    match command {
        ConfigCommand::Get { key, project } => return get(app, common, key, *project),
        ConfigCommand::Set { key, value, project } => {
            let line = set(&ConfigFile::read(app, common.overrides(), *project)?, app, key, value)?;
            return print(&app.terminal, &line);
        }
        ConfigCommand::Unset { key, project } => {
            return unset(&ConfigFile::read(app, common.overrides(), *project)?, app, key);
        }
        ConfigCommand::Show { .. } | ConfigCommand::Validate | ConfigCommand::Path => {}
    }
    let loaded = app.load_and_notify(&common.overrides())?;
    let mut text = String::new();
    match command {
        ConfigCommand::Get { .. } | ConfigCommand::Set { .. } | ConfigCommand::Unset { .. } => {}
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
            let project = loaded.settings.workspace.join(PROJECT_FILE);
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

/// Prints the value in force of a key, or that of the project's file.
fn get(app: &App, common: &CommonArgs, key: &str, is_project: bool) -> AppResult<()> {
    let rules = rules()?;
    validate::known_rule(rules, key).map_err(wrong)?;
    let loaded = app.load_and_notify(&common.overrides())?;
    let project;
    let layers: &Layers = if is_project {
        let file = ConfigFile::read(app, common.overrides(), true)?;
        project = text_layer(rules, LayerKind::Project, &file.shown, &file.text).map_err(wrong)?;
        &project
    } else {
        &loaded.layers
    };
    let mut text = String::new();
    if let Some(value) = layers.shown_value(key) {
        let _infallible = writeln!(text, "{}", one_line(&value, PRINTED_CHARS));
    }
    let group = format!("{key}.");
    for entry in layers.entries().iter().filter(|entry| entry.key.starts_with(&group)) {
        let _infallible = writeln!(text, "{} = {}", entry.key, one_line(&entry.value, VALUE_CHARS));
    }
    if text.is_empty() {
        let file = if is_project { PROJECT_FILE } else { "the configuration" };
        return Err(AppError::new(FailureKind::Request, messages::config_not_set(key, file)));
    }
    print(&app.terminal, &app.redactor(&loaded.settings).text(&text))
}

/// Sets a key in `file` and returns a line about its place, with the values before and after.
///
/// # Errors
/// Fails for an unknown key, a wrong value, and a file that cannot be changed.
pub fn set(file: &ConfigFile<'_>, app: &App, key: &str, value: &str) -> AppResult<String> {
    let value = validate::value_of_text(rules()?, key, value).map_err(wrong)?;
    let edit = yaml_edit::set(&file.text, key, &value).map_err(|error| file.refused(error))?;
    file.replace(&edit.text, &[key])?;
    let shown = |value: &Value| one_line(&shown_value(key, value), VALUE_CHARS);
    let old = edit.old.as_ref().map(shown);
    let line =
        messages::config_set(&format!("{}:{}", file.shown, edit.line), key, &shown(&value), old.as_deref());
    Ok(app.redact(&line))
}

/// Removes a key from `file` and prints its place with the value before.
fn unset(file: &ConfigFile<'_>, app: &App, key: &str) -> AppResult<()> {
    let edit = yaml_edit::unset(&file.text, key).map_err(|error| file.refused(error))?;
    let Some(edit) = edit else {
        validate::known_rule(rules()?, key).map_err(wrong)?;
        return Err(AppError::new(FailureKind::Request, messages::config_not_set(key, &file.shown)));
    };
    file.replace(&edit.text, &[key])?;
    // A group can hold values that are secrets.
    let old = edit.old.filter(|old| !old.is_object()).map(|old| shown_value(key, &old));
    let old = old.unwrap_or_else(|| "…".to_owned());
    let place = format!("{}:{}", file.shown, edit.line);
    let line = messages::config_unset(&place, &one_line(key, VALUE_CHARS), &one_line(&old, VALUE_CHARS));
    print(&app.terminal, &app.redact(&line))
}

fn rules() -> AppResult<&'static KeyRule> {
    key_rules::embedded_schema().map(|schema| &schema.rules).map_err(wrong)
}

fn wrong(error: ConfigError) -> AppError {
    AppError { kind: FailureKind::Config, cause: error.into() }
}
