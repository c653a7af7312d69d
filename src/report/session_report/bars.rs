//! Rows of bars of the charts of HTML pages.

use super::html_writer::HtmlWriter;

/// Maximum number of bars of a row; with more steps or days, each bar stands for several.
pub(crate) const MAX_BARS: usize = 240;

/// Width and height of a row in units of the drawing, which the page scales.
const WIDTH: u64 = 12_000;
const HEIGHT: u64 = 1_000;

/// One quantity in up to three parts.
pub(crate) type Parts = [u64; 3];

/// A row of bars, each for a `T`.
pub(crate) struct Row<T: 'static> {
    pub title: &'static str,
    /// The parts from bottom to top: their shape and name.
    pub parts: &'static [(&'static str, &'static str)],
    pub parts_of: fn(&T) -> Parts,
    pub format: fn(u64) -> String,
    /// Value of the full height; absent: the highest value.
    pub full: Option<u64>,
}

/// A bar of a row.
pub(crate) struct Bar {
    /// What it stands for.
    pub name: String,
    /// The step that it links to, if any.
    pub step: Option<u64>,
    pub parts: Parts,
}

impl Bar {
    fn total(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }
}

impl<T> Row<T> {
    /// Draws the row; `each` names what a bar stands for.
    pub(crate) fn draw(&self, page: &mut HtmlWriter, each: &str, bars: &[Bar]) {
        let highest = bars.iter().map(Bar::total).max().unwrap_or(0);
        let full = self.full.unwrap_or(highest);
        page.markup("<figure><figcaption><b>").text(self.title).markup("</b>");
        for (shape, name) in self.parts.iter().filter(|_| self.parts.len() > 1) {
            page.markup("<span><svg class=\"key\" viewBox=\"0 0 1 1\">").markup(shape);
            page.markup(" width=\"1\" height=\"1\"/></svg>").text(name).markup("</span>");
        }
        page.markup("<span class=\"most\">highest ").text(&(self.format)(highest));
        page.markup("</span></figcaption><svg class=\"bars\" viewBox=\"0 0 12000 1000\" preserveAspectRatio=\"none\" role=\"group\" aria-label=\"");
        page.text(self.title).markup(" of each ").text(each).markup("\">");
        let count = bars.len().max(1) as u64;
        for (index, bar) in (0..).zip(bars) {
            let (left, right) = (index * WIDTH / count, (index + 1) * WIDTH / count);
            let gap = (right - left) / 6;
            match bar.step {
                Some(step) => page.markup("<a href=\"#step-").number(step).markup("\">"),
                None => page.markup("<g>"),
            };
            page.markup("<title>").text(&self.tooltip(bar)).markup("</title><rect class=\"hit\" y=\"0\"");
            extent(page, left, right - left, HEIGHT);
            let mut top = HEIGHT;
            for ((shape, _), part) in self.parts.iter().zip(&bar.parts).filter(|(_, part)| **part > 0) {
                let height = scaled(*part, full).max(1).min(top);
                top -= height;
                page.markup(shape).markup(" y=\"").number(top).markup("\"");
                extent(page, left + gap / 2, right - left - gap, height);
            }
            page.markup(if bar.step.is_some() { "</a>" } else { "</g>" });
        }
        page.markup("</svg></figure>");
    }

    fn tooltip(&self, bar: &Bar) -> String {
        let figures = self.parts.iter().zip(&bar.parts);
        let figures = figures.map(|((_, name), part)| format!("{name} {}", (self.format)(*part)));
        format!("{}: {}", bar.name, figures.collect::<Vec<_>>().join(", "))
    }
}

/// Adds position and size of a rectangle, and ends it.
fn extent(page: &mut HtmlWriter, x: u64, width: u64, height: u64) {
    page.markup(" x=\"").number(x).markup("\" width=\"").number(width);
    page.markup("\" height=\"").number(height).markup("\"/>");
}

/// Returns the height of `part` where the highest bar is `most`.
fn scaled(part: u64, most: u64) -> u64 {
    let height = u128::from(part) * u128::from(HEIGHT) / u128::from(most.max(1));
    u64::try_from(height).unwrap_or(HEIGHT)
}
