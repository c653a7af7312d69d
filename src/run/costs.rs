//! Spending limits of a run: the user's prices, the caps, and the maximum length of an answer that they allow.

use crate::error::{AppError, AppResult};
use agent_config::schema::Costs;
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::limits::{ModelTerms, OnLimit, SpendingCaps, Window};
use agent_core::price::{InvalidAmount, Price, Usd};
use agent_llm::ToolDefinition;
use agent_llm::model_table::{Model, ModelInfo, parse};
use agent_session::spending::MIN_STEP_TOKENS;
use agent_text::tokens;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum size of a price file in bytes; the built-in table is a twentieth of it.
const MAX_PRICES_BYTES: u64 = 1 << 20;

/// Divisor of the remaining budget: an answer may take at most this share, so that a run has more than one step.
const ANSWER_SHARE: u64 = 4;

/// Divisor of the context window: an answer may take at most this share, because some servers refuse a request whose prompt and
/// maximum answer length together exceed the window.
const WINDOW_SHARE: u64 = 4;

/// Maximum length in tokens of an answer of an unknown model: every model in use can write this much.
const DEFAULT_ANSWER_TOKENS: u64 = 4096;

/// The user's own prices by model name.
pub type Prices = BTreeMap<String, Model>;

/// Reads the user's own prices; empty if no file is configured.
///
/// # Errors
/// Fails when the file is unreadable or not a table of models.
pub fn user_prices(costs: &Costs) -> AppResult<Prices> {
    let Some(file) = costs.prices_file.as_deref() else { return Ok(Prices::new()) };
    let wrong =
        |problem: String| AppError::new(FailureKind::Config, format!("costs.prices_file: {file} {problem}"));
    let text = read_text(Path::new(file), MAX_PRICES_BYTES).map_err(|error| wrong(error.to_string()))?;
    let text = text.ok_or_else(|| wrong("does not exist".to_owned()))?;
    parse(&text).map_err(|error| wrong(format!("{error}; see `agent help costs`")))
}

/// Returns the maximum answer length in tokens to request: `configured`, else a share of the remaining budget; `None`
/// without a cap, so that the server decides.
pub fn output_limit(
    configured: Option<u32>,
    caps: &SpendingCaps,
    known: Option<&ModelInfo>,
    window: Option<Window>,
) -> Option<u32> {
    if configured.is_some() {
        return configured;
    }
    let price = known.and_then(|known| known.price().ok()).filter(|price| *price != Price::FREE);
    let by_money = caps
        .usd
        .zip(price)
        .map(|(usd, price)| usd.div_floor(ANSWER_SHARE).affordable_count(price.rates.output));
    let by_tokens = caps.tokens.map(|tokens| tokens / ANSWER_SHARE);
    let allowed = by_money.into_iter().chain(by_tokens).min()?;
    let least = u64::from(MIN_STEP_TOKENS);
    let beside = window.map_or(u64::MAX, |window| window.tokens / WINDOW_SHARE);
    let listed = known.and_then(ModelInfo::output_limit);
    let longest = listed.unwrap_or(DEFAULT_ANSWER_TOKENS).min(beside.max(least));
    u32::try_from(allowed.max(least).min(longest)).ok()
}

/// Returns the spending caps of a run.
///
/// # Errors
/// Fails for an amount that is not valid.
pub fn caps(settings: &Settings) -> AppResult<SpendingCaps> {
    let Costs { budget_usd, max_tokens, max_tool_calls, warn_at_usd, .. } = settings.costs;
    let wrong = |error: InvalidAmount| AppError { kind: FailureKind::Config, cause: error.into() };
    let money = |dollars: Option<f64>| dollars.map(Usd::try_from).transpose().map_err(wrong);
    Ok(SpendingCaps {
        usd: money(budget_usd)?,
        tokens: max_tokens,
        tool_calls: max_tool_calls,
        warn_at: money(warn_at_usd)?,
        closes: settings.run_loop.on_limit == OnLimit::Summary,
        ..SpendingCaps::default()
    })
}

/// Returns the upper bound of the tokens of `tools`, and their bytes, as sent to a model.
pub fn definitions_size(tools: &[ToolDefinition]) -> (u64, u64) {
    let texts = tools.iter().flat_map(|tool| [tool.name.as_str(), &tool.description, tool.parameters.json()]);
    texts.fold((0, 0), |(tokens, bytes): (u64, u64), text| {
        let more = u64::try_from(text.len()).unwrap_or(u64::MAX);
        (tokens.saturating_add(tokens::upper_bound(text)), bytes.saturating_add(more))
    })
}

/// Returns a notice if the spending warning can never be emitted.
pub fn ineffective_warning(caps: &SpendingCaps, terms: &ModelTerms) -> Option<String> {
    (caps.warn_at.is_some() && terms.price.is_none())
        .then(|| format!("costs.warn_at_usd has no effect: the price of `{}` is not known", terms.model))
}
