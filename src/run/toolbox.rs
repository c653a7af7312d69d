//! The tools of a run.

use crate::error::{AppError, AppResult};
use agent_config::settings::Settings;
use agent_config::web::Web;
use agent_core::failure::FailureKind;
use agent_engine::Engine;
use agent_engine::rules::{Action, PolicyRule};
use agent_fetch::Fetcher;
use agent_fetch::allowed_host::AllowedHost;
use agent_fetch::command_proxy::CommandProxy;
use agent_fetch::page_url::HostPattern;
use agent_fetch::search_provider::SearchProvider;
use agent_journal::kept_results::KeptResults;
use agent_llm::edit_format::EditFormat;
use agent_messages as messages;
use agent_runtime::clock::Clock;
use agent_tools::command_output::CommandOutput;
use agent_tools::outputs::CHARS_PER_TOKEN;
use agent_tools::run_command::{RunCommand, RunCommandOptions};
use agent_tools::stop_command::StopCommand;
use agent_tools::toolbox::{ToolOptions, Toolbox};
use agent_tools::web_fetch::WebFetch;
use agent_tools::web_search::WebSearch;
use agent_tools::{Access, Tool};
use reqwest::Url;
use std::sync::Arc;
use std::time::Duration;

/// Creates the toolbox with all built-in tools.
pub fn toolbox(settings: &Settings) -> Toolbox {
    let options =
        ToolOptions { allow_delete: settings.allow_delete, max_result_tokens: max_result_tokens(settings) };
    let mut more: Vec<Box<dyn Tool>> = Vec::new();
    if settings.commands.enabled {
        more.push(Box::new(RunCommand::new(RunCommandOptions {
            default_timeout: Duration::from_secs(settings.commands.default_timeout),
            max_output_lines: settings.commands.max_output_lines,
            idle_timeout: settings.commands.idle_timeout.map(Duration::from_secs),
            max_chars: max_result_tokens(settings).saturating_mul(CHARS_PER_TOKEN),
        })));
        more.push(Box::new(CommandOutput));
        more.push(Box::new(StopCommand));
    }
    if settings.web.enabled {
        more.push(Box::new(WebFetch { fetcher: fetcher(&settings.web, &settings.policy.rules) }));
    }
    // An address that is missing was refused when the configuration was read.
    if let Ok(Some((provider, url))) = settings.web.search.service() {
        more.push(Box::new(web_search(settings, provider, url)));
    }
    Toolbox::standard(options, more)
}

/// Creates the toolbox for the model called `name`, with the tools of its edit format.
///
/// # Errors
/// Fails when the embedded table of edit formats is invalid, which a test excludes.
pub fn toolbox_for(settings: &Settings, name: &str) -> AppResult<Toolbox> {
    let format = match settings.tools.edit_format {
        Some(format) => format,
        None => EditFormat::for_model(name)
            .map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?,
    };
    Ok(permitted(toolbox(settings).restricted(|tool| format.offers(tool)), settings))
}

/// Returns the tools that the program that drives the run leaves, without those that change files if the run may change none.
pub fn permitted(toolbox: Toolbox, settings: &Settings) -> Toolbox {
    let toolbox = toolbox.restricted(|name| settings.client_limits.tools.permits(name));
    if !settings.client_limits.read_only {
        return toolbox;
    }
    let changes = |tool: &dyn Tool| matches!(tool.access(), Access::Write | Access::McpWrite { .. });
    let names = toolbox.names().filter(|name| !toolbox.get(name).is_ok_and(changes));
    let names: Vec<String> = names.map(str::to_owned).collect();
    toolbox.restricted(|name| names.iter().any(|kept| kept == name))
}

/// Creates the proxy through which commands reach the allowed hosts; invalid ones were refused when the configuration was read.
pub fn command_proxy(settings: &Settings) -> CommandProxy {
    let hosts = settings.sandbox.allowed_hosts.iter().filter_map(|text| AllowedHost::parse(text).ok());
    CommandProxy::new(hosts.collect(), fetcher(&settings.web, &settings.policy.rules))
}

/// Creates the fetcher of web pages; invalid entries were refused when the configuration was read.
fn fetcher(web: &Web, rules: &[PolicyRule]) -> Fetcher {
    let ruled =
        rules.iter().filter(|rule| rule.action != Action::Allow).filter_map(|rule| rule.host.as_ref());
    Fetcher {
        hosts_with_rules: ruled.filter_map(|text| HostPattern::parse(text).ok()).collect(),
        allowed_hosts: web.allowed_hosts.iter().filter_map(|text| HostPattern::parse(text).ok()).collect(),
        allowed_private: web.allowed_private.iter().filter_map(|text| text.parse().ok()).collect(),
        allowed_hosts_text: web.allowed_hosts.join(", "),
    }
}

/// Creates the tool that searches with the service at `url`, and sends requests to its host only.
fn web_search(settings: &Settings, provider: SearchProvider, url: &str) -> WebSearch {
    let search = &settings.web.search;
    let url_parts = Url::parse(url).ok();
    let host = url_parts.as_ref().and_then(|url| HostPattern::parse(url.host_str()?).ok());
    let key_variable = search.key_variable().map(str::to_owned);
    WebSearch {
        fetcher: Fetcher {
            allowed_hosts: host.into_iter().collect(),
            ..fetcher(&settings.web, &settings.policy.rules)
        },
        provider,
        url: url.to_owned(),
        key: settings.search_key.clone(),
        key_variable,
        max_results: usize::try_from(search.max_results).unwrap_or(usize::MAX),
    }
}

/// Returns the kept results of the workspace, if `tools.keep_results` names a tool.
pub fn kept_results(settings: &Settings, toolbox: &Toolbox, clock: &Clock) -> Option<Arc<KeptResults>> {
    let is_configured = !settings.tools.keep_results.is_empty();
    is_configured.then(|| Arc::new(all_kept_results(settings, toolbox, clock)))
}

/// Returns the kept results of the workspace, also if `tools.keep_results` names no tool.
pub fn all_kept_results(settings: &Settings, toolbox: &Toolbox, clock: &Clock) -> KeptResults {
    let hours = settings.tools.keep_results.iter().map(|(tool, hours)| (tool.clone(), hours.0)).collect();
    let rules = format!("{:?}{:?}", settings.policy.rules, settings.guardrails.sensitive_files);
    KeptResults::new(&settings.state, hours, toolbox.definitions(), &rules, clock.unix_time())
}

/// Returns the lines about the kept results of earlier sessions, and a warning if they cannot be listed.
pub fn list_kept_results(engine: &Engine) -> (Vec<String>, Option<String>) {
    match engine.outputs.kept.as_ref().map(|kept| kept.list(&engine.workspace)) {
        None => (Vec::new(), None),
        Some(Ok(lines)) => (lines, None),
        Some(Err(error)) => (Vec::new(), Some(messages::kept_results_unreadable(&error))),
    }
}

/// Returns the maximum tokens of one tool result, 0 for no limit.
pub fn max_result_tokens(settings: &Settings) -> usize {
    usize::try_from(settings.context.max_tool_result_tokens).unwrap_or(usize::MAX)
}
