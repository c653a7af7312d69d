//! Values of options, as users and other programs write them.

use agent_engine::policy::Mode;
use agent_llm::effort::Effort;
use agent_messages as messages;
use std::ops::RangeInclusive;
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

/// Parses a duration: a number of seconds, or numbers with the units `d`, `h`, `m` and `s`, largest first, such as `1h30m`. Returns seconds.
///
/// # Errors
/// When the text is no such duration; the message names the forms.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    /// The units with their seconds.
    const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<u64>().ok()).flatten()
    };
    let with_units = || {
        let (mut total, mut rest) = (0_u64, text);
        for (unit, seconds) in UNITS {
            if let Some((digits, after)) = rest.split_once(unit) {
                total = total.checked_add(number(digits)?.checked_mul(seconds)?)?;
                rest = after;
            }
        }
        (rest.is_empty() && !text.is_empty()).then_some(total)
    };
    number(text).or_else(with_units).ok_or_else(|| messages::DURATION_FORMS.to_owned())
}

/// Parses a duration within `range` in seconds.
///
/// # Errors
/// When the text is no such duration.
pub fn parse_seconds_within(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let seconds = parse_seconds(text)?;
    let wrong = || messages::duration_out_of_range(*range.start(), *range.end());
    if range.contains(&seconds) { Ok(seconds) } else { Err(wrong()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u18_a_duration_is_a_number_of_seconds_or_has_units() {
        for (text, seconds) in [
            ("0", 0),
            ("90", 90),
            ("90s", 90),
            ("5m", 300),
            ("1h30m", 5_400),
            ("1d1h1m1s", 90_061),
            ("2h", 7_200),
        ] {
            assert_eq!(parse_seconds(text), Ok(seconds), "{text}");
        }
        for text in [
            "",
            "m",
            "5x",
            "-5",
            "5 m",
            "1.5h",
            "30s5m",
            "5m5m",
            "m5",
            "5m5",
            "99999999999999999999",
            "9999999999999999d",
        ] {
            assert!(parse_seconds(text).unwrap_err().contains("1h30m"), "{text}");
        }
        assert_eq!(parse_seconds_within("1m", 1..=60), Ok(60));
        assert!(parse_seconds_within("2m", 1..=60).unwrap_err().contains("1 to 60"));
    }
}
