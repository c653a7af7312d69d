//! Generates the replies of a simulated model.

use super::context::SimulationContext;
use super::deterministic_model;
use super::random::Random;
use super::scenario::{FaultPlan, ModelKind, Scenario, cycles_habits};
use super::workspace::FIRST_UNWRITABLE;
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::message::{Part, ToolCall};
use agent_core::usage::Usage;
use agent_llm::{LlmError, Request};
use std::time::Duration;

/// Failures of servers.
const FAILURES: [FailureKind; 12] = [
    FailureKind::RateLimit,
    FailureKind::Overloaded,
    FailureKind::Server,
    FailureKind::Network,
    FailureKind::Timeout,
    FailureKind::CutStream,
    FailureKind::ToolUseFailed,
    FailureKind::Malformed,
    FailureKind::Quota,
    FailureKind::ContextOverflow,
    FailureKind::Refusal,
    FailureKind::Request,
];

/// Number of failures, from the start of the list, that are retried.
const RETRIED_FAILURES: usize = 8;

/// An answer that announces an action instead of taking it.
const ANNOUNCEMENT: &str = "There is one item left. I will write it now:";

/// Number of requests for which a model keeps each habit: enough to trigger a breaker.
const REQUESTS_PER_HABIT: u64 = 7;

/// Failed calls in a row of such a model: one more would end the run.
const FAILURES_IN_A_ROW: u64 = 4;

/// The reply to a request.
#[derive(Debug)]
pub struct SimulatedReply {
    /// The answer.
    pub parts: Vec<Part>,
    /// The finish reason.
    pub finish: FinishReason,
    /// The error, instead of an answer.
    pub error: Option<LlmError>,
    /// The time until the reply.
    pub latency: Duration,
    /// Whether the reply never arrives.
    pub stalls: bool,
}

/// Whether the request is for a verdict on an answer.
fn requests_verdict(request: &Request<'_>) -> bool {
    let first = request.messages.first().map(|message| message.joined_text()).unwrap_or_default();
    request.tools.is_empty() && first.starts_with("You judge whether")
}

/// Generates the reply of one model.
pub struct ReplyGenerator<'a> {
    /// Kind of the model.
    pub kind: ModelKind,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its random numbers.
    pub random: &'a Random,
    /// Shared state of the scenario.
    pub shared: &'a SimulationContext,
}

