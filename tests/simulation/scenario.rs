//! A random scenario from a seed: kinds of models, limits, faults and their times.

use super::random::Random;
use agent_core::compaction::{CompactionLimits, CompactionStrategy};
use agent_core::evaluation::{Confidence, EvaluationLimits, EvaluationMode};
use agent_core::limits::{
    BreakerLimits, FallbackChain, Limits, ModelTerms, OnLimit, OnRepeat, SpendingCaps, Window, WindowSource,
};
use agent_core::price::{Price, PriceQuote, TokenRates, Usd};
use agent_llm::ToolDefinition;
use agent_text::tokens;
use serde_json::json;
use std::iter;
use std::time::Duration;

/// Behavior of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelKind {
    /// Works through its items, then answers.
    Steady,
    /// Repeats the same call, or two in turn.
    Looping,
    /// Writes invalid arguments and unknown tool names.
    Malformed,
    /// Writes until the output limit.
    Verbose,
    /// Answers with nothing, or only with reasoning.
    Silent,
    /// Reports no usage, too little, too much, or an impossible one.
    Lying,
    /// Refuses, or has its answers filtered.
    Refusing,
    /// Has a server that fails in every way.
    Failing,
    /// Has a server that holds requests open.
    Slow,
    /// Makes more calls at once than allowed.
    Batching,
    /// Repeats call ids, or leaves them empty.
    Duplicating,
    /// Reads and writes so much that the window soon fills.
    Bulky,
}

/// Relative frequency of the first model's kind; higher for kinds that end a run only with certain limits.
const FIRST_KINDS: [(ModelKind, usize); 12] = [
    (ModelKind::Steady, 3),
    (ModelKind::Looping, 10),
    (ModelKind::Malformed, 2),
    (ModelKind::Verbose, 3),
    (ModelKind::Silent, 1),
    (ModelKind::Lying, 1),
    (ModelKind::Refusing, 4),
    (ModelKind::Failing, 2),
    (ModelKind::Slow, 2),
    (ModelKind::Batching, 1),
    (ModelKind::Duplicating, 1),
    (ModelKind::Bulky, 2),
];

impl ModelKind {
    /// Returns all kinds.
    pub fn all() -> [Self; FIRST_KINDS.len()] {
        FIRST_KINDS.map(|(kind, _)| kind)
    }
}

/// Returns a random kind by the frequencies of [`FIRST_KINDS`].
fn first_kind(random: &Random) -> ModelKind {
    let scenarios = FIRST_KINDS.into_iter().flat_map(|(kind, scenarios)| iter::repeat_n(kind, scenarios));
    *random.pick(&scenarios.collect::<Vec<ModelKind>>())
}

/// A fault of a run, with the record of the session at which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies after this record is written.
    Crash(u64),
    /// The disk is full before this record.
    Full(u64),
    /// The user interrupts after this record is written.
    Interrupt(u64),
    /// The user interrupts after this time.
    InterruptAfter(Duration),
}

/// Rates of events in the services: once in how many times, 0 for never.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventRates {
    /// A call is refused.
    pub denied: u64,
    /// A call fails.
    pub fails: u64,
    /// A call waits for approval.
    pub asks: u64,
    /// A result is long.
    pub long: u64,
    /// A call exceeds every time limit.
    pub slow: u64,
    /// A hook returns a text.
    pub hooks: u64,
    /// A hook that returns a text stops the run.
    pub stops: u64,
    /// A text triggers a guardrail.
    pub guarded: u64,
    /// A command runs in the background.
    pub background: u64,
}

/// A condition that makes it hard to stay within the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPlan {
    /// None.
    Normal,
    /// Two of five requests fail and are billed.
    FailingRequests,
    /// Some results are longer than the whole conversation before.
    HugeResults,
}

/// A scenario.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself, and any two go together")]
pub struct Scenario {
    /// Its seed.
    pub seed: u64,
    /// Whether everything depends only on the conversation and the workspace, so that a crash changes nothing.
    pub is_deterministic: bool,
    /// The kind of each model in the fallback chain.
    pub kinds: Vec<ModelKind>,
    /// The limits of the runs.
    pub limits: Limits,
    /// Number of items to write.
    pub items: u64,
    /// Number of the request from which a model misbehaves so that the run ends.
    pub incident: u64,
    /// Whether the API keys are revoked from then on.
    pub revoked: bool,
    /// The faults of the runs, in order.
    pub faults: Vec<Fault>,
    /// Rates of events.
    pub rates: EventRates,
    /// Whether a triggered guardrail ends the run.
    pub halts: bool,
    /// Whether the calls of a turn run in parallel.
    pub parallel_calls: bool,
    /// The secret that must not be emitted.
    pub secret: Option<String>,
    /// The condition of the budget.
    pub fault_plan: FaultPlan,
    /// Whether the answer must fit a schema.
    pub schema: bool,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Steps between checkpoints; 0 for none.
    pub checkpoints: u32,
}

