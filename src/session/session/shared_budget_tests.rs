//! Tests of runs that share one budget, each with a call under way at the same time, whatever the results of the calls.

use super::budget_tests::paid;
use super::tests::*;
use super::*;
use agent_core::budget_share::BudgetShare;
use agent_core::event::BilledUsage;
use agent_core::failure::FailureKind;
use agent_core::limits::ModelTerms;
use agent_core::price::{Price, PriceQuote, TokenRates, Usd};
use agent_core::usage::Usage;
use proptest::prelude::*;

/// Largest number of runs.
const RUNS: usize = 4;

/// Usage reported by a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    /// The whole usage.
    Whole,
    /// No usage.
    Nothing,
    /// More than the request allowed, and billed too.
    TooMuch,
}

/// Result of a request to a provider that respects the limits of the request.
#[derive(Debug, Clone)]
enum Outcome {
    /// An answer, with or without calls, that takes these shares of the allowed prompt and output.
    Answer { calls: bool, prompt: f64, output: f64, report: Report },
    /// A failure that is billed in full without reported usage; retried or not.
    Fails { again: bool },
    /// An unusable answer, billed with these shares of prompt and output; retried or not.
    Unusable { prompt: f64, output: f64, again: bool },
    /// A rejection, which costs nothing; retried or not.
    Rejected { again: bool },
    /// Abandoned by the run; the provider bills it in full.
    Abandoned,
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    let part = || 0.0..=1.0f64;
    let report = prop_oneof![
        20 => Just(Report::Whole),
        5 => Just(Report::Nothing),
        1 => Just(Report::TooMuch),
    ];
    prop_oneof![
        6 => (any::<bool>(), part(), part(), report)
            .prop_map(|(calls, prompt, output, report)| Outcome::Answer { calls, prompt, output, report }),
        2 => any::<bool>().prop_map(|again| Outcome::Fails { again }),
        2 => (part(), part(), any::<bool>())
            .prop_map(|(prompt, output, again)| Outcome::Unusable { prompt, output, again }),
        2 => any::<bool>().prop_map(|again| Outcome::Rejected { again }),
        1 => Just(Outcome::Abandoned),
    ]
}

/// Returns a share of `whole`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "small"
)]
fn share(whole: u64, part: f64) -> u64 {
    ((whole as f64 * part) as u64).min(whole)
}

/// Returns the usage of a call with a prompt partly read from and written to the cache.
fn usage(prompt: u64, output: u64) -> Usage {
    let cached = prompt / 3;
    Usage {
        input: prompt - 2 * cached,
        cached_read: cached,
        cached_write: cached,
        output,
        ..Usage::default()
    }
}

/// Limits of a run with a fallback model that has other prices and shorter answers.
fn falling_back(usd: Option<f64>, tokens: Option<u64>) -> Limits {
    let mut limits = paid(usd, tokens);
    let rates = |input: f64, output: f64| {
        TokenRates::try_from(PriceQuote { input, output, cached_read: None, cached_write: None }).unwrap()
    };
    let price = Price { rates: rates(30.0, 60.0), long: Some((3_000, rates(60.0, 90.0))) };
    let terms = ModelTerms {
        model: "next".into(),
        price: Some(price),
        output_limit: Some(2_000),
        ..ModelTerms::default()
    };
    limits.models.fallbacks.push(terms);
    limits
}

/// The bills of the providers.
#[derive(Debug, Clone, Copy, Default)]
struct Bill {
    usd: Usd,
    tokens: u64,
    /// Whether a provider billed more than it was allowed.
    broken: bool,
}

impl Bill {
    fn add(&mut self, usd: Usd, tokens: u64) {
        self.usd += usd;
        self.tokens += tokens;
    }

    fn is_within(self, usd: Option<Usd>, tokens: Option<u64>) -> bool {
        usd.is_none_or(|cap| self.usd <= cap) && tokens.is_none_or(|cap| self.tokens <= cap)
    }
}

