//! How many tokens a text has at most, without knowing whose tokens.

/// The most tokens of `text` for any tokenizer in use: letters and blanks make tokens of two and more, anything else
/// (digits, signs, other scripts byte by byte) may be a token for each byte. Prose comes out at about twice the truth.
pub fn at_most(text: &str) -> u64 {
    let joined = text.bytes().filter(|byte| byte.is_ascii_alphabetic() || *byte == b' ').count();
    let total = joined.div_ceil(2).saturating_add(text.len().saturating_sub(joined));
    u64::try_from(total).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_count_half_and_everything_else_whole() {
        assert_eq!(at_most(""), 0);
        assert_eq!(at_most("hello world"), 6);
        assert_eq!(at_most("12345"), 5);
        assert_eq!(at_most("é{}"), 4);
    }
}
