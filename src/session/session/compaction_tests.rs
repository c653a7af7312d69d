//! Tests of compaction with scripted models: what is removed, what stays, and that it ends.

use super::tests::{check_pairs, limits, now, prompt, started_session};
use super::*;
use crate::compaction::summary;
use agent_core::compaction::{CompactionEvent, CompactionLimits, CompactionStrategy};
use agent_core::limits::{FallbackChain, ModelTerms, Window, WindowSource};
use agent_core::message::Part;
use agent_core::todo::TodoList;
use agent_core::usage::Usage;
use agent_messages as messages;
use proptest::prelude::*;

const WINDOW: u64 = 10_000;

fn windowed(strategy: CompactionStrategy) -> Limits {
    let window = Some(Window { tokens: WINDOW, source: WindowSource::User });
    let first = ModelTerms { model: "m".into(), output_limit: Some(1000), window, ..ModelTerms::default() };
    let compaction = CompactionLimits { strategy, at_percent: 75, keep_recent_steps: 2, every_steps: 5 };
    Limits { max_steps: 500, models: FallbackChain { first, fallbacks: Vec::new() }, compaction, ..limits() }
}

/// Adds an exchange: calls with outputs of these lengths in bytes.
fn exchange(session: &mut Session, serial: usize, outputs: &[usize]) {
    let id = |at: usize| format!("c{serial}_{at}");
    let call = |at: usize| {
        let arguments = format!("{{\"path\":\"f{serial}\"}}");
        Part::ToolCall(ToolCall::new(id(at), "read_file", arguments))
    };
    let parts = (0..outputs.len()).map(call).collect();
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    session.apply(&Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts },
        finish: FinishReason::ToolCalls,
        usage: None,
        cost_usd: None,
        latency_ms: 1,
    });
    for (at, bytes) in outputs.iter().enumerate() {
        session.apply(&Event::tool_not_run(
            "read_file".into(),
            String::new(),
            ToolResult { call_id: id(at), text: "x".repeat(*bytes), is_error: false, images: Vec::new() },
            Vec::new(),
        ));
    }
}

fn summed_up(session: &mut Session, text: Option<&str>) {
    session.apply(&Event::StepStart { purpose: Purpose::Summary, messages: 2, digest: None });
    session.apply(&Event::RequestSent { attempt: 1 });
    match text {
        Some(text) => session.apply(&Event::ModelResponse {
            purpose: Purpose::Summary,
            message: Message::text(Role::Assistant, text),
            finish: FinishReason::Stop,
            usage: Some(Usage { input: 500, output: 50, ..Usage::default() }),
            cost_usd: None,
            latency_ms: 1,
        }),
        None => session.apply(&Event::ModelFailed {
            purpose: Purpose::Summary,
            failure: Failure { kind: FailureKind::Server, message: "500".into(), retryable: true },
            billed: None,
        }),
    }
}

/// Executes actions until a step or the end; returns what was done, and the next action.
fn compact(session: &mut Session, summary: Option<&str>) -> (Vec<String>, NextAction) {
    let mut done = Vec::new();
    for _ in 0..20 {
        let event = match session.next_action(now()) {
            NextAction::Compact(CompactionAction::Start { tokens, window }) => {
                Event::Compaction { part: CompactionEvent::Start { tokens, window, requested: false } }
            }
            NextAction::Compact(CompactionAction::Outputs(outputs)) => {
                let call_ids: Vec<String> = outputs.into_iter().map(|(id, _)| id).collect();
                done.push(format!("outputs {}", call_ids.join(" ")));
                Event::Compaction { part: CompactionEvent::OutputsShortened { call_ids } }
            }
            NextAction::Compact(CompactionAction::Record(part)) => {
                done.push(match &part {
                    CompactionEvent::Summary { message_count, by_model, .. } => {
                        format!("summary {message_count} {by_model}")
                    }
                    CompactionEvent::MessagesDropped { message_count } => format!("left out {message_count}"),
                    CompactionEvent::End { enough, .. } => format!("end {enough}"),
                    CompactionEvent::Start { .. } | CompactionEvent::OutputsShortened { .. } => {
                        unreachable!()
                    }
                });
                Event::Compaction { part }
            }
            NextAction::CallModel(Purpose::Summary) => {
                done.push("asks".to_owned());
                summed_up(session, summary);
                continue;
            }
            other => return (done, other),
        };
        session.apply(&event);
    }
    panic!("it does not end: {done:?}");
}

fn texts(session: &Session) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.clone(),
        Part::ToolCall(call) => format!("{}()", call.id),
        Part::Image(image) => image.name.clone(),
        Part::ToolResult(result) => format!("{}={}", result.call_id, result.text.len()),
    };
    let whole = |message: &Arc<Message>| message.parts.iter().map(part).collect::<Vec<_>>().join(" ");
    session.messages().iter().map(whole).collect()
}

