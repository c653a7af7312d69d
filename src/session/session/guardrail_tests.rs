//! Tests of a session in which text guardrails trigger.

use super::tests::*;
use super::*;
use agent_core::guardrail::{ConversationSide, GuardrailAction, Severity, TriggeredGuardrail};

fn triggered(on: ConversationSide, action: GuardrailAction) -> Event {
    let (name, message) = ("marked".to_owned(), "not this".to_owned());
    Event::Guardrail { triggered: TriggeredGuardrail { name, on, severity: Severity::Low, action, message } }
}

fn guardrail_ends(session: &Session) {
    let verdict = stop_of(session, now());
    assert_eq!((verdict.reason, verdict.output.text().as_ref()), (StopReason::Guardrail, "not this"));
}

#[test]
fn s19_a_run_that_is_halted_ends_with_the_reason_and_the_next_one_goes_on() {
    for on in [ConversationSide::Input, ConversationSide::Output] {
        let mut session = started_session(limits());
        respond(&mut session, Purpose::Step, vec![call("a", "{}")], FinishReason::ToolCalls);
        session.apply(&triggered(on, GuardrailAction::Halt));
        assert!(matches!(session.next_action(now()), NextAction::RunTools(_)), "every call has its result");
        answer_call(&mut session, "a");
        guardrail_ends(&session);
        assert_eq!(session.tally().guardrails.len(), 1);
        session.apply(&run_start());
        assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
        assert!(session.tally().guardrails.is_empty());
    }
}

#[test]
fn s19_a_withheld_answer_is_asked_for_again_twice_in_a_row() {
    let withheld = |session: &mut Session| {
        session.apply(&triggered(ConversationSide::Output, GuardrailAction::Block));
        respond(session, Purpose::Step, text("[withheld]"), FinishReason::Stop);
    };
    let expect_retry = |session: &mut Session| {
        let NextAction::AddUserMessage(origin, text) = session.next_action(now()) else {
            panic!("{:?}", session.next_action(now()))
        };
        assert_eq!(origin, MessageOrigin::Guardrail);
        assert!(!text.contains("not this"), "a guardrail does not speak for us: {text}");
        session.apply(&Event::user_message(text, origin));
        assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    };
    let mut session = started_session(limits());
    for _ in 0..2 {
        withheld(&mut session);
        expect_retry(&mut session);
    }
    respond(&mut session, Purpose::Step, vec![call("a", "{}")], FinishReason::ToolCalls);
    answer_call(&mut session, "a");
    for _ in 0..2 {
        withheld(&mut session);
        expect_retry(&mut session);
    }
    withheld(&mut session);
    guardrail_ends(&session);
}

#[test]
fn s19_pieces_of_an_answer_that_is_withheld_are_not_gone_on_with() {
    let mut session = started_session(limits());
    respond(&mut session, Purpose::Step, text("first "), FinishReason::Length);
    session.apply(&Event::user_message("go on", MessageOrigin::Continuation));
    session.apply(&triggered(ConversationSide::Output, GuardrailAction::Block));
    respond(&mut session, Purpose::Step, text("[withheld]"), FinishReason::Length);
    let NextAction::AddUserMessage(origin, message) = session.next_action(now()) else {
        panic!("{:?}", session.next_action(now()))
    };
    session.apply(&Event::user_message(message, origin));
    assert_eq!(session.partial_answer(), "");
    respond(&mut session, Purpose::Step, text("whole"), FinishReason::Stop);
    assert_eq!(stop_of(&session, now()).output.text(), "whole");
}

#[test]
fn s19_what_the_model_has_not_read_is_everything_since_its_last_answer_but_our_own_words() {
    let mut session = started_session(limits());
    let unread = |session: &Session| {
        session
            .unread()
            .map(|unread| match unread {
                UnreadText::Message(text) => text.to_owned(),
                UnreadText::Result(text) => {
                    if text.contains("content") {
                        "result".to_owned()
                    } else {
                        text.to_owned()
                    }
                }
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(unread(&session), ["do it"]);
    respond(&mut session, Purpose::Step, vec![call("a", "{}"), call("b", "{}")], FinishReason::ToolCalls);
    assert!(unread(&session).is_empty());
    for id in ["a", "b"] {
        answer_call(&mut session, id);
    }
    for (text, origin) in [
        ("hook", MessageOrigin::Hook),
        ("ended", MessageOrigin::Background),
        ("close", MessageOrigin::System),
    ] {
        session.apply(&Event::user_message(text, origin));
    }
    assert_eq!(unread(&session), ["hook", "ended", "result", "result"]);
    session.apply(&run_start());
    assert_eq!(unread(&session).len(), 4, "the next run has not read it either");
}
