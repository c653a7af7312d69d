//! Upper bound for the number of tokens of a text, without the model's tokenizer.

/// Returns an upper bound for the tokens of `text`: three for five lower-case letters or blanks, one for each other byte
/// (capitals, digits, punctuation, other scripts).
///
/// Measured with the tokenizers of Anthropic and DeepSeek: random lower-case letters have 0.54 tokens a byte, base64
/// 0.70 (this bound: 0.84), hexadecimal 0.58, minified code 0.70. For source code and prose the bound is about 2.5 times the
/// real number; it is used until the provider reports the size of the conversation.
pub fn upper_bound(text: &str) -> u64 {
    let joined = text.bytes().filter(|byte| byte.is_ascii_lowercase() || *byte == b' ').count();
    let total = joined.saturating_mul(3).div_ceil(5).saturating_add(text.len().saturating_sub(joined));
    u64::try_from(total).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_three_fifths_and_everything_else_whole() {
        assert_eq!(upper_bound(""), 0);
        assert_eq!(upper_bound("hello word"), 6);
        assert_eq!(upper_bound("12345"), 5);
        assert_eq!(upper_bound("Aé{}"), 5);
    }
}