#[test]
fn k02_old_exchanges_become_a_summary_and_task_last_prompt_and_recent_exchanges_stay() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..30).for_each(|serial| exchange(&mut session, serial, &[900]));
    prompt(&mut session, "and now the tests");
    exchange(&mut session, 30, &[900]);
    exchange(&mut session, 31, &[900]);
    let (done, next) = compact(&mut session, Some("all is well"));
    assert_eq!(done, ["outputs ", "asks", "summary 63 true", "end true"]);
    assert_eq!(next, NextAction::CallModel(Purpose::Step));
    let texts = texts(&session);
    assert_eq!(
        texts[..4],
        ["be good", "do it", "[Summary of previous steps]\nall is well", "and now the tests"]
    );
    assert_eq!(texts.len(), 8);
    assert!(texts[4] == "c30_0()" && texts[7].starts_with("c31_0="), "{texts:?}");
    assert_eq!((session.tally().steps, session.tally().compactions), (32, 1));
    assert_eq!(session.tally().usage.input, 500, "its tokens are counted");
}

#[test]
fn k02_what_is_shown_to_the_model_holds_the_task_and_the_earlier_summary_and_bounded_outputs() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..32).for_each(|serial| exchange(&mut session, serial, &[900]));
    compact(&mut session, Some("the first notes"));
    (32..70).for_each(|serial| exchange(&mut session, serial, &[900]));
    let NextAction::Compact(CompactionAction::Start { tokens, window }) = session.next_action(now()) else {
        panic!()
    };
    session.apply(&Event::Compaction { part: CompactionEvent::Start { tokens, window, requested: false } });
    session.apply(&Event::Compaction { part: CompactionEvent::OutputsShortened { call_ids: Vec::new() } });
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Summary));
    let request = session.messages_for(Purpose::Summary);
    let shown = request[1].joined_text();
    assert_eq!(request.len(), 2);
    assert!(shown.contains("do it") && shown.contains("the first notes"), "{shown}");
    assert!(shown.contains("CALL read_file {\"path\":\"f40\"}"), "{shown}");
    assert!(shown.contains("characters omitted") && !shown.contains(&"x".repeat(301)), "{shown}");
    assert!(
        session.output_limit(Purpose::Summary) <= Some(625),
        "{:?}",
        session.output_limit(Purpose::Summary)
    );
}

#[test]
fn k03_without_the_model_the_summary_lists_the_calls() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..32).for_each(|serial| exchange(&mut session, serial % 3 * 100 + serial, &[900]));
    let (done, next) = compact(&mut session, None);
    assert_eq!(done[1..], ["asks", "summary 62 false", "end true"]);
    assert_eq!(next, NextAction::CallModel(Purpose::Step));
    let summary =
        session.messages().iter().find(|message| summary::is_summary(message)).unwrap().joined_text();
    assert!(summary.contains("[Mechanical summary: the model was not available]"), "{summary}");
    assert!(summary.contains("read_file {\"path\":\"f101\"}"), "{summary}");
}

#[test]
fn k04_without_summaries_the_oldest_exchanges_are_left_out_whole() {
    let mut session = started_session(windowed(CompactionStrategy::Truncate));
    (0..32).for_each(|serial| exchange(&mut session, serial, &[900]));
    let (done, next) = compact(&mut session, None);
    assert_eq!(done, ["outputs ", "summary 0 false", "left out 64", "end true"]);
    assert_eq!(next, NextAction::CallModel(Purpose::Step));
    let texts = texts(&session);
    assert_eq!(texts.len(), 5);
    assert!(texts[2].contains("were omitted to make room"), "{texts:?}");
}

/// Adds an exchange with a call of `todo` and its result.
fn set_steps(session: &mut Session, serial: usize, list: &str) {
    exchange(session, serial, &[]);
    session.apply(&Event::tool_not_run(
        TodoList::TOOL.into(),
        String::new(),
        ToolResult { call_id: "t".into(), text: list.to_owned(), is_error: false, images: Vec::new() },
        Vec::new(),
    ));
}

#[test]
fn u07_the_list_of_steps_ends_the_summary_and_is_the_last_one_that_was_set() {
    for strategy in [CompactionStrategy::Layered, CompactionStrategy::Truncate] {
        let mut session = started_session(windowed(strategy));
        for list in ["0 of 1 done\n[ ] first", "0 of 1 done\n[ ] second"] {
            set_steps(&mut session, 100, list);
            (0..32).for_each(|serial| exchange(&mut session, serial, &[900]));
            compact(&mut session, None);
            let texts = texts(&session);
            assert!(texts[2].ends_with(&format!("{}\n{list}", messages::STEPS_HEADING)), "{}", texts[2]);
            assert_eq!(texts[2].matches(messages::STEPS_HEADING).count(), 1, "{}", texts[2]);
        }
    }
}

#[test]
fn k05_outputs_are_shortened_first_and_that_is_all_where_it_is_enough() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..6).for_each(|serial| exchange(&mut session, serial, &[6000]));
    let (done, _) = compact(&mut session, None);
    assert_eq!(done, ["outputs c0_0 c1_0 c2_0 c3_0", "end true"]);
    let shortened = session.messages()[3].parts[0].clone();
    let Part::ToolResult(result) = shortened else { panic!("{shortened:?}") };
    assert!(
        result.text.contains("output:c0_0") && result.text.contains("[... 5700 characters omitted ...]"),
        "{}",
        result.text
    );
}

