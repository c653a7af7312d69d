//! Creates a model client from the user's options: chooses the server, the model and the key.

use crate::codec::{Codec, ModelParameters, PromptCaching};
use crate::discovery::Header;
use crate::generation_settings::{GenerationSettings, generation_settings};
use crate::model_options::ModelOptions;
use crate::model_table::{accepts_images, is_built_in, nearest};
use crate::provider_error::one_line;
use crate::provider_table::{self, Provider, ProviderTableError};
use crate::quirks::{PromptCacheField, Quirks};
use crate::remote::{ApiKey, RemoteModel};
use crate::scripted::model::ScriptedModel;
use crate::wire_format::WireFormat;
use crate::{LlmClient, discovery};
use agent_core::failure::{Failure, FailureKind};
use agent_core::secret::Secret;
use agent_http::{Endpoint, HttpError};
use agent_messages as messages;
use agent_runtime::clock::Clock;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Time limit for a server's model list before the first request.
const LIST_TIME: Duration = Duration::from_secs(30);
/// Number of models that a message lists.
const LISTED: usize = 10;

/// Failure to create a client from the user's options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// `Auth` if a key or an endpoint is missing, `Config` if the options are wrong, `Network` if a server
    /// that had to be queried does not answer.
    pub kind: FailureKind,
    /// What is missing and what to do.
    pub message: String,
}

impl ConnectError {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let retryable = error.kind == FailureKind::Network;
        Self { kind: error.kind, message: error.message, retryable }
    }
}

impl From<ProviderTableError> for ConnectError {
    fn from(error: ProviderTableError) -> Self {
        let kind = match error {
            ProviderTableError::BuiltIn(_) => FailureKind::Internal,
            ProviderTableError::InvalidOverride { .. } => FailureKind::Config,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> Self {
        let kind = match error {
            HttpError::Address(_) | HttpError::Key | HttpError::Setup(_) => FailureKind::Config,
            _ => FailureKind::Network,
        };
        Self::new(kind, error.to_string())
    }
}

/// Creates the client for `options`. `variable` reads the environment. Nothing is sent unless a server must
/// be found, or queried for its models or for a context window.
///
/// # Errors
/// When no model is chosen, a key is missing, the options contradict each other, or no server is found.
pub async fn connect(
    options: &ModelOptions,
    variable: &dyn Fn(&str) -> Option<String>,
    source: Rc<Clock>,
) -> Result<Box<dyn LlmClient>, ConnectError> {
    if let Some(file) = options.model.as_deref().and_then(|model| model.strip_prefix("scripted:")) {
        return open_scripted(file, options, source);
    }
    let table = provider_table::load(&options.provider_overrides)?;
    let known = |name: &str| non_empty_variable(variable, name);
    let target = match choose(options, &known, &table)? {
        ModelChoice::Server(target) => *target,
        ModelChoice::Probe(wanted) => {
            choose_local(discovery::probe(&table, discovery::PROBE_TIME).await, wanted.as_deref())?
        }
    };
    let key = key(options, &target, &known)?;
    let base = target.base.as_deref().ok_or_else(|| no_base(&target, &known))?;
    let provider = target.provider.clone().unwrap_or_default();
    let wrong_table =
        |error| ConnectError::new(FailureKind::Internal, format!("the table of thinking models: {error}"));
    let format = provider.format_for(target.model.as_deref().unwrap_or_default()).map_err(wrong_table)?;
    let (codec, address, quirks) =
        (format.codec(provider.quirks), provider.endpoint_overrides(), provider.quirks);
    let base = address.api_base(base, codec.as_ref(), target.model.as_deref().unwrap_or_default());
    let headers = address.headers(codec.as_ref(), key.secret.as_ref().map(Secret::expose));
    let endpoint = Endpoint::new(base, &headers, options.deadlines).map_err(|error| match error {
        HttpError::Key => ConnectError::new(FailureKind::Auth, format!("{error}; {}", key.advice)),
        error => error.into(),
    })?;
    let model = match target.model {
        Some(model) => model,
        None => only_model(base, codec.as_ref(), &headers).await?,
    };
    let name = match &target.provider {
        Some(provider) => format!("{}/{model}", provider.name),
        None => model.clone(),
    };
    let window = context_window(options, &provider, base, &headers, &model).await;
    let GenerationSettings { thinking, temperature, warnings } =
        generation_settings(options.effort, options.temperature, &model, format, quirks)
            .map_err(wrong_table)?;
    let caching =
        if options.prompt_caching { caching(&model, format, quirks) } else { PromptCaching::default() };
    let is_text_only = !options.images.unwrap_or_else(|| accepts_images(&name));
    Ok(Box::new(RemoteModel {
        name,
        endpoint: endpoint.with_checked_variables()?,
        codec,
        address,
        stream_only: quirks.stream_only,
        parameters: ModelParameters { model, temperature, window, thinking, caching, is_text_only },
        key,
        retries: options.retries,
        max_retry_after: options.max_retry_after,
        source,
        history: RefCell::default(),
        warnings,
        refuses_schemas: Cell::default(),
        has_answered: Cell::default(),
        was_refused: Cell::default(),
        refused_tools: RefCell::default(),
    }))
}

/// Creates the client for the script in `file`.
fn open_scripted(
    file: &str,
    options: &ModelOptions,
    source: Rc<Clock>,
) -> Result<Box<dyn LlmClient>, ConnectError> {
    let accepts_images = options.images.unwrap_or(true);
    let opened = ScriptedModel::open(Path::new(file), options.retries, options.max_retry_after, source);
    opened
        .map(|model| model.with_images(accepts_images).with_played_turns(options.played_turns))
        .map(|model| -> Box<dyn LlmClient> { Box::new(model) })
        .map_err(|error| ConnectError::new(FailureKind::Config, error.to_string()))
}

/// Returns the context window of `model` in tokens: from `options`, or else from the server.
async fn context_window(
    options: &ModelOptions,
    provider: &Provider,
    base: &str,
    headers: &[Header],
    model: &str,
) -> Option<u32> {
    match (options.window, provider.window_endpoint()) {
        (Some(window), _) => Some(window),
        (None, Some(endpoint)) => discovery::query_window(base, headers, endpoint, model).await,
        (None, None) => None,
    }
}

/// Returns the prompt caching hints for the server of `model`. Only Anthropic needs breakpoints.
fn caching(model: &str, format: WireFormat, quirks: Quirks) -> PromptCaching {
    let routed = quirks.prompt_cache == Some(PromptCacheField::Control) && model.starts_with("anthropic/");
    PromptCaching {
        use_session_key: quirks.prompt_cache == Some(PromptCacheField::Key),
        use_breakpoints: format == WireFormat::Messages || routed,
    }
}

/// A server and, if already known, a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTarget {
    /// Provider table row; `None` for a server of which only the address is known.
    pub provider: Option<Provider>,
    /// API base; `None` if the user must supply it and has not done so.
    pub base: Option<String>,
    /// Model name that the server uses.
    pub model: Option<String>,
}

/// The server that the user's options select.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelChoice {
    /// The server to use.
    Server(Box<ModelTarget>),
    /// Probe this machine for the named model, or for any model.
    Probe(Option<String>),
}