/// A request under way, as its provider sees it.
#[derive(Debug, Clone, Copy)]
struct Request {
    purpose: Purpose,
    price: Price,
    prompt: u64,
    longest: u64,
}

impl Request {
    fn worst(self) -> (Usd, u64) {
        (self.price.max_cost(self.prompt, self.longest), self.prompt + self.longest)
    }
}

/// State of a run between two of its turns.
#[derive(Debug, Clone, Copy)]
enum State {
    Working,
    /// Ready to call its model; other runs may go first.
    Wants(Purpose),
    Asks(Request),
    Over,
}

struct Run {
    session: Session,
    state: State,
    turns: u32,
}

impl Run {
    fn new(limits: Limits) -> Self {
        Self { session: started_session(limits), state: State::Working, turns: 0 }
    }

    fn under_way(&self) -> Option<Request> {
        if let State::Asks(request) = self.state { Some(request) } else { None }
    }

    /// Executes one turn whose costs are charged to `budget_share`; `outcome` is the result of a request under way.
    fn turn(&mut self, budget_share: &mut BudgetShare, outcome: &Outcome, bill: &mut Bill) {
        self.turns += 1;
        std::mem::swap(budget_share, &mut self.session.run.spending.budget_share);
        self.state = match self.state {
            State::Working => self.work(),
            State::Wants(purpose) => self.ask(purpose),
            State::Asks(request) => self.end(request, outcome, bill),
            State::Over => State::Over,
        };
        std::mem::swap(budget_share, &mut self.session.run.spending.budget_share);
    }

    /// Executes actions as the loop does.
    fn work(&mut self) -> State {
        match self.session.next_action(now()) {
            NextAction::CallModel(purpose) => return State::Wants(purpose),
            NextAction::RunTools(calls) => {
                for call in calls {
                    answer_call(&mut self.session, &call.id);
                }
            }
            NextAction::Compact(compact) => panic!("no window was set: {compact:?}"),
            NextAction::RunGates | NextAction::RecordEvaluation(_) | NextAction::ReviewChanges => {
                panic!("nothing checks answers")
            }
            NextAction::RefuseCalls(calls, _) => panic!("no cap on calls was set: {calls:?}"),
            NextAction::SwitchModel { from, to, failure } => {
                self.session.apply(&Event::ModelSwitched { from, to, failure });
            }
            NextAction::AddUserMessage(origin, text) => {
                self.session.apply(&Event::user_message(text, origin));
            }
            NextAction::StartClosing(reason, limit) => self.session.apply(&Event::Closing { reason, limit }),
            NextAction::Stop(_) => return State::Over,
        }
        State::Working
    }

    /// Starts a model call as `call_model` does.
    fn ask(&mut self, purpose: Purpose) -> State {
        if self.session.exceeded_limit(purpose).is_some() {
            return State::Working;
        }
        let request = Request {
            purpose,
            price: self.session.terms().price.unwrap(),
            prompt: self.session.run.spending.prompt(&self.session.limits().caps),
            longest: self.session.output_limit(purpose).unwrap().into(),
        };
        self.session.apply(&Event::StepStart { purpose, messages: 1, digest: None });
        self.session.apply(&Event::RequestSent { attempt: 1 });
        State::Asks(request)
    }

