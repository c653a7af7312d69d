//! What a simulated model says.

use super::place::OUT_OF_REACH;
use super::random::Random;
use super::shared::Shared;
use super::worker;
use super::world::{Kind, Weather, World, roams};
use crate::event::FinishReason;
use crate::failure::ErrorKind;
use crate::llm::{LlmError, Request};
use crate::message::{Part, ToolCall};
use crate::usage::Usage;
use std::time::Duration;

/// How servers fail.
const FAILURES: [ErrorKind; 12] = [
    ErrorKind::RateLimit,
    ErrorKind::Overloaded,
    ErrorKind::Server,
    ErrorKind::Network,
    ErrorKind::Timeout,
    ErrorKind::CutStream,
    ErrorKind::ToolUseFailed,
    ErrorKind::Malformed,
    ErrorKind::Quota,
    ErrorKind::ContextOverflow,
    ErrorKind::Refusal,
    ErrorKind::Request,
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
pub struct Saying {
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
pub struct Answers<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its world.
    pub world: &'a World,
    /// Its chances.
    pub random: &'a Random,
    /// What the world has come to.
    pub shared: &'a Shared,
}

impl Answers<'_> {
    /// What becomes of `request`.
    pub fn say(&self, request: &Request<'_>) -> Saying {
        let mut saying = Saying {
            parts: Vec::new(),
            finish: FinishReason::Stop,
            error: None,
            latency: Duration::from_millis(self.random.between(50, 4_000)),
            stalls: false,
        };
        if self.world.exact {
            saying.parts = if request.tools.is_empty() {
                text("Nothing.")
            } else {
                worker::next(request.messages, self.world.items)
            };
            saying.finish = finish(&saying.parts);
            return saying;
        }
        let late = self.shared.requests.get() >= self.world.incident;
        if late && self.world.revoked {
            saying.error = Some(LlmError::new(ErrorKind::Auth, "the key was revoked"));
            return saying;
        }
        let vice =
            if late { self.kind == Kind::Looping || !self.random.one_in(6) } else { self.random.one_in(9) };
        let judges = is_asked_for_a_verdict(request);
        if judges {
            self.judge(&mut saying);
        } else if request.tools.is_empty() {
            self.close(&mut saying);
        } else {
            saying.parts = self.work();
        }
        if self.world.weather == Weather::Storms && self.random.below(5) < 2 {
            saying.error = Some(LlmError::new(ErrorKind::CutStream, "the server has failed"));
            return saying;
        }
        if vice && (!judges || self.random.one_in(2)) {
            self.sin(&mut saying, late);
        }
        if saying.finish == FinishReason::Stop {
            saying.finish = finish(&saying.parts);
        }
        saying
    }

    /// What it says where it has no tools: a closing or a summary, which may be cut, be none, or not come.
    fn close(&self, saying: &mut Saying) {
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
    fn judge(&self, saying: &mut Saying) {
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
        if number >= self.world.items {
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
            let name = match self.random.below(if self.world.rates.background > 0 { 9 } else { 8 }) {
                0..=4 => "write_file",
                5..=7 => "read",
                _ => "start",
            };
            parts.push(self.call(number * 4 + at, name));
        }
        parts
    }

    fn finished(&self) -> Vec<Part> {
        match (self.world.schema, self.random.one_in(2)) {
            (true, true) => text("{\"done\":3}"),
            (true, false) => text("{\"done\":\"three\"}"),
            (false, _) => text(&self.words("All is done. ")),
        }
    }

    /// `words`, with what nobody may be told or what guardrails look for where that happens.
    fn words(&self, words: &str) -> String {
        let mut said = words.to_owned();
        if let Some(secret) = self.world.secret.as_ref().filter(|_| self.random.one_in(4)) {
            said = format!("{said}The key is {secret}, is it not? ");
        }
        if self.random.one_in(self.world.rates.guarded) {
            said.push_str("This is forbidden. ");
        }
        said
    }

    fn call(&self, item: u64, name: &str) -> Part {
        let secret = self.world.secret.as_ref().filter(|_| self.random.one_in(8));
        let arguments = match secret {
            Some(secret) => format!("{{\"item\":{item},\"with\":\"{secret}\"}}"),
            None => format!("{{\"item\":{item}}}"),
        };
        call(&format!("call_{:x}", self.random.any()), name, arguments)
    }

    /// What the model does as its kind does; `late` in a run it does what ends it.
    fn sin(&self, saying: &mut Saying, late: bool) {
        match self.kind {
            Kind::Steady | Kind::Lying => {}
            Kind::Looping => self.go_nowhere(saying, late),
            Kind::Malformed => {
                let arguments =
                    *self.random.pick(&["{\"item\": ", "", "[1]", "{\"item\":1,\"item\":2}", "item 1"]);
                let name = if self.random.one_in(4) { "wirte" } else { "write_file" };
                saying.parts = vec![call(&format!("m{:x}", self.random.any()), name, arguments.to_owned())];
            }
            Kind::Verbose => {
                saying.parts = text(&"On and on and on it goes. ".repeat(100));
                saying.finish =
                    if self.random.one_in(5) { FinishReason::Paused } else { FinishReason::Length };
            }
            Kind::Silent => {
                saying.parts = match self.random.below(4) {
                    0 => Vec::new(),
                    1 => text(" "),
                    2 => text(ANNOUNCEMENT),
                    _ => vec![Part::Thinking { text: "Nothing comes to mind.".to_owned(), opaque: None }],
                };
            }
            Kind::Refusing if late => self.refuse(saying),
            Kind::Refusing => saying.parts.extend(text("I would rather not, but let me see. ")),
            Kind::Failing => saying.error = Some(self.failure(late)),
            Kind::Slow if late || self.random.one_in(6) => saying.stalls = true,
            Kind::Slow => saying.latency = Duration::from_secs(self.random.between(5, 60)),
            Kind::Batching => {
                let number = if self.random.one_in(12) {
                    self.random.between(120, 150)
                } else {
                    self.random.between(3, 16)
                };
                saying.parts = (0..number).map(|at| self.call(at, "read")).collect();
            }
            Kind::Duplicating => {
                let again = |at: u64| {
                    let id = *self.random.pick(&["a", "b", "", "a_2"]);
                    call(id, "write_file", format!("{{\"item\":{at}}}"))
                };
                saying.parts = (0..self.random.between(1, 4)).map(again).collect();
            }
            Kind::Bulky => {
                let long = "x y ".repeat(usize::try_from(self.random.between(100, 900)).unwrap());
                let arguments = format!("{{\"item\":{},\"with\":\"{long}\"}}", self.random.below(99));
                saying.parts = vec![call(&format!("b{:x}", self.random.any()), "write_file", arguments)];
            }
        }
    }

    /// Does what leads nowhere: one such thing until it is ended, or each for a while.
    fn go_nowhere(&self, saying: &mut Saying, late: bool) {
        let (seed, number) = (self.shared.world.seed, self.shared.requests.get());
        let roams = roams(seed, self.kind);
        let habit = if roams { seed + number / EACH_HABIT } else { seed / 2 };
        let fails = !roams || number % EACH_HABIT < FAILURES_IN_A_ROW;
        saying.parts = match habit % 14 {
            even if roams && even % 2 == 0 && number.is_multiple_of(EACH_HABIT) => text(ANNOUNCEMENT),
            0 | 7 if late && !roams => text(ANNOUNCEMENT),
            1 => vec![self.call(number % 2, "read")],
            0 | 2 | 7 => (0..self.random.between(1, 4)).map(|at| self.call(at, "write_file")).collect(),
            3 | 12 => vec![self.call(number, "read"), self.call(OUT_OF_REACH + number, "write_file")],
            4 | 8 | 9 | 10 => vec![self.call(OUT_OF_REACH + number, "read")],
            5 | 11 | 13 if fails => vec![self.call(number, &format!("wirte_{number}"))],
            _ => vec![self.call(0, "read")],
        };
    }

    fn refuse(&self, saying: &mut Saying) {
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
        if let Some(secret) = self.world.secret.as_ref().filter(|_| self.random.one_in(3)) {
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