/// Function that reads an environment variable.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the trimmed value of a variable, or `None` if it is unset or blank.
pub fn non_empty_variable(variable: EnvLookup<'_>, name: &str) -> Option<String> {
    variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Resolves `options` without any request. `variable` must return only non-empty values.
///
/// # Errors
/// When no model is chosen, or the choice is unknown or contradictory.
pub fn choose(
    options: &ModelOptions,
    variable: EnvLookup<'_>,
    table: &[Provider],
) -> Result<ModelChoice, ConnectError> {
    let chosen = options.model.as_deref().map(str::trim).filter(|model| !model.is_empty());
    let base = options.api_base.as_deref().map(str::trim).filter(|base| !base.is_empty());
    let unnamed = |base: &str, model| ModelTarget { provider: None, base: Some(base.to_owned()), model };
    let Some(chosen) = chosen else {
        return match base {
            Some(base) => Ok(server(unnamed(base, None))),
            None => choose_default(options, variable, table),
        };
    };
    let (prefix, rest) = chosen.split_once('/').unwrap_or((chosen, ""));
    if prefix == "local" {
        let wanted = (!rest.is_empty()).then(|| rest.to_owned());
        return Ok(match base {
            Some(base) => server(unnamed(base, wanted)),
            None => ModelChoice::Probe(wanted),
        });
    }
    // With an explicit API base, a name such as `google/gemma` is a model of that server, unless `google` is a provider's main name.
    let named =
        provider_table::find(table, prefix).filter(|provider| base.is_none() || provider.name == prefix);
    if let Some(provider) = named.filter(|_| !rest.is_empty()) {
        let target = target(provider, rest.to_owned(), variable);
        return Ok(server(ModelTarget { base: base.map(str::to_owned).or(target.base), ..target }));
    }
    match base {
        Some(base) => Ok(server(unnamed(base, Some(chosen.to_owned())))),
        None if rest.is_empty() => choose_by_model_name(chosen, options, variable, table),
        None => Err(unknown_provider(prefix, table)),
    }
}

fn server(target: ModelTarget) -> ModelChoice {
    ModelChoice::Server(Box::new(target))
}

/// Returns a model of a provider, at the address from its variables or from the table.
fn target(provider: &Provider, model: String, variable: EnvLookup<'_>) -> ModelTarget {
    let base = provider.base_keys.iter().find_map(|name| variable(name));
    ModelTarget {
        base: base.or_else(|| provider.base.clone()),
        provider: Some(provider.clone()),
        model: Some(model),
    }
}

/// Resolves options that name neither a model nor a server.
fn choose_default(
    options: &ModelOptions,
    variable: EnvLookup<'_>,
    table: &[Provider],
) -> Result<ModelChoice, ConnectError> {
    if let Some((provider, key)) = providers_with_key(variable, table).next() {
        let name = &provider.name;
        let message = format!("no model is chosen; {key} is set, so add --model {name}/NAME");
        return Err(ConnectError::new(FailureKind::Config, message));
    }
    if options.probe_local { Ok(ModelChoice::Probe(None)) } else { Err(no_model()) }
}

/// Resolves a model name without a provider. A name of the table of models means the only provider that has it, or the only one with a key;
/// another name means the only provider with a key.
fn choose_by_model_name(
    model: &str,
    options: &ModelOptions,
    variable: EnvLookup<'_>,
    table: &[Provider],
) -> Result<ModelChoice, ConnectError> {
    let mut keyed = providers_with_key(variable, table);
    let (first, second) = (keyed.next(), keyed.next());
    let may_probe = first.is_none() && options.probe_local;
    let of = |provider: &Provider| Ok(server(target(provider, model.to_owned(), variable)));
    let wrong = |message| Err(ConnectError::new(FailureKind::Config, message));
    if let Some(provider) = provider_table::find(table, model).filter(|_| !may_probe) {
        return wrong(format!(
            "`{model}` is a provider: add the model's name, --model {}/NAME",
            provider.name
        ));
    }
    let listed: Vec<&Provider> =
        table.iter().filter(|it| is_built_in(&format!("{}/{model}", it.name))).collect();
    let mut with_key = listed.iter().filter(|it| it.keys.iter().any(|key| variable(key).is_some()));
    // A key that was given for all models is for the provider that the user has, not for the one that the name suggests.
    let has_own_key = options.api_key.is_some() || options.api_key_env.is_some();
    match (with_key.next(), with_key.next(), listed.as_slice()) {
        (Some(provider), None, _) => of(provider),
        (None, _, [provider]) if !has_own_key => of(provider),
        _ if may_probe => Ok(ModelChoice::Probe(Some(model.to_owned()))),
        (.., []) => match (first, second) {
            (Some((provider, _)), None) => of(provider),
            _ => wrong(messages::unknown_model(&one_line(model, 80), &nearest(model))),
        },
        _ => {
            let names: Vec<_> = listed.iter().map(|it| format!("--model {}/{model}", it.name)).collect();
            wrong(format!("several providers have `{model}`: {}", names.join(", ")))
        }
    }
}

/// Returns the providers whose key variable is set, each with that variable; of providers that share one, only the first.
fn providers_with_key<'a>(
    variable: EnvLookup<'a>,
    table: &'a [Provider],
) -> impl Iterator<Item = (&'a Provider, &'a str)> {
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
        FailureKind::Auth,
        "no model is configured. Three options:\n  \
         - a provider: set its key and name a model, such as OPENAI_API_KEY and --model openai/NAME\n  \
         - your own machine: start Ollama, llama.cpp, LM Studio or vLLM and use --model local/NAME\n  \
         - without any model, to see how it works: agent demo\n\
         agent doctor --model PROVIDER/NAME reports what is missing for one of them, agent help providers lists them",
    )
}

