//! Exporter of spans to standard error: one line per span, indented below the span around it.

use super::conventions as names;
use super::export_failure::ExportFailure;
use super::span::{AttributeValue, Span, SpanId};
use agent_core::price::Usd;
use agent_messages as messages;
use agent_terminal::{Style, Terminal, one_line};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum characters of a name.
const NAME_CHARS: usize = 80;

/// Prints the spans in the order of their start.
pub(super) fn print(terminal: &Terminal, spans: &[Span]) -> Result<(), ExportFailure> {
    let mut ordered: Vec<&Span> = spans.iter().collect();
    ordered.sort_by_key(|span| span.start_ns);
    let parents: HashMap<SpanId, Option<SpanId>> =
        ordered.iter().map(|span| (span.id, span.parent)).collect();
    for (index, span) in ordered.iter().enumerate() {
        let above = std::iter::successors(span.parent, |id| parents.get(id).copied().flatten());
        let depth = above.take_while(|id| parents.contains_key(id)).count();
        let text = format!("{}{}", "  ".repeat(depth), line(span, depth == 0));
        terminal.eprintln(Style::Dim, &text).map_err(|error| {
            let lost = spans.len().saturating_sub(index);
            ExportFailure::new(lost, "standard error", &error.to_string())
        })?;
    }
    Ok(())
}

/// Returns the line of a span: name, duration, result, tokens, cost; for the first span of the trace also its id.
fn line(span: &Span, is_first: bool) -> String {
    let duration = Duration::from_micros(span.end_ns.saturating_sub(span.start_ns) / 1_000);
    let mut parts = vec![one_line(&span.name, NAME_CHARS), format!("{duration:.1?}")];
    let text = |name: &str| match span.get(name) {
        Some(AttributeValue::Text(text)) => Some(one_line(text, NAME_CHARS)),
        Some(AttributeValue::Texts(texts)) => Some(one_line(&texts.join(", "), NAME_CHARS)),
        _ => None,
    };
    let integer = |name: &str| match span.get(name) {
        Some(AttributeValue::Integer(number)) => Some(*number),
        _ => None,
    };
    let result = [names::STATUS, names::STOP_REASON, names::FINISH_REASONS, names::TOOL_OUTCOME];
    parts.extend(result.into_iter().filter_map(text));
    let has_outcome = span.get(names::TOOL_OUTCOME).is_some();
    let error = span.error.as_ref().filter(|_| !has_outcome);
    parts.extend(error.map(|error| format!("error: {}", one_line(error, NAME_CHARS))));
    if let Some((input, output)) = integer(names::INPUT_TOKENS).zip(integer(names::OUTPUT_TOKENS)) {
        parts.push(format!("{} in / {} out", messages::thousands(input), messages::thousands(output)));
    }
    if let Some(AttributeValue::Number(dollars)) = span.get(names::COST_USD) {
        parts.extend(Usd::try_from(*dollars).ok().map(|cost| cost.to_string()));
    }
    if is_first {
        parts.push(format!("trace {}", span.trace_id.hex()));
    }
    parts.join("  ")
}
