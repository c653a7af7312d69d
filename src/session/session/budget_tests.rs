//! Tests of budgets, caps and costs of a session.

use super::tests::*;
use super::*;
use crate::conversation_images::tests::png;
use crate::output_schema::OutputSchema;
use agent_core::image::Image;
use agent_core::limits::{FallbackChain, ModelTerms, SpendingCaps};
use agent_core::price::{Price, PriceQuote, TokenRates, Usd};
use agent_core::stop_reason::ReachedLimit;
use agent_core::usage::Usage;
use agent_text::tokens;
use std::rc::Rc;

/// Limits of a run with a paid model: ten dollars per million prompt tokens, a hundred per million output tokens.
pub(super) fn paid(usd: Option<f64>, tokens: Option<u64>) -> Limits {
    let quote = PriceQuote { input: 10.0, output: 100.0, cached_read: Some(1.0), cached_write: Some(12.5) };
    let price = Price { rates: TokenRates::try_from(quote).unwrap(), long: None };
    let caps = SpendingCaps {
        usd: usd.map(|usd| Usd::try_from(usd).unwrap()),
        tokens,
        tools_tokens: 500,
        closes: true,
        ..SpendingCaps::default()
    };
    let terms = ModelTerms { price: Some(price), output_limit: Some(4000), ..ModelTerms::default() };
    Limits { caps, models: FallbackChain { first: terms, fallbacks: Vec::new() }, ..limits() }
}

#[test]
fn l12_the_longest_answer_shrinks_with_what_is_left_until_it_is_of_no_use() {
    let mut session = started_session(paid(Some(1.0), None));
    let spend = |session: &mut Session, dollars: f64| {
        session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
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
    assert_eq!(session.exceeded_limit(Purpose::Step), None);
    spend(&mut session, 0.2);
    assert_eq!(session.exceeded_limit(Purpose::Step), Some(ReachedLimit::Usd));
    assert_eq!(session.exceeded_limit(Purpose::Closing), None);
    spend(&mut session, 0.19);
    assert_eq!(session.exceeded_limit(Purpose::Closing), Some(ReachedLimit::Usd));
}

#[test]
fn l13_a_call_that_may_not_fit_is_not_made_and_nothing_is_summarised() {
    let session = started_session(paid(Some(0.05), None));
    let mut closing = session.clone();
    let reached = close(&mut closing, now());
    assert_eq!(reached, (StopReason::BudgetExceeded, Some((ReachedLimit::Usd, Some(0.05)))));
    let verdict = stop_of(&closing, now());
    assert_eq!(verdict.limit, Some(LimitReached { limit: ReachedLimit::Usd, value: Some(0.05) }));
    assert!(
        verdict.output.text().contains("the remaining budget is too small for another call"),
        "{verdict:?}"
    );
}

#[test]
fn l13_the_schema_of_the_answer_is_paid_for_also_where_a_prompt_was_counted_without_it() {
    let schema =
        Rc::new(OutputSchema::parse(r#"{"type": "string", "description": "of the answer"}"#).unwrap());
    let prompt = |demanded: Option<Rc<OutputSchema>>| {
        let mut session = started_session(paid(Some(1.0), None)).with_output_schema(demanded);
        let caps = session.limits().caps;
        let before = session.run.spending.prompt(&caps);
        respond(&mut session, Purpose::Step, text("x"), FinishReason::Stop);
        [before, session.run.spending.prompt(&caps)]
    };
    let tokens = tokens::upper_bound(schema.text());
    assert_eq!(prompt(Some(schema)), prompt(None).map(|without| without + tokens));
}

#[test]
fn calls_beyond_the_cap_do_not_run_and_close_the_run() {
    let caps = SpendingCaps { tool_calls: Some(2), closes: true, ..SpendingCaps::default() };
    let mut session = started_session(Limits { caps, ..limits() });
    let calls = vec![call("a", "{}"), call("b", "{}"), call("c", "{}")];
    respond(&mut session, Purpose::Step, calls, FinishReason::ToolCalls);
    let NextAction::RunTools(run) = session.next_action(now()) else { panic!("nothing runs") };
    assert_eq!(run.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    answer_call(&mut session, "b");
    answer_call(&mut session, "a");
    let NextAction::RefuseCalls(refused, _) = session.next_action(now()) else {
        panic!("nothing is refused")
    };
    assert_eq!(refused.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(), ["c"]);
    answer_call(&mut session, "c");
    let (reason, reached) = close(&mut session, now());
    assert_eq!((reason, reached.unwrap().0), (StopReason::BudgetExceeded, ReachedLimit::ToolCalls));
    assert!(matches!(session.next_action(now()), NextAction::AddUserMessage(MessageOrigin::System, _)));
    let outcome = session.stop_with(StopReason::BudgetExceeded, None);
    assert_eq!(outcome.limit.unwrap().limit, ReachedLimit::ToolCalls);
}

#[test]
fn a_run_of_a_resumed_session_has_a_budget_of_its_own_and_the_costs_add_up() {
    let mut session = started_session(paid(Some(1.0), None));
    let cost = Usd::try_from(0.95).unwrap();
    for finish in [FinishReason::Stop, FinishReason::ToolCalls] {
        session.apply(&run_start());
        prompt(&mut session, "go on");
        assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
        session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 2, digest: None });
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

#[test]
fn images_count_for_the_budget_and_the_window_until_the_provider_has_counted_them() {
    let mut session = started_session(paid(None, Some(20_000)));
    assert_eq!(session.exceeded_limit(Purpose::Step), None);
    let image = Image::check("i", &png(8_000, 8_000)).unwrap();
    let event =
        Event::UserMessage { text: "look".into(), origin: MessageOrigin::Prompt, images: vec![image] };
    session.apply(&event);
    assert_eq!(session.exceeded_limit(Purpose::Step), Some(ReachedLimit::Tokens));
    assert!(session.prompt_tokens() > 16_384);
    assert_eq!(session.tally().images.len(), 1);
}
