//! Detects changes of the prompt prefix between requests, which invalidate the provider's prompt cache.

use crate::{LlmClient, Request, ToolDefinition};
use agent_core::event::PrefixHashes;
use agent_core::message::{Message, Role};
use agent_core::usage::Usage;
use std::sync::Arc;

/// Length of a reported hash, in characters: enough to show that two differ.
const HASH_CHARS: usize = 16;

/// Number of requests with the same prefix after which a prompt without cached tokens is reported. The cache entry of the
/// first request may not yet be available when the second is sent.
const SETTLED_REQUESTS: u32 = 2;

/// Prefix of the last request. A comparison costs what the request adds, plus a pointer comparison per message.
#[derive(Debug, Default)]
pub struct PromptPrefix {
    hashes: Option<PrefixHashes>,
    /// Model of the last request; `None` before the first request of this process.
    model: Option<String>,
    tools: Vec<ToolDefinition>,
    messages: Vec<Arc<Message>>,
    /// Number of consecutive requests with an unchanged prefix.
    stable: u32,
    /// Cached tokens of the last prompt.
    cached: u64,
}

/// Prefix of the first request of a process, or a change from the previous request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixChange {
    /// Hashes of the prefix.
    pub hashes: PrefixHashes,
    /// The changed parts: `parameters`, `tools`, `system`, or the first changed message as `message N`.
    pub changed: Vec<String>,
}

impl PromptPrefix {
    /// Resumes from the hashes of an earlier process. The messages are assumed unchanged, because they come from the journal.
    pub fn new(hashes: Option<PrefixHashes>) -> Self {
        Self { hashes, ..Self::default() }
    }

    /// Compares `request` to `client` with the previous request; returns `None` if its prefix is unchanged.
    pub fn compare(&mut self, request: &Request<'_>, client: &dyn LlmClient) -> Option<PrefixChange> {
        let first = self.model.is_none();
        let before = self.hashes.take();
        let hashes = self.hashes(before.as_ref(), request, client);
        let changed: Vec<String> = before
            .map(|before| {
                let parts = [
                    ("parameters", before.parameters == hashes.parameters),
                    ("tools", before.tools == hashes.tools),
                    ("system", before.system == hashes.system),
                ];
                parts.iter().filter(|(_, same)| !same).map(|(part, _)| (*part).to_owned()).collect()
            })
            .unwrap_or_default();
        let message = self.first_changed(request).map(|at| format!("message {at}"));
        let changed: Vec<String> = changed.into_iter().chain(message).collect();
        self.stable = if changed.is_empty() { self.stable.saturating_add(1) } else { 0 };
        self.hashes = Some(hashes.clone());
        self.store(request, client);
        (first || !changed.is_empty()).then_some(PrefixChange { hashes, changed })
    }

    /// Stores the number of cached tokens; returns the previous number if it dropped to zero although the prefix did not
    /// change.
    pub fn record_usage(&mut self, usage: Usage) -> Option<u64> {
        let before = std::mem::replace(&mut self.cached, usage.cached_read);
        let lost = before > 0 && usage.cached_read == 0 && usage.prompt_tokens() >= before;
        (lost && self.stable >= SETTLED_REQUESTS).then_some(before)
    }

    /// Returns the hashes of `request`; unchanged parts are not hashed again.
    fn hashes(
        &self,
        before: Option<&PrefixHashes>,
        request: &Request<'_>,
        client: &dyn LlmClient,
    ) -> PrefixHashes {
        let known = before.filter(|_| self.model.is_some());
        let reuse = |same: bool, of: fn(&PrefixHashes) -> &String| {
            known.filter(|_| same).map(|hashes| of(hashes).clone())
        };
        let parameters = reuse(self.model.as_deref() == Some(client.model()), |hashes| &hashes.parameters);
        let tools = reuse(self.tools == request.tools, |hashes| &hashes.tools);
        let system = reuse(same(system(&self.messages), system(request.messages)), |hashes| &hashes.system);
        PrefixHashes {
            parameters: parameters.unwrap_or_else(|| {
                let all = client.fingerprint(&Request::default());
                short(blake3::hash(all.as_deref().unwrap_or(client.model()).as_bytes()))
            }),
            tools: tools.unwrap_or_else(|| hash_tools(request.tools)),
            system: system.unwrap_or_else(|| {
                let text = system_text(request.messages);
                short(blake3::hash(text.as_bytes()))
            }),
        }
    }

    /// Returns the first message, other than the system message, that changed or is missing.
    fn first_changed(&self, request: &Request<'_>) -> Option<usize> {
        let differs = |(at, known): (usize, &Arc<Message>)| {
            !same(Some(known), request.messages.get(at)) && known.role != Role::System
        };
        self.messages.iter().enumerate().position(differs)
    }

