//! Messages of `agent eval`.

use crate::core::language::Language;
use crate::core::ranking::Ranked;
use crate::text::lines::one_line;
use std::fmt::Write as _;

/// Characters of a name in the table.
const NAME_CHARS: usize = 60;

/// Error about too few models or configurations.
pub const EVAL_NEEDS_TWO: &str = "a comparison needs two or more different models (`--models a,b`) or configuration files (`--configs f1,f2`)";

/// The ranking as a Markdown table, and what its scores leave out.
pub fn ranking(ranked: &[Ranked], language: Language) -> String {
    let mut text = language
        .pick(
            "| # | Name | Score | Checks | Status | Efficiency | Cost | Passed | Steps | USD | Time |\n",
            "| # | Nombre | Puntos | Comprobaciones | Estado | Eficiencia | Coste | Superadas | Pasos | USD | Tiempo |\n",
        )
        .to_owned();
    text.push_str("|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (at, one) in ranked.iter().enumerate() {
        let (name, parts, [low, high]) = (one_line(&one.name, NAME_CHARS), one.parts, one.pass_rate_interval);
        let cost = parts.cost.map_or_else(|| "-".to_owned(), |cost| format!("{cost:.1}"));
        let usd = one.median_cost_usd.map_or_else(|| "-".to_owned(), |usd| format!("{usd:.4}"));
        let _infallible = writeln!(
            text,
            "| {} | {name} | {:.1} | {:.1} | {:.1} | {:.1} | {cost} | {}/{} ({:.0}-{:.0} %) | {:.1} | {usd} | {:.1} s |",
            at.saturating_add(1),
            one.score,
            parts.checks,
            parts.status,
            parts.efficiency,
            one.passed,
            one.runs,
            low * 100.0,
            high * 100.0,
            one.median_steps,
            one.median_seconds
        );
    }
    if ranked.iter().any(|one| one.parts.cost.is_none()) {
        text.push_str(language.pick(
            "\nThe cost of a run is unknown: the score of its model has no part for the cost.\n",
            "\nEl coste de una ejecución es desconocido: la puntuación de su modelo no incluye el coste.\n",
        ));
    }
    text
}
