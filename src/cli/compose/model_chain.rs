//! The models of a run, connected: the chosen one and those it falls back to, each with its price, its longest answer and
//! its window.

use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::compose::costs::{self, Prices};
use crate::cli::error::{CliError, CliResult};
use crate::config::schema::Llm;
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::core::limits::{FallbackChain, ModelTerms, SpendingCaps, Window, WindowSource};
use crate::llm::LlmClient;
use crate::llm::model_table::{ModelInfo, look_up};
use crate::llm::provider_table::{self, Provider};
use crate::terminal::one_line;
use std::rc::Rc;

/// Models that may take over: more is a mistake, and what went wrong with each is told at the end.
const MAX_FALLBACKS: usize = 8;

/// Characters shown of a name that somebody gave.
const NAME_CHARS: usize = 100;

/// The models of a run and what it must know of each.
pub struct ModelChain {
    /// The clients.
    pub clients: FallbackChain<Rc<dyn LlmClient>>,
    /// What each may cost and hold.
    pub terms: FallbackChain<ModelTerms>,
}

impl ModelChain {
    /// Connects the models that `settings` name; `caps` decide how long an answer may be.
    ///
    /// # Errors
    /// When one of them is not there, lacks its key, or cannot be held to the budget.
    pub async fn connect(
        app: &App,
        settings: &Settings,
        caps: &SpendingCaps,
        prices: &Prices,
    ) -> CliResult<Self> {
        let fallbacks = &settings.llm.fallback;
        if fallbacks.len() > MAX_FALLBACKS {
            let message = format!("llm.fallback: at most {MAX_FALLBACKS} models, not {}", fallbacks.len());
            return Err(CliError::new(FailureKind::Config, message));
        }
        let client = compose::connect_model(app, settings).await?;
        let of = |settings: &Settings, client: &dyn LlmClient| terms(settings, caps, prices, client);
        let mut terms = FallbackChain { first: of(settings, client.as_ref())?, fallbacks: Vec::new() };
        let mut clients = FallbackChain { first: Rc::from(client), fallbacks: Vec::new() };
        for name in fallbacks {
            let settings = fallback_settings(settings, name, prices)?;
            let client =
                compose::connect_model(app, &settings).await.map_err(|error| fallback_error(name, &error))?;
            terms
                .fallbacks
                .push(of(&settings, client.as_ref()).map_err(|error| fallback_error(name, &error))?);
            clients.fallbacks.push(client.into());
        }
        Ok(Self { clients, terms })
    }

    /// The smallest window of them, in tokens: what is put into the conversation must fit into each.
    pub fn smallest_window(&self) -> Option<u64> {
        self.terms.iter().filter_map(|terms| Some(terms.window?.tokens)).min()
    }
}

/// A fallback that cannot be used is found before the run, not when it is needed.
fn fallback_error(name: &str, error: &CliError) -> CliError {
    CliError::new(FailureKind::Config, format!("llm.fallback: {}: {error}", one_line(name, NAME_CHARS)))
}

/// The settings as they are for the model `name`, which takes over: server and key are those given for the chosen model
/// only where it is the same server, another provider's own are used otherwise; what is known of the chosen model does not
/// hold for it, and its answers are no longer than it can write.
///
/// # Errors
/// When a provider of the user is not one.
pub fn fallback_settings(settings: &Settings, name: &str, prices: &Prices) -> CliResult<Settings> {
    let table = provider_table::load(&settings.llm.providers)
        .map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })?;
    let chosen = settings.llm.model.as_deref().unwrap_or_default();
    let mut settings = settings.clone();
    let most = look_up(name, prices).as_ref().and_then(ModelInfo::output_limit);
    let most = most.and_then(|most| u32::try_from(most).ok()).unwrap_or(u32::MAX);
    settings.llm = Llm {
        model: Some(name.to_owned()),
        context_window: None,
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

/// Whether two models are at one place, as far as the table and their names say: of one provider, of two at the same
/// address, or of none, when only `--api-base` says where they are. What is looked for on this machine is elsewhere.
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

/// What the run must know of the model that `settings` chose and `client` speaks to.
fn terms(
    settings: &Settings,
    caps: &SpendingCaps,
    prices: &Prices,
    client: &dyn LlmClient,
) -> CliResult<ModelTerms> {
    let model = client.model();
    let known = look_up(model, prices);
    let price = known.as_ref().map(ModelInfo::price).transpose();
    let price = price.map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })?;
    if caps.usd.is_some() && price.is_none() {
        let message = format!(
            "a budget is set, but the price of `{model}` is not known: add it to costs.prices_file (see `agent help \
             costs`), choose a model that `agent models` lists, or leave the budget away"
        );
        return Err(CliError::new(FailureKind::Config, message));
    }
    let window = known_window(settings.llm.context_window, client, known.as_ref());
    let window = capped_window(settings.context.max_context_tokens, window);
    let configured = settings.llm.max_output_tokens;
    let output_limit =
        costs::output_limit(configured, caps, known.as_ref(), window).or_else(|| client.output_limit());
    Ok(ModelTerms { model: model.to_owned(), price, output_limit, window })
}

/// The part of `window` that a conversation may take, as configured.
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

/// What the model may hold: what the user says, else what its server said, else what the table says.
pub fn known_window(
    configured: Option<u32>,
    client: &dyn LlmClient,
    known: Option<&ModelInfo>,
) -> Option<Window> {
    let of = |tokens: u64, source| Window { tokens, source };
    let configured = configured.map(|tokens| of(tokens.into(), WindowSource::User));
    let said = || client.window().map(|tokens| of(tokens.into(), WindowSource::Server));
    let listed = || known.and_then(ModelInfo::window).map(|tokens| of(tokens, WindowSource::Table));
    configured.or_else(said).or_else(listed)
}