/// Schema of the scenarios that have one.
pub const SCHEMA: &str = r#"{"type":"object","properties":{"done":{"type":"integer"}},"required":["done"]}"#;

/// Whether a looping model changes its habit from time to time, from an early step on.
pub fn cycles_habits(seed: u64, kind: ModelKind) -> bool {
    kind == ModelKind::Looping && !seed.is_multiple_of(3)
}

/// Returns the tools offered.
pub fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str, description: &str| ToolDefinition {
        name: name.to_owned(),
        description: description.into(),
        parameters: json!({"type": "object", "properties": {"item": {"type": "integer"}}}).into(),
    };
    vec![
        tool("read", "Reads an item."),
        tool("start", "Starts a command in the background."),
        tool("write_file", "Writes an item."),
    ]
}

impl Scenario {
    /// Generates the scenario of `seed`.
    pub fn new(seed: u64) -> Self {
        let random = Random::new(seed, 1);
        let is_deterministic = random.one_in(8);
        let kind = first_kind(&random);
        let items = random.between(28, 60);
        let mut scenario = Self {
            seed,
            is_deterministic,
            kinds: vec![if is_deterministic { ModelKind::Steady } else { kind }],
            limits: limits(),
            items,
            incident: if cycles_habits(seed, kind) { 6 } else { random.between(23, 34) },
            revoked: !is_deterministic && random.one_in(11),
            faults: Vec::new(),
            rates: EventRates::default(),
            halts: random.one_in(2),
            parallel_calls: random.one_in(3),
            secret: random.one_in(4).then(|| format!("Zq{:016x}Xv", random.any())),
            fault_plan: FaultPlan::Normal,
            schema: !is_deterministic && random.one_in(40),
            stream: !random.one_in(4),
            checkpoints: if random.one_in(3) { 4 } else { 0 },
        };
        scenario.draw_models(&random);
        if is_deterministic {
            scenario.limits.max_steps = 500;
            scenario.secret = None;
        } else {
            scenario.draw_limits(&random);
            scenario.draw_rates(&random);
        }
        scenario.draw_faults(&random);
        scenario
    }

    /// Whether all models respect the output limit and report their true usage.
    pub fn is_honest(&self) -> bool {
        !self.kinds.contains(&ModelKind::Lying)
    }

    fn draw_models(&mut self, random: &Random) {
        let more = if self.is_deterministic {
            0
        } else {
            [0, 0, 1, 1, 2][usize::try_from(random.below(5)).unwrap()]
        };
        for _ in 0..more {
            self.kinds.push(*random.pick(&ModelKind::all()));
        }
        let mut terms = (0..self.kinds.len()).map(|index| ModelTerms {
            model: format!("simulated/model-{index}"),
            price: Some(price(random)),
            output_limit: random.one_in(2).then(|| u32::try_from(random.between(1_500, 5_000)).unwrap()),
            window: None,
        });
        self.limits.models = FallbackChain { first: terms.next().unwrap(), fallbacks: terms.collect() };
    }

    fn each_model(&mut self, change: impl Fn(&mut ModelTerms)) {
        let FallbackChain { first, fallbacks } = &mut self.limits.models;
        iter::once(first).chain(fallbacks).for_each(change);
    }

    fn draw_limits(&mut self, random: &Random) {
        let limits = &mut self.limits;
        limits.max_steps = u32::try_from(random.between(28, 93)).unwrap();
        limits.max_malformed = [0, 2, 2, 3, 3][usize::try_from(random.below(5)).unwrap()];
        limits.max_continuations = u32::try_from(random.below(4)).unwrap();
        if random.one_in(3) {
            limits.on_limit = OnLimit::Stop;
        }
        limits.caps.closes = limits.on_limit == OnLimit::Summary;
        draw_caps(limits, random);
        if limits.caps.limit_requests() {
            self.fault_plan = match Random::new(self.seed, 3).below(10) {
                0 => FaultPlan::FailingRequests,
                1 => FaultPlan::HugeResults,
                _ => FaultPlan::Normal,
            };
        }
        let loops = self.kinds.contains(&ModelKind::Looping);
        if loops || random.one_in(2) {
            limits.breakers = breakers(random);
        }
        limits.gate_rounds = (!loops && !random.one_in(8)).then(|| u32::try_from(random.below(5)).unwrap());
        limits.review_passes = random.one_in(3).then(|| u32::try_from(random.below(4)).unwrap());
        limits.warns_when_low = random.one_in(2);
        if !random.one_in(8) {
            limits.evaluation = EvaluationLimits {
                mode: *random.pick(&[EvaluationMode::Basic, EvaluationMode::Full, EvaluationMode::Full]),
                max_retries: u32::try_from(random.between(1, 3)).unwrap(),
                threshold: Confidence::try_from(0.8).unwrap(),
            };
        }
        if random.one_in(3) {
            limits.caps.warn_at = Some(Usd::from_picodollars(random.between(1, 80) * 1_000_000_000));
        }
        let held = limits.caps.limit_requests();
        if held {
            self.each_model(|terms| terms.output_limit = terms.output_limit.or(Some(2_000)));
        } else if random.one_in(3) {
            self.each_model(|terms| terms.price = None);
        } else if random.one_in(6) {
            self.each_model(|terms| terms.price = Some(Price::FREE));
        }
        self.draw_windows(random);
    }

