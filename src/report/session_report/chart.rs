//! Chart of the HTML report: time, tokens and cost of each step as bars, without scripts; a bar links to its step.

use super::bars::{BAR_HEIGHT, BAR_WIDTH, extent, scaled};
use super::html_writer::HtmlWriter;
use super::{Step, text};
use crate::core::price::Usd;
use crate::messages;

/// Maximum number of bars; with more steps, each bar stands for several steps.
const MAX_BARS: usize = 240;

/// One quantity of a step, in up to three parts.
type Parts = [u64; 3];

/// One row of bars.
struct Panel {
    title: &'static str,
    /// The parts from bottom to top: their shape and name.
    parts: &'static [(&'static str, &'static str)],
    parts_of: fn(&Step) -> Parts,
    format: fn(u64) -> String,
}

/// A colour stands for the same kind of part in every row: prompt and model share one, their results another.
const PANELS: [Panel; 3] = [
    Panel {
        title: "Time",
        parts: &[("<rect class=\"one\"", "model"), ("<rect class=\"two\"", "tools")],
        parts_of: |step| [step.latency_ms, step.tool_time_ms, 0],
        format: text::time,
    },
    Panel {
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
    },
    Panel {
        title: "Cost",
        parts: &[("<rect class=\"one\"", "dollars")],
        parts_of: |step| [step.cost_usd.unwrap_or_default().picodollars(), 0, 0],
        format: |amount| Usd::from_picodollars(amount).to_string(),
    },
];

/// Draws the chart of `steps`.
pub(super) fn draw(page: &mut HtmlWriter, steps: &[Step]) {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
    page.markup("<section id=\"timeline\"><h2>Timeline</h2>");
    for panel in &PANELS {
        panel.draw(page, steps);
    }
    page.markup("<p class=\"axis\"><span>").text(&text::step_name(first)).markup("</span><span>");
    page.text(&text::step_name(last)).markup("</span></p></section>\n");
}

impl Panel {
    fn draw(&self, page: &mut HtmlWriter, steps: &[Step]) {
        let per_bar = steps.len().div_ceil(MAX_BARS);
        let bars: Vec<(&[Step], Parts)> =
            steps.chunks(per_bar).map(|steps| (steps, self.sum(steps))).collect();
        let most = bars.iter().map(|(_, parts)| total(parts)).max().unwrap_or(0);
        if most == 0 {
            return;
        }
        page.markup("<figure><figcaption><b>").text(self.title).markup("</b>");
        for (shape, name) in self.parts.iter().filter(|_| self.parts.len() > 1) {
            page.markup("<span><svg class=\"key\" viewBox=\"0 0 1 1\">").markup(shape);
            page.markup(" width=\"1\" height=\"1\"/></svg>").text(name).markup("</span>");
        }
        page.markup("<span class=\"most\">highest ")
            .text(&(self.format)(most))
            .markup("</span></figcaption>");
        page.markup("<svg class=\"bars\" viewBox=\"0 0 12000 1000\" preserveAspectRatio=\"none\" role=\"group\" aria-label=\"");
        page.text(self.title).markup(" of each step\">");
        let count = bars.len() as u64;
        for (index, (steps, parts)) in (0..).zip(&bars) {
            let (left, right) = (index * BAR_WIDTH / count, (index + 1) * BAR_WIDTH / count);
            let gap = (right - left) / 6;
            page.markup("<a href=\"#step-").number(index * per_bar as u64 + 1).markup("\"><title>");
            page.text(&self.tooltip(steps, parts)).markup("</title><rect class=\"hit\" y=\"0\"");
            extent(page, left, right - left, BAR_HEIGHT);
            let mut top = BAR_HEIGHT;
            for ((shape, _), part) in self.parts.iter().zip(parts).filter(|(_, part)| **part > 0) {
                let height = scaled(*part, most).max(1).min(top);
                top -= height;
                page.markup(shape).markup(" y=\"").number(top).markup("\"");
                extent(page, left + gap / 2, right - left - gap, height);
            }
            page.markup("</a>");
        }
        page.markup("</svg></figure>");
    }

    fn sum(&self, steps: &[Step]) -> Parts {
        steps.iter().map(self.parts_of).fold(Parts::default(), |sum, parts| {
            let [one, two, three] = parts;
            [sum[0].saturating_add(one), sum[1].saturating_add(two), sum[2].saturating_add(three)]
        })
    }

    /// Returns the tooltip of a bar.
    fn tooltip(&self, steps: &[Step], parts: &Parts) -> String {
        let name = match steps {
            [one] => text::step_name(one),
            [first, .., last] => format!("{} to {}", text::step_name(first), text::step_name(last)),
            [] => String::new(),
        };
        let figures =
            self.parts.iter().zip(parts).map(|((_, name), part)| format!("{name} {}", (self.format)(*part)));
        format!("{name}: {}", figures.collect::<Vec<_>>().join(", "))
    }
}

fn total(parts: &Parts) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
}
