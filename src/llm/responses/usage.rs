//! Reads the token counts of the Responses format and converts them to the shared definition.

use crate::token_count::token_count;
use agent_core::usage::Usage;
use serde_json::Value;

/// Reads a `usage` object; returns `None` if it contains no counts. `input_tokens` includes cached tokens, [`Usage`] counts them
/// separately; `output_tokens` includes reasoning in both.
pub fn read(usage: &Value) -> Option<Usage> {
    let input = token_count(usage, &["input_tokens"]);
    let output = token_count(usage, &["output_tokens"]);
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let cached_read = token_count(usage, &["input_tokens_details", "cached_tokens"]).unwrap_or(0).min(input);
    let cached_write = token_count(usage, &["input_tokens_details", "cache_write_tokens"])
        .unwrap_or(0)
        .min(input - cached_read);
    let reasoning =
        token_count(usage, &["output_tokens_details", "reasoning_tokens"]).unwrap_or(0).min(output);
    Some(Usage { input: input - cached_read - cached_write, cached_read, cached_write, output, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cached_tokens_are_taken_out_of_the_input() {
        let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
            "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 1},
            "output_tokens_details": {"reasoning_tokens": 2}});
        let expected = Usage { input: 1, cached_read: 8, cached_write: 1, output: 5, reasoning: 2 };
        assert_eq!(read(&usage), Some(expected));
    }

    #[test]
    fn absurd_figures_do_not_overflow() {
        let usage = json!({"input_tokens": u64::MAX, "output_tokens": 3,
            "input_tokens_details": {"cached_tokens": u64::MAX, "cache_write_tokens": u64::MAX},
            "output_tokens_details": {"reasoning_tokens": u64::MAX}});
        assert_eq!(read(&usage).map(|usage| (usage.input, usage.reasoning)), Some((0, 3)));
        assert_eq!(read(&json!({"input_tokens": "many"})), None);
        assert_eq!(read(&json!(null)), None);
    }
}
