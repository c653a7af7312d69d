//! The request of a run for the command line of Claude Code. `agent help serve` describes what becomes of the permissions.

use super::args::{ClaudeArgs, PermissionMode, tool_list};
use super::permissions::Permissions;
use crate::client_model::{added_directories, is_of, model_name};
use agent_config::claude_names::{is_of_server, names};
use agent_config::flag_values::parse_effort;
use agent_config::import::claude::{Permission, permission};
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_engine::policy::Mode;
use agent_engine::rules::{Action, PolicyRule};
use agent_llm::provider_table::{self, Provider};
use agent_mcp::definition::server_and_tool;
use agent_messages as messages;
use agent_redactor::NamedSecret;
use agent_report::OutputFormat;
use agent_run::app::App;
use agent_run::client::RunBounds;
use agent_run::error::{AppError, AppResult};
use agent_run::request::{AnswerSchema, RunRequest};
use agent_run::secrets::in_value;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::rc::Rc;

/// Provider of a model whose name has none.
const PROVIDER: &str = "anthropic";
/// Variable with the address of the server, without the version.
const BASE_VARIABLE: &str = "ANTHROPIC_BASE_URL";
/// The version in addresses of the server.
const VERSION_PATH: &str = "/v1";
/// Maximum bytes of a file with MCP servers.
const MAX_MCP_BYTES: u64 = 1 << 20;

/// What is the same for all messages.
pub struct Setup {
    /// The application, with the secrets of the client.
    pub app: App,
    /// The settings, before the choices of the client.
    pub settings: Settings,
    /// The request of each run.
    pub request: RunRequest,
    /// The providers of models.
    pub providers: Vec<Provider>,
    /// What runs without approval.
    pub permissions: Rc<Permissions>,
    /// What has no effect.
    pub warnings: Vec<String>,
}

/// Returns the request for `args`.
///
/// # Errors
/// For a flag that takes permission away and cannot be honoured, an invalid value, and an invalid configuration.
pub fn setup(app: &App, args: &ClaudeArgs) -> AppResult<Setup> {
    if let Some(flag) = args.others.refused.first() {
        return Err(usage(messages::claude_flag_refused(flag)));
    }
    let servers = mcp_servers(app, &args.mcp_config)?;
    let app = app.with_client_secrets(secrets(&servers));
    let mut bounds = RunBounds {
        // The client is asked, or its rules answer, where this mode needs approval.
        mode: Some(Mode::ConfirmSensitive),
        budget: args
            .max_budget_usd
            .map(Usd::try_from)
            .transpose()
            .map_err(|error| usage(error.to_string()))?,
        max_steps: args.max_turns,
        servers: args.strict_mcp_config.then(|| servers.keys().map(|name| server_name(name)).collect()),
        ..RunBounds::default()
    };
    bounds.tools.only = args.tools.as_ref().and_then(|texts| selected(texts));
    refuse(&tool_list(&args.disallowed_tools), &mut bounds)?;
    let (allowed, mut warnings) = allowances(args, &mut bounds);
    let mut request = RunRequest {
        format: OutputFormat::Json,
        schema: args.json_schema.clone().map(AnswerSchema::Text),
        prompt_is_data: args.prompt.is_none(),
        ..RunRequest::default()
    };
    request.overrides.mcp_servers =
        (!servers.is_empty()).then(|| json!({ "mcpServers": servers }).to_string());
    request.overrides.effort = args.effort.as_deref().and_then(|effort| parse_effort(effort).ok());
    let loaded = app.load(&request.effective_overrides())?;
    let settings = loaded.settings;
    let providers = provider_table::load(&settings.llm.providers)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    let qualified = |name: &String| model_name(name, PROVIDER, &providers);
    request.overrides.model = args.model.as_ref().map(qualified);
    request.overrides.fallback = args.fallback_model.iter().map(qualified).collect();
    if settings.llm.api_base.is_none()
        && is_of(request.overrides.model.as_deref().or(settings.llm.model.as_deref()), &[PROVIDER])
    {
        request.overrides.api_base =
            app.environment.get(BASE_VARIABLE).filter(|url| !url.is_empty()).map(versioned);
    }
    request.bounds = bounds;
    let is_configured = loaded.layers.is_overridden("sandbox.writable");
    let (directories, warning) = added_directories(&args.add_dir, is_configured);
    request.overrides.allow_write = directories;
    warnings.extend(warning.map(str::to_owned));
    warnings.extend(ineffective(args, request.overrides.effort.is_none()));
    warnings.extend(loaded.notices);
    let permissions = Rc::new(Permissions::new(args, allowed)?);
    Ok(Setup { app, settings, request, providers, permissions, warnings })
}

impl Setup {
    /// Returns the model that a client names; `None` for the one of the command line or configuration.
    pub fn model(&self, name: Option<&str>) -> Option<String> {
        let named = name.filter(|name| !["", "default", "inherit"].contains(name));
        named
            .map(|name| model_name(name, PROVIDER, &self.providers))
            .or_else(|| self.request.overrides.model.clone())
    }
}

fn usage(message: String) -> AppError {
    AppError::new(FailureKind::Usage, message)
}

fn versioned(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(VERSION_PATH) { base.to_owned() } else { format!("{base}{VERSION_PATH}") }
}

/// Returns the tools here that `--tools` selects; `None`: all.
fn selected(texts: &[String]) -> Option<Vec<String>> {
    let list = tool_list(texts);
    let ours = list.iter().flat_map(|name| names().ours(name)).map(str::to_owned);
    (!list.iter().any(|name| name == "default")).then(|| ours.collect())
}

