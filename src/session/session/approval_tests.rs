//! Tests of turns with calls that wait for approval: what runs, what is interrupted, and the order of messages.

use super::tests::{answer_call, call, ended, limits, now, prompt, respond, started_session, stop_of, text};
use super::*;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest};
use agent_core::limits::SpendingCaps;
use agent_core::message::Part;

fn start(session: &mut Session, id: &str) {
    let Part::ToolCall(call) = call(id, "{}") else { panic!("not a call") };
    session.apply(&Event::ToolCallStart { call, summary: String::new() });
}

/// Records that the call waits, for approval or for its turn.
fn wait(session: &mut Session, id: &str, is_asked: bool) {
    start(session, id);
    let approval = is_asked.then(|| ApprovalRequest {
        id: format!("ask-{id}"),
        call_id: id.into(),
        ..ApprovalRequest::default()
    });
    session.apply(&Event::ToolCallPending { call_id: id.into(), approval });
}

fn approve(session: &mut Session, id: &str) {
    let (id, seal) = (format!("ask-{id}"), String::new());
    session.apply(&Event::ApprovalAnswered { id, answer: ApprovalAnswer::Approve, signature: seal });
}

/// Returns a session whose model made these calls.
fn session_with_calls(ids: &[&str], limits: Limits) -> Session {
    let mut session = started_session(limits);
    let calls = ids.iter().map(|id| call(id, "{}")).collect();
    respond(&mut session, Purpose::Step, calls, FinishReason::ToolCalls);
    session
}

fn again(session: &mut Session) {
    session.apply(&Event::RunStart {
        agent: "build".into(),
        model: "openai/gpt".into(),
        mode: "yolo".into(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 2,
        resumed: true,
        sandbox: "none".into(),
        bounds: None,
    });
}

fn to_run(session: &Session) -> Vec<String> {
    match session.next_action(now()) {
        NextAction::RunTools(calls) => calls.into_iter().map(|call| call.id).collect(),
        other => panic!("expected calls, got {other:?}"),
    }
}

fn ids(calls: Vec<ToolCall>) -> Vec<String> {
    calls.into_iter().map(|call| call.id).collect()
}

#[test]
fn s21_a_call_that_waits_ends_the_run_and_runs_when_it_is_answered() {
    let mut session = session_with_calls(&["a"], limits());
    wait(&mut session, "a", true);
    let verdict = stop_of(&session, now());
    assert_eq!(verdict.reason, StopReason::AwaitingApproval);
    assert!(verdict.output.text().contains("agent approve ID"), "{verdict:?}");
    assert_eq!(session.awaiting_approval()[0].id, "ask-a");
    approve(&mut session, "a");
    again(&mut session);
    assert_eq!(to_run(&session), ["a"]);
    answer_call(&mut session, "a");
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    assert!(session.awaiting_approval().is_empty());
}

#[test]
fn s21_no_call_overtakes_one_that_waits() {
    let mut session = session_with_calls(&["a", "b", "c", "d", "e"], limits());
    assert_eq!(to_run(&session).len(), 5);
    start(&mut session, "a");
    answer_call(&mut session, "a");
    wait(&mut session, "b", true);
    wait(&mut session, "d", true);
    approve(&mut session, "d");
    assert_eq!(stop_of(&session, now()).reason, StopReason::AwaitingApproval);
    wait(&mut session, "e", true);
    approve(&mut session, "b");
    assert_eq!(to_run(&session), ["b", "c", "d"]);
}

#[test]
fn s21_only_what_had_begun_is_cut_off_where_a_call_waits() {
    let mut session = session_with_calls(&["a", "b", "c"], limits());
    assert_eq!(ids(session.interrupted_calls()), ["a", "b", "c"], "nobody knows how far a turn came");
    wait(&mut session, "a", true);
    wait(&mut session, "c", false);
    assert!(session.interrupted_calls().is_empty());
    approve(&mut session, "a");
    start(&mut session, "a");
    assert_eq!(ids(session.interrupted_calls()), ["a"]);
    answer_call(&mut session, "a");
    assert!(session.interrupted_calls().is_empty());
    assert_eq!(to_run(&session), ["b", "c"]);
}

#[test]
fn s21_what_is_said_while_a_call_waits_follows_the_results() {
    let mut session = session_with_calls(&["a", "b"], limits());
    answer_call(&mut session, "a");
    wait(&mut session, "b", true);
    prompt(&mut session, "one");
    session.apply(&Event::user_message("two", MessageOrigin::Hook));
    assert_eq!(stop_of(&session, now()).reason, StopReason::AwaitingApproval);
    approve(&mut session, "b");
    assert_eq!(to_run(&session), ["b"]);
    answer_call(&mut session, "b");
    let roles: Vec<Role> = session.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::User, Role::User]);
    assert_eq!(session.messages()[5].joined_text(), "two");
    respond(&mut session, Purpose::Step, text("done"), FinishReason::Stop);
    prompt(&mut session, "three");
    assert_eq!(session.messages().last().unwrap().joined_text(), "three", "nothing is held back any more");
}

#[test]
fn s21_an_interrupt_and_a_hook_that_ends_the_run_are_told_before_what_waits() {
    let mut session = session_with_calls(&["a"], limits());
    wait(&mut session, "a", true);
    let interrupted = Moment { interrupted: true, ..now() };
    assert_eq!(stop_of(&session, interrupted).reason, StopReason::UserInterrupt);
    session.apply(&Event::HookEnd {
        hook: "guard".into(),
        on: "pre_tool_use".into(),
        verdict: HookVerdict::Stop,
        output: "enough".into(),
        duration_ms: 1,
    });
    assert_eq!(stop_of(&session, now()).reason, StopReason::Guardrail);
    approve(&mut session, "a");
    assert_eq!(stop_of(&session, now()).reason, StopReason::Guardrail, "the answer is for a later run");
    again(&mut session);
    assert_eq!(stop_of(&session, interrupted).reason, StopReason::UserInterrupt);
    assert_eq!(to_run(&session), ["a"]);
}

#[test]
fn s21_calls_that_waited_count_among_those_of_the_run_that_runs_them() {
    let caps = SpendingCaps { tool_calls: Some(2), ..SpendingCaps::default() };
    let mut session = session_with_calls(&["a", "b", "c"], Limits { caps, ..limits() });
    wait(&mut session, "a", true);
    approve(&mut session, "a");
    again(&mut session);
    assert_eq!(to_run(&session), ["a", "b"]);
    session.apply(&ended("a"));
    session.apply(&ended("b"));
    assert!(
        matches!(session.next_action(now()), NextAction::RefuseCalls(calls, _) if ids(calls.clone()) == ["c"])
    );
}
