//! `agent mcp`: lists the MCP servers, shows the tools of one, and accepts them; adds and removes servers.

use crate::commands::client_run::ClientArgs;
use crate::commands::mcp_args::{McpArgs, McpCommand};
use crate::commands::mcp_edit;
use crate::commands::mcp_login::{login, logout};
use crate::commands::run_args::RunOptions;
use agent_bridges::mcp_serve::serve;
use agent_config::error::did_you_mean;
use agent_config::mcp::McpServer;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_mcp::definition::{ListedTool, harmless, hash_of_all, name_for_model};
use agent_mcp::pins::Pins;
use agent_mcp::server::{Server, StartedServer};
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::mcp;
use agent_run::output::print;
use agent_terminal::Style;
use agent_text::lines::{QUOTE_CHARS, one_line};
use futures_util::future::join_all;
use rustix::fs::FileType;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// A server that was contacted.
pub struct Contacted {
    name: String,
    /// The server, which has ended, and what it has listed; or why it cannot be used.
    pub started: Result<(Server, Arc<StartedServer>), String>,
    accepted: Option<Pins>,
}

/// Runs a subcommand; without one, lists the servers, or serves the program that writes to standard input.
///
/// # Errors
/// Fails for an invalid configuration, an unknown server, a server that cannot be started, and when a file cannot be written.
pub fn mcp(app: &App, args: McpArgs) -> AppResult<()> {
    match args.command {
        Some(McpCommand::Serve(args)) => return serve(app, args.request()?),
        Some(McpCommand::Add(server)) => return mcp_edit::add(app, &args.common, &server),
        Some(McpCommand::Remove { server, project }) => {
            return mcp_edit::remove(app, &args.common, &server, project);
        }
        None if is_piped() && !args.json => {
            let McpArgs { mcp_config, common, .. } = args;
            let options = RunOptions { common, mcp_config, ..RunOptions::default() };
            return serve(app, ClientArgs { options, ..ClientArgs::default() }.request()?);
        }
        _ => {}
    }
    let flags = Overrides { mcp_config: args.mcp_config, ..args.common.overrides() };
    let settings = app.load_and_notify(&flags)?.settings;
    directories::prepare(&settings)?;
    app.block_on(async {
        let text = match args.command {
            Some(McpCommand::Login { server, scope }) => {
                return login(app, &settings, &server, configured(&settings, &server)?, &scope, args.json)
                    .await;
            }
            Some(McpCommand::Logout { server }) => {
                return logout(app, &settings, &server, configured(&settings, &server)?, args.json);
            }
            None
            | Some(
                McpCommand::List | McpCommand::Serve(_) | McpCommand::Add(_) | McpCommand::Remove { .. },
            ) => list(&contact(app, &settings, None).await?, args.json),
            Some(McpCommand::Show { server }) => show(&one(app, &settings, &server).await?, args.json)?,
            Some(McpCommand::Pin { server }) => {
                pin(&settings, &one(app, &settings, &server).await?, args.json)?
            }
        };
        print(&app.terminal, &app.redactor(&settings).text(&text))
    })
}

/// Checks whether another program writes to standard input.
fn is_piped() -> bool {
    let kind = rustix::fs::fstat(std::io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// Starts all servers, or the one called `only`, and ends them when they have listed their tools. Shows warnings about the lists.
///
/// # Errors
/// Fails when the sandbox is unusable, or the accepted tools cannot be read.
pub async fn contact(app: &App, settings: &Settings, only: Option<&str>) -> AppResult<Vec<Contacted>> {
    let launcher = assemble::launcher(app, settings)?;
    let wanted = settings.mcp.enabled().filter(|(name, _)| only.is_none_or(|only| only == *name));
    let contacted = wanted.map(|(name, server)| async {
        let spec = mcp::spec(app, settings, &launcher, name, server, mcp::answers(app, settings, None));
        let name = name.clone();
        let spec = match spec {
            Ok(spec) => spec,
            Err(why) => return Ok(Contacted { name, started: Err(why), accepted: None }),
        };
        let server = Server::start(spec);
        let started = server.started().await;
        server.stop().await;
        for why in started.iter().flat_map(|started| &started.listing.warnings) {
            app.notify(Style::Warning, &app.redact(&messages::mcp_server_warning(&name, why)));
        }
        let accepted = mcp::accepted(settings, &server.spec).map_err(|error| unreadable(&error))?;
        Ok(Contacted { name, started: started.map(|started| (server, started)), accepted })
    });
    join_all(contacted).await.into_iter().collect()
}

/// Returns the settings of the server called `name`.
fn configured<'a>(settings: &'a Settings, name: &str) -> AppResult<&'a McpServer> {
    if let Some((_, server)) = settings.mcp.enabled().find(|(known, _)| *known == name) {
        return Ok(server);
    }
    let known: Vec<&str> = settings.mcp.enabled().map(|(name, _)| name.as_str()).collect();
    let hint = did_you_mean(name, known.iter().copied());
    let hint = hint.unwrap_or_else(|| format!("configured: {}", known.join(", ")));
    Err(AppError::new(FailureKind::Usage, format!("there is no MCP server `{name}`; {hint}")))
}

