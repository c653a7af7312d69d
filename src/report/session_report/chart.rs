//! Chart of the HTML report: time, tokens and cost of each step as bars, without scripts; a bar links to its step.

use super::bars::{Bar, MAX_BARS, Parts, Row};
use super::html_writer::HtmlWriter;
use super::{Step, text};
use agent_core::price::Usd;
use agent_messages as messages;

/// A colour stands for the same kind of part in every row: prompt and model share one, their results another.
const ROWS: [Row<Step>; 3] = [
    Row {
        title: "Time",
        parts: &[("<rect class=\"one\"", "model"), ("<rect class=\"two\"", "tools")],
        parts_of: |step| [step.latency_ms, step.tool_time_ms, 0],
        format: text::time,
        full: None,
    },
    Row {
        title: "Tokens",
        parts: &[
            ("<rect class=\"pale\"", "prompt, cached"),
            ("<rect class=\"one\"", "prompt"),
            ("<rect class=\"two\"", "answer"),
        ],
        parts_of: |step| {
            let usage = step.usage.unwrap_or_default();
            [usage.cached_read, usage.prompt_tokens().saturating_sub(usage.cached_read), usage.output]
        },
        format: messages::thousands,
        full: None,
    },
    Row {
        title: "Cost",
        parts: &[("<rect class=\"one\"", "dollars")],
        parts_of: |step| [step.cost_usd.unwrap_or_default().picodollars(), 0, 0],
        format: |amount| Usd::from_picodollars(amount).to_string(),
        full: None,
    },
];

/// Draws the chart of `steps`.
pub(super) fn draw(page: &mut HtmlWriter, steps: &[Step]) {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
    page.markup("<section id=\"timeline\"><h2>Timeline</h2>");
    for row in &ROWS {
        let bars = bars(row, steps);
        if bars.iter().any(|bar| bar.parts != Parts::default()) {
            row.draw(page, "step", &bars);
        }
    }
    page.markup("<p class=\"axis\"><span>").text(&text::step_name(first)).markup("</span><span>");
    page.text(&text::step_name(last)).markup("</span></p></section>\n");
}

fn bars(row: &Row<Step>, steps: &[Step]) -> Vec<Bar> {
    let per_bar = steps.len().div_ceil(MAX_BARS);
    let bar = |(index, steps): (usize, &[Step])| Bar {
        name: name(steps),
        step: Some((index * per_bar) as u64 + 1),
        parts: steps.iter().map(row.parts_of).fold(Parts::default(), |sum, parts| {
            let [one, two, three] = parts;
            [sum[0].saturating_add(one), sum[1].saturating_add(two), sum[2].saturating_add(three)]
        }),
    };
    steps.chunks(per_bar).enumerate().map(bar).collect()
}

fn name(steps: &[Step]) -> String {
    match steps {
        [one] => text::step_name(one),
        [first, .., last] => format!("{} to {}", text::step_name(first), text::step_name(last)),
        [] => String::new(),
    }
}
