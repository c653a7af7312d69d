//! Simulated models of several kinds, called through the real retry policy.

use super::actual_spending;
use super::context::SimulationContext;
use super::random::Random;
use super::replies::{ReplyGenerator, SimulatedReply};
use super::scenario::ModelKind;
use super::wire_formats;
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::limits::{ModelTerms, WindowSource};
use agent_core::message::{Message, Part, Role};
use agent_core::usage::Usage;
use agent_llm::retry_policy::RetryPolicy;
use agent_llm::{LlmClient, LlmError, Progress, Request, Response};
use agent_runtime::clock::Clock;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::time::Duration;

/// Number of retries.
const RETRIES: u32 = 2;

/// Longest `Retry-After` that is respected; some failures ask for more.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// Longest time of a call in a run without limit.
const WHOLE: Duration = Duration::from_mins(10);

/// A simulated model.
pub struct Model {
    /// Kind of the model.
    pub kind: ModelKind,
    /// Its terms as configured in the run.
    pub terms: ModelTerms,
    /// Shared state of the scenario.
    pub shared: Rc<SimulationContext>,
    /// Clock and jitter.
    pub source: Rc<Clock>,
    /// Its random numbers.
    pub random: Random,
}

impl LlmClient for Model {
    fn model(&self) -> &str {
        &self.terms.model
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        if self.random.one_in(self.shared.samples.wire) {
            wire_formats::check(request);
            self.shared.count("wire", "requests written in every format");
        }
        let attempts = RetryPolicy {
            retries: RETRIES,
            max_retry_after: MAX_RETRY_AFTER,
            first_byte: WHOLE,
            total: WHOLE,
            source: &self.source,
        };
        Box::pin(attempts.run(request, progress, async |show| self.attempt(request, show).await))
    }
}

/// Whether a failure of this kind can happen after a part of the answer arrived.
fn breaks_within_an_answer(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::CutStream
            | FailureKind::Network
            | FailureKind::Timeout
            | FailureKind::Server
            | FailureKind::Malformed
    )
}

impl Model {
    async fn attempt(
        &self,
        request: &Request<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        self.shared.requests.set(self.shared.requests.get() + 1);
        let prompt = actual_spending::prompt(request);
        if let Some(error) = self.overflow(prompt) {
            return Err(error);
        }
        let answers = ReplyGenerator {
            kind: self.kind,
            scenario: &self.shared.scenario,
            random: &self.random,
            shared: &self.shared,
        };
        let SimulatedReply { parts, finish, error, latency, stalls } = answers.reply(request);
        let message = Message { role: Role::Assistant, parts };
        let (message, finish) = self.within_limit(request, message, finish);
        let usage = self.used(prompt, &message);
        if error.as_ref().is_none_or(|error| error.kind.may_be_billed() || error.usage.is_some()) {
            self.shared.actual_spending.bill(&self.terms, usage);
        }
        tokio::time::sleep(latency).await;
        if stalls {
            self.shared.count("fault", "silent server");
            std::future::pending::<()>().await;
        }
        if let Some(error) = error {
            self.shared.count("error", error.kind.name());
            if breaks_within_an_answer(error.kind) && self.random.one_in(2) {
                self.shared.count("fault", "answer that breaks after text was shown");
                show(Progress::Text("half of an ans"));
            }
            return Err(LlmError { usage: error.usage.map(|_| usage), ..error });
        }
        self.shown(&message, show);
        Ok(Response { message, finish, usage: self.reported(usage), is_cached: false })
    }

    /// Returns the server's error for a prompt that exceeds the window.
    fn overflow(&self, prompt: u64) -> Option<LlmError> {
        let window = self.terms.window?;
        let real = if window.source == WindowSource::Table { window.tokens * 2 } else { window.tokens };
        if self.shared.scenario.is_honest() && window.source != WindowSource::Table {
            assert!(prompt <= real, "a prompt of {prompt} tokens was sent to a model that holds {real}");
        }
        (prompt > real).then(|| LlmError::new(FailureKind::ContextOverflow, "the prompt is too long"))
    }

    /// Cuts the answer at the output limit; without a limit, at one that this scenario's conversations do not reach.
    fn within_limit(
        &self,
        request: &Request<'_>,
        message: Message,
        finish: FinishReason,
    ) -> (Message, FinishReason) {
        let limit = u64::from(request.max_output_tokens.unwrap_or(3_000));
        if self.kind == ModelKind::Lying || actual_spending::of(&message) <= limit {
            return (message, finish);
        }
        let mut text = message.joined_text() + "and so on. ";
        text.truncate(actual_spending::bytes_of(limit).min(text.len()));
        (Message::text(Role::Assistant, text), FinishReason::Length)
    }

    /// Returns the actual usage of the answer.
    fn used(&self, prompt: u64, message: &Message) -> Usage {
        let cached_read = prompt * self.random.below(4) / 4;
        let cached_write = if self.random.one_in(3) { prompt - cached_read } else { 0 };
        let thoughts = Message { role: Role::Assistant, parts: thoughts(message) };
        let reasoning = if thoughts.parts.is_empty() { 0 } else { actual_spending::of(&thoughts) };
        let input = prompt - cached_read - cached_write;
        Usage { input, cached_read, cached_write, output: actual_spending::of(message), reasoning }
    }

    /// Returns the usage that the model reports.
    fn reported(&self, usage: Usage) -> Option<Usage> {
        if self.kind != ModelKind::Lying {
            return Some(usage);
        }
        let lie = self.random.below(7);
        self.shared.count(
            "lie",
            ["none", "nothing", "too little", "too much", "impossible", "shrunk", "true"]
                [usize::try_from(lie).unwrap()],
        );
        match lie {
            0 => None,
            1 => Some(Usage::default()),
            2 => Some(Usage { input: 1, output: 1, ..Usage::default() }),
            3 => Some(Usage { input: usage.input * 3, output: usage.output * 5, ..usage }),
            4 => Some(Usage { reasoning: usage.output * 2 + 7, ..usage }),
            5 => Some(Usage { cached_read: 0, ..usage }),
            _ => Some(usage),
        }
    }

    fn shown(&self, message: &Message, show: &mut dyn FnMut(Progress<'_>)) {
        for part in &message.parts {
            let (text, to_progress): (_, fn(&str) -> Progress<'_>) = match part {
                Part::Text { text } => (text, |piece| Progress::Text(piece)),
                Part::Thinking { text, .. } => (text, |piece| Progress::Thinking(piece)),
                Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => continue,
            };
            let length = usize::try_from(self.random.between(9, 60)).unwrap();
            let pieces = if text.len() > 400 { 1 } else { text.len() / length + 1 };
            let each = text.len().div_ceil(pieces).max(1);
            for piece in text.as_bytes().chunks(each) {
                show(to_progress(std::str::from_utf8(piece).expect("this scenario writes ASCII")));
            }
        }
    }
}

fn thoughts(message: &Message) -> Vec<Part> {
    message.parts.iter().filter(|part| matches!(part, Part::Thinking { .. })).cloned().collect()
}
