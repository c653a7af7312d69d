//! Tests of a session whose model fails, or whose window is full.

use super::tests::*;
use super::*;
use crate::output_schema::OutputSchema;
use agent_core::failure::FailureKind;
use agent_core::limits::{FallbackChain, ModelTerms, Window, WindowSource};
use agent_core::message::{OpaqueData, Part};
use agent_core::stop_reason::ReachedLimit;
use agent_core::usage::Usage;
use proptest::prelude::*;
use std::rc::Rc;
use strum::VariantArray;

fn chain(names: &[&str]) -> Limits {
    let mut terms =
        names.iter().map(|name| ModelTerms { model: (*name).to_owned(), ..ModelTerms::default() });
    let models = FallbackChain { first: terms.next().unwrap(), fallbacks: terms.collect() };
    Limits { models, ..limits() }
}

fn start(session: &mut Session, model: &str) {
    session.apply(&Event::RunStart {
        agent: "build".into(),
        model: model.into(),
        mode: "yolo".into(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 50,
        resumed: false,
        sandbox: "none".into(),
        bounds: None,
    });
}

fn fail(session: &mut Session, kind: FailureKind) -> Failure {
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    let failure = Failure { kind, message: format!("it is {}", kind.name()), retryable: false };
    session.apply(&Event::ModelFailed { purpose: Purpose::Step, failure: failure.clone(), billed: None });
    failure
}

/// Applies the next action, which must be a switch of the model.
#[track_caller]
fn switch(session: &mut Session) {
    let NextAction::SwitchModel { from, to, failure } = session.next_action(now()) else {
        panic!("nothing takes over: {:?}", session.next_action(now()))
    };
    session.apply(&Event::ModelSwitched { from, to, failure });
}

#[test]
fn lr6_the_next_model_takes_over_for_the_rest_of_the_run_and_the_step_begins_again() {
    let mut session = started_session(Limits { max_steps: 1, ..chain(&["a/x", "b/y", "c/z"]) });
    start(&mut session, "a/x");
    fail(&mut session, FailureKind::Overloaded);
    switch(&mut session);
    assert_eq!((session.model_in_use(), session.tally().steps), (1, 0));
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    fail(&mut session, FailureKind::Quota);
    switch(&mut session);
    let failure = fail(&mut session, FailureKind::Server);
    let verdict = stop_of(&session, now());
    assert_eq!(verdict.reason, StopReason::LlmError);
    let error = verdict.error.unwrap();
    assert_eq!(error.kind, failure.kind);
    let all = "c/z: it is server; before that, a/x: it is overloaded; b/y: it is quota";
    assert_eq!(error.message, all);
    assert_eq!(session.result(stop_of(&session, now()), Duration::ZERO).model.as_deref(), Some("c/z"));
}

#[test]
fn lr6_a_resumed_session_begins_with_the_chosen_model_again() {
    let mut session = started_session(chain(&["a/x", "b/y"]));
    start(&mut session, "a/x");
    fail(&mut session, FailureKind::Overloaded);
    switch(&mut session);
    start(&mut session, "a/x");
    assert_eq!(session.model_in_use(), 0);
    fail(&mut session, FailureKind::Overloaded);
    switch(&mut session);
}

#[test]
fn lr6_what_a_person_must_mend_ends_the_run_and_so_does_the_end_of_its_time() {
    for kind in [FailureKind::Auth, FailureKind::Request, FailureKind::ContextOverflow, FailureKind::Refusal]
    {
        let mut session = started_session(chain(&["a/x", "b/y"]));
        fail(&mut session, kind);
        assert_eq!(stop_of(&session, now()).error.unwrap().message, format!("it is {}", kind.name()));
    }
    let mut session =
        started_session(Limits { timeout: Some(Duration::from_secs(10)), ..chain(&["a/x", "b/y"]) });
    fail(&mut session, FailureKind::Overloaded);
    let late = Moment { elapsed: Duration::from_secs(9), interrupted: false };
    assert_eq!(stop_of(&session, late).reason, StopReason::LlmError);
    assert!(matches!(session.next_action(now()), NextAction::SwitchModel { .. }));
}

#[test]
fn lr6_what_only_another_model_can_read_is_dropped_at_a_switch() {
    let opaque = |session: &Session| {
        session.messages().iter().flat_map(|message| &message.parts).any(|part| match part {
            Part::Thinking { opaque, .. } => opaque.is_some(),
            _ => false,
        })
    };
    for to in ["a/y", "b/y"] {
        let mut session = started_session(chain(&["a/x", to]));
        start(&mut session, "a/x");
        let data = Some(OpaqueData { codec: "messages".into(), data: serde_json::json!("signature") });
        let parts = vec![Part::Thinking { text: "hm".into(), opaque: data }, call("c1", "{}")];
        respond(&mut session, Purpose::Step, parts, FinishReason::ToolCalls);
        answer_call(&mut session, "c1");
        fail(&mut session, FailureKind::Network);
        assert!(opaque(&session), "{to}");
        switch(&mut session);
        assert!(!opaque(&session), "{to}");
    }
}

/// Returns a session whose next request, with tool definitions of so many bytes, exceeds a window of 10,000 tokens.
fn with_full_window(tools_bytes: u64) -> Session {
    let mut limits = chain(&["a/x"]);
    limits.models.first.window = Some(Window { tokens: 10_000, source: WindowSource::Server });
    let mut session = started_session(Limits { tools_bytes, ..limits });
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    session.apply(&Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts: text("x") },
        finish: FinishReason::Length,
        usage: Some(Usage { input: 9_500, output: 100, ..Usage::default() }),
        cost_usd: None,
        latency_ms: 1,
    });
    prompt(&mut session, "go on");
    session
}

