//! From what the user chose to a client: which server, which model, which key.

use crate::failure::{ErrorKind, Failure};
use crate::http::{Deadlines, Endpoint, HttpError};
use crate::llm::catalog::{self, Provider};
use crate::llm::codec::{Codec, Parameters};
use crate::llm::error_body::one_line;
use crate::llm::format::Format;
use crate::llm::quirks::Quirks;
use crate::llm::remote::{Key, RemoteModel};
use crate::llm::scripted::play::ScriptedModel;
use crate::llm::{LlmClient, local};
use crate::secret::Secret;
use crate::source::Source;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// How many tries follow the first, as the official SDKs have it.
pub const DEFAULT_RETRIES: u32 = 2;
/// How long a server has to list its models before the first request; it is a look-up, not a computation.
const LIST_TIME: Duration = Duration::from_secs(30);
/// How many models a message lists.
const LISTED: usize = 10;

/// What the user chose.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// `provider/model`, a bare model name, `local/…`, or `scripted:FILE`.
    pub model: Option<String>,
    /// The server, where it is not the provider's own.
    pub api_base: Option<String>,
    /// The key itself.
    pub api_key: Option<Secret>,
    /// The variable that holds the key.
    pub api_key_env: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// How many tries may follow the first.
    pub retries: u32,
    /// How long each phase of a try may take.
    pub deadlines: Deadlines,
    /// Whether a server on this machine is looked for when nothing is chosen; true only on a terminal.
    pub probe_local: bool,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            model: None,
            api_base: None,
            api_key: None,
            api_key_env: None,
            temperature: None,
            retries: DEFAULT_RETRIES,
            deadlines: Deadlines::default(),
            probe_local: false,
        }
    }
}

/// No model could be made out of the user's choice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// `Auth` where a key or an endpoint is missing, `Config` where the choice is wrong, `Network` where a server
    /// that had to be asked does not answer.
    pub kind: ErrorKind,
    /// What is missing and how to go on.
    pub message: String,
}

impl ConnectError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let retryable = error.kind == ErrorKind::Network;
        Self { kind: error.kind, message: error.message, retryable }
    }
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> Self {
        let kind = match error {
            HttpError::Address(_) | HttpError::Setup(_) => ErrorKind::Config,
            _ => ErrorKind::Network,
        };
        Self::new(kind, error.to_string())
    }
}

/// The client for what `options` say. `variable` reads the environment; nothing is sent except where a server must
/// be found, or asked for its models or what one of them may hold.
///
/// # Errors
/// When nothing is chosen, a key is missing, the choice is contradictory, or no server is found.
pub async fn connect(
    options: &ModelOptions,
    variable: &dyn Fn(&str) -> Option<String>,
    source: Rc<Source>,
) -> Result<Box<dyn LlmClient>, ConnectError> {
    if let Some(file) = options.model.as_deref().and_then(|model| model.strip_prefix("scripted:")) {
        let scripted = ScriptedModel::open(Path::new(file), options.retries, source);
        return Ok(Box::new(
            scripted.map_err(|error| ConnectError::new(ErrorKind::Config, error.to_string()))?,
        ));
    }
    let table = catalog::providers()
        .map_err(|error| ConnectError::new(ErrorKind::Internal, format!("the provider table: {error}")))?;
    let known =
        |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let (target, key) = match choose(options, &known, &table)? {
        Choice::Server(target) => {
            let key = key(options, &target, &known)?;
            (target, key)
        }
        Choice::Probe(wanted) => {
            let target = found(local::probe(&table, local::PROBE_TIME).await, wanted.as_deref())?;
            let key = key(options, &target, &known)?;
            (target, key)
        }
    };
    let codec = match &target.provider {
        Some(provider) => provider.codec(),
        None => Format::default().codec(Quirks::default()),
    };
    let base = root(&target.base, codec.as_ref(), target.model.as_deref().unwrap_or_default());
    let model = match target.model {
        Some(model) => model,
        None => only_model(base, codec.as_ref(), &key).await?,
    };
    let name = target
        .provider
        .as_ref()
        .map_or_else(|| model.clone(), |provider| format!("{}/{model}", provider.name));
    let secret = key.secret.as_ref().map(Secret::expose);
    let window = local::window(base, codec.as_ref(), secret, &model).await;
    let headers = codec.headers(secret);
    Ok(Box::new(RemoteModel {
        name,
        endpoint: Endpoint::new(base, &headers, options.deadlines)?,
        codec,
        parameters: Parameters { model, temperature: options.temperature, window },
        key,
        retries: options.retries,
        source,
        history: RefCell::default(),
        refuses_schemas: Cell::default(),
    }))
}