/// Adds refusals of tools and calls to the bounds of the runs.
///
/// # Errors
/// For an entry that cannot be honoured.
pub fn refuse(entries: &[String], bounds: &mut RunBounds) -> AppResult<()> {
    let tools = withheld(entries);
    bounds.rules.refusals.extend(tools.iter().map(|tool| refusal(tool)));
    bounds.tools.except.extend(tools);
    for entry in entries.iter().filter(|entry| entry.contains('(')) {
        match permission("deny", entry) {
            Ok(Permission::Rule(rule)) => bounds.rules.refusals.push(*rule),
            Ok(Permission::BlockedCommand(pattern)) => bounds.rules.blocked_commands.push(pattern),
            Ok(Permission::ProtectedFile(pattern)) => bounds.rules.protected_files.push(pattern),
            Err(why) => return Err(usage(messages::claude_refusal_unknown(entry, &why))),
        }
    }
    Ok(())
}

/// Returns the tools here that a list refuses completely. `NAME*` stands for all that begin so.
fn withheld(entries: &[String]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.contains('(')) {
        tools.extend(names().covered(entry).map(str::to_owned));
        tools.push(entry.clone());
        if is_of_server(entry) && server_and_tool(entry).is_none() && !entry.ends_with('*') {
            tools.push(format!("{entry}__*"));
        }
    }
    tools
}

/// Adds the rules of `--allowedTools` to the bounds. Returns the tools all of whose calls are allowed, and what has no effect. In the
/// mode `auto` nothing is allowed: no classifier looks at the calls here, so each is asked for.
fn allowances(args: &ClaudeArgs, bounds: &mut RunBounds) -> (Vec<String>, Vec<String>) {
    if args.permission_mode == Some(PermissionMode::Auto) {
        return Default::default();
    }
    let (partly, whole): (Vec<_>, Vec<_>) =
        tool_list(&args.allowed_tools).into_iter().partition(|entry| entry.contains('('));
    let mut warnings = Vec::new();
    for entry in partly {
        match permission("allow", &entry) {
            Ok(Permission::Rule(rule)) => bounds.rules.allowances.push(*rule),
            Ok(_) => {}
            Err(why) => warnings.push(messages::claude_allowance_ignored(&entry, &why)),
        }
    }
    (whole, warnings)
}

/// Returns the rule that refuses the tools whose name matches a glob.
fn refusal(tool: &str) -> PolicyRule {
    PolicyRule { action: Action::Deny, ..PolicyRule::allow(tool) }
}

/// Returns what has no effect.
fn ineffective(args: &ClaudeArgs, has_no_effort: bool) -> Vec<String> {
    let mut warnings: Vec<String> =
        args.others.ignored.iter().map(|flag| messages::claude_flag_ignored(flag)).collect();
    let effort = args.effort.as_ref().filter(|_| has_no_effort);
    warnings.extend(effort.map(|effort| messages::claude_value_ignored("--effort", effort)));
    let texts = [
        (args.permission_mode == Some(PermissionMode::Auto), messages::CLAUDE_AUTO_IS_DEFAULT),
        (
            args.permission_prompt_tool.as_deref().is_some_and(|tool| tool != "stdio"),
            messages::CLAUDE_PROMPT_TOOL,
        ),
    ];
    warnings.extend(texts.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text.to_owned()));
    warnings
}

/// Returns the MCP servers of `--mcp-config`, without those that live in the client.
fn mcp_servers(app: &App, configs: &[String]) -> AppResult<Map<String, Value>> {
    let mut servers = Map::new();
    for config in configs {
        let problem = |why: &str| usage(messages::claude_mcp_config(&app.redact(why)));
        let text = if config.trim_start().starts_with('{') {
            config.clone()
        } else {
            read_text(&app.environment.current_dir().join(Path::new(config)), MAX_MCP_BYTES)
                .map_err(|error| problem(&error.to_string()))?
                .ok_or_else(|| problem(&format!("{config} does not exist")))?
        };
        let parsed: Value = serde_json::from_str(&text).map_err(|error| problem(&error.to_string()))?;
        let found = parsed.get("mcpServers").and_then(Value::as_object);
        let found = found.ok_or_else(|| problem("it has no `mcpServers`"))?;
        let outside = found.iter().filter(|(_, server)| server["type"] != "sdk");
        servers.extend(outside.map(|(name, server)| (name.clone(), server.clone())));
    }
    Ok(servers)
}

/// Returns the name that the configuration gives to a server.
fn server_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

/// Returns the secrets that a client passes to its servers.
fn secrets(servers: &Map<String, Value>) -> Vec<NamedSecret> {
    let values = servers.values().flat_map(|server| [&server["env"], &server["headers"]]);
    let pairs = values.filter_map(Value::as_object).flatten();
    pairs.flat_map(|(name, value)| in_value(name, value.as_str().unwrap_or_default())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_address_gets_its_version_once() {
        for base in ["https://x", "https://x/", "https://x/v1", "https://x/v1/"] {
            assert_eq!(versioned(base), "https://x/v1");
        }
    }

    #[test]
    fn a_refused_server_takes_its_tools_along() {
        let entries =
            |names: &[&str]| withheld(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(entries(&["mcp__s"]), ["mcp__s", "mcp__s__*"]);
        assert_eq!(entries(&["Bash", "Bash(rm:*)"]), ["run_command", "Bash"]);
    }
}