// Fault B2: the closing was skipped when the prompt with the tools was too long, although it is sent without them.
#[test]
fn a_closing_summary_that_fits_without_the_tools_is_requested() {
    let mut session = with_full_window(8_000);
    assert_eq!(close(&mut session, now()).0, StopReason::ContextFull);
    let NextAction::AddUserMessage(origin, instruction) = session.next_action(now()) else {
        panic!("no instruction")
    };
    session.apply(&Event::user_message(instruction, origin));
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Closing));
}

#[test]
fn l14_a_conversation_that_fills_the_window_ends_the_run_without_another_call() {
    let session = with_full_window(0);
    let verdict = stop_of(&session, now());
    let limit = LimitReached { limit: ReachedLimit::Window, value: Some(10_000.0) };
    assert_eq!((verdict.reason, verdict.limit), (StopReason::ContextFull, Some(limit)));
    assert!(verdict.output.text().contains("agent resume --last --model"), "{:?}", verdict.output);
    let error = verdict.error.unwrap();
    assert_eq!(error.kind, FailureKind::ContextOverflow);
    assert!(error.message.contains("10,000 (the server)"), "{}", error.message);
}

#[test]
fn l14_the_schema_of_the_answer_takes_room_in_the_window() {
    let mut limits = chain(&["a/x"]);
    limits.models.first.window = Some(Window { tokens: 10_000, source: WindowSource::User });
    let schema = format!(r#"{{"description": "{}"}}"#, "x".repeat(40_000));
    let schema = Rc::new(OutputSchema::parse(&schema).unwrap());
    let session = started_session(limits).with_output_schema(Some(schema));
    assert_eq!(stop_of(&session, now()).reason, StopReason::ContextFull);
}

#[test]
fn l14_a_server_that_says_so_ends_the_run_the_same_way() {
    let mut session = started_session(chain(&["a/x"]));
    fail(&mut session, FailureKind::ContextOverflow);
    assert_eq!(stop_of(&session, now()).reason, StopReason::ContextFull);
}

#[test]
fn the_output_limit_fits_into_the_window() {
    let mut limits = chain(&["a/x"]);
    limits.models.first.window = Some(Window { tokens: 10_000, source: WindowSource::User });
    assert_eq!(started_session(limits.clone()).output_limit(Purpose::Step), None);
    limits.models.first.output_limit = Some(32_000);
    let longest = started_session(limits).output_limit(Purpose::Step).unwrap();
    assert!((9_900..10_000).contains(&longest), "{longest}");
}

proptest! {
    #[test]
    fn lr6_no_more_models_take_over_than_there_are_and_every_run_ends(
        kinds in prop::collection::vec(prop::option::of(prop::sample::select(FailureKind::VARIANTS.to_vec())), 0..30),
        models in 1usize..5,
    ) {
        let names: Vec<String> = (0..models).map(|number| format!("p{number}/m")).collect();
        let mut session = started_session(chain(&names.iter().map(String::as_str).collect::<Vec<_>>()));
        start(&mut session, "p0/m");
        let mut kinds = kinds.into_iter();
        let (mut model_calls, mut switches) = (0, 0);
        loop {
            match session.next_action(now()) {
                NextAction::CallModel(purpose) => {
                    model_calls += 1;
                    match kinds.next() {
                        Some(Some(kind)) => drop(fail(&mut session, kind)),
                        Some(None) => {
                            let calls = vec![call(&format!("c{model_calls}"), "{}")];
                            respond(&mut session, purpose, calls, FinishReason::ToolCalls);
                        }
                        None => respond(&mut session, purpose, text("done"), FinishReason::Stop),
                    }
                }
                NextAction::SwitchModel { from, to, failure } => {
                    switches += 1;
                    prop_assert_eq!(&from, &names[switches - 1]);
                    prop_assert_eq!(&to, &names[switches]);
                    session.apply(&Event::ModelSwitched { from, to, failure });
                }
                NextAction::RunTools(calls) => calls.iter().for_each(|call| answer_call(&mut session, &call.id)),
                NextAction::Stop(verdict) => {
                    prop_assert_eq!(verdict.error.is_some(), verdict.reason != StopReason::LlmDone);
                    break;
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert!(switches < models && model_calls <= 31);
        prop_assert_eq!(session.model_in_use(), switches);
    }
}
