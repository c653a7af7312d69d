//! Collects the secrets of this process: the key of `--api-key`, the key variables, and variables whose name suggests a secret.

use agent_config::environment::Environment;
use agent_config::mcp::McpServer;
use agent_config::settings::Settings;
use agent_core::secret::Secret;
use agent_http::own_origin;
use agent_llm::provider_table::key_variables;
use agent_mcp::login_store::{Login, LoginStore};
use agent_process::environment::is_allowed;
use agent_redactor::{NamedSecret, environment_secrets, url_credentials};

/// Name of the key of `--api-key` in messages.
const API_KEY_NAME: &str = "API key";

/// Name of the credentials of a configured address in messages.
const IN_URL: &str = "token in an address";

/// Returns all secrets with their names.
pub fn known(environment: &Environment, settings: &Settings) -> Vec<NamedSecret> {
    let chosen = key_variables(&settings.llm.providers).chain(settings.llm.api_key_env.as_deref());
    let mapped = settings.mcp.mapped_variables().chain(settings.fleet.mapped_variables());
    let mapped = mapped.filter(|name| !is_allowed(name));
    let chosen = chosen.chain(settings.web.search.key_variable()).chain(mapped);
    let chosen = chosen.chain(settings.fleet.nats.variables()).chain([settings.hub.key_env.as_str()]);
    let chosen = chosen.chain(settings.fleet.listen_token_env.as_deref());
    let chosen = chosen.filter_map(|name| Some(secret(name, environment.get(name)?)));
    // The variable of a user is `USER:PASSWORD`.
    let password = settings.fleet.nats.user_env.iter().filter_map(|name| {
        let (_, password) = environment.get(name)?.split_once(':')?;
        Some(secret(name, password))
    });
    let logins = logins(settings).flat_map(|login| login.secrets());
    let headers = settings.mcp.enabled().flat_map(|(_, server)| in_headers(environment, server));
    let explicit = settings.api_key.iter().map(|key| secret(API_KEY_NAME, key.expose()));
    let named = chosen
        .chain(logins)
        .chain(headers)
        .chain(explicit)
        .chain(in_urls(settings))
        .chain(password)
        .filter(|known| !environment_secrets::is_placeholder(known.value.expose()));
    in_environment(environment).chain(named).collect()
}

/// Returns the secrets of the environment, which are known before any setting is.
pub fn in_environment(environment: &Environment) -> impl Iterator<Item = NamedSecret> {
    let variables = environment.variables().iter();
    variables.flat_map(|(name, value)| {
        environment_secrets::secrets_in(name, value).map(|found| secret(name, &found))
    })
}

/// Returns the secrets in a variable or header that a client sets to `value` for one of its MCP servers.
pub fn in_value(name: &str, value: &str) -> Vec<NamedSecret> {
    let is_credential = name.eq_ignore_ascii_case("authorization");
    let credential = is_credential.then(|| value.split_whitespace().next_back()).flatten();
    let credential = credential.filter(|credential| !environment_secrets::is_placeholder(credential));
    let found = environment_secrets::secrets_in(name, value).map(|found| secret(name, &found));
    found.chain(credential.map(|credential| secret(name, credential))).collect()
}

/// Checks whether the secret is the whole value of the variable. The password in a URL is only a part of one: commands
/// get the variable, because a user who sets a URL for commands wants them to have the password.
pub fn is_whole_variable(environment: &Environment, known: &NamedSecret) -> bool {
    environment.get(&known.name).is_none_or(|value| value == known.value.expose())
}

/// Returns the secrets in the headers of a remote server.
fn in_headers(environment: &Environment, server: &McpServer) -> Vec<NamedSecret> {
    let values = server.headers.iter().filter_map(|(name, source)| {
        let variable = source.from.as_deref().and_then(|variable| environment.get(variable));
        Some((name, variable.or(source.value.as_deref())?))
    });
    values.flat_map(|(name, value)| in_value(name, value)).collect()
}

/// Returns the credentials in the addresses of the configuration.
fn in_urls(settings: &Settings) -> impl Iterator<Item = NamedSecret> {
    let servers = settings.mcp.servers.values().filter_map(|server| server.url.as_deref());
    let single = [&settings.web.search.url, &settings.llm.api_base, &settings.telemetry.endpoint];
    let urls =
        servers.chain(single.into_iter().flatten().map(String::as_str)).chain([settings.hub.url.as_str()]);
    urls.flat_map(|url| url_credentials::secrets_in(url).into_iter().map(|found| secret(IN_URL, found)))
}

/// Returns the stored logins at the MCP servers of the configuration.
fn logins(settings: &Settings) -> impl Iterator<Item = Login> {
    let urls = settings.mcp.enabled().filter_map(|(_, server)| server.url.as_deref());
    let urls = urls.filter_map(|url| own_origin::address(url).ok());
    // A login that cannot be read is not used either.
    urls.filter_map(|url| LoginStore::new(&settings.directories.state, &url).load().ok().flatten())
}

fn secret(name: &str, value: &str) -> NamedSecret {
    NamedSecret { name: name.to_owned(), value: Secret::new(value) }
}
