//! A session that is paid for: budgets, caps, costs.

use super::tests::*;
use super::*;
use crate::agent::chain::{Chain, Terms};
use crate::agent::spending::Caps;
use crate::event::Billed;
use crate::failure::ErrorKind;
use crate::price::{Price, Quote, Rates, Usd};
use crate::stop_reason::Limit;
use crate::usage::Usage;
use proptest::prelude::*;

/// The limits of a run with a model that is paid for: ten dollars for a million prompt tokens, a hundred for a million
/// generated ones.
fn paid(usd: Option<f64>, tokens: Option<u64>) -> Limits {
    let quote = Quote { input: 10.0, output: 100.0, cached_read: Some(1.0), cached_write: Some(12.5) };
    let price = Price { rates: Rates::try_from(quote).unwrap(), long: None };
    let caps = Caps {
        usd: usd.map(|usd| Usd::try_from(usd).unwrap()),
        tokens,
        tools_tokens: 500,
        closes: true,
        ..Caps::default()
    };
    let terms = Terms { price: Some(price), output_limit: Some(4000), ..Terms::default() };
    Limits { caps, models: Chain { first: terms, fallbacks: Vec::new() }, ..limits() }
}

/// What a provider says of what it bills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Report {
    /// All of it.
    Whole,
    /// Nothing.
    Nothing,
    /// More than the request allowed, and bills that.
    TooMuch,
}

/// What becomes of one request to a provider that honours the limits it is sent.
#[derive(Debug, Clone)]
enum Attempt {
    /// It answers: with calls or not, and these shares of what the prompt and the answer may have.
    Answers { calls: bool, prompt: f64, output: f64, report: Report },
    /// It breaks off, billed in full although nobody says so, and is tried again or not.
    Breaks { again: bool },
    /// It answers with nothing of use, says what these shares of prompt and answer used, and is tried again.
    Useless { prompt: f64, output: f64 },
    /// It is turned away, which costs nothing, and tried again.
    TurnedAway,
}

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let report = prop_oneof![
        20 => Just(Report::Whole),
        5 => Just(Report::Nothing),
        1 => Just(Report::TooMuch),
    ];
    let attempt = prop_oneof![
        6 => (any::<bool>(), 0.0..=1.0f64, 0.0..=1.0f64, report).prop_map(
            |(calls, prompt, output, report)| Attempt::Answers { calls, prompt, output, report }
        ),
        1 => any::<bool>().prop_map(|again| Attempt::Breaks { again }),
        1 => (0.0..=1.0f64, 0.0..=1.0f64).prop_map(|(prompt, output)| Attempt::Useless { prompt, output }),
        1 => Just(Attempt::TurnedAway),
    ];
    prop::collection::vec(attempt, 1..60)
}

/// Part of `whole`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "small"
)]
fn share(whole: u64, part: f64) -> u64 {
    ((whole as f64 * part) as u64).min(whole)
}

/// What a provider has billed.
#[derive(Debug, Clone, Copy, Default)]
struct Bill {
    usd: Usd,
    tokens: u64,
    /// It has kept to the limits that it was sent.
    honest: bool,
}

impl Bill {
    fn add(&mut self, price: Price, usage: Usage) -> Usd {
        self.usd += price.of(usage);
        self.tokens += usage.prompt() + usage.output;
        price.of(usage)
    }
}