impl ReplyGenerator<'_> {
    /// Generates the reply to `request`.
    pub fn reply(&self, request: &Request<'_>) -> SimulatedReply {
        let mut reply = SimulatedReply {
            parts: Vec::new(),
            finish: FinishReason::Stop,
            error: None,
            latency: Duration::from_millis(self.random.between(50, 4_000)),
            stalls: false,
        };
        if self.scenario.is_deterministic {
            reply.parts = if request.tools.is_empty() {
                text("Nothing.")
            } else {
                deterministic_model::next(request.messages, self.scenario.items)
            };
            reply.finish = finish(&reply.parts);
            return reply;
        }
        let late = self.shared.requests.get() >= self.scenario.incident;
        if late && self.scenario.revoked {
            reply.error = Some(LlmError::new(FailureKind::Auth, "the key was revoked"));
            return reply;
        }
        let misbehaves = if late {
            self.kind == ModelKind::Looping || !self.random.one_in(6)
        } else {
            self.random.one_in(9)
        };
        let is_verdict = requests_verdict(request);
        if is_verdict {
            self.judge(&mut reply);
        } else if request.tools.is_empty() {
            self.close(&mut reply);
        } else {
            reply.parts = self.work();
        }
        if self.scenario.fault_plan == FaultPlan::FailingRequests && self.random.below(5) < 2 {
            reply.error = Some(LlmError::new(FailureKind::CutStream, "the server has failed"));
            return reply;
        }
        if misbehaves && (!is_verdict || self.random.one_in(2)) {
            self.misbehave(&mut reply, late);
        }
        if reply.finish == FinishReason::Stop {
            reply.finish = finish(&reply.parts);
        }
        reply
    }

    /// Replies without tools: a closing or a summary, which may be cut, empty or missing.
    fn close(&self, reply: &mut SimulatedReply) {
        reply.parts = text(&self.words("This is done, that is left. "));
        match self.random.below(12) {
            0 => reply.parts = vec![self.call(1, "write_file")],
            1..=3 => reply.finish = FinishReason::Length,
            4..=6 => reply.error = Some(self.failure(true)),
            7 => reply.parts = Vec::new(),
            _ => {}
        }
    }

    /// Replies with a verdict, which may be invalid or missing.
    fn judge(&self, reply: &mut SimulatedReply) {
        let (completed, tenths) = (!self.random.one_in(6), self.random.between(7, 11).min(10));
        let issue = format!("\"{}\"", self.words("Something is missing. "));
        reply.parts = text(&format!(
            "{{\"completed\": {completed}, \"confidence\": {}, \"issues\": [{}], \"suggestion\": \"\"}}",
            f64::from(u32::try_from(tenths).unwrap()) / 10.0,
            if self.random.one_in(2) { &issue } else { "" }
        ));
        match self.random.below(10) {
            0 => reply.parts = text("It looks fine."),
            1 => reply.error = Some(self.failure(true)),
            _ => {}
        }
    }

    /// Replies with a step of the work, or with the final answer.
    fn work(&self) -> Vec<Part> {
        let number = self.shared.requests.get();
        if number >= self.scenario.items {
            return self.finished();
        }
        let mut parts = Vec::new();
        if self.random.one_in(4) {
            parts.push(Part::Thinking { text: self.words("I think. "), opaque: None });
        }
        if self.random.one_in(3) {
            parts.extend(text(&self.words("On I go. ")));
        }
        for at in 0..=self.random.below(3) {
            let name = match self.random.below(if self.scenario.rates.background > 0 { 9 } else { 8 }) {
                0..=4 => "write_file",
                5..=7 => "read",
                _ => "start",
            };
            parts.push(self.call(number * 4 + at, name));
        }
        parts
    }

    fn finished(&self) -> Vec<Part> {
        match (self.scenario.schema, self.random.one_in(2)) {
            (true, true) => text("{\"done\":3}"),
            (true, false) => text("{\"done\":\"three\"}"),
            (false, _) => text(&self.words("All is done. ")),
        }
    }

    /// Adds to `words` a secret, or a text that triggers a guardrail, at random.
    fn words(&self, words: &str) -> String {
        let mut text = words.to_owned();
        if let Some(secret) = self.scenario.secret.as_ref().filter(|_| self.random.one_in(4)) {
            text = format!("{text}The key is {secret}, is it not? ");
        }
        if self.random.one_in(self.scenario.rates.guarded) {
            text.push_str("This is forbidden. ");
        }
        text
    }

    fn call(&self, item: u64, name: &str) -> Part {
        let secret = self.scenario.secret.as_ref().filter(|_| self.random.one_in(8));
        let arguments = match secret {
            Some(secret) => format!("{{\"item\":{item},\"with\":\"{secret}\"}}"),
            None => format!("{{\"item\":{item}}}"),
        };
        call(&format!("call_{:x}", self.random.any()), name, arguments)
    }

    /// Misbehaves according to the kind of the model; `late` in a run, so that the run ends.
    fn misbehave(&self, reply: &mut SimulatedReply, late: bool) {
        match self.kind {
            ModelKind::Steady | ModelKind::Lying => {}
            ModelKind::Looping => self.repeat_calls(reply, late),
            ModelKind::Malformed => {
                let arguments =
                    *self.random.pick(&["{\"item\": ", "", "[1]", "{\"item\":1,\"item\":2}", "item 1"]);
                let name = if self.random.one_in(4) { "wirte" } else { "write_file" };
                reply.parts = vec![call(&format!("m{:x}", self.random.any()), name, arguments.to_owned())];
            }
            ModelKind::Verbose => {
                reply.parts = text(&"On and on and on it goes. ".repeat(100));
                reply.finish =
                    if self.random.one_in(5) { FinishReason::Paused } else { FinishReason::Length };
            }
            ModelKind::Silent => {
                reply.parts = match self.random.below(4) {
                    0 => Vec::new(),
                    1 => text(" "),
                    2 => text(ANNOUNCEMENT),
                    _ => vec![Part::Thinking { text: "Nothing comes to mind.".to_owned(), opaque: None }],
                };
            }
            ModelKind::Refusing if late => self.refuse(reply),
            ModelKind::Refusing => reply.parts.extend(text("I would rather not, but let me see. ")),
            ModelKind::Failing => reply.error = Some(self.failure(late)),
            ModelKind::Slow if late || self.random.one_in(6) => reply.stalls = true,
            ModelKind::Slow => reply.latency = Duration::from_secs(self.random.between(5, 60)),
            ModelKind::Batching => {
                let number = if self.random.one_in(12) {
                    self.random.between(120, 150)
                } else {
                    self.random.between(3, 16)
                };
                reply.parts = (0..number).map(|at| self.call(at, "read")).collect();
            }
            ModelKind::Duplicating => {
                let again = |at: u64| {
                    let id = *self.random.pick(&["a", "b", "", "a_2"]);
                    call(id, "write_file", format!("{{\"item\":{at}}}"))
                };
                reply.parts = (0..self.random.between(1, 4)).map(again).collect();
            }
            ModelKind::Bulky => {
                let long = "x y ".repeat(usize::try_from(self.random.between(100, 900)).unwrap());
                let arguments = format!("{{\"item\":{},\"with\":\"{long}\"}}", self.random.below(99));
                reply.parts = vec![call(&format!("b{:x}", self.random.any()), "write_file", arguments)];
            }
        }
    }

    /// Repeats unproductive calls: one habit until the run ends, or each for a while.
    fn repeat_calls(&self, reply: &mut SimulatedReply, late: bool) {
        let (seed, number) = (self.shared.scenario.seed, self.shared.requests.get());
        let cycles_habits = cycles_habits(seed, self.kind);
        let habit = if cycles_habits { seed + number / REQUESTS_PER_HABIT } else { seed / 2 };
        let fails = !cycles_habits || number % REQUESTS_PER_HABIT < FAILURES_IN_A_ROW;
        reply.parts = match habit % 14 {
            even if cycles_habits && even % 2 == 0 && number.is_multiple_of(REQUESTS_PER_HABIT) => {
                text(ANNOUNCEMENT)
            }
            0 | 7 if late && !cycles_habits => text(ANNOUNCEMENT),
            1 => vec![self.call(number % 2, "read")],
            0 | 2 | 7 => (0..self.random.between(1, 4)).map(|at| self.call(at, "write_file")).collect(),
            3 | 12 => vec![self.call(number, "read"), self.call(FIRST_UNWRITABLE + number, "write_file")],
            4 | 8 | 9 | 10 => vec![self.call(FIRST_UNWRITABLE + number, "read")],
            5 | 11 | 13 if fails => vec![self.call(number, &format!("wirte_{number}"))],
            _ => vec![self.call(0, "read")],
        };
    }

    fn refuse(&self, reply: &mut SimulatedReply) {
        reply.finish = match self.random.below(6) {
            0 | 1 => FinishReason::Refusal,
            2 | 3 => FinishReason::ContentFilter,
            4 => FinishReason::Filtered("SAFETY".to_owned()),
            _ => FinishReason::Other("odd".to_owned()),
        };
        if self.random.one_in(8) {
            reply.finish = FinishReason::WindowFull;
        }
    }

    fn failure(&self, late: bool) -> LlmError {
        let kinds = if late { &FAILURES[RETRIED_FAILURES..] } else { &FAILURES[..RETRIED_FAILURES] };
        let mut error = LlmError::new(*self.random.pick(kinds), "the server has failed");
        if self.random.one_in(3) {
            error.retry_after = Some(Duration::from_secs(self.random.between(1, 150)));
        }
        if self.random.one_in(3) && error.kind.may_be_billed() {
            error.usage = Some(Usage::default());
        }
        if let Some(secret) = self.scenario.secret.as_ref().filter(|_| self.random.one_in(3)) {
            error.message = format!("the server says {secret}");
        }
        error
    }
}

fn text(text: &str) -> Vec<Part> {
    vec![Part::Text { text: text.to_owned() }]
}

fn call(id: &str, name: &str, arguments: String) -> Part {
    Part::ToolCall(ToolCall::new(id, name, arguments))
}

fn finish(parts: &[Part]) -> FinishReason {
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    if calls { FinishReason::ToolCalls } else { FinishReason::Stop }
}
