//! Tests of the session with scripted models: no network, no files, no clock.

use super::*;
use agent_core::compaction::CompactionLimits;
use agent_core::evaluation::EvaluationLimits;
use agent_core::language::Language;
use agent_core::limits::{BreakerLimits, FallbackChain, OnLimit, SpendingCaps};
use agent_core::message::OpaqueData;
use agent_core::message::Part;
use agent_core::stop_reason::{ReachedLimit, Status};
use agent_core::usage::Usage;
use proptest::prelude::*;

pub(super) fn limits() -> Limits {
    Limits {
        max_steps: 50,
        timeout: None,
        step_timeout: None,
        on_limit: OnLimit::Summary,
        max_continuations: 3,
        max_malformed: 3,
        breakers: BreakerLimits::default(),
        warns_when_low: false,
        language: Language::En,
        caps: SpendingCaps::default(),
        models: FallbackChain::default(),
        tools_bytes: 0,
        gate_rounds: None,
        review_passes: None,
        evaluation: EvaluationLimits::default(),
        compaction: CompactionLimits::default(),
    }
}

pub(super) fn now() -> Moment {
    Moment { elapsed: Duration::ZERO, interrupted: false }
}

pub(super) fn started_session(limits: Limits) -> Session {
    let mut session = Session::new(limits);
    session.apply(&Event::System { text: "be good".into() });
    prompt(&mut session, "do it");
    session
}

pub(super) fn prompt(session: &mut Session, text: &str) {
    session.apply(&Event::user_message(text, MessageOrigin::Prompt));
}

pub(super) fn respond(session: &mut Session, purpose: Purpose, parts: Vec<Part>, finish: FinishReason) {
    session.apply(&Event::StepStart { purpose, messages: session.messages().len(), digest: None });
    session.apply(&Event::RequestSent { attempt: 1 });
    let message = Message { role: Role::Assistant, parts };
    let usage = Some(Usage { input: 10, output: 1, ..Usage::default() });
    session.apply(&Event::ModelResponse { purpose, message, finish, usage, cost_usd: None, latency_ms: 1 });
}

pub(super) fn text(text: &str) -> Vec<Part> {
    vec![Part::Text { text: text.into() }]
}

pub(super) fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "read_file", arguments))
}

pub(super) fn answer_call(session: &mut Session, id: &str) {
    session.apply(&ended(id));
}

pub(super) fn ended(id: &str) -> Event {
    Event::tool_not_run(
        "read_file".into(),
        String::new(),
        ToolResult { call_id: id.into(), text: "content".into(), is_error: false, images: Vec::new() },
        Vec::new(),
    )
}

/// Starts the closing, and returns its reason and the limit with its value.
pub(super) fn close(
    session: &mut Session,
    moment: Moment,
) -> (StopReason, Option<(ReachedLimit, Option<f64>)>) {
    let NextAction::StartClosing(reason, limit) = session.next_action(moment) else {
        panic!("no closing: {:?}", session.next_action(moment))
    };
    session.apply(&Event::Closing { reason, limit });
    (reason, limit.map(|reached| (reached.limit, reached.value)))
}

pub(super) fn stop_of(session: &Session, moment: Moment) -> RunEnd {
    match session.next_action(moment) {
        NextAction::Stop(verdict) => verdict,
        other => panic!("expected a stop, got {other:?}"),
    }
}