/// Returns the error for a provider whose API base only the user can supply.
fn no_base(target: &ModelTarget, variable: EnvLookup<'_>) -> ConnectError {
    let Some(provider) = &target.provider else { return no_model() };
    let key = if provider.keys.iter().any(|name| variable(name).is_some()) {
        String::new()
    } else {
        provider.keys.first().map_or_else(String::new, |name| format!(", and {name} to its key"))
    };
    let first = provider.base_keys.first().map_or("llm.api_base", String::as_str);
    let message = format!(
        "no address for {}: each account has its own; set {first} to it, or use --api-base{key}",
        provider.name
    );
    ConnectError::new(FailureKind::Auth, message)
}

fn unknown_provider(name: &str, table: &[Provider]) -> ConnectError {
    let names_of =
        |provider: &'_ Provider| [std::slice::from_ref(&provider.name), &provider.aliases].concat();
    let close = table
        .iter()
        .flat_map(names_of)
        .map(|known| (strsim::jaro_winkler(&known, name), known))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, close)| format!(" (did you mean `{close}`?)"))
        .unwrap_or_default();
    let names: Vec<_> = table.iter().map(|provider| provider.name.as_str()).collect();
    ConnectError::new(
        FailureKind::Config,
        format!(
            "the provider `{}` is not known{close}; known are {}, local; any other server: --api-base URL",
            one_line(name, 40),
            names.join(", ")
        ),
    )
}

