//! What a run may cost: the user's prices, the caps, and the longest answer that they allow.

use crate::agent::spending::Caps;
use crate::agent::watchdogs::OnLimit;
use crate::cli::compose;
use crate::cli::error::{CliError, CliResult};
use crate::config::file::read_text;
use crate::config::schema::Costs;
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::llm::models::{Known, Model, look_up, parse};
use crate::price::{NotMoney, Price, Usd};
use crate::text::tokens;
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of a file of prices; the built-in table has a twentieth of it.
const MAX_PRICES_BYTES: u64 = 1 << 20;

/// The part of what can be spent that the longest answer may take, so that a run has more than one step.
const ANSWER_SHARE: u64 = 4;

/// The part of the window that the longest answer may take: some servers refuse a request whose prompt and longest answer
/// together do not fit.
const WINDOW_SHARE: u64 = 4;

/// Tokens of the shortest limit that is set: below it a model cannot write the file it is about.
const MIN_ANSWER_TOKENS: u64 = 1024;

/// Tokens of the longest answer of a model that nothing is known about: every model in use can write as much.
const USUAL_ANSWER_TOKENS: u64 = 4096;

/// The user's own prices by the name of the model.
pub type Prices = BTreeMap<String, Model>;

/// The user's own prices, by name; none where no file is configured.
///
/// # Errors
/// When the file cannot be read, or is no table of models.
pub fn own_prices(costs: &Costs) -> CliResult<Prices> {
    let Some(file) = costs.prices_file.as_deref() else { return Ok(Prices::new()) };
    let wrong = |why: String| CliError::new(ErrorKind::Config, format!("costs.prices_file: {file} {why}"));
    let text = read_text(Path::new(file), MAX_PRICES_BYTES).map_err(|error| wrong(error.to_string()))?;
    let text = text.ok_or_else(|| wrong("does not exist".to_owned()))?;
    parse(&text).map_err(|error| wrong(format!("{error}; see `agent help costs`")))
}

/// The longest answer that requests ask for, in tokens: as configured, else what the caps allow; nothing without caps.
pub fn output_limit(settings: &Settings, prices: &Prices) -> Option<u32> {
    let configured = settings.llm.max_output_tokens;
    let known = settings.llm.model.as_deref().and_then(|model| look_up(model, prices));
    let price = known.as_ref().and_then(|known| known.price().ok()).filter(|price| *price != Price::FREE);
    let budget = settings.costs.budget_usd.and_then(|usd| Usd::try_from(usd).ok());
    let by_money =
        budget.zip(price).map(|(budget, price)| budget.part(ANSWER_SHARE).pays_for(price.rates.output));
    let by_tokens = settings.costs.max_tokens.map(|tokens| tokens / ANSWER_SHARE);
    let Some(allowed) = by_money.into_iter().chain(by_tokens).min() else { return configured };
    let longest = known.as_ref().and_then(Known::output_limit).unwrap_or(USUAL_ANSWER_TOKENS);
    let beside = known.as_ref().and_then(Known::window).map_or(u64::MAX, |window| window / WINDOW_SHARE);
    let limit = allowed.max(MIN_ANSWER_TOKENS).min(longest).min(beside.max(MIN_ANSWER_TOKENS));
    configured.or_else(|| u32::try_from(limit).ok())
}

/// What a run with this model may spend. `settings` hold the longest answer that requests ask for.
///
/// # Errors
/// When a budget is set that cannot be kept, because the price of the model or its longest answer is not known.
pub fn caps(settings: &Settings, prices: &Prices, model: &str) -> CliResult<Caps> {
    let Costs { budget_usd, max_tokens, max_tool_calls, warn_at_usd, .. } = settings.costs;
    let wrong = |error: NotMoney| CliError { kind: ErrorKind::Config, cause: error.into() };
    let known = look_up(model, prices);
    let price = known.as_ref().map(Known::price).transpose().map_err(wrong)?;
    let money = |dollars: Option<f64>| dollars.map(Usd::try_from).transpose().map_err(wrong);
    let caps = Caps {
        usd: money(budget_usd)?,
        tokens: max_tokens,
        tool_calls: max_tool_calls,
        warn_at: money(warn_at_usd)?,
        price,
        closes: settings.run_loop.on_limit == OnLimit::Summary,
        ..Caps::default()
    };
    if caps.usd.is_some() && price.is_none() {
        return Err(CliError::new(
            ErrorKind::Config,
            format!(
                "a budget is set, but the price of `{model}` is not known: add it to costs.prices_file (see `agent \
                 help costs`), choose a model that `agent models` lists, or leave the budget away"
            ),
        ));
    }
    if !caps.hold_calls() {
        return Ok(caps);
    }
    let sent = settings.llm.max_output_tokens.map(u64::from);
    let longest = sent.or_else(|| known.as_ref().and_then(Known::output_limit));
    if longest.is_none() && price != Some(Price::FREE) {
        let message = format!(
            "a budget is set, but how long an answer of `{model}` can be is not known: set llm.max_output_tokens"
        );
        return Err(CliError::new(ErrorKind::Config, message));
    }
    let tools = compose::toolbox(settings);
    let of_tool = |tool: &crate::llm::ToolDefinition| {
        let [name, description] = [&tool.name, &tool.description].map(|text| tokens::at_most(text));
        name.saturating_add(description).saturating_add(tokens::at_most(&tool.parameters.to_string()))
    };
    let tools_tokens = tools.definitions().iter().map(of_tool).fold(0, u64::saturating_add);
    Ok(Caps { output_limit: longest.unwrap_or(0), tools_tokens, ..caps })
}

/// What is said about a warning that will never come.
pub fn without_effect(caps: &Caps, model: &str) -> Option<String> {
    (caps.warn_at.is_some() && caps.price.is_none())
        .then(|| format!("costs.warn_at_usd has no effect: the price of `{model}` is not known"))
}