#[test]
fn k05_nothing_is_done_where_it_is_off_or_nobody_knows_the_window() {
    for limits in [
        windowed(CompactionStrategy::Off),
        Limits { models: FallbackChain::default(), ..windowed(CompactionStrategy::Layered) },
    ] {
        let mut session = started_session(limits);
        (0..34).for_each(|serial| exchange(&mut session, serial, &[900]));
        assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    }
}

#[test]
fn k06_the_providers_count_decides_when() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..4).for_each(|serial| exchange(&mut session, serial, &[100]));
    assert_eq!(session.next_action(now()), NextAction::CallModel(Purpose::Step));
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    let call = ToolCall::new("z", "read_file", "{}");
    session.apply(&Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] },
        finish: FinishReason::ToolCalls,
        usage: Some(Usage { input: 8_000, output: 10, ..Usage::default() }),
        cost_usd: None,
        latency_ms: 1,
    });
    session.apply(&Event::user_message("go on", MessageOrigin::Hook));
    assert!(matches!(
        session.next_action(now()),
        NextAction::Compact(CompactionAction::Start { tokens: 8_010.., window: WINDOW })
    ));
}

#[test]
fn l14_a_compaction_that_frees_too_little_ends_the_run_as_context_full() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    session.apply(&Event::user_message("y".repeat(30_000), MessageOrigin::Prompt));
    exchange(&mut session, 0, &[100]);
    exchange(&mut session, 1, &[100]);
    let (done, next) = compact(&mut session, None);
    assert_eq!(done.last().unwrap(), "end false");
    assert!(matches!(next, NextAction::StartClosing(StopReason::ContextFull, Some(_))), "{next:?}");
}

#[test]
fn l14_it_does_not_happen_again_within_so_many_steps() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    (0..32).for_each(|serial| exchange(&mut session, serial, &[900]));
    compact(&mut session, Some("notes"));
    exchange(&mut session, 40, &[15_000]);
    exchange(&mut session, 41, &[12_000]);
    assert_eq!(
        session.next_action(now()),
        NextAction::CallModel(Purpose::Step),
        "75 % full, and not yet time"
    );
    exchange(&mut session, 42, &[9_000]);
    let NextAction::Stop(verdict) = session.next_action(now()) else { panic!() };
    assert_eq!(verdict.reason, StopReason::ContextFull);
}

#[test]
fn l14_a_batch_that_overflows_alone_is_shortened_too() {
    let mut session = started_session(windowed(CompactionStrategy::Layered));
    exchange(&mut session, 0, &[5_000; 9]);
    let (done, next) = compact(&mut session, None);
    assert!(done.iter().any(|what| what.starts_with("outputs c0_0 c0_1")), "{done:?}");
    assert_eq!(next, NextAction::CallModel(Purpose::Step));
}

#[test]
fn l14_a_server_that_refuses_the_prompt_gets_a_shorter_one() {
    let mut session =
        started_session(Limits { models: FallbackChain::default(), ..windowed(CompactionStrategy::Layered) });
    (0..20).for_each(|serial| exchange(&mut session, serial, &[900]));
    session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
    session.apply(&Event::ModelFailed {
        purpose: Purpose::Step,
        failure: Failure { kind: FailureKind::ContextOverflow, message: "too long".into(), retryable: false },
        billed: None,
    });
    let (done, next) = compact(&mut session, Some("notes"));
    assert_eq!(done.last().unwrap(), "end true");
    assert_eq!(next, NextAction::CallModel(Purpose::Step));
}

proptest! {
    #[test]
    fn compaction_ends_and_keeps_pairs_and_prompts(
        outputs in prop::collection::vec(prop::collection::vec(0usize..8_000, 1..4), 1..40),
        prompts in prop::collection::vec(0usize..40, 0..4),
        layered in any::<bool>(),
        summary in prop::option::of("[a-z ]{0,3000}"),
    ) {
        let strategy = if layered { CompactionStrategy::Layered } else { CompactionStrategy::Truncate };
        let mut session = started_session(windowed(strategy));
        let mut last = "do it".to_owned();
        for (serial, outputs) in outputs.iter().enumerate() {
            if prompts.contains(&serial) {
                last = format!("prompt {serial}");
                prompt(&mut session, &last);
            }
            exchange(&mut session, serial, outputs);
            let (_, next) = compact(&mut session, summary.as_deref());
            check_pairs(session.messages());
            let said: Vec<String> = texts(&session);
            prop_assert_eq!(said[..2].to_vec(), ["be good", "do it"]);
            prop_assert!(said.contains(&last));
            prop_assert!(session.messages().iter().filter(|message| summary::is_summary(message)).count() <= 1);
            if !matches!(next, NextAction::CallModel(Purpose::Step)) {
                break;
            }
        }
    }
}
