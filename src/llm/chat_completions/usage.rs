//! Reads the token counts of Chat Completions servers and converts them to one definition.

use crate::core::usage::Usage;
use crate::llm::token_count::token_count;
use serde_json::Value;

/// Reads a `usage` object; returns `None` if it contains no counts.
///
/// `prompt_tokens` includes cached tokens, [`Usage`] counts them separately. Some servers (xAI) omit reasoning from
/// `completion_tokens`; their total reveals this.
pub fn read(usage: &Value) -> Option<Usage> {
    let prompt = token_count(usage, &["prompt_tokens"]);
    let completion = token_count(usage, &["completion_tokens"]);
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let cached_read = token_count(usage, &["prompt_tokens_details", "cached_tokens"])
        .or_else(|| token_count(usage, &["prompt_cache_hit_tokens"]))
        .unwrap_or(0)
        .min(prompt);
    let cached_write = token_count(usage, &["prompt_tokens_details", "cache_write_tokens"])
        .unwrap_or(0)
        .min(prompt - cached_read);
    let reasoning = token_count(usage, &["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0);
    let beside = prompt.checked_add(completion).and_then(|sum| sum.checked_add(reasoning));
    let output = if reasoning > 0 && beside.is_some() && token_count(usage, &["total_tokens"]) == beside {
        completion.saturating_add(reasoning)
    } else {
        completion
    };
    Some(Usage {
        input: prompt - cached_read - cached_write,
        cached_read,
        cached_write,
        output,
        reasoning: reasoning.min(output),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cached_tokens_are_taken_out_of_the_prompt() {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 1},
            "completion_tokens_details": {"reasoning_tokens": 2}});
        let expected = Usage { input: 1, cached_read: 8, cached_write: 1, output: 5, reasoning: 2 };
        assert_eq!(read(&usage), Some(expected));
    }

    #[test]
    fn reasoning_that_the_total_counts_beside_the_completion_is_added() {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22,
            "completion_tokens_details": {"reasoning_tokens": 7}});
        assert_eq!(read(&usage).map(|usage| (usage.output, usage.reasoning)), Some((12, 7)));
    }

    #[test]
    fn deepseek_names_its_cache_hits_differently() {
        let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 4});
        assert_eq!(read(&usage).map(|usage| (usage.input, usage.cached_read)), Some((6, 4)));
    }

    #[test]
    fn absurd_figures_do_not_overflow() {
        let usage = json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX, "total_tokens": -1,
            "prompt_tokens_details": {"cached_tokens": u64::MAX, "cache_write_tokens": u64::MAX},
            "completion_tokens_details": {"reasoning_tokens": u64::MAX}});
        assert_eq!(read(&usage).map(|usage| usage.input), Some(0));
        assert_eq!(read(&json!({"prompt_tokens": "many"})), None);
        assert_eq!(read(&json!(null)), None);
    }
}
