use super::*;
use agent_core::event::{EVENT_SCHEMA_VERSION, Purpose};
use agent_core::failure::Failure;
use agent_core::language::Language;
use agent_core::message::Role;
use agent_core::price::Usd;
use agent_core::run_result::{Output, RunResult};
use agent_core::stop_reason::{ReachedLimit, Status, StopReason};
use strum::VariantArray;

fn record(event: Event) -> Record {
    Record { v: EVENT_SCHEMA_VERSION, seq: 0, run: "r".to_owned(), step: 1, wall_ms: 0, mono_us: 0, event }
}

fn response(parts: Vec<Part>) -> Event {
    Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts },
        finish: FinishReason::ToolCalls,
        usage: None,
        cost_usd: None,
        latency_ms: 7,
    }
}

fn call(id: &str) -> Part {
    let arguments = r#"{"command": "ls"}"#.to_owned();
    Part::ToolCall(ToolCall::new(id, "run_command", arguments))
}

fn streamed(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["event"]["type"].as_str()).collect()
}

#[test]
fn pieces_are_blocks_of_one_message_and_a_discarded_answer_ends() {
    let mut events = ClaudeEvents::new(true);
    let mut all = Vec::new();
    for event in [
        Event::ThinkingDelta { text: "hm".to_owned() },
        Event::TextDelta { text: "a".to_owned() },
        Event::TextDelta { text: "b".to_owned() },
        response(vec![Part::Text { text: "ab".to_owned() }, call("c")]),
    ] {
        all.extend(events.messages(&record(event)));
    }
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let text = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"];
    let expected =
        [&["message_start"][..], &block, &text, &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(streamed(&all), expected);
    let indexes: Vec<&Value> =
        all.iter().filter(|it| it["event"]["type"] == block[0]).map(|it| &it["event"]["index"]).collect();
    assert_eq!(indexes, [0, 1, 2]);
    events.messages(&record(Event::TextDelta { text: "lost".to_owned() }));
    let retry = Event::Retry {
        attempt: 1,
        retry: 1,
        max_retries: 5,
        answer_discarded: true,
        delay_ms: 10,
        kind: FailureKind::CutStream,
        message: "cut".to_owned(),
        billed: None,
    };
    let told = events.messages(&record(retry));
    assert_eq!(streamed(&told), ["message_stop"]);
    assert_eq!(told[1]["subtype"], "api_retry");
    let mut plain = ClaudeEvents::new(false);
    assert!(plain.messages(&record(Event::TextDelta { text: "a".to_owned() })).is_empty());
}

#[test]
fn a_call_whose_id_repeats_gets_an_id_of_its_own() {
    let mut events = ClaudeEvents::new(false);
    let ids: Vec<Value> = (0..2)
        .map(|_| {
            let shown = events.messages(&record(response(vec![call("c")])));
            shown[0]["message"]["content"][0]["id"].clone()
        })
        .collect();
    assert_ne!(ids[0], ids[1]);
    let result = ToolResult { call_id: "c".to_owned(), ..ToolResult::default() };
    assert_eq!(events.call_ended(&result, false, None)["message"]["content"][0]["tool_use_id"], ids[1]);
}

// Fault E1: the calls of subagents were looked up by their ids alone.
#[test]
fn calls_of_two_subagents_with_the_same_id_keep_their_own_ids() {
    let mut events = ClaudeEvents::new(false);
    let mut of = |call_id: &str, event: Event| {
        let event =
            Event::Subagent { call_id: call_id.to_owned(), event: Box::new(event), budget_share: None };
        events.messages(&record(event))[0]["message"]["content"][0].clone()
    };
    let shown = ["a", "b"].map(|subagent| of(subagent, response(vec![call("c")]))["id"].clone());
    let result = ToolResult { call_id: "c".to_owned(), ..ToolResult::default() };
    let end = Event::tool_not_run("run_command".to_owned(), String::new(), result, Vec::new());
    let ended = ["a", "b"].map(|subagent| of(subagent, end.clone())["tool_use_id"].clone());
    assert!(shown[0] != shown[1] && shown == ended, "{shown:?} {ended:?}");
}

#[test]
fn only_a_success_is_one_and_each_limit_has_its_subtype() {
    let subtype = |result: &RunResult| ClaudeEvents::new(false).result(result, Language::En);
    for reason in StopReason::VARIANTS.iter().copied() {
        for status in [Status::Partial, Status::Failed] {
            let told = subtype(&RunResult { status, stop_reason: Some(reason), ..RunResult::default() });
            let expected = match reason {
                StopReason::MaxSteps => "error_max_turns",
                StopReason::BudgetExceeded => "error_max_budget_usd",
                _ => "error_during_execution",
            };
            assert_eq!((&told["subtype"], &told["is_error"]), (&expected.into(), &true.into()), "{reason}");
            assert!(told["errors"][0].as_str().is_some_and(|why| !why.is_empty()), "{told}");
            assert!(told.get("result").is_none(), "{told}");
        }
    }
    let partial = RunResult { status: Status::Partial, ..RunResult::default() };
    let tokens = RunResult {
        stop_reason: Some(StopReason::BudgetExceeded),
        limit: Some(ReachedLimit::Tokens),
        ..partial.clone()
    };
    assert_eq!(subtype(&tokens)["subtype"], "error_during_execution");
    let failure =
        Failure { kind: FailureKind::OutputSchema, message: "does not fit".to_owned(), retryable: false };
    let schema = RunResult { stop_reason: Some(StopReason::LlmError), error: Some(failure), ..partial };
    assert_eq!(subtype(&schema)["subtype"], "error_max_structured_output_retries");
    let success = RunResult {
        status: Status::Success,
        stop_reason: Some(StopReason::LlmDone),
        output: Output::Value(json!({"n": 1})),
        output_valid: Some(true),
        ..RunResult::default()
    };
    let told = subtype(&success);
    assert_eq!((&told["subtype"], &told["is_error"]), (&"success".into(), &false.into()));
    assert_eq!((&told["structured_output"], &told["result"]), (&json!({"n": 1}), &json!(r#"{"n":1}"#)));
}

#[test]
fn an_unknown_cost_is_marked_and_turns_add_up() {
    let mut events = ClaudeEvents::new(false);
    let usage = Some(Usage { input: 5, output: 2, ..Usage::default() });
    let mut turn = |cost_usd| {
        events.begin(InitInfo::default());
        let text = vec![Part::Text { text: "x".to_owned() }];
        let Event::ModelResponse { purpose, message, finish, latency_ms, .. } = response(text) else {
            unreachable!()
        };
        events.messages(&record(Event::ModelResponse {
            purpose,
            message,
            finish,
            latency_ms,
            usage,
            cost_usd,
        }));
        events.result(&RunResult::default(), Language::En)
    };
    let first = turn(Some(Usd::from_picodollars(1_000_000_000_000)));
    assert_eq!(
        (&first["modelUsage"][""]["costBasis"], &first["total_cost_usd"]),
        (&json!("list"), &json!(1.0))
    );
    let second = turn(None);
    let model = &second["modelUsage"][""];
    assert_eq!((&model["inputTokens"], &model["costBasis"]), (&json!(10), &json!("unknown")));
    let shown = ["num_turns", "duration_api_ms", "total_cost_usd"].map(|key| second[key].clone());
    assert_eq!(json!(shown), json!([1, 7, 1.0]));
    assert_eq!(second["usage"]["input_tokens"], 5);
}
