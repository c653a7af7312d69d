//! Messages about tokens, costs and the prompt caches of providers.

use super::numbers::thousands;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_core::run_result::Cost;
use agent_core::usage::Usage;
use std::fmt::Write as _;

/// Cost of a session: the total with its tokens, and the cost by source.
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

/// Warning, once per run, that the cost has reached `costs.warn_at_usd`.
pub fn budget_warning(spent: Usd, at: Usd, language: Language) -> String {
    match language {
        Language::En => {
            format!("this run has cost {spent} and reached the warning threshold of {at} (costs.warn_at_usd)")
        }
        Language::Es => {
            format!(
                "esta ejecución ha costado {spent} y alcanzó el umbral de aviso de {at} (costs.warn_at_usd)"
            )
        }
    }
}

/// Notice that the answer comes from the development cache.
pub fn cached_answer(language: Language) -> &'static str {
    language.pick("cached answer: no request was made", "respuesta en caché: no se hizo ninguna petición")
}

/// Notice that the prefix of requests changed, which invalidates the provider's prompt cache.
pub fn prefix_changed(changed: &[String], language: Language) -> String {
    let changed = changed.join(", ");
    match language {
        Language::En => {
            format!("the prefix of the requests changed ({changed}): the provider's cache starts over")
        }
        Language::Es => format!(
            "cambió el prefijo de las peticiones ({changed}): la caché del proveedor comienza de nuevo"
        ),
    }
}

/// Notice that the provider read nothing from its cache, although it read `tokens` of the previous prompt.
pub fn cache_miss(tokens: u64) -> String {
    format!(
        "the provider's cache returned {} tokens of the last prompt and none of this one, although it has the same prefix",
        thousands(tokens)
    )
}

/// Returns an amount; for an unknown one, with the help topic that explains it.
pub(super) fn money_with_help(amount: Option<Usd>, language: Language) -> String {
    let shown = money(amount, language);
    if amount.is_some() { shown } else { shown + " (agent help costs)" }
}

/// Returns an amount, or "unknown".
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
