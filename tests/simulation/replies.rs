//! What a simulated model says.

use super::context::SimulationContext;
use super::deterministic_model;
use super::random::Random;
use super::scenario::{FaultPlan, ModelKind, Scenario, cycles_habits};
use super::workspace::OUT_OF_REACH;
use crate::core::event::FinishReason;
use crate::core::failure::FailureKind;
use crate::core::message::{Part, ToolCall};
use crate::core::usage::Usage;
use crate::llm::{LlmError, Request};
use std::time::Duration;

/// How servers fail.
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

/// Those of them after which a request is repeated.
const PASSING: usize = 8;

/// What a model says that means to act and does not.
const ANNOUNCEMENT: &str = "There is one item left. I will write it now:";

/// Requests for which a model that leaves its habits keeps to each of them: more than make a run speak of one.
const EACH_HABIT: u64 = 7;

/// Calls in a row that such a model lets fail: one more would end the run.
const FAILURES_IN_A_ROW: u64 = 4;

/// What becomes of a request.
#[derive(Debug)]
pub struct SimulatedReply {
    /// The answer.
    pub parts: Vec<Part>,
    /// Why it ends.
    pub finish: FinishReason,
    /// The error in its place.
    pub error: Option<LlmError>,
    /// How long it takes.
    pub latency: Duration,
    /// Whether it never comes.
    pub stalls: bool,
}

/// Whether the request asks for a verdict on an answer.
fn is_asked_for_a_verdict(request: &Request<'_>) -> bool {
    let first = request.messages.first().map(|message| message.joined_text()).unwrap_or_default();
    request.tools.is_empty() && first.starts_with("You judge whether")
}

/// A model that is about to answer.
pub struct ReplyGenerator<'a> {
    /// Its kind.
    pub kind: ModelKind,
    /// Its scenario.
    pub scenario: &'a Scenario,
    /// Its chances.
    pub random: &'a Random,
    /// What the scenario has come to.
    pub shared: &'a SimulationContext,
}

