//! Line numbers in findings of models.

use serde::{Deserialize, Deserializer};

/// Largest line number: readers of SARIF have signed numbers of 32 bits.
pub const MAX_LINE: u32 = i32::MAX.cast_unsigned();

/// Reads a line number. A number outside of the range becomes the nearest one, so that no finding is lost.
///
/// # Errors
/// When it is no number.
pub fn line_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    f64::deserialize(deserializer).map(nearest_line)
}

/// Reads a line number or null.
///
/// # Errors
/// When it is neither.
pub fn optional_line_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    Option::<f64>::deserialize(deserializer).map(|number| number.map(nearest_line))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of a float saturates")]
fn nearest_line(number: f64) -> u32 {
    (number as u32).clamp(1, MAX_LINE)
}