/// A server and, where it is known already, a model.
#[derive(Debug, Clone, PartialEq)]
struct Target {
    provider: Option<Provider>,
    base: String,
    model: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Choice {
    Server(Target),
    /// Look on this machine, for this model or any.
    Probe(Option<String>),
}

type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

fn choose(
    options: &ModelOptions,
    variable: Variable<'_>,
    table: &[Provider],
) -> Result<Choice, ConnectError> {
    let chosen = options.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
    let base = options.api_base.as_deref().map(str::trim).filter(|base| !base.is_empty());
    let Some(chosen) = chosen else {
        return match base {
            Some(base) => Ok(Choice::Server(Target { provider: None, base: base.into(), model: None })),
            None => nothing_chosen(options, variable, table),
        };
    };
    let (prefix, rest) = chosen.split_once('/').unwrap_or((chosen, ""));
    if prefix == "local" {
        let wanted = (!rest.is_empty()).then(|| rest.to_owned());
        return Ok(match base {
            Some(base) => Choice::Server(Target { provider: None, base: base.into(), model: wanted }),
            None => Choice::Probe(wanted),
        });
    }
    if let Some(provider) = table.iter().find(|provider| provider.name == prefix && !rest.is_empty()) {
        return Ok(Choice::Server(Target {
            base: base.unwrap_or(&provider.base).to_owned(),
            provider: Some(provider.clone()),
            model: Some(rest.to_owned()),
        }));
    }
    if let Some(base) = base {
        return Ok(Choice::Server(Target {
            provider: None,
            base: base.into(),
            model: Some(chosen.to_owned()),
        }));
    }
    if rest.is_empty() {
        bare(chosen, options, variable, table)
    } else {
        Err(unknown_provider(prefix, table))
    }
}

/// Neither a model nor a server was named.
fn nothing_chosen(
    options: &ModelOptions,
    variable: Variable<'_>,
    table: &[Provider],
) -> Result<Choice, ConnectError> {
    if let Some((provider, key)) = keyed(variable, table).next() {
        let name = &provider.name;
        let message =
            format!("no model is chosen; {key} is set, so say which of its models: --model {name}/NAME");
        return Err(ConnectError::new(ErrorKind::Config, message));
    }
    if options.probe_local { Ok(Choice::Probe(None)) } else { Err(no_model()) }
}

/// A model without its provider: clear when there is a key for exactly one.
fn bare(
    model: &str,
    options: &ModelOptions,
    variable: Variable<'_>,
    table: &[Provider],
) -> Result<Choice, ConnectError> {
    let mut keyed = keyed(variable, table);
    match (keyed.next(), keyed.next()) {
        (Some((provider, _)), None) => Ok(Choice::Server(Target {
            base: provider.base.clone(),
            provider: Some(provider.clone()),
            model: Some(model.to_owned()),
        })),
        (None, _) if options.probe_local => Ok(Choice::Probe(Some(model.to_owned()))),
        (None, _) => Err(no_model()),
        (Some(_), Some(_)) => Err(ConnectError::new(
            ErrorKind::Config,
            format!(
                "keys of several providers are set; say which one has the model: --model PROVIDER/{model}"
            ),
        )),
    }
}

/// The providers whose key is in the environment, with the variable; of those that share one, the first.
fn keyed<'a>(variable: Variable<'a>, table: &'a [Provider]) -> impl Iterator<Item = (&'a Provider, &'a str)> {
    let mut seen: Vec<&str> = Vec::new();
    table.iter().filter_map(move |provider| {
        let key = provider.keys.iter().find(|key| variable(key).is_some())?;
        if seen.contains(&key.as_str()) {
            return None;
        }
        seen.push(key);
        Some((provider, key.as_str()))
    })
}

fn no_model() -> ConnectError {
    ConnectError::new(
        ErrorKind::Auth,
        "no model to work with. Three ways on:\n  \
         - a provider: set its key and name a model, such as OPENAI_API_KEY and --model openai/NAME\n  \
         - your own machine: start Ollama, llama.cpp, LM Studio or vLLM and say --model local/NAME\n  \
         - without any model, to see how it works: agent demo",
    )
}

