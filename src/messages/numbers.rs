//! Formats numbers, sizes and durations for users.

use agent_core::language::Language;
use std::time::Duration;

/// Returns a number with its English noun: `1 step`, `3 steps`.
pub fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    format!("{} {noun}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// Returns a number with its noun, `[singular, plural]` in each language: `1 step`, `3 pasos`.
pub fn counted(number: impl Into<u64>, english: [&str; 2], spanish: [&str; 2], language: Language) -> String {
    let (number, [one, many]) = (number.into(), language.pick(english, spanish));
    format!("{} {}", thousands(number), if number == 1 { one } else { many })
}

/// Returns a number with thousands separators, in every language: `12,450`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a size in units of 1,000: `512 bytes`, `109 KB`, `2.3 MB`.
pub fn bytes(number: usize) -> String {
    let number = u64::try_from(number).unwrap_or(u64::MAX);
    match number {
        0..1_000 => count(number, "byte"),
        1_000..1_000_000 => format!("{} KB", number.div_ceil(1_000)),
        _ => format!("{}.{} MB", thousands(number / 1_000_000), number % 1_000_000 / 100_000),
    }
}

/// Returns a duration in seconds: `0.4 s`, `75.0 s`.
pub fn duration(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_agree() {
        assert_eq!(count(0_u32, "step"), "0 steps");
        assert_eq!(count(1_u32, "step"), "1 step");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(bytes(1), "1 byte");
        assert_eq!(bytes(108_894), "109 KB");
        assert_eq!(bytes(2_345_678), "2.3 MB");
        assert_eq!(duration(Duration::from_millis(75_040)), "75.0 s");
    }
}