#[test]
fn l36_no_later_call_takes_the_name_under_which_a_subagent_was_paid() {
    let mut session = started_session(limits());
    let start = Event::RunStart {
        agent: "plan".into(),
        model: "m".into(),
        mode: "yolo".into(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 1,
        resumed: false,
        sandbox: "full".into(),
        bounds: None,
    };
    session.apply(&Event::Subagent { call_id: "plan".into(), event: Box::new(start), budget_share: None });
    assert!(session.has_call_id("plan"));
}

#[test]
fn l03_uses_of_tools_stand_in_the_models_order_and_those_of_subagents_behind_them() {
    let mut session = started_session(limits());
    respond(&mut session, Purpose::Step, vec![call("a", "{}"), call("b", "{}")], FinishReason::ToolCalls);
    let used = |id: &str, name: &str| {
        let mut event = ended(id);
        if let Event::ToolCallEnd { name: tool, .. } = &mut event {
            name.clone_into(tool);
        }
        event
    };
    let nested = |name: &str| Event::Subagent {
        call_id: "a".into(),
        event: Box::new(used("n", name)),
        budget_share: None,
    };
    for event in [nested("one"), used("b", "b"), nested("two"), used("a", "a")] {
        session.apply(&event);
    }
    let names: Vec<&str> = session.tally().tools_used.iter().map(|used| used.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "one", "two"]);
}

#[test]
fn an_answer_without_calls_ends_the_run() {
    let mut session = started_session(limits());
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    respond(&mut session, Purpose::Step, text("hi"), FinishReason::Stop);
    let verdict = stop_of(&session, now());
    assert_eq!((verdict.reason, &*verdict.output.text()), (StopReason::LlmDone, "hi"));
}

#[test]
fn results_are_in_the_order_of_the_calls_whatever_finishes_first() {
    let mut session = started_session(limits());
    respond(&mut session, Purpose::Step, vec![call("a", "{}"), call("b", "{}")], FinishReason::ToolCalls);
    answer_call(&mut session, "b");
    assert_eq!(session.open_calls().len(), 1);
    let Event::ToolCallEnd { result, .. } = ended("a") else { panic!("not a result") };
    session.apply(&Event::tool_not_run("list_files".into(), String::new(), result, Vec::new()));
    let used: Vec<&str> = session.tally().tools_used.iter().map(|used| used.name.as_str()).collect();
    assert_eq!(used, ["list_files", "read_file"]);
    let last = session.messages().last().unwrap();
    let ids: Vec<&str> = last
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolResult(result) => result.call_id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
}

#[test]
fn a_limit_asks_for_one_closing_summary() {
    let mut session = started_session(Limits { max_steps: 1, ..limits() });
    respond(&mut session, Purpose::Step, vec![call("a", "{}")], FinishReason::ToolCalls);
    answer_call(&mut session, "a");
    assert_eq!(close(&mut session, now()), (StopReason::MaxSteps, Some((ReachedLimit::Steps, Some(1.0)))));
    let NextAction::AddUserMessage(origin, instruction) = session.next_action(now()) else {
        panic!("no instruction")
    };
    assert!(instruction.starts_with("[SYSTEM] "));
    session.apply(&Event::user_message(instruction, origin));
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Closing));
    respond(&mut session, Purpose::Closing, text("half done"), FinishReason::Stop);
    let verdict = stop_of(&session, now());
    assert_eq!((verdict.reason, &*verdict.output.text()), (StopReason::MaxSteps, "half done"));
    assert_eq!(session.tally().steps, 1);
}

#[test]
fn a_closing_that_no_longer_fits_ends_with_the_fixed_text() {
    let limits = Limits { timeout: Some(Duration::from_secs(10)), ..limits() };
    let mut session = started_session(limits);
    let late = Moment { elapsed: Duration::from_secs(9), interrupted: false };
    assert_eq!(close(&mut session, late).0, StopReason::Timeout);
    let too_late = Moment { elapsed: Duration::from_secs(10), interrupted: false };
    let verdict = stop_of(&session, too_late);
    assert!(verdict.output.text().contains("timeout"), "{verdict:?}");
    assert_eq!(verdict.limit, Some(LimitReached { limit: ReachedLimit::Time, value: Some(10.0) }));
}

