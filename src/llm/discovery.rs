//! Finds model servers on this machine, and queries servers for their models and context windows.

use crate::codec::Codec;
use crate::provider_table::Provider;
use crate::window_request::WindowEndpoint;
use agent_http::{Deadlines, Delivery, Endpoint, HttpError, RequestBody};
use futures_util::future::join_all;
use serde_json::Value;
use std::time::Duration;

/// Time limit for the model list of a local server; a running one answers in a few milliseconds.
pub const PROBE_TIME: Duration = Duration::from_millis(200);
/// Time limit for the context window query; the server reads the value from the head of a file.
const WINDOW_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit on the models of a server that are considered.
const MODELS_CAP: usize = 1000;

/// A header of a request: name and value.
pub type Header = (&'static str, String);

/// A local server that was found, with its models in the server's order.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalServer {
    /// Provider table row.
    pub provider: Provider,
    /// Its models, at least one.
    pub models: Vec<String>,
}

/// Queries every local provider of `table` in parallel for its models. Returns those that answer within `time`, in
/// table order.
pub async fn probe(table: &[Provider], time: Duration) -> Vec<LocalServer> {
    let asked = table.iter().filter(|provider| provider.local).map(async |provider| {
        let (base, codec) = (provider.base.as_ref()?, provider.codec());
        let base = provider.endpoint_overrides().api_base(base, codec.as_ref(), "");
        let listed = list_models(base, codec.as_ref(), &codec.headers(None), lookup_deadlines(time)).await;
        let (_, models) = listed.ok()?;
        (!models.is_empty()).then(|| LocalServer { provider: provider.clone(), models })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Returns deadlines for a query that takes at most `time` in total.
pub fn lookup_deadlines(time: Duration) -> Deadlines {
    Deadlines { connect: time, first_byte: time, silence: time, whole: time }
}

/// Returns the status and the models of the model list of the server at `base`, without embedding models.
///
/// # Errors
/// When the request fails. A list in an unknown format is empty.
pub async fn list_models(
    base: &str,
    codec: &dyn Codec,
    headers: &[Header],
    deadlines: Deadlines,
) -> Result<(u16, Vec<String>), HttpError> {
    let endpoint = Endpoint::new(base, headers, deadlines)?;
    let mut reply = endpoint.get(codec.models_path()).await?;
    let status = reply.status();
    if status != 200 {
        return Ok((status, Vec::new()));
    }
    let list: Value = serde_json::from_slice(&reply.body().await?).unwrap_or_default();
    let models = list.get("data").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = models.iter().filter_map(|model| model.get("id")?.as_str());
    Ok((status, names.filter(|name| !name.contains("embed")).take(MODELS_CAP).map(str::to_owned).collect()))
}

/// Returns the context window of `model` in tokens, from the answer of the server at `base` to `question`. `None` if the
/// query fails; the first request will report an unreachable server.
pub async fn query_window(
    base: &str,
    headers: &[Header],
    question: WindowEndpoint,
    model: &str,
) -> Option<u32> {
    let request = question.request_for(model);
    let endpoint =
        Endpoint::new(request.request_base(base), headers, lookup_deadlines(WINDOW_TIMEOUT)).ok()?;
    let asked = match request.body {
        Some(body) => {
            endpoint.post(request.path, &RequestBody::from(body), Delivery::Whole { thinks: false }).await
        }
        None => endpoint.get(request.path).await,
    };
    let mut reply = asked.ok()?;
    if reply.status() != 200 {
        return None;
    }
    (request.read)(&reply.body().await.ok()?, model)
}

/// Returns the model that `wanted` means: the exact name, or the name with a tag (`qwen3` means `qwen3:8b`).
pub fn find_model<'a>(models: &'a [String], wanted: &str) -> Option<&'a str> {
    let tagged = |model: &&String| model.split_once(':').is_some_and(|(name, _)| name == wanted);
    models.iter().find(|model| *model == wanted).or_else(|| models.iter().find(tagged)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_tag_means_its_first_tag() {
        let models = ["qwen3-coder:30b", "qwen3:8b", "qwen3:4b"].map(String::from);
        assert_eq!(find_model(&models, "qwen3"), Some("qwen3:8b"));
        assert_eq!(find_model(&models, "qwen3:4b"), Some("qwen3:4b"));
        assert_eq!(find_model(&models, "llama"), None);
    }
}
