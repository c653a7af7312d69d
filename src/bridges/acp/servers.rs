//! The MCP servers of a client, as settings of its session.

use crate::json_rpc::message::invalid_params;
use agent_client_protocol_schema::v1::{Error, McpServer};
use agent_mcp::definition::is_unambiguous;
use agent_redactor::NamedSecret;
use agent_run::secrets::in_value;
use serde_json::{Map, Value, json};

/// Maximum characters of the name of a server.
const NAME_CHARS: usize = 32;

/// The servers of a client.
#[derive(Debug)]
pub struct ClientServers {
    /// The section `mcp` of the configuration, as JSON.
    pub section: String,
    /// Names that are not used, because another server has them.
    pub ignored: Vec<String>,
}

/// Converts the servers, except those whose name is one that `is_configured`. `None` if there are none.
///
/// # Errors
/// When a server uses a transport that was not announced.
pub fn client_servers(
    servers: &[McpServer],
    is_configured: impl Fn(&str) -> bool,
) -> Result<Option<ClientServers>, Error> {
    let (mut section, mut ignored) = (Map::new(), Vec::new());
    for server in servers {
        let (name, settings) = match server {
            McpServer::Stdio(server) => {
                let env = server.env.iter().map(|variable| (&variable.name, &variable.value));
                let command = server.command.to_string_lossy();
                (&server.name, json!({"command": command, "args": server.args, "env": values(env)}))
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter().map(|header| (&header.name, &header.value));
                (&server.name, json!({"url": server.url, "headers": values(headers)}))
            }
            _ => return Err(invalid_params("MCP servers are reached over stdio or http only")),
        };
        let name = normal_name(name);
        if is_configured(&name) || section.contains_key(&name) {
            ignored.push(name);
        } else {
            section.insert(name, settings);
        }
    }
    let is_empty = section.is_empty() && ignored.is_empty();
    Ok((!is_empty).then(|| ClientServers { section: json!({ "servers": section }).to_string(), ignored }))
}

/// Returns the secrets that a client passes to its servers.
pub fn secrets(servers: &[McpServer]) -> Vec<NamedSecret> {
    let of = |server: &McpServer| -> Vec<NamedSecret> {
        match server {
            McpServer::Stdio(server) => {
                server.env.iter().flat_map(|it| in_value(&it.name, &it.value)).collect()
            }
            McpServer::Http(server) => {
                server.headers.iter().flat_map(|it| in_value(&it.name, &it.value)).collect()
            }
            _ => Vec::new(),
        }
    };
    servers.iter().flat_map(of).collect()
}

fn values<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Value {
    pairs.map(|(name, value)| (name.clone(), json!({ "value": value }))).collect::<Map<_, _>>().into()
}

/// Returns a name as the configuration allows it: lower-case letters, digits, `-` and single `_` that are not last.
fn normal_name(name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let name = name.chars().map(|c| c.to_ascii_lowercase()).map(|c| if is_allowed(c) { c } else { '-' });
    let name: String = name.take(NAME_CHARS).collect();
    if is_unambiguous(&name) { name } else { name.replace('_', "-") }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault E5: also clients name servers.
    #[test]
    fn servers_are_settings_and_names_that_are_taken_are_reported() {
        let servers: Vec<McpServer> = serde_json::from_value(json!([
            {"name": "Git Hub", "command": "/bin/a", "args": ["x"], "env": [{"name": "T", "value": "${v}"}]},
            {"name": "git-hub", "command": "/bin/b", "args": [], "env": []},
            {"name": "mine", "command": "/bin/c", "args": [], "env": []},
            {"name": "a__b_", "command": "/bin/d", "args": [], "env": []},
            {"type": "http", "name": "Web", "url": "https://x", "headers": [{"name": "A", "value": "b"}]}]))
        .unwrap();
        let found = client_servers(&servers, |name| name == "mine").unwrap().unwrap();
        let section: Value = serde_json::from_str(&found.section).unwrap();
        let wanted = json!({"servers": {
            "a--b-": {"command": "/bin/d", "args": [], "env": {}},
            "git-hub": {"command": "/bin/a", "args": ["x"], "env": {"T": {"value": "${v}"}}},
            "web": {"url": "https://x", "headers": {"A": {"value": "b"}}}}});
        assert_eq!((section, found.ignored), (wanted, vec!["git-hub".to_owned(), "mine".to_owned()]));
        assert!(client_servers(&[], |_| false).unwrap().is_none());
        let sse =
            serde_json::from_value(json!({"type": "sse", "name": "s", "url": "https://x", "headers": []}));
        assert_eq!(i32::from(client_servers(&[sse.unwrap()], |_| false).unwrap_err().code), -32602);
    }
}