fn unknown_provider(name: &str, table: &[Provider]) -> ConnectError {
    let close = table
        .iter()
        .map(|provider| (strsim::jaro_winkler(&provider.name, name), provider.name.as_str()))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, close)| format!(" (did you mean `{close}`?)"))
        .unwrap_or_default();
    let names: Vec<_> = table.iter().map(|provider| provider.name.as_str()).collect();
    ConnectError::new(
        ErrorKind::Config,
        format!(
            "the provider `{}` is not known{close}; known are {}, local; any other server: --api-base URL",
            one_line(name, 40),
            names.join(", ")
        ),
    )
}

/// The key for `target`: given, in the named variable, or in the provider's own variable.
fn key(options: &ModelOptions, target: &Target, variable: Variable<'_>) -> Result<Key, ConnectError> {
    if let Some(secret) = options.api_key.as_ref().filter(|key| !key.expose().trim().is_empty()) {
        return Ok(Key { secret: Some(secret.clone()), advice: "check the key given as --api-key".into() });
    }
    let keys = target.provider.as_ref().map(|provider| provider.keys.as_slice()).unwrap_or_default();
    let names = options.api_key_env.as_ref().map_or(keys, std::slice::from_ref);
    for name in names {
        if let Some(value) = variable(name) {
            return Ok(Key { secret: Some(Secret::new(value)), advice: format!("check the key in {name}") });
        }
    }
    let host = Endpoint::new(&target.base, &[], options.deadlines)?;
    if let Some(name) = &options.api_key_env {
        let message =
            format!("the variable {name}, which is to hold the key for {}, is not set", host.host());
        return Err(ConnectError::new(ErrorKind::Auth, message));
    }
    let first = names.first().map_or("llm.api_key_env", String::as_str);
    if options.api_base.is_none() && !names.is_empty() && !host.is_loopback() {
        let message = format!(
            "no key for {}: set {first}, or give --api-key; without a key, a local server works \
             (--model local/NAME), and so does agent demo",
            host.host()
        );
        return Err(ConnectError::new(ErrorKind::Auth, message));
    }
    Ok(Key { secret: None, advice: format!("no key was sent: give --api-key, or set {first}") })
}

/// The server among those found that has the wanted model, or the first with its first.
fn found(servers: Vec<local::Found>, wanted: Option<&str>) -> Result<Target, ConnectError> {
    let Some(wanted) = wanted else {
        let first = servers.into_iter().next();
        return first
            .and_then(|server| Some((server.models.first()?.clone(), server.provider)))
            .map(|(model, provider)| target(provider, model))
            .ok_or_else(no_model);
    };
    if servers.is_empty() {
        return Err(ConnectError::new(
            ErrorKind::Auth,
            "no model server answers on this machine (tried Ollama 11434, llama.cpp 8080, LM Studio 1234, \
             vLLM 8000); start one, or name another with --api-base",
        ));
    }
    let matched = servers.iter().find_map(|server| Some((server, local::matching(&server.models, wanted)?)));
    if let Some((server, model)) = matched {
        return Ok(target(server.provider.clone(), model.to_owned()));
    }
    let names = listed(servers.iter().flat_map(|server| &server.models));
    let message =
        format!("no server on this machine has the model `{}`; there is {names}", one_line(wanted, 80));
    Err(ConnectError::new(ErrorKind::Config, message))
}

fn target(provider: Provider, model: String) -> Target {
    Target { base: provider.base.clone(), provider: Some(provider), model: Some(model) }
}

/// The API base itself, where someone gave the whole address of the request.
fn root<'a>(base: &'a str, codec: &dyn Codec, model: &str) -> &'a str {
    let base = base.trim_end_matches('/');
    codec.root(base.strip_suffix(&codec.path(model, true)).unwrap_or(base))
}

/// The model of a server that has only one.
async fn only_model(base: &str, codec: &dyn Codec, key: &Key) -> Result<String, ConnectError> {
    let secret = key.secret.as_ref().map(Secret::expose);
    let models = local::models(base, codec, secret, local::within(LIST_TIME)).await;
    let mut models = models.map_err(|error| {
        let error = ConnectError::from(error);
        ConnectError { message: format!("no model is chosen, and {base} cannot be asked: {error}"), ..error }
    })?;
    if models.len() == 1 {
        return Ok(models.swap_remove(0));
    }
    let message = if models.is_empty() {
        "no model is chosen and the server does not list any: add --model NAME".to_owned()
    } else {
        format!("no model is chosen: add --model with one of {}", listed(models.iter()))
    };
    Err(ConnectError::new(ErrorKind::Config, message))
}

fn listed<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let mut names: Vec<_> = names.take(LISTED + 1).map(|name| one_line(name, 80)).collect();
    if names.len() > LISTED {
        names.truncate(LISTED);
        names.push("…".into());
    }
    names.join(", ")
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
