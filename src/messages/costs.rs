//! What is said about tokens, costs and what servers keep of prompts.

use super::numbers::thousands;
use crate::core::language::Language;
use crate::core::price::Usd;
use crate::core::run_result::Cost;
use crate::core::usage::Usage;
use std::fmt::Write as _;

/// What a session cost: in all, with its tokens, and by what it was spent for.
pub fn costs(cost: &Cost, usage: Usage, language: Language) -> String {
    let total = money_with_help(cost.total_usd, language);
    let (input, output) = (thousands(usage.prompt_tokens()), thousands(usage.output));
    let cached = thousands(usage.cached_read);
    let mut text = match language {
        Language::En => format!("Cost: {total} ({input} in / {output} out / {cached} cached)"),
        Language::Es => {
            format!("Costo: {total} ({input} de entrada / {output} de salida / {cached} en caché)")
        }
    };
    for (source, cost) in &cost.by_source {
        let _ = write!(text, "\n   {source}: {cost}");
    }
    text
}

/// Said once when a run has cost what one wanted to be told of.
pub fn budget_warning(spent: Usd, at: Usd, language: Language) -> String {
    match language {
        Language::En => {
            format!("this run has cost {spent}; you wanted to be told at {at} (costs.warn_at_usd)")
        }
        Language::Es => {
            format!(
                "esta ejecución ha costado {spent}; había que avisar al llegar a {at} (costs.warn_at_usd)"
            )
        }
    }
}

/// The answer comes from the development cache.
pub fn cached_answer(language: Language) -> &'static str {
    language.pick("a kept answer: no request was made", "una respuesta guardada: no se hizo ninguna petición")
}

/// Requests no longer begin as they did.
pub fn prefix_changed(changed: &[String], language: Language) -> String {
    let changed = changed.join(", ");
    match language {
        Language::En => {
            format!("requests begin otherwise than before ({changed}): the provider's cache starts anew")
        }
        Language::Es => format!(
            "las peticiones empiezan de otra manera que antes ({changed}): la caché del proveedor comienza de nuevo"
        ),
    }
}

/// The provider read nothing from its cache, which held `tokens` of the prompt before.
pub fn cache_miss(tokens: u64) -> String {
    format!(
        "the provider's cache gave {} tokens of the last prompt and none of this one, which begins the same",
        thousands(tokens)
    )
}

/// An amount, and where it is said why nobody knows it.
pub(super) fn money_with_help(amount: Option<Usd>, language: Language) -> String {
    let shown = money(amount, language);
    if amount.is_some() { shown } else { shown + " (agent help costs)" }
}

/// An amount, or that nobody knows it.
pub fn money(amount: Option<Usd>, language: Language) -> String {
    let unknown = || language.pick("unknown", "desconocido").to_owned();
    amount.map_or_else(unknown, |amount| amount.to_string())
}

/// `12,450 in (300 cached), 3,200 out`.
pub fn tokens(usage: Usage, language: Language) -> String {
    let (input, output) = (thousands(usage.prompt_tokens()), thousands(usage.output));
    let cached = match usage.cached_read {
        0 => String::new(),
        cached => format!(" ({} {})", thousands(cached), language.pick("cached", "en caché")),
    };
    match language {
        Language::En => format!("{input} in{cached}, {output} out"),
        Language::Es => format!("{input} de entrada{cached}, {output} de salida"),
    }
}
