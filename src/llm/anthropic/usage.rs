//! Accumulates the token counts of a stream, which reports them at its start and again at its end.

use crate::token_count::token_count;
use agent_core::usage::Usage;
use serde_json::Value;

/// The counts so far; a later report replaces the counts that it contains, because they are totals.
#[derive(Debug, Clone, Copy, Default)]
pub struct UsageTotals {
    input: Option<u64>,
    cached_read: Option<u64>,
    cached_write: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl UsageTotals {
    /// Reads a `usage` object, in which any count may be missing; returns the counts so far, or `None` if there are none yet.
    ///
    /// As in [`Usage`], `input_tokens` excludes cache reads and cache writes, and `output_tokens` includes
    /// reasoning.
    pub fn read(&mut self, usage: &Value) -> Option<Usage> {
        let total = |known: &mut Option<u64>, names: &[&str]| *known = token_count(usage, names).or(*known);
        total(&mut self.input, &["input_tokens"]);
        total(&mut self.cached_read, &["cache_read_input_tokens"]);
        total(&mut self.cached_write, &["cache_creation_input_tokens"]);
        total(&mut self.output, &["output_tokens"]);
        total(&mut self.reasoning, &["output_tokens_details", "thinking_tokens"]);
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let output = self.output.unwrap_or(0);
        Some(Usage {
            input: self.input.unwrap_or(0),
            cached_read: self.cached_read.unwrap_or(0),
            cached_write: self.cached_write.unwrap_or(0),
            output,
            reasoning: self.reasoning.unwrap_or(0).min(output),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_later_report_is_a_total_and_may_leave_figures_out() {
        let mut figures = UsageTotals::default();
        figures.read(&json!({"input_tokens": 12, "cache_creation_input_tokens": 3,
            "cache_read_input_tokens": 900, "output_tokens": 1}));
        let later = json!({"output_tokens": 42, "output_tokens_details": {"thinking_tokens": 7}});
        let expected = Usage { input: 12, cached_read: 900, cached_write: 3, output: 42, reasoning: 7 };
        assert_eq!(figures.read(&later), Some(expected));
        assert_eq!(figures.read(&Value::Null), Some(expected));
    }

    #[test]
    fn values_that_are_not_counts_are_ignored() {
        assert_eq!(UsageTotals::default().read(&json!({"input_tokens": -1, "output_tokens": "many"})), None);
        let absurd = json!({"output_tokens": 1, "output_tokens_details": {"thinking_tokens": u64::MAX}});
        assert_eq!(UsageTotals::default().read(&absurd).map(|usage| usage.reasoning), Some(1));
    }
}