/// Returns the key for `target`: from the option, from the named variable, or from the provider's own variable.
///
/// # Errors
/// When no key is found and the server requires one.
pub fn key(
    options: &ModelOptions,
    target: &ModelTarget,
    variable: EnvLookup<'_>,
) -> Result<ApiKey, ConnectError> {
    if let Some(secret) = options.api_key.as_ref().filter(|key| !key.expose().trim().is_empty()) {
        return Ok(ApiKey {
            secret: Some(secret.clone()),
            advice: "check the key given as --api-key".into(),
        });
    }
    let keys = target.provider.as_ref().map(|provider| provider.keys.as_slice()).unwrap_or_default();
    let names = options.api_key_env.as_ref().map_or(keys, std::slice::from_ref);
    for name in names {
        if let Some(value) = variable(name) {
            return Ok(ApiKey {
                secret: Some(Secret::new(value)),
                advice: format!("check the key in {name}"),
            });
        }
    }
    let base = target.base.as_deref().ok_or_else(|| no_base(target, variable))?;
    let host = Endpoint::new(base, &[], options.deadlines)?;
    if let Some(name) = &options.api_key_env {
        let message = format!("the variable {name} for the key of {} is not set", host.host());
        return Err(ConnectError::new(FailureKind::Auth, message));
    }
    let first = names.first().map_or("llm.api_key_env", String::as_str);
    if options.api_base.is_none() && !names.is_empty() && !host.is_loopback() {
        let message = format!(
            "no key for {}: set {first}, or use --api-key; without a key, a local server works \
             (--model local/NAME), and so does agent demo",
            host.host()
        );
        return Err(ConnectError::new(FailureKind::Auth, message));
    }
    Ok(ApiKey { secret: None, advice: format!("no key was sent: use --api-key, or set {first}") })
}

/// Returns the first local server that has the wanted model, or the first server with its first model.
fn choose_local(
    servers: Vec<discovery::LocalServer>,
    wanted: Option<&str>,
) -> Result<ModelTarget, ConnectError> {
    let Some(wanted) = wanted else {
        let first = servers.into_iter().next();
        return first
            .and_then(|server| Some((server.models.first()?.clone(), server.provider)))
            .map(|(model, provider)| local_target(provider, model))
            .ok_or_else(no_model);
    };
    if servers.is_empty() {
        return Err(ConnectError::new(
            FailureKind::Auth,
            "no model server answers on this machine (tried Ollama 11434, llama.cpp 8080, LM Studio 1234, \
             vLLM 8000); start one, or name another with --api-base",
        ));
    }
    let matched =
        servers.iter().find_map(|server| Some((server, discovery::find_model(&server.models, wanted)?)));
    if let Some((server, model)) = matched {
        return Ok(local_target(server.provider.clone(), model.to_owned()));
    }
    let names = listed(servers.iter().flat_map(|server| &server.models));
    let message =
        format!("no server on this machine has the model `{}`; available: {names}", one_line(wanted, 80));
    Err(ConnectError::new(FailureKind::Config, message))
}

fn local_target(provider: Provider, model: String) -> ModelTarget {
    ModelTarget { base: provider.base.clone(), provider: Some(provider), model: Some(model) }
}

/// Returns the model of a server that lists exactly one.
async fn only_model(base: &str, codec: &dyn Codec, headers: &[Header]) -> Result<String, ConnectError> {
    let listing = discovery::list_models(base, codec, headers, discovery::lookup_deadlines(LIST_TIME)).await;
    let (_, mut models) = listing.map_err(|error| {
        let error = ConnectError::from(error);
        ConnectError {
            message: format!("no model is chosen, and the models of {base} cannot be listed: {error}"),
            ..error
        }
    })?;
    if models.len() == 1 {
        return Ok(models.swap_remove(0));
    }
    let message = if models.is_empty() {
        "no model is chosen and the server does not list any: add --model NAME".to_owned()
    } else {
        format!("no model is chosen: add --model with one of {}", listed(models.iter()))
    };
    Err(ConnectError::new(FailureKind::Config, message))
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
