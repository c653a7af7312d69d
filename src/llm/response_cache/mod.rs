//! Client wrapper that caches answers during development: a repeated request is answered without the model.

pub mod store;

use crate::{LlmClient, LlmError, Progress, Request, Response};
use agent_core::event::FinishReason;
use agent_core::message::Part;
use agent_core::usage::Usage;
use agent_redactor::Redactor;
use agent_runtime::clock::Clock;
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::rc::Rc;
use std::sync::Arc;
use store::{CachedResponse, ResponseStore};

/// A client whose answers are cached.
pub struct CachedModel {
    inner: Box<dyn LlmClient>,
    store: ResponseStore,
    source: Rc<Clock>,
    redactor: Arc<Redactor>,
}

impl CachedModel {
    /// Wraps `inner` with the cache `store`; `source` determines the age of answers. An answer in which `redactor` finds a secret is
    /// not cached, because the cache might outlive the knowledge of the secret.
    pub fn new(
        inner: Box<dyn LlmClient>,
        store: ResponseStore,
        source: Rc<Clock>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self { inner, store, source, redactor }
    }
}

impl LlmClient for CachedModel {
    fn model(&self) -> &str {
        self.inner.model()
    }

    fn window(&self) -> Option<u32> {
        self.inner.window()
    }

    fn output_limit(&self) -> Option<u32> {
        self.inner.output_limit()
    }

    fn accepts_images(&self) -> bool {
        self.inner.accepts_images()
    }

    fn warnings(&self) -> &[String] {
        self.inner.warnings()
    }

    fn fingerprint(&self, request: &Request<'_>) -> Option<String> {
        self.inner.fingerprint(request)
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        async move {
            let Some(key) = self.inner.fingerprint(request) else {
                return self.inner.complete(request, progress).await;
            };
            if let Some(cached) = self.store.get(&key, self.source.unix_time()) {
                return Ok(replay(cached, request.stream, progress));
            }
            let response = self.inner.complete(request, progress).await?;
            if is_cacheable(&response) && !self.redactor.contains_secret(&response.message) {
                let cached =
                    CachedResponse { message: response.message.clone(), finish: response.finish.clone() };
                self.store.put(&key, &cached, self.source.unix_time());
            }
            Ok(response)
        }
        .boxed_local()
    }
}

/// Reports a cached answer as if it had just arrived. It used no tokens.
fn replay(cached: CachedResponse, streamed: bool, progress: &mut dyn FnMut(Progress<'_>)) -> Response {
    for part in cached.message.parts.iter().filter(|_| streamed) {
        match part {
            Part::Text { text } => progress(Progress::Text(text)),
            Part::Thinking { text, .. } => progress(Progress::Thinking(text)),
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
        }
    }
    Response {
        message: cached.message,
        finish: cached.finish,
        usage: Some(Usage::default()),
        is_cached: true,
    }
}

/// Checks whether an answer is complete and not empty.
fn is_cacheable(response: &Response) -> bool {
    let whole = matches!(response.finish, FinishReason::Stop | FinishReason::ToolCalls);
    let has_content =
        response.message.tool_calls().next().is_some() || !response.message.joined_text().trim().is_empty();
    whole && has_content && !response.is_cached
}
