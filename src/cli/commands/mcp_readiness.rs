//! Checks whether the MCP servers are usable, for `agent doctor`.

use crate::commands::mcp::contact;
use agent_config::load::LoadedConfig;
use agent_config::trust::TrustStatus;
use agent_mcp::definition::harmless;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_text::lines::{QUOTE_CHARS, one_line};
use futures_util::future::try_join_all;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Start of the keys of servers.
const SERVER_KEYS: &str = "mcp.servers.";

/// Maximum characters of the description of a failure.
const ERROR_CHARS: usize = 400;

/// Starts all servers at the same time, and returns a line for each configured one: the state, and what to do.
///
/// # Errors
/// Fails when the sandbox is unusable, or the accepted tools cannot be read.
pub async fn servers(app: &App, loaded: &LoadedConfig) -> AppResult<String> {
    let settings = &loaded.settings;
    let checked = settings.mcp.servers.iter().map(|(name, server)| async move {
        let state = if server.enabled {
            state(app, loaded, name).await?
        } else {
            format!("disabled by {SERVER_KEYS}{name}.enabled")
        };
        AppResult::Ok((name.as_str(), state))
    });
    let mut text = String::new();
    let untrusted = untrusted(loaded).into_iter();
    let untrusted = untrusted.map(|name| (name, "not trusted: `agent trust` shows and trusts it".to_owned()));
    for (name, state) in try_join_all(checked).await?.into_iter().chain(untrusted) {
        let name = one_line(name, QUOTE_CHARS);
        let _infallible = writeln!(text, "mcp server     {name}: {state}");
    }
    Ok(text)
}

/// Starts the server called `name`, ends it, and describes the result in one line.
async fn state(app: &App, loaded: &LoadedConfig, name: &str) -> AppResult<String> {
    let begun = app.source.elapsed();
    let contacted = contact(app, &loaded.settings, Some(name)).await?;
    let millis = app.source.elapsed().saturating_sub(begun).as_millis();
    let started = contacted.into_iter().next().map(|contacted| contacted.started);
    Ok(match started {
        Some(Ok((_, started))) => {
            let (tools, protocol) = (started.listing.tools.len(), &started.connection.protocol);
            format!("ok, {tools} tools, protocol {protocol}, {millis} ms")
        }
        Some(Err(why)) => {
            format!("not usable: {} (`agent help mcp`)", one_line(&harmless(&why), ERROR_CHARS))
        }
        None => "not configured".to_owned(),
    })
}

/// Returns the names of the project's servers that are left out because the project is not trusted.
fn untrusted(loaded: &LoadedConfig) -> BTreeSet<&str> {
    if matches!(loaded.trust.status, TrustStatus::Trusted | TrustStatus::ThisRun { .. }) {
        return BTreeSet::new();
    }
    let keys = loaded.project.files.iter().flat_map(|file| file.restricted.needs_trust.layer_values());
    keys.filter_map(|(key, _)| key.strip_prefix(SERVER_KEYS)?.split('.').next()).collect()
}