/// One call of `purpose`, its repetitions included, the way the loop makes it; adds what the provider bills.
fn call_model(
    session: &mut Session,
    purpose: Purpose,
    script: &mut dyn Iterator<Item = Attempt>,
    turn: u32,
    bill: &mut Bill,
) {
    let price = session.terms().price.unwrap();
    let prompt = session.run.spending.prompt(&session.limits().caps);
    let longest = u64::from(session.output_limit(purpose).unwrap());
    session.apply(&Event::StepStart { purpose, messages: 1 });
    loop {
        let attempt = script.next().unwrap_or(Attempt::Answers {
            calls: false,
            prompt: 1.0,
            output: 1.0,
            report: Report::Whole,
        });
        let mut billed = None;
        let kind = match attempt {
            Attempt::Answers { calls, prompt: part, output, report } => {
                let (prompt, output) = (share(prompt, part).max(1), share(longest, output));
                let output = if report == Report::TooMuch { longest + 1_000 + output } else { output };
                bill.honest &= report != Report::TooMuch;
                let usage =
                    Usage { input: prompt / 2, cached_read: prompt - prompt / 2, output, ..Usage::default() };
                let cost = bill.add(price, usage);
                let calls = calls && purpose == Purpose::Step;
                let parts = if calls { vec![call(&format!("c{turn}"), "{}")] } else { text("x") };
                let reports = report != Report::Nothing;
                session.apply(&Event::ModelResponse {
                    purpose,
                    message: Message { role: Role::Assistant, parts },
                    finish: if calls { FinishReason::ToolCalls } else { FinishReason::Length },
                    usage: reports.then_some(usage),
                    cost_usd: reports.then_some(cost),
                    latency_ms: 1,
                });
                return;
            }
            Attempt::Breaks { again } => {
                bill.usd += price.worst(prompt, longest);
                bill.tokens += prompt + longest;
                if !again {
                    let failure =
                        Failure { kind: ErrorKind::CutStream, message: "cut".into(), retryable: true };
                    session.apply(&Event::ModelFailed { purpose, failure, billed: None });
                    return;
                }
                ErrorKind::CutStream
            }
            Attempt::Useless { prompt: part, output } => {
                let (input, output) = (share(prompt, part), share(longest, output));
                let usage = Usage { input, output, ..Usage::default() };
                billed = Some(Billed { usage, cost_usd: Some(bill.add(price, usage)) });
                ErrorKind::EmptyAnswer
            }
            Attempt::TurnedAway => ErrorKind::RateLimit,
        };
        session.apply(&Event::Retry { attempt: 1, delay_ms: 0, kind, message: String::new(), billed });
        if !session.affords_again(purpose) {
            session.apply(&Event::ModelAbandoned { purpose, reason: StopReason::BudgetExceeded });
            return;
        }
    }
}

#[test]
fn l12_the_longest_answer_shrinks_with_what_is_left_until_it_is_of_no_use() {
    let mut session = begun(paid(Some(1.0), None));
    let spend = |session: &mut Session, dollars: f64| {
        session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1 });
        session.apply(&Event::ModelResponse {
            purpose: Purpose::Step,
            message: Message { role: Role::Assistant, parts: text("x") },
            finish: FinishReason::Length,
            usage: Some(Usage { input: 1000, ..Usage::default() }),
            cost_usd: Some(Usd::try_from(dollars).unwrap()),
            latency_ms: 1,
        });
    };
    assert_eq!(session.output_limit(Purpose::Step), Some(4000));
    spend(&mut session, 0.6);
    let lowered = session.output_limit(Purpose::Step).unwrap();
    assert!((2000..3000).contains(&lowered), "{lowered}");
    assert_eq!(session.exceeded(Purpose::Step), None);
    spend(&mut session, 0.2);
    assert_eq!(session.exceeded(Purpose::Step), Some(Limit::Usd));
    assert_eq!(session.exceeded(Purpose::Closing), None);
    spend(&mut session, 0.19);
    assert_eq!(session.exceeded(Purpose::Closing), Some(Limit::Usd));
}

#[test]
fn l13_a_call_that_may_not_fit_is_not_made_and_nothing_is_summarised() {
    let session = begun(paid(Some(0.05), None));
    assert_eq!(session.next_step(now()), Step::Close(StopReason::BudgetExceeded));
    let mut closing = session.clone();
    closing.apply(&Event::Closing { reason: StopReason::BudgetExceeded });
    let verdict = stop_of(&closing, now());
    assert_eq!((verdict.reason, verdict.limit), (StopReason::BudgetExceeded, Some(Limit::Usd)));
    assert!(
        verdict.output.text().contains("what is left of the budget does not pay for another call"),
        "{verdict:?}"
    );
}

