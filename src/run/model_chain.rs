//! The connected models of a run: the configured model and its fallbacks, with prices, answer limits and context windows.

use crate::app::App;
use crate::assemble;
use crate::costs::{self, Prices};
use crate::error::{AppError, AppResult};
use agent_config::schema::Llm;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::limits::{FallbackChain, ModelTerms, SpendingCaps, Window, WindowSource};
use agent_journal::played_turns::PlayedTurns;
use agent_llm::LlmClient;
use agent_llm::model_table::{ModelInfo, look_up};
use agent_llm::provider_table::{self, Provider};
use agent_terminal::one_line;
use std::rc::Rc;

/// Maximum number of fallback models; more are a mistake, and the final error lists the failure of each.
const MAX_FALLBACKS: usize = 8;

/// Maximum length of a displayed name in characters.
const NAME_CHARS: usize = 100;

/// The models of a run and their properties.
pub struct ModelChain {
    /// The clients.
    pub clients: FallbackChain<Rc<dyn LlmClient>>,
    /// Price and limits of each.
    pub terms: FallbackChain<ModelTerms>,
}

impl ModelChain {
    /// Connects the models named in `settings`; `caps` determine the maximum answer length, `played` the next turns of scripted
    /// models.
    ///
    /// # Errors
    /// Fails when a model does not exist, lacks its API key, or has no known price for the budget.
    pub async fn connect(
        app: &App,
        settings: &Settings,
        caps: &SpendingCaps,
        prices: &Prices,
        played: &PlayedTurns,
    ) -> AppResult<Self> {
        let fallbacks = &settings.llm.fallback;
        if fallbacks.len() > MAX_FALLBACKS {
            let message = format!("llm.fallback: at most {MAX_FALLBACKS} models, not {}", fallbacks.len());
            return Err(AppError::new(FailureKind::Config, message));
        }
        let client = assemble::connect_model(app, settings, played).await?;
        let of = |settings: &Settings, client: &dyn LlmClient| terms(settings, caps, prices, client);
        let mut terms = FallbackChain { first: of(settings, client.as_ref())?, fallbacks: Vec::new() };
        let mut clients = FallbackChain { first: Rc::from(client), fallbacks: Vec::new() };
        for name in fallbacks {
            let settings = fallback_settings(settings, name, prices)?;
            let client = assemble::connect_model(app, &settings, played).await;
            let client = client.map_err(|error| fallback_error(name, &error))?;
            terms
                .fallbacks
                .push(of(&settings, client.as_ref()).map_err(|error| fallback_error(name, &error))?);
            clients.fallbacks.push(client.into());
        }
        Ok(Self { clients, terms })
    }

    /// Returns the smallest context window of the models in tokens: the conversation must fit into each.
    pub fn smallest_window(&self) -> Option<u64> {
        self.terms.iter().filter_map(|terms| Some(terms.window?.tokens)).min()
    }
}

/// Wraps the error of a fallback model. It is reported before the run, not when the fallback is needed.
fn fallback_error(name: &str, error: &AppError) -> AppError {
    AppError::new(FailureKind::Config, format!("llm.fallback: {}: {error}", one_line(name, NAME_CHARS)))
}

/// Returns the settings for the fallback model `name`. Server and API key of the configured model are used only if the fallback
/// is on the same server; otherwise those of its own provider are used. Properties of the configured model are dropped, and the
/// answer length is limited to what the fallback can write.
///
/// # Errors
/// Fails for an invalid provider in the configuration.
pub fn fallback_settings(settings: &Settings, name: &str, prices: &Prices) -> AppResult<Settings> {
    let table = provider_table::load(&settings.llm.providers)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    let chosen = settings.llm.model.as_deref().unwrap_or_default();
    let mut settings = settings.clone();
    let most = look_up(name, prices).as_ref().and_then(ModelInfo::output_limit);
    let most = most.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX);
    settings.llm = Llm {
        model: Some(name.to_owned()),
        context_window: None,
        images: None,
        max_output_tokens: settings.llm.max_output_tokens.map(|wanted| wanted.min(most)),
        ..settings.llm
    };
    if !same_server(&table, chosen, name) {
        settings.llm.api_base = None;
        settings.llm.api_key_env = None;
        settings.api_key = None;
    }
    Ok(settings)
}

/// Checks whether two models are on the same server, according to the provider table and their names: they have the same provider,
/// or two with the same address, or none, so that only `--api-base` sets the server. Models of local servers are never the same.
fn same_server(table: &[Provider], one: &str, other: &str) -> bool {
    let provider = |model: &str| provider_table::find(table, model.split_once('/')?.0);
    let local = |model: &str| model.split('/').next() == Some("local");
    match (provider(one), provider(other)) {
        (Some(one), Some(other)) => {
            let known = one.base.is_some() || !one.base_keys.is_empty();
            let same_place = known && one.base == other.base && one.base_keys == other.base_keys;
            one.name == other.name || same_place
        }
        (None, None) => local(one) == local(other),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Returns the properties of the model that `settings` chose and to which `client` connects.
fn terms(
    settings: &Settings,
    caps: &SpendingCaps,
    prices: &Prices,
    client: &dyn LlmClient,
) -> AppResult<ModelTerms> {
    let model = client.model();
    let known = look_up(model, prices);
    let price = known.as_ref().map(ModelInfo::price).transpose();
    let price = price.map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    if caps.usd.is_some() && price.is_none() {
        let message = format!(
            "a budget is set, but the price of `{model}` is not known: add it to costs.prices_file (see `agent help \
             costs`), choose a model that `agent models` lists, or leave the budget away"
        );
        return Err(AppError::new(FailureKind::Config, message));
    }
    let window = known_window(settings.llm.context_window, client, known.as_ref());
    let window = capped_window(settings.context.max_context_tokens, window);
    let configured = settings.llm.max_output_tokens;
    let output_limit =
        costs::output_limit(configured, caps, known.as_ref(), window).or_else(|| client.output_limit());
    Ok(ModelTerms { model: model.to_owned(), price, output_limit, window })
}

/// Returns the part of `window` that a conversation may use.
fn capped_window(most: Option<u32>, window: Option<Window>) -> Option<Window> {
    match most.map(u64::from) {
        None => window,
        Some(0) => None,
        Some(most) => {
            let own = Window { tokens: most, source: WindowSource::Context };
            Some(window.filter(|window| window.tokens < most).unwrap_or(own))
        }
    }
}

/// Returns the context window of a model: as configured, else as reported by its server, else from the model table.
pub fn known_window(
    configured: Option<u32>,
    client: &dyn LlmClient,
    known: Option<&ModelInfo>,
) -> Option<Window> {
    let of = |tokens: u64, source| Window { tokens, source };
    let configured = configured.map(|tokens| of(tokens.into(), WindowSource::User));
    let reported = || client.window().map(|tokens| of(tokens.into(), WindowSource::Server));
    let listed = || known.and_then(ModelInfo::window).map(|tokens| of(tokens, WindowSource::Table));
    configured.or_else(reported).or_else(listed)
}
