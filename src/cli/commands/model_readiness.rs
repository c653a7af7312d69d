//! Checks whether a model is usable: server, API key, price and context window, for `agent doctor`.

use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::secret::Secret;
use agent_http::{Deadlines, Endpoint};
use agent_journal::played_turns::PlayedTurns;
use agent_llm::codec::Codec;
use agent_llm::connect::{self, ConnectError, EnvLookup, ModelChoice, ModelTarget, choose};
use agent_llm::discovery::{self, Header};
use agent_llm::endpoint_overrides::EndpointOverrides;
use agent_llm::model_options::ModelOptions;
use agent_llm::model_table::{ModelInfo, look_up};
use agent_llm::provider_table::{self, Provider};
use agent_messages::thousands;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::costs::Prices;
use agent_run::error::{AppError, AppResult};
use agent_terminal::one_line;
use std::fmt::Write;
use std::time::Duration;

/// Time limit for the answer of a server.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Maximum length of a displayed name or URL in characters.
const SHOWN: usize = 120;

/// The result of checking a model.
pub struct Readiness {
    /// Whether no check failed.
    pub ready: bool,
    /// The status line and, indented below, the details.
    pub text: String,
}

impl Readiness {
    fn ready(model: &str) -> Self {
        Self { ready: true, text: format!("ok: {}\n", one_line(model, SHOWN)) }
    }

    /// Creates the result for a model that is unusable because of `error`.
    pub fn not_ready(error: &dyn std::fmt::Display) -> Self {
        Self { ready: false, text: format!("not ready: {error}\n") }
    }
}

/// Returns the key variables of providers that are set, on one line.
pub fn set_key_variables(app: &App, settings: &Settings) -> String {
    let table = provider_table::load(&settings.llm.providers).unwrap_or_default();
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let mut set: Vec<&str> = Vec::new();
    for name in table.iter().flat_map(|provider| &provider.keys) {
        if connect::non_empty_variable(&variable, name).is_some() && !set.contains(&name.as_str()) {
            set.push(name);
        }
    }
    if set.is_empty() { "none is set (agent help providers)".to_owned() } else { set.join(", ") }
}

/// Checks the configured model. Only a server on this machine is queried; other servers with
/// `online`.
pub async fn model(app: &App, settings: &Settings, prices: &Prices, online: bool) -> Readiness {
    let options = assemble::model_options(app, settings);
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let known = |name: &str| connect::non_empty_variable(&variable, name);
    let scripted = options.model.as_deref().is_some_and(|model| model.starts_with("scripted:"));
    let chosen = match provider_table::load(&options.provider_overrides) {
        Ok(table) => choose(&options, &known, &table),
        Err(error) => return Readiness::not_ready(&error),
    };
    match chosen {
        Ok(ModelChoice::Server(target)) if !scripted => {
            let report = ServerCheck { options: &options, target: &target, variable: &known, prices };
            report.readiness(online).await
        }
        Err(error) if !scripted => Readiness::not_ready(&error),
        Ok(_) | Err(_) => match assemble::connect_model(app, settings, &PlayedTurns::default()).await {
            Ok(llm) => Readiness::ready(llm.model()),
            Err(error) => Readiness::not_ready(&error),
        },
    }
}

/// Returns the models that the server of the configured model lists, with the name of the provider where it is known.
///
/// # Errors
/// When no server is configured, its key is missing, or it lists no models.
pub async fn listed_models(app: &App, settings: &Settings) -> AppResult<Vec<String>> {
    let options = assemble::model_options(app, settings);
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let known = |name: &str| connect::non_empty_variable(&variable, name);
    let table = provider_table::load(&options.provider_overrides)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    let ModelChoice::Server(target) = choose(&options, &known, &table).map_err(failed)? else {
        let why = "no server is chosen: name a provider (--endpoint=PROVIDER), llm.model or llm.api_base";
        return Err(AppError::new(FailureKind::Config, why.to_owned()));
    };
    let prices = Prices::default();
    let check = ServerCheck { options: &options, target: &target, variable: &known, prices: &prices };
    let models = check.models().await?;
    let named = |model: String| match &target.provider {
        Some(provider) => format!("{}/{model}", provider.name),
        None => model,
    };
    Ok(models.into_iter().map(named).collect())
}

fn failed(error: ConnectError) -> AppError {
    AppError::new(error.kind, error.message)
}

/// The check of one server.
struct ServerCheck<'a> {
    options: &'a ModelOptions,
    target: &'a ModelTarget,
    variable: EnvLookup<'a>,
    prices: &'a Prices,
}

