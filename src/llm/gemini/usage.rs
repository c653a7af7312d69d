//! Reads Gemini's token counts and converts them to one definition.

use crate::token_count::token_count;
use agent_core::usage::Usage;
use serde_json::Value;

/// Reads a `usageMetadata` object; returns `None` if it contains no counts.
///
/// `promptTokenCount` includes cached tokens, [`Usage`] counts them separately; `candidatesTokenCount` excludes thoughts,
/// [`Usage`] includes them in the output. If the total shows that a gateway already added them, they are not added again.
pub fn read(usage: &Value) -> Option<Usage> {
    let token_count = |name| token_count(usage, &[name]);
    let (prompt, candidates) = (token_count("promptTokenCount"), token_count("candidatesTokenCount"));
    let thoughts = token_count("thoughtsTokenCount");
    if prompt.is_none() && candidates.is_none() && thoughts.is_none() {
        return None;
    }
    let prompt = prompt.unwrap_or(0).saturating_add(token_count("toolUsePromptTokenCount").unwrap_or(0));
    let (candidates, thoughts) = (candidates.unwrap_or(0), thoughts.unwrap_or(0));
    let cached_read = token_count("cachedContentTokenCount").unwrap_or(0).min(prompt);
    let included = thoughts <= candidates && token_count("totalTokenCount") == prompt.checked_add(candidates);
    let output = if included { candidates } else { candidates.saturating_add(thoughts) };
    Some(Usage { input: prompt - cached_read, cached_read, cached_write: 0, output, reasoning: thoughts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cached_tokens_are_taken_out_of_the_prompt_and_thoughts_added_to_the_output() {
        let usage = json!({"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 3,
            "thoughtsTokenCount": 20, "toolUsePromptTokenCount": 0, "totalTokenCount": 33});
        let expected = Usage { input: 2, cached_read: 8, cached_write: 0, output: 23, reasoning: 20 };
        assert_eq!(read(&usage), Some(expected));
    }

    #[test]
    fn thoughts_that_the_candidates_include_are_not_counted_twice() {
        let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 23, "thoughtsTokenCount": 20,
            "totalTokenCount": 33});
        assert_eq!(read(&usage).map(|usage| (usage.output, usage.reasoning)), Some((23, 20)));
    }

    #[test]
    fn absurd_figures_do_not_overflow() {
        let usage = json!({"promptTokenCount": u64::MAX, "toolUsePromptTokenCount": u64::MAX,
            "candidatesTokenCount": u64::MAX, "thoughtsTokenCount": u64::MAX, "cachedContentTokenCount": u64::MAX,
            "totalTokenCount": -1});
        assert_eq!(read(&usage).map(|usage| (usage.input, usage.output)), Some((0, u64::MAX)));
        assert_eq!(read(&json!({"promptTokenCount": "many"})), None);
        assert_eq!(read(&json!(null)), None);
    }
}
