//! Bars of the charts of HTML pages: size of the drawing, position and height of a bar.

use super::html_writer::HtmlWriter;

/// Width in units of the drawing, which the page scales.
pub(in crate::report) const BAR_WIDTH: u64 = 12_000;
/// Height in units of the drawing.
pub(in crate::report) const BAR_HEIGHT: u64 = 1_000;

/// Adds position and size of a rectangle, and ends it.
pub(in crate::report) fn extent(page: &mut HtmlWriter, x: u64, width: u64, height: u64) {
    page.markup(" x=\"").number(x).markup("\" width=\"").number(width);
    page.markup("\" height=\"").number(height).markup("\"/>");
}

/// Returns the height of `part` where the highest bar is `most`.
pub(in crate::report) fn scaled(part: u64, most: u64) -> u64 {
    let height = u128::from(part) * u128::from(BAR_HEIGHT) / u128::from(most.max(1));
    u64::try_from(height).unwrap_or(BAR_HEIGHT)
}
