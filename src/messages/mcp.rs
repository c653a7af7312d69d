//! Messages about MCP servers.

use agent_core::language::Language;
use std::fmt::Display;
use std::path::Path;

/// A server that cannot be used.
pub fn mcp_server_unusable(name: &str, why: &str) -> String {
    format!("MCP server {name} is not used: {why}")
}

/// Warning of a run about a server that cannot be used: the first line of `why`, and the command that prints the others.
pub fn mcp_server_left_out(name: &str, why: &str) -> String {
    match why.split_once('\n') {
        Some((cause, _)) => {
            format!("{} (agent mcp show {name} prints its standard error)", mcp_server_unusable(name, cause))
        }
        None => mcp_server_unusable(name, why),
    }
}

/// Something that a server should not have done.
pub fn mcp_server_warning(name: &str, why: &str) -> String {
    format!("MCP server {name}: {why}")
}

/// The first contact with a server.
pub fn mcp_first_contact(name: &str, tools: usize, hash: &str) -> String {
    format!(
        "MCP server {name}: first contact, {tools} tools accepted as they are now (hash {hash}); `agent mcp show {name}` shows them"
    )
}

/// A server whose tools have another hash than `mcp.servers.NAME.pin`.
pub fn mcp_pin_differs(name: &str, hash: &str) -> String {
    format!(
        "MCP server {name}: its tools have the hash {hash}, not that of mcp.servers.{name}.pin; none of them is offered"
    )
}

/// Tools that are withheld because they differ from those that the user accepted.
pub fn mcp_tools_withheld(name: &str, tools: &str) -> String {
    format!(
        "MCP server {name}: withheld because they changed since you accepted them: {tools}; `agent mcp pin {name}` shows and accepts them"
    )
}

/// Tools that differ from those that the user accepted.
pub fn mcp_tools_changed(name: &str, changes: &str) -> String {
    format!(
        "MCP server {name} lists other tools than you accepted ({changes}); these are withheld until `agent mcp pin {name}`"
    )
}

/// A tool whose name for the model another tool has.
pub fn mcp_name_taken(server: &str, tool: &str) -> String {
    format!(
        "MCP server {server}: the tool {tool} is not offered, because another tool has the same name for the model"
    )
}

/// A tool whose arguments are not an object.
pub fn mcp_no_object(server: &str, tool: &str) -> String {
    format!(
        "MCP server {server}: the tool {tool} is not offered, because the `type` of its `inputSchema` is not `object`"
    )
}

/// A package without a fixed version; `base` is its name.
pub fn mcp_unpinned_package(name: &str, package: &str, base: &str) -> String {
    format!(
        "MCP server {name}: `npx -y` may install another version of {package} at each start; write {base}@VERSION, such as {base}@1.2.3"
    )
}

/// A server that changed protected files.
pub fn mcp_changed_protected(name: &str, paths: &str) -> String {
    format!("MCP server {name} changed protected files, which were restored: {paths}")
}

/// The accepted tools cannot be read.
pub fn mcp_pins_unreadable(path: &Path, error: &impl Display) -> String {
    format!(
        "no MCP server is used: the tools that you accepted cannot be read ({}: {error}); after checking the file, delete it to accept them anew",
        path.display()
    )
}

/// The accepted tools cannot be stored.
pub fn mcp_pins_not_stored(error: &impl Display) -> String {
    format!("the accepted tools of MCP servers cannot be stored: {error}")
}

/// A question of a server.
pub fn mcp_question(server: &str, message: &str, language: Language) -> String {
    let (asks, how) = language.pick(
        ("asks", "Enter: the value in brackets; Ctrl+D: decline"),
        ("pregunta", "Intro: el valor entre corchetes; Ctrl+D: rechazar"),
    );
    format!("MCP {server} {asks}: {message}\n   {how}")
}

/// The prompt of a question of a server without fields.
pub fn mcp_confirmation(language: Language) -> &'static str {
    language.pick("Accept, yes or no", "Aceptar, sí o no")
}

/// A login that failed.
pub fn mcp_login_failed(name: &str, why: &str) -> String {
    format!("the login at the MCP server {name} failed: {why}")
}

/// A login at a server that the agent starts.
pub fn mcp_no_login(name: &str) -> String {
    format!(
        "the MCP server {name} is a program (`command`), which needs no login; only servers with `url` do"
    )
}

/// What to do with the address that follows.
pub fn mcp_login_address(language: Language) -> &'static str {
    language.pick(
        "Open this address in a browser and log in:",
        "Abra esta dirección en un navegador e inicie sesión:",
    )
}

/// What to enter after the login.
pub fn mcp_login_enter(language: Language) -> &'static str {
    language.pick(
        "Then the browser shows a page that it cannot open. Copy its whole address (it contains `code=`), enter it here:",
        "Después, el navegador muestra una página que no puede abrir. Copie su dirección completa (contiene `code=`) y escríbala aquí:",
    )
}

/// A completed login.
pub fn mcp_logged_in(name: &str, scopes: &str, language: Language) -> String {
    let done = language.pick("logged in at", "sesión iniciada en");
    let scopes = if scopes.is_empty() { String::new() } else { format!(" ({scopes})") };
    format!("{done} {name}{scopes}\n")
}

/// A deleted login.
pub fn mcp_logged_out(name: &str, was_there: bool, language: Language) -> String {
    let done = if was_there {
        language.pick("login deleted:", "sesión eliminada:")
    } else {
        language.pick("no login was stored for", "no había sesión guardada para")
    };
    format!("{done} {name}\n")
}

/// A login at a server whose token stands in the configuration.
pub fn mcp_login_unused(name: &str) -> String {
    format!(
        "a login at {name} would not be used, because its configuration has a token (`token_env` or `headers`); remove that first"
    )
}

/// Usage error for a secret in the arguments of a server.
pub const MCP_ADD_SECRET: &str = "an argument contains a secret of your environment, which must not be in a file: add the server without it, then name the variable: agent config set mcp.servers.NAME.env.VARIABLE.from VARIABLE";

/// Usage error for a server that `file` has already.
pub fn mcp_server_exists(name: &str, file: &str) -> String {
    format!("{file} has an MCP server {name}: --replace writes it anew")
}

/// Usage error for a server that `file` does not have.
pub fn mcp_server_not_in(name: &str, file: &str) -> String {
    format!("{file} has no MCP server {name}: agent mcp lists those in force")
}

/// A server that was added at `place`, file and line.
pub fn mcp_server_added(name: &str, place: &str, in_project: bool) -> String {
    let trust = if in_project { "agent trust, then " } else { "" };
    format!(
        "{place}: added the MCP server {name}\nsee its tools: {trust}agent mcp show {name}  (what it may do: agent help mcp)\n"
    )
}

/// A server that was removed; `place` is file and line.
pub fn mcp_server_removed(name: &str, place: &str) -> String {
    format!("{place}: removed the MCP server {name}\n")
}