#[test]
fn calls_beyond_the_cap_do_not_run_and_close_the_run() {
    let caps = Caps { tool_calls: Some(2), closes: true, ..Caps::default() };
    let mut session = begun(Limits { caps, ..limits() });
    let calls = vec![call("a", "{}"), call("b", "{}"), call("c", "{}")];
    respond(&mut session, Purpose::Step, calls, FinishReason::ToolCalls);
    let Step::RunTools(run) = session.next_step(now()) else { panic!("nothing runs") };
    assert_eq!(run.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    answer_call(&mut session, "b");
    answer_call(&mut session, "a");
    let Step::Refuse(refused, _) = session.next_step(now()) else { panic!("nothing is refused") };
    assert_eq!(refused.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c"]);
    answer_call(&mut session, "c");
    assert_eq!(session.next_step(now()), Step::Close(StopReason::BudgetExceeded));
    session.apply(&Event::Closing { reason: StopReason::BudgetExceeded });
    assert!(matches!(session.next_step(now()), Step::Say(Origin::System, _)));
    assert_eq!(session.stop_with(StopReason::BudgetExceeded, None).limit, Some(Limit::ToolCalls));
}

#[test]
fn a_run_of_a_resumed_session_has_a_budget_of_its_own_and_the_costs_add_up() {
    let mut session = begun(paid(Some(1.0), None));
    let cost = Usd::try_from(0.95).unwrap();
    for finish in [FinishReason::Stop, FinishReason::ToolCalls] {
        session.apply(&run_start());
        prompt(&mut session, "go on");
        assert_eq!(session.next_step(now()), Step::CallModel(Purpose::Step));
        session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 2 });
        session.apply(&Event::ModelResponse {
            purpose: Purpose::Step,
            message: Message { role: Role::Assistant, parts: text("x") },
            finish,
            usage: Some(Usage::default()),
            cost_usd: Some(cost),
            latency_ms: 1,
        });
    }
    let total = session.result(session.stop_with(StopReason::LlmDone, None), Duration::ZERO).cost;
    assert_eq!(total.total_usd, Some(cost.times(2)));
    assert_eq!(total.by_source.get("agent"), Some(&cost.times(2)));
}

proptest! {
    #[test]
    fn l12_no_run_costs_more_than_its_budget_with_a_provider_that_honours_the_limits(
        script in attempts(),
        usd in prop::option::of(0.0..3.0f64),
        tokens in prop::option::of(1u64..60_000),
    ) {
        let mut session = begun(paid(usd, tokens));
        let mut script = script.into_iter();
        let mut bill = Bill { honest: true, ..Bill::default() };
        let mut turn = 0;
        loop {
            turn += 1;
            prop_assert!(turn < 1000, "the run does not end");
            match session.next_step(now()) {
                Step::CallModel(purpose) => {
                    let within = session.limits().caps.usd.is_none_or(|cap| bill.usd <= cap);
                    prop_assert!(within && tokens.is_none_or(|cap| bill.tokens <= cap), "{bill:?}");
                    call_model(&mut session, purpose, &mut script, turn, &mut bill);
                }
                Step::RunTools(calls) => calls.iter().for_each(|call| answer_call(&mut session, &call.id)),
                Step::Refuse(calls, _) => panic!("no cap on calls was set: {calls:?}"),
                Step::Switch { from, .. } => panic!("nothing takes over from {from}"),
                Step::Say(origin, text) => session.apply(&Event::UserMessage { text, origin }),
                Step::Close(reason) => session.apply(&Event::Closing { reason }),
                Step::Stop(_) => break,
            }
        }
        if bill.honest {
            let cap = session.limits().caps.usd;
            prop_assert!(cap.is_none_or(|cap| bill.usd <= cap), "{bill:?} of {cap:?}");
            prop_assert!(tokens.is_none_or(|cap| bill.tokens <= cap), "{bill:?} of {tokens:?}");
        }
    }
}
