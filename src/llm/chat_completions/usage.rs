//! Reads the token counts of Chat Completions servers and converts them to one definition.

use crate::token_count::token_count;
use agent_core::usage::Usage;
use serde_json::Value;

/// Where servers report cached tokens: `OpenAI`, `DeepSeek`, Mistral (twice), Moonshot and Together.
const CACHED: [&[&str]; 5] = [
    &["prompt_tokens_details", "cached_tokens"],
    &["prompt_cache_hit_tokens"],
    &["num_cached_tokens"],
    &["prompt_token_details", "cached_tokens"],
    &["cached_tokens"],
];

/// Reads a `usage` object; returns `None` if it contains no counts.
///
/// `prompt_tokens` includes cached tokens, [`Usage`] counts them separately. Some servers (xAI) omit reasoning from
/// `completion_tokens`, and some (charm-hyper, Grok on Azure) cached tokens from `prompt_tokens`; their total reveals this, or that
/// more tokens were cached than the prompt has.
pub fn read(usage: &Value) -> Option<Usage> {
    let prompt = token_count(usage, &["prompt_tokens"]);
    let completion = token_count(usage, &["completion_tokens"]);
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let cached =
        CACHED.iter().filter_map(|names| token_count(usage, names)).find(|count| *count > 0).unwrap_or(0);
    let reasoning = token_count(usage, &["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0);
    let total = token_count(usage, &["total_tokens"]);
    let is_total = |parts: &[u64]| {
        let sum = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part));
        sum.is_some() && sum == total
    };
    let adds_both = is_total(&[prompt, completion, cached, reasoning]);
    let adds_reasoning = reasoning > 0 && (adds_both || is_total(&[prompt, completion, reasoning]));
    let adds_cached = cached > prompt
        || cached > 0 && (adds_both || !adds_reasoning && is_total(&[prompt, completion, cached]));
    let output = if adds_reasoning { completion.saturating_add(reasoning) } else { completion };
    let prompt = if adds_cached { prompt.saturating_add(cached) } else { prompt };
    let cached_read = cached.min(prompt);
    let cached_write = token_count(usage, &["prompt_tokens_details", "cache_write_tokens"])
        .unwrap_or(0)
        .min(prompt - cached_read);
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

    // Fault D5 b, c: Mistral and Moonshot have names of their own.
    #[test]
    fn cached_tokens_are_read_under_each_name() {
        for cached in [
            json!({"prompt_cache_hit_tokens": 4}),
            json!({"num_cached_tokens": 4, "prompt_tokens_details": {"cached_tokens": 0}}),
            json!({"prompt_token_details": {"cached_tokens": 4}}),
            json!({"cached_tokens": 4}),
        ] {
            let mut usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
            usage.as_object_mut().unwrap().extend(cached.as_object().unwrap().clone());
            assert_eq!(read(&usage).map(|usage| (usage.input, usage.cached_read)), Some((6, 4)), "{usage}");
        }
    }

    // Fault D5 a: such prompts were counted as if all of them had been cached.
    #[test]
    fn cached_tokens_that_the_prompt_omits_are_added() {
        for (prompt, completion, reasoning, cached, total, expected) in [
            (720, 72, 28, 7104, 7896, (720, 7104, 72)),
            (10, 5, 0, 161, 15, (10, 161, 5)),
            (30, 5, 7, 20, 62, (30, 20, 12)),
            (30, 5, 0, 20, 35, (10, 20, 5)),
            (30, 5, 7, 7, 42, (23, 7, 12)),
        ] {
            let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total,
                "prompt_tokens_details": {"cached_tokens": cached},
                "completion_tokens_details": {"reasoning_tokens": reasoning}});
            let found = read(&usage).map(|usage| (usage.input, usage.cached_read, usage.output));
            assert_eq!(found, Some(expected), "{usage}");
        }
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