/// A server to query.
struct Server<'a> {
    base: &'a str,
    codec: &'a dyn Codec,
    headers: Vec<Header>,
}

impl ServerCheck<'_> {
    async fn readiness(&self, online: bool) -> Readiness {
        let provider = self.target.provider.clone().unwrap_or_default();
        let model = self.target.model.as_deref().unwrap_or_default();
        // Only the embedded table can cause an error here, and a test excludes that.
        let format = provider.format_for(model).unwrap_or(provider.format);
        let (codec, address) = (format.codec(provider.quirks), provider.endpoint_overrides());
        let key = connect::key(self.options, self.target, self.variable);
        let mut next: Vec<String> = Vec::new();
        if self.target.base.is_none() {
            next.extend(provider.base_keys.first().map(|name| format!("{name}=https://…")));
        }
        let secret = self.key_set(&provider).is_some();
        if key.is_err() && !secret {
            next.extend(self.key_names(&provider).first().map(|name| format!("{name}=…")));
        }
        let secret = key.as_ref().ok().and_then(|key| key.secret.as_ref()).map(Secret::expose);
        let server = self.server(&address, codec.as_ref(), secret);
        let asked = match &server {
            Some(server) => self.query_if_allowed(server, online).await,
            None => None,
        };
        let answers = asked.as_ref().is_none_or(Result::is_ok);
        let ready = server.is_some() && key.is_ok() && answers;
        let mut text = format!("{}: {}\n", if ready { "ok" } else { "not ready" }, self.name());
        let mut line = |name: &str, what: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {name:<12} {what}");
        };
        let speaks = codec.name();
        let called =
            if provider.name.is_empty() { "none: only its address is known" } else { &provider.name };
        line("provider", &format!("{called}; speaks {speaks}"));
        line("server", &self.server_line(&provider, asked.as_ref()));
        line("key", &self.key_line(&provider, key.is_err()));
        line("price", &self.price());
        line(
            "window",
            &self.query_window(&provider, server.as_ref(), asked.as_ref().is_some_and(Result::is_ok)).await,
        );
        if !provider.unconfirmed.is_empty() {
            line("unconfirmed", &format!("{} (agent help providers)", provider.unconfirmed.join(", ")));
        }
        if !next.is_empty() {
            line("next", &format!("export {}", next.join(" ")));
        }
        Readiness { ready, text }
    }

    /// Returns the models that the server lists.
    async fn models(&self) -> AppResult<Vec<String>> {
        let provider = self.target.provider.clone().unwrap_or_default();
        let model = self.target.model.as_deref().unwrap_or_default();
        let format = provider.format_for(model).unwrap_or(provider.format);
        let (codec, address) = (format.codec(provider.quirks), provider.endpoint_overrides());
        let key = connect::key(self.options, self.target, self.variable).map_err(failed)?;
        let secret = key.secret.as_ref().map(Secret::expose);
        let server = self.server(&address, codec.as_ref(), secret).ok_or_else(|| {
            AppError::new(
                FailureKind::Config,
                "the address of the server is not known (agent doctor)".to_owned(),
            )
        })?;
        let deadlines = discovery::lookup_deadlines(ANSWER_TIME);
        let listed = discovery::list_models(server.base, server.codec, &server.headers, deadlines).await;
        let (status, models) = listed.map_err(|error| failed(ConnectError::from(error)))?;
        if models.is_empty() {
            let kind = if matches!(status, 401 | 403) { FailureKind::Auth } else { FailureKind::Request };
            let why = format!("{} lists no models (status {status})", one_line(server.base, SHOWN));
            return Err(AppError::new(kind, why));
        }
        Ok(models)
    }

    fn name(&self) -> String {
        let model = self.target.model.as_deref().unwrap_or("the only model of the server");
        let name = match &self.target.provider {
            Some(provider) => format!("{}/{model}", provider.name),
            None => model.to_owned(),
        };
        one_line(&name, SHOWN)
    }

    fn server<'a>(
        &'a self,
        address: &EndpointOverrides,
        codec: &'a dyn Codec,
        key: Option<&str>,
    ) -> Option<Server<'a>> {
        let base = self.target.base.as_deref()?;
        let base = address.api_base(base, codec, self.target.model.as_deref().unwrap_or_default());
        Some(Server { base, codec, headers: address.headers(codec, key) })
    }

    /// Queries the server and its list of models; an error is the reason why it is unusable. `None`
    /// if it was not queried.
    async fn query_if_allowed(&self, server: &Server<'_>, online: bool) -> Option<Result<String, String>> {
        let is_here = match Endpoint::new(server.base, &server.headers, Deadlines::default()) {
            Ok(endpoint) => endpoint.is_loopback(),
            Err(error) => return Some(Err(error.to_string())),
        };
        if is_here || online { Some(self.query_models(server).await) } else { None }
    }

    async fn query_models(&self, server: &Server<'_>) -> Result<String, String> {
        let listed = discovery::list_models(
            server.base,
            server.codec,
            &server.headers,
            discovery::lookup_deadlines(ANSWER_TIME),
        )
        .await;
        let (status, models) = listed.map_err(|error| format!("does not answer: {error}"))?;
        if matches!(status, 401 | 403) {
            return Err(format!("refuses the key (status {status})"));
        }
        Ok(match self.target.model.as_deref() {
            _ if models.is_empty() => "answers".to_owned(),
            Some(model) if discovery::find_model(&models, model).is_some() => {
                "answers, and has the model".to_owned()
            }
            Some(_) => format!("answers, but does not list the model among its {}", models.len()),
            None => format!("answers, with {} models", models.len()),
        })
    }

    fn server_line(&self, provider: &Provider, asked: Option<&Result<String, String>>) -> String {
        let Some(base) = &self.target.base else {
            return format!(
                "missing: it differs for each account; none of {} is set",
                provider.base_keys.join(", ")
            );
        };
        let from = provider.base_keys.iter().find(|name| (self.variable)(name).as_ref() == Some(base));
        let from = match from {
            _ if self.options.api_base.is_some() => {
                " (--api-base, AGENT_API_BASE or llm.api_base)".to_owned()
            }
            Some(name) => format!(" ({name})"),
            None => String::new(),
        };
        let asked = match asked {
            Some(Ok(text) | Err(text)) => text.as_str(),
            None => "not checked: --online checks it",
        };
        // The part before an `@` may contain a password, the part after a question mark a key.
        let base = base.split(['?', '#']).next().unwrap_or_default();
        let base = base.rsplit_once('@').map_or(base, |(_, rest)| rest);
        format!("{}{from}; {}", one_line(base, SHOWN), one_line(asked, SHOWN))
    }

    /// Returns the variables that may hold the key.
    fn key_names<'a>(&'a self, provider: &'a Provider) -> &'a [String] {
        self.options.api_key_env.as_ref().map_or(&provider.keys, std::slice::from_ref)
    }

    /// Returns the variable that holds the key.
    fn key_set<'a>(&'a self, provider: &'a Provider) -> Option<&'a String> {
        self.key_names(provider).iter().find(|name| (self.variable)(name).is_some())
    }

    fn key_line(&self, provider: &Provider, required: bool) -> String {
        let names = self.key_names(provider).join(", ");
        match self.key_set(provider) {
            _ if self.options.api_key.is_some() => "given as --api-key".to_owned(),
            Some(name) => format!("{name} is set"),
            None if names.is_empty() => "none is needed".to_owned(),
            None if required && self.key_names(provider).len() > 1 => {
                format!("missing: none of {names} is set")
            }
            None if required => format!("missing: {names}"),
            None => format!("none; if the server requires one, set {names}"),
        }
    }

    fn known(&self) -> Option<ModelInfo> {
        look_up(&self.name(), self.prices)
    }

    fn price(&self) -> String {
        match self.known() {
            Some(ModelInfo::Listed(name, model)) => {
                format!(
                    "${} in, ${} out per million tokens ({})",
                    model.input,
                    model.output,
                    one_line(&name, SHOWN)
                )
            }
            Some(ModelInfo::Free) => "free: it runs on this machine".to_owned(),
            None => "not known: the cost of a run will be null (agent help costs)".to_owned(),
        }
    }

    async fn query_window(&self, provider: &Provider, server: Option<&Server<'_>>, answers: bool) -> String {
        if let Some(tokens) = self.options.window {
            return format!("{} tokens, from llm.context_window", thousands(u64::from(tokens)));
        }
        let question = provider.window_endpoint().filter(|_| answers);
        let reported = match (question, server, &self.target.model) {
            (Some(question), Some(server), Some(model)) => {
                discovery::query_window(server.base, &server.headers, question, model).await
            }
            _ => None,
        };
        let listed = self.known().and_then(|known| known.window());
        match (reported, listed) {
            (Some(tokens), _) => format!("{} tokens, from the server", thousands(u64::from(tokens))),
            (None, Some(tokens)) => format!("{} tokens, from the model table", thousands(tokens)),
            (None, None) => "not known".to_owned(),
        }
    }
}