    /// Finishes a model call as `call_model` does: the request ends, or is sent again.
    fn end(&mut self, request: Request, outcome: &Outcome, bill: &mut Bill) -> State {
        let (kind, again, billed) = match *outcome {
            Outcome::Answer { calls, prompt, output, report } => {
                let usage = usage(share(request.prompt, prompt).max(1), share(request.longest, output));
                return self.answer(request, usage, calls, report, bill);
            }
            Outcome::Fails { again } => {
                let (usd, tokens) = request.worst();
                bill.add(usd, tokens);
                (FailureKind::CutStream, again, None)
            }
            Outcome::Unusable { prompt, output, again } => {
                let usage = usage(share(request.prompt, prompt), share(request.longest, output));
                let cost = request.price.cost(usage);
                bill.add(cost, usage.prompt_tokens() + usage.output);
                (FailureKind::EmptyAnswer, again, Some(BilledUsage { usage, cost_usd: Some(cost) }))
            }
            Outcome::Rejected { again } => (FailureKind::RateLimit, again, None),
            Outcome::Abandoned => {
                let (usd, tokens) = request.worst();
                bill.add(usd, tokens);
                return self.abandon(request.purpose, StopReason::Timeout);
            }
        };
        let purpose = request.purpose;
        if !again {
            let failure = Failure { kind, message: "no".into(), retryable: true };
            self.session.apply(&Event::ModelFailed { purpose, failure, billed });
            return State::Working;
        }
        self.session.apply(&Event::Retry {
            attempt: 1,
            retry: 1,
            max_retries: 1,
            answer_discarded: false,
            delay_ms: 0,
            kind,
            message: String::new(),
            billed,
        });
        if !self.session.can_afford_retry(purpose) {
            return self.abandon(purpose, StopReason::BudgetExceeded);
        }
        self.session.apply(&Event::RequestSent { attempt: 2 });
        State::Asks(request)
    }

    fn answer(
        &mut self,
        request: Request,
        usage: Usage,
        calls: bool,
        report: Report,
        bill: &mut Bill,
    ) -> State {
        let beyond = if report == Report::TooMuch { request.longest + 1_000 } else { 0 };
        bill.broken |= beyond > 0;
        let usage = Usage { output: usage.output + beyond, ..usage };
        let cost = request.price.cost(usage);
        bill.add(cost, usage.prompt_tokens() + usage.output);
        let calls = calls && request.purpose == Purpose::Step;
        let id = format!("c{}", self.turns);
        let parts = if calls { vec![call(&id, "{}")] } else { text("x") };
        let reports = report != Report::Nothing;
        self.session.apply(&Event::ModelResponse {
            purpose: request.purpose,
            message: Message { role: Role::Assistant, parts },
            finish: if calls { FinishReason::ToolCalls } else { FinishReason::Length },
            usage: reports.then_some(usage),
            cost_usd: reports.then_some(cost),
            latency_ms: 1,
        });
        State::Working
    }

    fn abandon(&mut self, purpose: Purpose, reason: StopReason) -> State {
        self.session.apply(&Event::ModelAbandoned { purpose, reason });
        State::Working
    }
}

proptest! {
    #[test]
    fn l12_runs_that_share_a_purse_never_spend_more_than_is_in_it(
        script in prop::collection::vec((0..RUNS, outcomes()), 1..200),
        runs in 1..=RUNS,
        usd in prop::option::of(0.0..3.0f64),
        tokens in prop::option::of(1u64..60_000),
    ) {
        let limits = falling_back(usd, tokens);
        let cap = limits.caps.usd;
        let mut runs: Vec<Run> = (0..runs).map(|_| Run::new(limits.clone())).collect();
        let (mut budget_share, mut bill) = (BudgetShare::default(), Bill::default());
        let most = Outcome::Answer { calls: false, prompt: 1.0, output: 1.0, report: Report::Whole };
        let end = (0..20_000).map(|number| (number, most.clone()));
        for (number, outcome) in script.into_iter().chain(end) {
            if runs.iter().all(|run| matches!(run.state, State::Over)) {
                break;
            }
            let at = number % runs.len();
            let was_asking = runs[at].under_way().is_some();
            runs[at].turn(&mut budget_share, &outcome, &mut bill);
            let new_request = runs[at].under_way().filter(|_| !was_asking);
            prop_assert!(new_request.is_none() || bill.is_within(cap, tokens), "a call when nothing was left: {bill:?}");
            let mut bound = bill;
            runs.iter().filter_map(|run| run.under_way().map(Request::worst)).for_each(|(usd, tokens)| bound.add(usd, tokens));
            prop_assert!(bill.broken || bound.is_within(cap, tokens), "{bound:?} of {cap:?} and {tokens:?}");
        }
        prop_assert!(runs.iter().all(|run| matches!(run.state, State::Over)), "a run does not end");
    }
}