impl ReplyGenerator<'_> {
    /// What becomes of `request`.
    pub fn reply(&self, request: &Request<'_>) -> SimulatedReply {
        let mut saying = SimulatedReply {
            parts: Vec::new(),
            finish: FinishReason::Stop,
            error: None,
            latency: Duration::from_millis(self.random.between(50, 4_000)),
            stalls: false,
        };
        if self.scenario.is_deterministic {
            saying.parts = if request.tools.is_empty() {
                text("Nothing.")
            } else {
                deterministic_model::next(request.messages, self.scenario.items)
            };
            saying.finish = finish(&saying.parts);
            return saying;
        }
        let late = self.shared.requests.get() >= self.scenario.incident;
        if late && self.scenario.revoked {
            saying.error = Some(LlmError::new(FailureKind::Auth, "the key was revoked"));
            return saying;
        }
        let vice = if late {
            self.kind == ModelKind::Looping || !self.random.one_in(6)
        } else {
            self.random.one_in(9)
        };
        let judges = is_asked_for_a_verdict(request);
        if judges {
            self.judge(&mut saying);
        } else if request.tools.is_empty() {
            self.close(&mut saying);
        } else {
            saying.parts = self.work();
        }
        if self.scenario.fault_plan == FaultPlan::FailingRequests && self.random.below(5) < 2 {
            saying.error = Some(LlmError::new(FailureKind::CutStream, "the server has failed"));
            return saying;
        }
        if vice && (!judges || self.random.one_in(2)) {
            self.misbehave(&mut saying, late);
        }
        if saying.finish == FinishReason::Stop {
            saying.finish = finish(&saying.parts);
        }
        saying
    }

    /// What it says where it has no tools: a closing or a summary, which may be cut, be none, or not come.
    fn close(&self, saying: &mut SimulatedReply) {
        saying.parts = text(&self.words("This is done, that is left. "));
        match self.random.below(12) {
            0 => saying.parts = vec![self.call(1, "write_file")],
            1..=3 => saying.finish = FinishReason::Length,
            4..=6 => saying.error = Some(self.failure(true)),
            7 => saying.parts = Vec::new(),
            _ => {}
        }
    }

    /// What it says of its answer; that may be no verdict, or not come.
    fn judge(&self, saying: &mut SimulatedReply) {
        let (completed, tenths) = (!self.random.one_in(6), self.random.between(7, 11).min(10));
        let issue = format!("\"{}\"", self.words("Something is missing. "));
        saying.parts = text(&format!(
            "{{\"completed\": {completed}, \"confidence\": {}, \"issues\": [{}], \"suggestion\": \"\"}}",
            f64::from(u32::try_from(tenths).unwrap()) / 10.0,
            if self.random.one_in(2) { &issue } else { "" }
        ));
        match self.random.below(10) {
            0 => saying.parts = text("It looks fine."),
            1 => saying.error = Some(self.failure(true)),
            _ => {}
        }
    }

    /// A step of the work, or the end of it.
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

    /// `words`, with what nobody may be told or what guardrails look for where that happens.
    fn words(&self, words: &str) -> String {
        let mut said = words.to_owned();
        if let Some(secret) = self.scenario.secret.as_ref().filter(|_| self.random.one_in(4)) {
            said = format!("{said}The key is {secret}, is it not? ");
        }
        if self.random.one_in(self.scenario.rates.guarded) {
            said.push_str("This is forbidden. ");
        }
        said
    }

    fn call(&self, item: u64, name: &str) -> Part {
        let secret = self.scenario.secret.as_ref().filter(|_| self.random.one_in(8));
        let arguments = match secret {
            Some(secret) => format!("{{\"item\":{item},\"with\":\"{secret}\"}}"),
            None => format!("{{\"item\":{item}}}"),
        };
        call(&format!("call_{:x}", self.random.any()), name, arguments)
    }

    /// What the model does as its kind does; `late` in a run it does what ends it.
    fn misbehave(&self, saying: &mut SimulatedReply, late: bool) {
        match self.kind {
            ModelKind::Steady | ModelKind::Lying => {}
            ModelKind::Looping => self.repeat_calls(saying, late),
            ModelKind::Malformed => {
                let arguments =
                    *self.random.pick(&["{\"item\": ", "", "[1]", "{\"item\":1,\"item\":2}", "item 1"]);
                let name = if self.random.one_in(4) { "wirte" } else { "write_file" };
                saying.parts = vec![call(&format!("m{:x}", self.random.any()), name, arguments.to_owned())];
            }
            ModelKind::Verbose => {
                saying.parts = text(&"On and on and on it goes. ".repeat(100));
                saying.finish =
                    if self.random.one_in(5) { FinishReason::Paused } else { FinishReason::Length };
            }
            ModelKind::Silent => {
                saying.parts = match self.random.below(4) {
                    0 => Vec::new(),
                    1 => text(" "),
                    2 => text(ANNOUNCEMENT),
                    _ => vec![Part::Thinking { text: "Nothing comes to mind.".to_owned(), opaque: None }],
                };
            }
            ModelKind::Refusing if late => self.refuse(saying),
            ModelKind::Refusing => saying.parts.extend(text("I would rather not, but let me see. ")),
            ModelKind::Failing => saying.error = Some(self.failure(late)),
            ModelKind::Slow if late || self.random.one_in(6) => saying.stalls = true,
            ModelKind::Slow => saying.latency = Duration::from_secs(self.random.between(5, 60)),
            ModelKind::Batching => {
                let number = if self.random.one_in(12) {
                    self.random.between(120, 150)
                } else {
                    self.random.between(3, 16)
                };
                saying.parts = (0..number).map(|at| self.call(at, "read")).collect();
            }
            ModelKind::Duplicating => {
                let again = |at: u64| {
                    let id = *self.random.pick(&["a", "b", "", "a_2"]);
                    call(id, "write_file", format!("{{\"item\":{at}}}"))
                };
                saying.parts = (0..self.random.between(1, 4)).map(again).collect();
            }
            ModelKind::Bulky => {
                let long = "x y ".repeat(usize::try_from(self.random.between(100, 900)).unwrap());
                let arguments = format!("{{\"item\":{},\"with\":\"{long}\"}}", self.random.below(99));
                saying.parts = vec![call(&format!("b{:x}", self.random.any()), "write_file", arguments)];
            }
        }
    }

    /// Does what leads nowhere: one such thing until it is ended, or each for a while.
    fn repeat_calls(&self, saying: &mut SimulatedReply, late: bool) {
        let (seed, number) = (self.shared.scenario.seed, self.shared.requests.get());
        let cycles_habits = cycles_habits(seed, self.kind);
        let habit = if cycles_habits { seed + number / EACH_HABIT } else { seed / 2 };
        let fails = !cycles_habits || number % EACH_HABIT < FAILURES_IN_A_ROW;
        saying.parts = match habit % 14 {
            even if cycles_habits && even % 2 == 0 && number.is_multiple_of(EACH_HABIT) => text(ANNOUNCEMENT),
            0 | 7 if late && !cycles_habits => text(ANNOUNCEMENT),
            1 => vec![self.call(number % 2, "read")],
            0 | 2 | 7 => (0..self.random.between(1, 4)).map(|at| self.call(at, "write_file")).collect(),
            3 | 12 => vec![self.call(number, "read"), self.call(OUT_OF_REACH + number, "write_file")],
            4 | 8 | 9 | 10 => vec![self.call(OUT_OF_REACH + number, "read")],
            5 | 11 | 13 if fails => vec![self.call(number, &format!("wirte_{number}"))],
            _ => vec![self.call(0, "read")],
        };
    }

    fn refuse(&self, saying: &mut SimulatedReply) {
        saying.finish = match self.random.below(6) {
            0 | 1 => FinishReason::Refusal,
            2 | 3 => FinishReason::ContentFilter,
            4 => FinishReason::Filtered("SAFETY".to_owned()),
            _ => FinishReason::Other("odd".to_owned()),
        };
        if self.random.one_in(8) {
            saying.finish = FinishReason::WindowFull;
        }
    }

    fn failure(&self, late: bool) -> LlmError {
        let kinds = if late { &FAILURES[PASSING..] } else { &FAILURES[..PASSING] };
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
    Part::ToolCall(ToolCall { id: id.to_owned(), name: name.to_owned(), arguments, opaque: None })
}

fn finish(parts: &[Part]) -> FinishReason {
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    if calls { FinishReason::ToolCalls } else { FinishReason::Stop }
}
