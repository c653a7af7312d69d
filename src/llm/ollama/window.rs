//! Context window of an Ollama model: the query, and the parser of its answer.

use serde_json::{Value, json};

/// Default context window in tokens, and the maximum unless the model sets `num_ctx`.
/// The server reserves memory for all of it, about 4 GiB for a model of 8 billion parameters;
/// it is also Ollama's own default on cards of 24 GiB (<https://docs.ollama.com/context-length>).
pub const DEFAULT_WINDOW: u32 = 32_768;

/// Returns the JSON of the query for a model's properties.
pub fn show_request(model: &str) -> Vec<u8> {
    json!({ "model": model }).to_string().into_bytes()
}

/// Returns the context window from the answer: `num_ctx` of the model's parameters, or else the model's context length, at most
/// [`DEFAULT_WINDOW`]; `None` if the answer contains neither.
pub fn parse_window(answer: &[u8]) -> Option<u32> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let made_for = model_context_length(&answer);
    match configured_num_ctx(&answer) {
        Some(configured) => Some(configured.min(made_for.unwrap_or(configured))),
        None => made_for.map(|tokens| tokens.min(DEFAULT_WINDOW)),
    }
}

/// Returns the context length for which the model was trained.
fn model_context_length(answer: &Value) -> Option<u32> {
    let about = answer.get("model_info")?;
    let architecture = about.get("general.architecture")?.as_str()?;
    count(about.get(format!("{architecture}.context_length"))?.as_u64()?)
}

/// Returns `num_ctx` from the parameters, which have one line each: name, blanks, value.
fn configured_num_ctx(answer: &Value) -> Option<u32> {
    let mut lines = answer.get("parameters")?.as_str()?.lines().map(str::split_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some("num_ctx"))?;
    count(line.nth(1)?.parse().ok()?)
}

fn count(tokens: u64) -> Option<u32> {
    u32::try_from(tokens).ok().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parameters: &str, made_for: &Value) -> Option<u32> {
        let about = json!({"general.architecture": "qwen3", "qwen3.context_length": made_for,
            "qwen3.rope.scaling.original_context_length": 7});
        parse_window(json!({"parameters": parameters, "model_info": about}).to_string().as_bytes())
    }

    #[test]
    fn the_window_is_what_the_model_was_made_for_within_what_memory_allows() {
        assert_eq!(of("", &json!(8192)), Some(8192));
        assert_eq!(of("stop  \"num_ctx\"", &json!(262_144)), Some(DEFAULT_WINDOW));
    }

    #[test]
    fn the_owner_of_the_model_may_ask_for_more_or_less() {
        assert_eq!(of("temperature  0.6\nnum_ctx      65536", &json!(262_144)), Some(65_536));
        assert_eq!(of("num_ctx 65536", &json!(40_960)), Some(40_960));
        assert_eq!(of("num_ctx 4096", &Value::Null), Some(4096));
    }

    #[test]
    fn an_answer_without_a_valid_window_gives_none() {
        for answer in ["", "<html>", "[]", "{\"model_info\":null}", "{\"error\":\"model not found\"}"] {
            assert_eq!(parse_window(answer.as_bytes()), None, "{answer}");
        }
        for odd in [json!(0), json!(-1), json!("8192"), json!(u64::MAX)] {
            assert_eq!(of("num_ctx many", &odd), None, "{odd}");
        }
    }

    #[test]
    fn the_name_of_a_model_is_escaped() {
        assert_eq!(show_request("a\"b"), b"{\"model\":\"a\\\"b\"}");
    }
}
