//! Values of options, as users and other programs write them.

use agent_engine::policy::Mode;
use agent_llm::effort::Effort;
use strum::VariantArray;

/// Parses a number of US dollars; rejects `nan` and `inf`, which a float parser accepts.
///
/// # Errors
/// When the text is no such number.
pub fn parse_usd(text: &str) -> Result<f64, String> {
    let dollars =
        text.strip_prefix('$').unwrap_or(text).parse().ok().filter(|dollars: &f64| dollars.is_finite());
    dollars.ok_or_else(|| "a budget is a number of US dollars, such as 0.50".to_owned())
}

/// Parses the name of a reasoning effort.
///
/// # Errors
/// When there is no such effort.
pub fn parse_effort(text: &str) -> Result<Effort, String> {
    parse_name("the levels are", text)
}

/// Returns the variant with the name `text`; an error lists the names after `there_are`.
///
/// # Errors
/// When there is no such name.
pub fn parse_name<T: VariantArray + Into<&'static str> + Copy>(
    there_are: &str,
    text: &str,
) -> Result<T, String> {
    let names: Vec<&'static str> = T::VARIANTS.iter().map(|one| (*one).into()).collect();
    let found = T::VARIANTS.iter().find(|one| (**one).into() == text).copied();
    found.ok_or_else(|| format!("{there_are} {}", names.join(", ")))
}

/// Parses a mode by its name.
///
/// # Errors
/// Fails for an unknown name; the message lists the modes.
pub fn parse_mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|_| "the modes are confirm-all, confirm-sensitive, auto and yolo".to_owned())
}