// Fault B8: the time limits of a step and of the run had the same text.
#[test]
fn the_time_limit_of_a_step_differs_from_that_of_the_run() {
    let limits = Limits {
        timeout: Some(Duration::from_secs(100)),
        step_timeout: Some(Duration::from_secs(30)),
        ..limits()
    };
    for on_limit in [OnLimit::Summary, OnLimit::Stop] {
        for (seconds, reached) in [(30, (ReachedLimit::StepTime, 30.0)), (95, (ReachedLimit::Time, 100.0))] {
            let mut session = started_session(Limits { on_limit, ..limits.clone() });
            let moment = Moment { elapsed: Duration::from_secs(seconds), interrupted: false };
            session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
            session.apply(&Event::RequestSent { attempt: 1 });
            session.apply(&Event::ModelAbandoned { purpose: Purpose::Step, reason: StopReason::Timeout });
            if on_limit == OnLimit::Summary {
                close(&mut session, moment);
            }
            let outcome = session.stop_with(StopReason::Timeout, None);
            let outcome = if on_limit == OnLimit::Stop { stop_of(&session, moment) } else { outcome };
            let (limit, value) = reached;
            assert_eq!(
                outcome.limit,
                Some(LimitReached { limit, value: Some(value) }),
                "{on_limit:?} {seconds}"
            );
        }
    }
}

// Fault B18: a step whose request was never sent counted.
#[test]
fn a_call_that_was_abandoned_before_its_request_is_no_step() {
    let mut session = started_session(limits());
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    session.apply(&Event::ModelAbandoned { purpose: Purpose::Step, reason: StopReason::UserInterrupt });
    assert_eq!((session.tally().steps, session.tally().requests), (0, 0));
}

// Fault B19: the text of a failed run was its output.
#[test]
fn an_answer_with_an_unknown_finish_reason_is_no_output() {
    let mut session = started_session(limits());
    respond(&mut session, Purpose::Step, text("odd"), FinishReason::Other("weird".to_owned()));
    let outcome = stop_of(&session, now());
    assert_eq!((outcome.reason, &*outcome.output.text()), (StopReason::LlmError, ""));
}

#[test]
fn a_cut_answer_is_continued_and_joined_a_limited_number_of_times() {
    let mut session = started_session(limits());
    for piece in ["a", "b", "c"] {
        respond(&mut session, Purpose::Step, text(piece), FinishReason::Length);
        let NextAction::AddUserMessage(origin, text) = session.next_action(now()) else {
            panic!("not continued")
        };
        session.apply(&Event::user_message(text, origin));
    }
    let mut cut = session.clone();
    respond(&mut session, Purpose::Step, text("d"), FinishReason::Stop);
    assert_eq!(stop_of(&session, now()).output, "abcd".into());
    respond(&mut cut, Purpose::Step, text("d"), FinishReason::Length);
    let verdict = stop_of(&cut, now());
    assert_eq!((verdict.reason, &*verdict.output.text()), (StopReason::Truncated, "abcd"));
}

#[test]
fn l17_what_a_hook_says_between_the_pieces_of_an_answer_loses_none_of_them() {
    let mut session = started_session(limits());
    for _ in 0..3 {
        respond(&mut session, Purpose::Step, text("a"), FinishReason::Length);
        let NextAction::AddUserMessage(origin, text) = session.next_action(now()) else {
            panic!("not continued")
        };
        session.apply(&Event::user_message(text, origin));
        session.apply(&Event::user_message("[Hook context]: hm", MessageOrigin::Hook));
    }
    respond(&mut session, Purpose::Step, text("b"), FinishReason::Length);
    let verdict = stop_of(&session, now());
    assert_eq!((verdict.reason, &*verdict.output.text()), (StopReason::Truncated, "aaab"));
}

#[test]
fn malformed_calls_in_a_row_close_the_run_and_a_good_one_resets() {
    let mut session = started_session(limits());
    for (turn, arguments) in ["{", "{", "{}", "{", "{", "{"].into_iter().enumerate() {
        assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step), "turn {turn}");
        let id = format!("c{turn}");
        respond(&mut session, Purpose::Step, vec![call(&id, arguments)], FinishReason::ToolCalls);
        answer_call(&mut session, &id);
    }
    assert_eq!(session.next_action(now()), NextAction::StartClosing(StopReason::ConsecutiveErrors, None));
}

