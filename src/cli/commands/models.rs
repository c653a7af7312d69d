//! `agent models`: lists the known models with their prices and context windows.

use crate::args::ModelsCommand;
use crate::commands::common_args::CommonArgs;
use crate::commands::endpoint_models;
use agent_core::failure::FailureKind;
use agent_llm::model_table::{
    Capability, LongPromptPrices, Model, ModelInfo, built_in_models, look_up, matches_filter, table_origin,
};
use agent_messages::{self as messages, thousands};
use agent_run::app::App;
use agent_run::costs::user_prices;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum length of a displayed model name in characters.
const NAME_CHARS: usize = 100;

/// Stands for a model when only a provider is named.
const ANY_MODEL: &str = "any";

/// Prints the models that match `filter`, or one of them.
///
/// # Errors
/// Fails for an invalid configuration and an unknown model, and when standard output cannot be written.
pub fn models(
    app: &App,
    command: Option<ModelsCommand>,
    filter: Option<String>,
    endpoint: Option<String>,
    common: &CommonArgs,
) -> AppResult<()> {
    let (shown, endpoint) = match command {
        Some(ModelsCommand::Show { model, endpoint: own }) => (Some(model), endpoint.or(own)),
        None => (None, endpoint),
    };
    if shown.is_some() && (endpoint.is_some() || filter.is_some()) {
        return Err(AppError::new(FailureKind::Usage, messages::MODELS_SHOW_ALONE));
    }
    if let Some(provider) = endpoint {
        let mut settings = app.load_and_notify(&common.overrides())?.settings;
        let configured = settings.llm.model.as_deref().and_then(|model| model.split_once('/'));
        if !provider.is_empty() && configured.is_none_or(|(name, _)| name != provider) {
            // The address and the key that are configured belong to another server.
            (settings.llm.api_base, settings.llm.api_key_env) = (None, None);
            settings.llm.model = Some(format!("{provider}/{ANY_MODEL}"));
        }
        let filter = filter.unwrap_or_default();
        let models = endpoint_models::refresh(app, &settings)?;
        let rows = models.iter().filter(|name| matches_filter(name, &filter));
        let rows: Vec<String> = rows.map(|name| one_line(name, NAME_CHARS) + "\n").collect();
        return print(&app.terminal, &rows.concat());
    }
    let own = user_prices(&app.load_and_notify(&common.overrides())?.settings.costs)?;
    let text = match shown {
        Some(model) => show(&model, &own)?,
        None => list(&filter.unwrap_or_default(), &own),
    };
    print(&app.terminal, &text)
}

fn list(filter: &str, own: &BTreeMap<String, Model>) -> String {
    let built_in = built_in_models(filter);
    let owned = own
        .iter()
        .filter(|(name, _)| matches_filter(name, filter))
        .map(|(name, model)| (name.as_str(), model));
    let mut rows: BTreeMap<&str, &Model> = built_in.iter().map(|(name, model)| (*name, model)).collect();
    rows.extend(owned);
    let width = rows.keys().map(|name| one_line(name, NAME_CHARS).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, model) in &rows {
        let window = model.window.map_or_else(|| "?".to_owned(), thousands);
        let prices = format!("${} in, ${} out", model.input, model.output);
        let _ = writeln!(text, "{:<width$} {prices:<24} {window:>9}", one_line(name, NAME_CHARS));
    }
    let _ = writeln!(
        text,
        "{} models: US dollars per million tokens, window in tokens; prices of {}",
        rows.len(),
        table_origin()
    );
    text
}

fn show(wanted: &str, own: &BTreeMap<String, Model>) -> AppResult<String> {
    let Some(known) = look_up(wanted, own) else {
        let wanted = one_line(wanted, NAME_CHARS);
        let message = format!(
            "the price of `{wanted}` is not known: its cost is reported as null. `agent models FILTER` lists what is \
             known, `costs.prices_file` adds to it (`agent help costs`)"
        );
        return Err(AppError::new(FailureKind::Usage, message));
    };
    let ModelInfo::Listed(name, model) = known else {
        return Ok(format!("{}\nprice     free: it runs on this machine\n", one_line(wanted, NAME_CHARS)));
    };
    let source = if own.contains_key(&name) { "costs.prices_file".to_owned() } else { table_origin() };
    let tokens = |number: Option<u64>| {
        number.map_or_else(|| "not known".to_owned(), |n| format!("{} tokens", thousands(n)))
    };
    let can: Vec<&str> = model.can.iter().copied().map(Capability::name).collect();
    let mut text = format!("{}\n", one_line(&name, NAME_CHARS));
    let _ = writeln!(
        text,
        "price     {} per million tokens",
        prices(model.input, model.output, model.cached_read, model.cached_write)
    );
    if let Some(LongPromptPrices { above, input, output, cached_read, cached_write }) = model.long {
        let (input, output) = (input.unwrap_or(model.input), output.unwrap_or(model.output));
        let prices = prices(input, output, cached_read, cached_write);
        let _ =
            writeln!(text, "          {prices}, where the prompt has more than {} tokens", thousands(above));
    }
    let _ = writeln!(text, "window    {}", tokens(model.window));
    let _ = writeln!(text, "answers   at most {}", tokens(model.output_limit));
    let _ =
        writeln!(text, "can       {}", if can.is_empty() { "not known".to_owned() } else { can.join(", ") });
    let _ = writeln!(text, "source    {source}");
    Ok(text)
}

fn prices(input: f64, output: f64, cached_read: Option<f64>, cached_write: Option<f64>) -> String {
    let cached =
        |price: Option<f64>, what: &str| price.map_or_else(String::new, |price| format!(", ${price} {what}"));
    let (read, write) = (cached(cached_read, "read from the cache"), cached(cached_write, "written to it"));
    format!("${input} in, ${output} out{read}{write}")
}
