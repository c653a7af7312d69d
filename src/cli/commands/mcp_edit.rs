//! `agent mcp add` and `agent mcp remove`: change the MCP servers in a configuration file. No server is started.

use crate::commands::common_args::CommonArgs;
use crate::commands::mcp_args::AddServer;
use agent_config::validate;
use agent_config::yaml_edit;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::config_file::ConfigFile;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use serde_json::Value;

/// Characters shown of a name.
const NAME_CHARS: usize = 60;

/// Adds a server, or with `--replace` writes it anew, and prints how to see its tools.
///
/// # Errors
/// Fails for a name that is not one of a server or exists, a secret in an argument, and a file that cannot be changed.
pub fn add(app: &App, common: &CommonArgs, args: &AddServer) -> AppResult<()> {
    let key = server_key(&args.name)?;
    let mut words = args.command.iter().chain(&args.url);
    if words.any(|word| app.redact(word) != *word) {
        return Err(AppError::new(FailureKind::Usage, messages::MCP_ADD_SECRET));
    }
    let file = ConfigFile::read(app, common.overrides(), args.project)?;
    let before = yaml_edit::unset(&file.text, &key).map_err(|error| file.refused(error))?;
    let mut text = match before {
        Some(_) if !args.replace => {
            let message = messages::mcp_server_exists(&args.name, &file.shown);
            return Err(AppError::new(FailureKind::Usage, message));
        }
        Some(without) => without.text,
        None => file.text.clone(),
    };
    let mut line = 0;
    for (field, value) in fields(args) {
        let edit = yaml_edit::set(&text, &format!("{key}.{field}"), &value);
        let edit = edit.map_err(|error| file.refused(error))?;
        (text, line) = (edit.text, if line == 0 { edit.line } else { line });
    }
    let defining = format!("{key}.{}", if args.url.is_some() { "url" } else { "command" });
    file.replace(&text, &[&defining])?;
    print(
        &app.terminal,
        &messages::mcp_server_added(&args.name, &format!("{}:{line}", file.shown), args.project),
    )
}

/// Removes a server.
///
/// # Errors
/// Fails for a server that is not in the file, and a file that cannot be changed.
pub fn remove(app: &App, common: &CommonArgs, name: &str, is_project: bool) -> AppResult<()> {
    let key = server_key(name)?;
    let file = ConfigFile::read(app, common.overrides(), is_project)?;
    let Some(edit) = yaml_edit::unset(&file.text, &key).map_err(|error| file.refused(error))? else {
        return Err(AppError::new(FailureKind::Usage, messages::mcp_server_not_in(name, &file.shown)));
    };
    file.replace(&edit.text, &[&key])?;
    print(&app.terminal, &messages::mcp_server_removed(name, &format!("{}:{}", file.shown, edit.line)))
}

/// Returns the key of the server called `name`.
fn server_key(name: &str) -> AppResult<String> {
    let wrong = |why: String| {
        let name = agent_terminal::one_line(name, NAME_CHARS);
        AppError::new(FailureKind::Usage, format!("`{name}`: {why}"))
    };
    validate::server_name(name).map_err(wrong)?;
    Ok(format!("mcp.servers.{name}"))
}

/// Returns the keys of a server with their values.
fn fields(args: &AddServer) -> Vec<(&'static str, Value)> {
    let Some((program, rest)) = args.command.split_first() else {
        return args.url.iter().map(|url| ("url", url.as_str().into())).collect();
    };
    let mut fields = vec![("command", program.as_str().into())];
    if !rest.is_empty() {
        fields.push(("args", rest.into()));
    }
    fields
}