#[test]
fn a_failure_and_an_interrupt_stop_at_once() {
    let mut session = started_session(limits());
    let interrupted = Moment { elapsed: Duration::ZERO, interrupted: true };
    assert_eq!(stop_of(&session, interrupted).reason, StopReason::UserInterrupt);
    let failure = Failure { kind: FailureKind::Auth, message: "no".into(), retryable: false };
    session.apply(&Event::ModelFailed { purpose: Purpose::Step, failure, billed: None });
    let verdict = stop_of(&session, now());
    assert_eq!((verdict.reason, &*verdict.output.text()), (StopReason::AuthError, ""));
}

#[test]
fn an_unknown_finish_reason_is_never_a_success() {
    let mut session = started_session(limits());
    respond(&mut session, Purpose::Step, text("hm"), FinishReason::Other("odd".into()));
    let verdict = stop_of(&session, now());
    assert_eq!(verdict.reason, StopReason::LlmError);
    assert!(verdict.error.unwrap().message.contains("odd"));
}

#[test]
fn a_closed_session_needs_a_user_message() {
    let mut session = started_session(limits());
    assert!(session.has_task() && !session.needs_user_message());
    session.apply(&Event::user_message("[SYSTEM] answer now", MessageOrigin::System));
    assert!(session.needs_user_message());
    prompt(&mut session, "go on");
    assert!(!session.needs_user_message());
}

/// What a scripted model does in one turn.
#[derive(Debug, Clone)]
enum Turn {
    Text(FinishReason),
    Calls(Vec<String>),
    Fails,
    TimesOut,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let finish = prop_oneof![Just(FinishReason::Stop), Just(FinishReason::Length)];
    let arguments = prop_oneof![Just("{}".to_owned()), Just("{".to_owned())];
    let turn = prop_oneof![
        1 => finish.prop_map(Turn::Text),
        8 => prop::collection::vec(arguments, 1..4).prop_map(Turn::Calls),
        1 => Just(Turn::Fails),
        1 => Just(Turn::TimesOut),
    ];
    prop::collection::vec(turn, 1..30)
}

fn play(session: &mut Session, purpose: Purpose, turn: Turn, serial: &mut u32) {
    match turn {
        Turn::Text(finish) => respond(session, purpose, text("x"), finish),
        Turn::Calls(_) if purpose == Purpose::Closing => {
            respond(session, purpose, text(""), FinishReason::Stop);
        }
        Turn::Calls(arguments) => {
            let calls = arguments.iter().map(|arguments| {
                *serial += 1;
                call(&format!("c{serial}"), arguments)
            });
            respond(session, purpose, calls.collect(), FinishReason::ToolCalls);
        }
        Turn::Fails => {
            let failure = Failure { kind: FailureKind::Server, message: "500".into(), retryable: true };
            session.apply(&Event::ModelFailed { purpose, failure, billed: None });
        }
        Turn::TimesOut => {
            session.apply(&Event::ModelAbandoned { purpose, reason: StopReason::Timeout });
        }
    }
}

