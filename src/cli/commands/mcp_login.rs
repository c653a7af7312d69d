//! `agent mcp login` and `agent mcp logout`: the user's login at a remote MCP server.

use agent_config::mcp::McpServer;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_mcp::client::{Answers, Client};
use agent_mcp::http::HttpServer;
use agent_mcp::login::{LoginOptions, PendingLogin};
use agent_mcp::login_store::Login;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::mcp;
use agent_run::output::print;
use agent_terminal::Style;
use serde_json::json;
use std::io::{BufRead, Read};
use std::time::Duration;

/// Maximum bytes of the address that the user enters.
const MAX_ADDRESS_BYTES: u64 = 64 << 10;

/// Logs in: prints the address to open, reads the address to which the browser was redirected, and stores the tokens. `scopes`
/// are permissions to ask for besides those that were granted before.
///
/// # Errors
/// Fails when the server has no address, and when a step of the login fails.
pub async fn login(
    app: &App,
    settings: &Settings,
    name: &str,
    server: &McpServer,
    scopes: &[String],
    as_json: bool,
) -> AppResult<()> {
    let failed = |why: String| AppError::new(FailureKind::Request, messages::mcp_login_failed(name, &why));
    let http = http_server(app, settings, name, server)?;
    if server.has_token() {
        return Err(AppError::new(FailureKind::Usage, messages::mcp_login_unused(name)));
    }
    let before = http.login.load().ok().flatten();
    let options = options(app, server, &http, before.as_ref(), scopes).map_err(failed)?;
    let client = Client { server: name.to_owned(), answers: Answers::Decline };
    let limit = Duration::from_secs(server.start_timeout_seconds);
    let challenge = tokio::time::timeout(limit, http.challenge(client)).await;
    let silent = || Err(format!("it did not answer within {} s", limit.as_secs()));
    let challenge = challenge.unwrap_or_else(|_| silent()).map_err(failed)?;
    let pending = PendingLogin::begin(options, challenge.as_deref()).await.map_err(failed)?;
    app.notify(Style::Plain, messages::mcp_login_address(settings.language));
    app.notify(Style::Plain, pending.address());
    app.notify(Style::Plain, messages::mcp_login_enter(settings.language));
    let redirected = read_address().await.map_err(failed)?;
    let login = pending.finish(&redirected).await.map_err(failed)?;
    http.login.save(&login).map_err(|error| failed(format!("the login cannot be stored: {error}")))?;
    let granted = &login.credentials.granted_scopes;
    let text = if as_json {
        format!("{:#}\n", json!({ "name": name, "scopes": granted }))
    } else {
        messages::mcp_logged_in(name, &granted.join(" "), settings.language)
    };
    print(&app.terminal, &text)
}

/// Deletes the stored login.
///
/// # Errors
/// Fails when the server has no address, and when the file cannot be deleted.
pub fn logout(
    app: &App,
    settings: &Settings,
    name: &str,
    server: &McpServer,
    as_json: bool,
) -> AppResult<()> {
    let http = http_server(app, settings, name, server)?;
    let was_there = http.login.delete().map_err(|error| {
        AppError::new(FailureKind::Request, format!("the login at {name} cannot be deleted: {error}"))
    })?;
    let text = if as_json {
        format!("{:#}\n", json!({ "name": name, "deleted": was_there }))
    } else {
        messages::mcp_logged_out(name, was_there, settings.language)
    };
    print(&app.terminal, &text)
}

fn http_server(app: &App, settings: &Settings, name: &str, server: &McpServer) -> AppResult<HttpServer> {
    let Some(url) = &server.url else {
        return Err(AppError::new(FailureKind::Usage, messages::mcp_no_login(name)));
    };
    mcp::http_server(app, settings, url, server)
        .map_err(|why| AppError::new(FailureKind::Config, messages::mcp_server_unusable(name, &why)))
}

fn options(
    app: &App,
    server: &McpServer,
    http: &HttpServer,
    before: Option<&Login>,
    scopes: &[String],
) -> Result<LoginOptions, String> {
    let oauth = &server.oauth;
    let secret = oauth.client_secret_env.as_ref().map(|variable| mcp::user_variable(app, variable));
    let mut wanted = oauth.scopes.clone();
    if !scopes.is_empty() {
        wanted.extend(before.into_iter().flat_map(|login| login.credentials.granted_scopes.clone()));
        wanted.extend(scopes.iter().flat_map(|scope| scope.split_whitespace().map(str::to_owned)));
        wanted.sort();
        wanted.dedup();
    }
    Ok(LoginOptions {
        url: http.url.clone(),
        client_id: oauth.client_id.clone(),
        client_secret: secret.transpose()?.map(str::to_owned),
        client_metadata_url: oauth.client_metadata_url.clone(),
        redirect_url: oauth.redirect_url.clone(),
        scopes: wanted,
        private_network: oauth.private_network,
    })
}

/// Reads the line that the user enters; Ctrl+C ends the process.
async fn read_address() -> Result<String, String> {
    let read = || {
        let mut line = String::new();
        std::io::stdin().lock().take(MAX_ADDRESS_BYTES).read_line(&mut line).map(|_bytes| line)
    };
    let line = tokio::task::spawn_blocking(read).await.map_err(|error| error.to_string())?;
    let line = line.map_err(|error| format!("the address cannot be read: {error}"))?;
    match line.trim() {
        "" => Err("no address was entered".to_owned()),
        address => Ok(address.to_owned()),
    }
}