/// Starts the server called `name`.
async fn one(app: &App, settings: &Settings, name: &str) -> AppResult<Contacted> {
    configured(settings, name)?;
    contact(app, settings, Some(name)).await?.pop().ok_or_else(|| unusable(name, "it is not configured"))
}

fn unusable(name: &str, why: &str) -> AppError {
    AppError::new(FailureKind::Request, messages::mcp_server_unusable(name, why))
}

fn unreadable(error: &std::io::Error) -> AppError {
    AppError::new(FailureKind::Request, format!("the accepted tools cannot be read: {error}"))
}

fn list(contacted: &[Contacted], as_json: bool) -> String {
    let row = |it: &Contacted| match &it.started {
        Ok((_, started)) => {
            let tools = &started.listing.tools;
            let state = match &it.accepted {
                None => "not accepted yet",
                Some(pins) if pins.changes(tools).is_empty() => "ok",
                Some(_) => "changed",
            };
            json!({ "name": it.name, "state": state, "tools": tools.len(), "hash": hash_of_all(tools),
                "protocol": started.connection.protocol })
        }
        Err(why) => json!({ "name": it.name, "state": "failed", "error": harmless(why) }),
    };
    let rows: Vec<Value> = contacted.iter().map(row).collect();
    if as_json {
        return format!("{:#}\n", Value::Array(rows));
    }
    let mut text = String::new();
    for row in &rows {
        let field = |name: &str| row[name].as_str().unwrap_or_default();
        let about = match row["tools"].as_u64() {
            Some(tools) => format!("{tools} tools, hash {}, protocol {}", field("hash"), field("protocol")),
            None => field("error").to_owned(),
        };
        let _infallible = writeln!(text, "{:<20} {:<16} {about}", field("name"), field("state"));
    }
    if rows.is_empty() { "no MCP server is configured; see `agent help mcp`\n".to_owned() } else { text }
}

fn show(it: &Contacted, as_json: bool) -> AppResult<String> {
    let name = &it.name;
    let (_, started) = it.started.as_ref().map_err(|why| unusable(name, why))?;
    let tools = &started.listing.tools;
    if as_json {
        let tool = |tool: &ListedTool| {
            json!({ "name": name_for_model(name, &tool.name), "tool": tool.name, "description": tool.description,
                "schema": tool.schema, "hash": tool.hash() })
        };
        return Ok(format!("{:#}\n", Value::Array(tools.iter().map(tool).collect())));
    }
    let mut text = format!("{name}: {} tools, hash {}\n", tools.len(), hash_of_all(tools));
    for tool in tools {
        let shown = (name_for_model(name, &tool.name), harmless(&tool.description), tool.schema_for_model());
        let _infallible = writeln!(text, "\n{}\n  {}\n  {}", shown.0, shown.1.replace('\n', "\n  "), shown.2);
    }
    Ok(text)
}

fn pin(settings: &Settings, it: &Contacted, as_json: bool) -> AppResult<String> {
    let name = &it.name;
    let (server, started) = it.started.as_ref().map_err(|why| unusable(name, why))?;
    let tools = &started.listing.tools;
    mcp::accept(settings, server, &started.connection.protocol, tools)
        .map_err(|error| AppError::new(FailureKind::Request, messages::mcp_pins_not_stored(&error)))?;
    if as_json {
        let changes = it.accepted.as_ref().map(|before| before.changes(tools)).unwrap_or_default();
        let document = json!({ "name": name, "tools": tools.len(), "hash": hash_of_all(tools), "changed": changes.changed,
            "new": changes.added, "removed": changes.removed });
        return Ok(format!("{document:#}\n"));
    }
    let mut text = format!("{name}: {} tools accepted, hash {}\n", tools.len(), hash_of_all(tools));
    let Some(before) = &it.accepted else { return Ok(text) };
    let changes = before.changes(tools);
    for (what, names) in
        [("changed", &changes.changed), ("new", &changes.added), ("removed", &changes.removed)]
    {
        for tool in names {
            let lines = |mark: char, tools: &[ListedTool]| {
                let found = tools.iter().find(|known| known.name == *tool);
                found.map(|tool| definition_lines(mark, tool)).unwrap_or_default()
            };
            let (old, new) = (lines('-', &before.tools), lines('+', tools));
            let _infallible = write!(text, "{what}: {}\n{old}{new}", one_line(&harmless(tool), QUOTE_CHARS));
        }
    }
    Ok(text)
}

/// Returns the description and the schema of a tool, with `mark` before each.
fn definition_lines(mark: char, tool: &ListedTool) -> String {
    let description = harmless(&tool.description).replace('\n', "\n    ");
    format!("  {mark} {description}\n  {mark} {}\n", tool.schema_for_model())
}