/// Checks that every call has exactly one result, in the next message.
pub(super) fn check_pairs(messages: &[Arc<Message>]) {
    let turns = messages.iter().filter(|message| message.tool_calls().next().is_some()).count();
    assert_eq!(turns, messages.iter().filter(|message| message.role == Role::Tool).count());
    for (at, message) in messages.iter().enumerate() {
        let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        if calls.is_empty() {
            continue;
        }
        let next = messages.get(at + 1).expect("a turn with calls is followed by its results");
        let results: Vec<&str> = next
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolResult(result) => Some(result.call_id.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(calls, results);
    }
}

pub(super) fn run_start() -> Event {
    Event::RunStart {
        agent: "build".into(),
        model: "m".into(),
        mode: "yolo".into(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 5,
        resumed: true,
        sandbox: "none".into(),
        bounds: None,
    }
}

proptest! {
    #[test]
    fn runs_end_with_valid_requests_whatever_the_model_does(script in turns(), max_steps in 1u32..12) {
        let mut session = started_session(Limits { max_steps, ..limits() });
        let mut script = script.into_iter();
        let (mut requests, mut serial) = (0, 0);
        let mut steps = 0;
        loop {
            steps += 1;
            prop_assert!(steps < 1000, "the run does not end");
            match session.next_action(now()) {
                NextAction::CallModel(purpose) => {
                    check_pairs(session.messages());
                    requests += 1;
                    let turn = script.next().unwrap_or(Turn::Text(FinishReason::Stop));
                    play(&mut session, purpose, turn, &mut serial);
                }
                NextAction::RunTools(calls) => {
                    prop_assert!(!calls.is_empty());
                    for call in calls.iter().rev() {
                        answer_call(&mut session, &call.id);
                    }
                }
                NextAction::RefuseCalls(calls, _) => panic!("no cap was set: {calls:?}"),
                NextAction::SwitchModel { from, .. } => panic!("nothing takes over from {from}"),
                NextAction::Compact(compact) => panic!("no window was set: {compact:?}"),
                NextAction::RunGates | NextAction::RecordEvaluation(_) | NextAction::ReviewChanges => panic!("nothing checks answers"),
                NextAction::AddUserMessage(origin, text) => session.apply(&Event::user_message(text, origin)),
                NextAction::StartClosing(reason, limit) => session.apply(&Event::Closing { reason, limit }),
                NextAction::Stop(verdict) => {
                    let failed = verdict.reason.status() == Status::Failed;
                    prop_assert_eq!(verdict.output.text().is_empty(), failed, "{:?}", verdict);
                    break;
                }
            }
        }
        prop_assert!(requests <= max_steps + 1);
        check_pairs(session.messages());
    }

    #[test]
    fn every_call_has_a_result_whatever_records_are_lost(lost in prop::collection::vec(any::<bool>(), 12)) {
        let calls = vec![call("a", "{}"), call("b", "{}")];
        let response = |parts| Event::ModelResponse {
            purpose: Purpose::Step,
            message: Message { role: Role::Assistant, parts },
            finish: FinishReason::Stop,
            usage: None,
            cost_usd: None,
            latency_ms: 1,
        };
        let prompt_event = |text: &str| Event::user_message(text, MessageOrigin::Prompt);
        let events = [
            prompt_event("do it"),
            response(calls),
            ended("a"),
            ended("b"),
            response(vec![call("c", "{}")]),
            ended("c"),
            response(text("done")),
            prompt_event("more"),
            response(vec![call("d", "{}")]),
            ended("d"),
            response(text("done again")),
            prompt_event("and more"),
        ];
        let mut session = started_session(limits());
        for (event, lost) in events.iter().zip(lost) {
            if !lost {
                session.apply(event);
            }
        }
        prompt(&mut session, "go on");
        check_pairs(session.messages());
    }
}

#[test]
fn opaque_data_is_not_sent_to_another_model() {
    let sealed = |data: &str| Some(OpaqueData { codec: "responses".into(), data: data.into() });
    let thinking = Part::Thinking { text: "hm".into(), opaque: sealed("secret to it") };
    let begin = |model: &str| match run_start() {
        Event::RunStart { agent, mode, tools, mcp_tools, max_steps, resumed, sandbox, bounds, .. } => {
            let model = model.into();
            Event::RunStart { agent, model, mode, tools, mcp_tools, max_steps, resumed, sandbox, bounds }
        }
        other => other,
    };
    let mut session = Session::new(limits());
    session.apply(&begin("openai/a"));
    prompt(&mut session, "do it");
    respond(&mut session, Purpose::Step, vec![thinking], FinishReason::Stop);
    let is_sealed = |session: &Session| {
        let last = session.messages().last().unwrap();
        matches!(last.parts.first(), Some(Part::Thinking { opaque: Some(_), .. }))
    };
    session.apply(&begin("openai/a"));
    assert!(is_sealed(&session), "the same model");
    session.apply(&begin("openai/b"));
    assert!(!is_sealed(&session), "another model of the same provider");
}
