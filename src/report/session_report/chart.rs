//! The chart of a page: what each step took, as bars that need no script; each bar says its figures and leads to its step.

use super::html_writer::HtmlWriter;
use super::{Step, text};
use crate::core::price::Usd;
use crate::messages;

/// Bars side by side; more steps than that share them, some to each.
const MAX_BARS: usize = 240;
/// The drawing's own units, which the page stretches to the room that there is.
const WIDTH: u64 = 12_000;
const HEIGHT: u64 = 1_000;

/// What a step took of one thing, in up to three parts.
type Parts = [u64; 3];

/// One row of bars.
struct Panel {
    title: &'static str,
    /// The parts from below: their class and their name.
    parts: &'static [(&'static str, &'static str)],
    of: fn(&Step) -> Parts,
    told: fn(u64) -> String,
}

/// The colours are of parts, so that prompt and model have the same one, and what comes of them another.
const PANELS: [Panel; 3] = [
    Panel {
        title: "Time",
        parts: &[("<rect class=\"one\"", "model"), ("<rect class=\"two\"", "tools")],
        of: |step| [step.latency_ms, step.tool_time_ms, 0],
        told: text::time,
    },
    Panel {
        title: "Tokens",
        parts: &[
            ("<rect class=\"pale\"", "prompt, cached"),
            ("<rect class=\"one\"", "prompt"),
            ("<rect class=\"two\"", "answer"),
        ],
        of: |step| {
            let usage = step.usage.unwrap_or_default();
            [usage.cached_read, usage.prompt_tokens().saturating_sub(usage.cached_read), usage.output]
        },
        told: messages::thousands,
    },
    Panel {
        title: "Cost",
        parts: &[("<rect class=\"one\"", "dollars")],
        of: |step| [step.cost_usd.unwrap_or_default().picodollars(), 0, 0],
        told: |amount| Usd::from_picodollars(amount).to_string(),
    },
];

/// Draws what `steps` took.
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
        page.markup("<span class=\"most\">highest ").text(&(self.told)(most)).markup("</span></figcaption>");
        page.markup("<svg class=\"bars\" viewBox=\"0 0 12000 1000\" preserveAspectRatio=\"none\" role=\"group\" aria-label=\"");
        page.text(self.title).markup(" of each step\">");
        let count = bars.len() as u64;
        for (place, (steps, parts)) in (0..).zip(&bars) {
            let (left, right) = (place * WIDTH / count, (place + 1) * WIDTH / count);
            let gap = (right - left) / 6;
            page.markup("<a href=\"#step-").number(place * per_bar as u64 + 1).markup("\"><title>");
            page.text(&self.tell(steps, parts)).markup("</title><rect class=\"hit\" y=\"0\"");
            extent(page, left, right - left, HEIGHT);
            let mut top = HEIGHT;
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
        steps.iter().map(self.of).fold(Parts::default(), |sum, parts| {
            let [one, two, three] = parts;
            [sum[0].saturating_add(one), sum[1].saturating_add(two), sum[2].saturating_add(three)]
        })
    }

    /// What a bar says when it is pointed at.
    fn tell(&self, steps: &[Step], parts: &Parts) -> String {
        let name = match steps {
            [one] => text::step_name(one),
            [first, .., last] => format!("{} to {}", text::step_name(first), text::step_name(last)),
            [] => String::new(),
        };
        let figures =
            self.parts.iter().zip(parts).map(|((_, name), part)| format!("{name} {}", (self.told)(*part)));
        format!("{name}: {}", figures.collect::<Vec<_>>().join(", "))
    }
}

fn extent(page: &mut HtmlWriter, x: u64, width: u64, height: u64) {
    page.markup(" x=\"").number(x).markup("\" width=\"").number(width);
    page.markup("\" height=\"").number(height).markup("\"/>");
}

fn total(parts: &Parts) -> u64 {
    parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
}

/// The height of what is `part` where the highest bar is `most`.
fn scaled(part: u64, most: u64) -> u64 {
    let height = u128::from(part) * u128::from(HEIGHT) / u128::from(most.max(1));
    u64::try_from(height).unwrap_or(HEIGHT)
}