    fn store(&mut self, request: &Request<'_>, client: &dyn LlmClient) {
        if self.model.as_deref() != Some(client.model()) {
            self.model = Some(client.model().to_owned());
        }
        if self.tools != request.tools {
            self.tools = request.tools.to_vec();
        }
        let unchanged =
            self.messages.iter().zip(request.messages).take_while(|(known, new)| Arc::ptr_eq(known, new));
        let unchanged = unchanged.count();
        self.messages.truncate(unchanged);
        self.messages.extend(request.messages.iter().skip(unchanged).cloned());
    }
}

/// Checks whether two messages are equal; mostly they are the same object.
fn same(a: Option<&Arc<Message>>, b: Option<&Arc<Message>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

fn system(messages: &[Arc<Message>]) -> Option<&Arc<Message>> {
    messages.first().filter(|message| message.role == Role::System)
}

fn system_text(messages: &[Arc<Message>]) -> String {
    system(messages).map(|message| message.joined_text()).unwrap_or_default()
}

fn hash_tools(tools: &[ToolDefinition]) -> String {
    let mut hasher = blake3::Hasher::new();
    for tool in tools {
        for part in [tool.name.as_str(), &tool.description, tool.parameters.json()] {
            hasher.update(part.as_bytes()).update(b"\0");
        }
    }
    short(hasher.finalize())
}

fn short(hash: blake3::Hash) -> String {
    hash.to_hex().chars().take(HASH_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LlmError, Progress, Response};
    use futures_util::future::LocalBoxFuture;
    use serde_json::json;

    struct Named(&'static str);

    impl LlmClient for Named {
        fn model(&self) -> &str {
            self.0
        }

        fn complete<'a>(
            &'a self,
            _request: &'a Request<'a>,
            _progress: &'a mut dyn FnMut(Progress<'_>),
        ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
            unreachable!("no request is sent")
        }
    }

    fn message(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::text(role, text))
    }

    fn tool(name: &str) -> ToolDefinition {
        ToolDefinition { name: name.into(), description: "".into(), parameters: json!({}).into() }
    }

    fn changes(
        prefix: &mut PromptPrefix,
        model: &'static str,
        tools: &[ToolDefinition],
        messages: &[Arc<Message>],
    ) -> Option<Vec<String>> {
        let request = Request { messages, tools, ..Request::default() };
        prefix.compare(&request, &Named(model)).map(|finding| finding.changed)
    }

    #[test]
    fn k12_the_first_request_is_told_and_then_only_what_changes() {
        let (a, b) = ([tool("a")], [tool("b")]);
        let mut messages = vec![message(Role::System, "s"), message(Role::User, "u")];
        let mut prefix = PromptPrefix::default();
        assert_eq!(changes(&mut prefix, "m", &a, &messages), Some(vec![]));
        messages.push(message(Role::Assistant, "x"));
        assert_eq!(changes(&mut prefix, "m", &a, &messages), None);
        messages[1] = message(Role::User, "u");
        assert_eq!(changes(&mut prefix, "m", &a, &messages), None, "the same words");
        assert_eq!(changes(&mut prefix, "m", &b, &messages), Some(vec!["tools".into()]));
        messages[0] = message(Role::System, "t");
        assert_eq!(
            changes(&mut prefix, "n", &b, &messages),
            Some(vec!["parameters".into(), "system".into()])
        );
        messages[1] = message(Role::User, "v");
        assert_eq!(changes(&mut prefix, "n", &b, &messages), Some(vec!["message 1".into()]));
        messages.truncate(2);
        assert_eq!(changes(&mut prefix, "n", &b, &messages), Some(vec!["message 2".into()]));
        assert_eq!(changes(&mut prefix, "n", &b, &messages), None);
    }

    #[test]
    fn k12_what_changed_while_no_process_ran_is_told_too() {
        let messages = [message(Role::System, "s"), message(Role::User, "u")];
        let request = Request { messages: &messages, tools: &[tool("a")], ..Request::default() };
        let finding = PromptPrefix::default().compare(&request, &Named("m")).unwrap();
        let resumed = |model, tools: &[ToolDefinition]| {
            changes(&mut PromptPrefix::new(Some(finding.hashes.clone())), model, tools, &messages)
        };
        assert_eq!(resumed("m", &[tool("a")]), Some(vec![]));
        assert_eq!(resumed("n", &[tool("b")]), Some(vec!["parameters".into(), "tools".into()]));
    }

    #[test]
    fn a_cache_that_is_empty_all_at_once_is_noticed_when_nothing_changed() {
        let usage = |input, cached_read| Usage { input, cached_read, ..Usage::default() };
        let messages = [message(Role::User, "u")];
        let mut prefix = PromptPrefix::default();
        let mut step = |usage| {
            changes(&mut prefix, "m", &[], &messages);
            prefix.record_usage(usage)
        };
        assert_eq!(step(usage(100, 0)), None);
        assert_eq!(step(usage(10, 90)), None);
        assert_eq!(step(usage(110, 0)), Some(90));
        assert_eq!(step(usage(110, 0)), None);
    }
}
