//! Queries for a model's context window, sent once before the first request.

use crate::ollama::window;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Fields of a model list that may contain the window; the window of the running model precedes that of its file:
/// LM Studio (<https://lmstudio.ai/docs/api/rest-api>), vLLM (`ModelCard` of its server), and hosts that copy them.
const WINDOW_FIELDS: [&str; 5] =
    ["loaded_context_length", "max_model_len", "max_context_length", "context_length", "context_window"];

/// Context window query that a server supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowEndpoint {
    /// Ollama's `POST /api/show`.
    OllamaShow,
    /// llama.cpp's `GET /props`.
    LlamacppProps,
    /// `GET /models` below the API base, as vLLM answers it.
    Models,
    /// LM Studio's `GET /api/v0/models`.
    LmstudioModels,
}

/// A query about one model.
#[derive(Debug)]
pub struct WindowRequest {
    /// Request path, after the API base or the host.
    pub path: &'static str,
    /// Whether `path` follows the host, which is the API base without the version at its end.
    pub at_host: bool,
    /// JSON body; `None` for a `GET` request.
    pub body: Option<Vec<u8>>,
    /// Parses the model's window, in tokens, from the answer.
    pub read: fn(&[u8], &str) -> Option<u32>,
}

impl WindowEndpoint {
    /// Returns the query for `model`.
    pub fn request_for(self, model: &str) -> WindowRequest {
        let get = |path, at_host, read| WindowRequest { path, at_host, body: None, read };
        match self {
            Self::OllamaShow => WindowRequest {
                body: Some(window::show_request(model)),
                ..get("/api/show", false, |answer, _| window::parse_window(answer))
            },
            Self::LlamacppProps => get("/props", true, |answer, _| slot(answer)),
            Self::Models => get("/models", false, listed),
            Self::LmstudioModels => get("/api/v0/models", true, listed),
        }
    }
}

impl WindowRequest {
    /// Returns the part of `base` that [`path`](Self::path) follows.
    pub fn request_base<'a>(&self, base: &'a str) -> &'a str {
        let base = base.trim_end_matches('/');
        if self.at_host { base.strip_suffix("/v1").unwrap_or(base) } else { base }
    }
}

/// Returns the window of one slot of a llama.cpp server; older versions report it at the top level.
fn slot(answer: &[u8]) -> Option<u32> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let settings = answer.pointer("/default_generation_settings/n_ctx");
    count(settings.or_else(|| answer.get("n_ctx"))?)
}

/// Returns the window in the entry of `model` in a model list.
fn listed(answer: &[u8], model: &str) -> Option<u32> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let mut models = answer.get("data")?.as_array()?.iter();
    let entry = models.find(|entry| entry.get("id").is_some_and(|id| id == model))?;
    WINDOW_FIELDS.iter().find_map(|field| count(entry.get(field)?))
}

fn count(tokens: &Value) -> Option<u32> {
    u32::try_from(tokens.as_u64()?).ok().filter(|tokens| *tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(question: WindowEndpoint, answer: &Value) -> Option<u32> {
        (question.request_for("m").read)(answer.to_string().as_bytes(), "m")
    }

    #[test]
    fn llamacpp_reports_the_window_of_one_slot() {
        let props = json!({"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4});
        assert_eq!(read(WindowEndpoint::LlamacppProps, &props), Some(8192));
        assert_eq!(read(WindowEndpoint::LlamacppProps, &json!({"n_ctx": 4096})), Some(4096));
        assert_eq!(read(WindowEndpoint::LlamacppProps, &json!({"role": "router"})), None);
    }

    #[test]
    fn a_model_list_gives_the_window_of_the_running_model() {
        let vllm = json!({"data": [{"id": "x", "max_model_len": 1}, {"id": "m", "max_model_len": 40_960}]});
        assert_eq!(read(WindowEndpoint::Models, &vllm), Some(40_960));
        let loaded = json!({"data": [{"id": "m", "state": "loaded", "max_context_length": 131_072,
            "loaded_context_length": 4096}]});
        assert_eq!(read(WindowEndpoint::LmstudioModels, &loaded), Some(4096));
        let resting = json!({"data": [{"id": "m", "state": "not-loaded", "max_context_length": 131_072}]});
        assert_eq!(read(WindowEndpoint::LmstudioModels, &resting), Some(131_072));
    }

    #[test]
    fn an_answer_without_a_valid_window_gives_none() {
        let odd = [
            json!(null),
            json!([]),
            json!({"data": {}}),
            json!({"data": [{"id": "m", "max_model_len": -1}]}),
            json!({"data": [{"id": "m", "max_model_len": 0}]}),
            json!({"n_ctx": u64::MAX}),
            json!({"data": [7]}),
        ];
        for question in [
            WindowEndpoint::OllamaShow,
            WindowEndpoint::LlamacppProps,
            WindowEndpoint::Models,
            WindowEndpoint::LmstudioModels,
        ] {
            for answer in &odd {
                assert_eq!(read(question, answer), None, "{question:?} {answer}");
            }
            assert_eq!((question.request_for("m").read)(b"<html>", "m"), None);
        }
    }

    #[test]
    fn a_path_outside_the_api_version_is_requested_at_the_host() {
        let props = WindowEndpoint::LlamacppProps.request_for("m");
        for base in ["http://h:1/v1", "http://h:1/v1/", "http://h:1"] {
            assert_eq!(props.request_base(base), "http://h:1");
        }
        assert_eq!(WindowEndpoint::Models.request_for("m").request_base("http://h:1/v1"), "http://h:1/v1");
    }
}