    /// Draws small windows, which the conversation fills, and the reaction to it.
    fn draw_windows(&mut self, random: &Random) {
        let bulky = self.kinds.contains(&ModelKind::Bulky);
        if bulky || random.one_in(3) {
            let source = *random.pick(&[WindowSource::User, WindowSource::Server, WindowSource::Table]);
            let tokens = if bulky { random.between(6_000, 16_000) } else { random.between(2_600, 6_600) };
            self.each_model(|terms| terms.window = Some(Window { tokens, source }));
            let strategy = if random.one_in(3) {
                *random.pick(&[CompactionStrategy::Truncate, CompactionStrategy::Off])
            } else {
                CompactionStrategy::Layered
            };
            self.limits.compaction =
                CompactionLimits { strategy, at_percent: 75, keep_recent_steps: 2, every_steps: 4 };
        }
    }

    fn draw_rates(&mut self, random: &Random) {
        let maybe = |often: u64, rate: u64| if random.one_in(often) { rate } else { 0 };
        self.rates = EventRates {
            denied: maybe(3, 12),
            fails: maybe(2, 8),
            asks: maybe(5, 120),
            long: maybe(3, 10),
            slow: maybe(4, 40),
            hooks: maybe(3, 6),
            stops: maybe(4, 25),
            guarded: maybe(6, 60),
            background: maybe(3, 10),
        };
    }

    fn draw_faults(&mut self, random: &Random) {
        let number = *random.pick(&[0, 0, 1, 1, 2, 2]);
        let mut at = 0;
        for _ in 0..if self.is_deterministic { number.max(1) } else { number } {
            at += if random.one_in(5) { random.between(1, 200) } else { random.between(180, 450) };
            self.faults.push(match random.below(if self.is_deterministic { 1 } else { 5 }) {
                0 | 1 => Fault::Crash(at),
                2 => Fault::Full(at),
                3 => Fault::Interrupt(at),
                _ => Fault::InterruptAfter(Duration::from_millis(random.between(1, 400_000))),
            });
        }
    }
}

/// Draws at most one cap that is soon reached.
fn draw_caps(limits: &mut Limits, random: &Random) {
    match random.below(15) {
        0 | 14 => limits.caps.usd = Some(Usd::from_picodollars(random.between(26, 306) * 1_000_000_000)),
        1 | 2 => limits.caps.tokens = Some(random.between(24_000, 64_000)),
        3 | 4 => limits.caps.tool_calls = Some(u32::try_from(random.between(24, 60)).unwrap()),
        5 | 6 => limits.timeout = Some(Duration::from_secs(random.between(110, 270))),
        7 => limits.step_timeout = Some(Duration::from_secs(random.between(20, 90))),
        _ => {}
    }
}

fn limits() -> Limits {
    let (tools_tokens, tools_bytes) = measured(&tools());
    Limits {
        max_steps: 50,
        max_continuations: 2,
        caps: SpendingCaps { tools_tokens, closes: true, ..SpendingCaps::default() },
        tools_bytes,
        ..Limits::default()
    }
}

fn measured(tools: &[ToolDefinition]) -> (u64, u64) {
    let texts = tools.iter().flat_map(|tool| [tool.name.as_str(), &tool.description, tool.parameters.json()]);
    texts
        .fold((0, 0), |(tokens, bytes), text| (tokens + tokens::upper_bound(text), bytes + text.len() as u64))
}

fn price(random: &Random) -> Price {
    let quote = |factor: u64| {
        let input = f64::from(u32::try_from(random.between(1, 40) * factor).unwrap()) / 10.0;
        let cached = random.one_in(2).then_some(input / 10.0);
        let quote = PriceQuote {
            input,
            output: input * 5.0,
            cached_read: cached,
            cached_write: cached.map(|_| input * 1.25),
        };
        TokenRates::try_from(quote).unwrap()
    };
    Price { rates: quote(1), long: random.one_in(4).then(|| (4_000, quote(2))) }
}

/// Draws the breaker limits: the defaults, or those that end a run at once.
fn breakers(random: &Random) -> BreakerLimits {
    BreakerLimits {
        on_repeat: *random.pick(&[OnRepeat::WarnThenStop, OnRepeat::Stop]),
        repeated_calls: 3,
        repeat_window: 9,
        exempt: Vec::new(),
        consecutive_errors: 5,
        same_errors: 4,
        same_results: 4,
        reverted_edits: 3,
        repeated_texts: 3,
        announcements: 1,
    }
}
