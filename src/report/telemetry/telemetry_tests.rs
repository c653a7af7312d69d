use super::*;
use crate::script;
use agent_core::event::{FinishReason, MessageOrigin, Purpose};
use agent_core::message::{Message, Role, ToolCall, ToolResult};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use span::AttributeValue;
use std::collections::BTreeMap;
use std::time::Duration;

fn telemetry(content: bool) -> Telemetry {
    Telemetry::new(TelemetryOptions {
        destination: Destination::Console,
        resource: Resource { service_name: "agent".to_owned() },
        context: TraceContext::new(1, 2),
        session_id: Some("s".to_owned()),
        content,
        redactor: Arc::default(),
        clock: Rc::new(Clock::simulated(7, Duration::from_secs(1_000))),
    })
}

/// Emits events, a millisecond apart.
fn emit(telemetry: &Telemetry, events: impl IntoIterator<Item = Event>) {
    let mut sink = telemetry.sink();
    for (at, event) in (1..).zip(events) {
        let record = Record { wall_ms: 1_000_000 + at, mono_us: at * 1_000, ..script::record(0, event) };
        sink.emit(&record).unwrap();
    }
}

fn run_start() -> Event {
    Event::RunStart {
        agent: "build".to_owned(),
        model: "gemini/flash".to_owned(),
        mode: String::new(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 1,
        resumed: false,
        sandbox: String::new(),
        bounds: None,
    }
}

fn run_end() -> Event {
    let result =
        RunResult { status: Status::Success, stop_reason: Some(StopReason::LlmDone), ..RunResult::default() };
    Event::RunEnd { result: Box::new(result) }
}

fn tool_start(id: &str) -> Event {
    let call = ToolCall::new(id, "read", "{}");
    Event::ToolCallStart { call, summary: String::new() }
}

fn tool_end(id: &str, text: &str) -> Event {
    let result =
        ToolResult { call_id: id.to_owned(), text: text.to_owned(), is_error: false, images: Vec::new() };
    Event::tool_not_run("read".to_owned(), String::new(), result, Vec::new())
}

fn step_start(purpose: Purpose) -> Event {
    Event::StepStart { purpose, messages: 1, digest: None }
}

fn spans(telemetry: &Telemetry) -> Vec<Span> {
    telemetry.0.borrow_mut().take_spans()
}

async fn printed(telemetry: Telemetry) -> String {
    let (terminal, _, err) = script::pipe();
    telemetry.export(&terminal).await;
    err.text()
}

#[tokio::test]
async fn o24_spans_over_the_limit_are_dropped_and_counted_and_no_parent_is_among_them() {
    let telemetry = telemetry(false);
    let calls = (0..3_000).map(|number| number.to_string());
    let calls = calls.flat_map(|id| [tool_start(&id), tool_end(&id, "")]);
    emit(&telemetry, std::iter::once(run_start()).chain(calls).chain([run_end()]));
    let text = printed(telemetry.clone()).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), MAX_SPANS + 1);
    assert!(lines.first().unwrap().starts_with("invoke_agent build  6.0s  success  llm_done"), "{text}");
    assert_eq!(*lines.last().unwrap(), "telemetry: 953 of 3,001 spans lost: 953 over the limit of 2,048");
    assert_eq!(printed(telemetry).await, "", "the spans are exported once");
}

#[tokio::test]
async fn contents_are_bounded_in_length_and_in_sum() {
    let telemetry = telemetry(true);
    let long = "é".repeat(20_000);
    let prompt = Event::user_message(long.clone(), MessageOrigin::Prompt);
    let calls = (0..600).map(|number| number.to_string());
    let calls = calls.flat_map(|id| [tool_start(&id), tool_end(&id, &long)]);
    emit(&telemetry, [run_start(), prompt].into_iter().chain(calls).chain([run_end()]));
    {
        let state = telemetry.0.borrow();
        let texts = state.buffer.ended.iter().flat_map(|span| &span.attributes);
        let lengths = texts.filter_map(|(_, value)| match value {
            AttributeValue::Text(text) => Some(text.len()),
            _ => None,
        });
        let lengths: Vec<usize> = lengths.collect();
        assert!(*lengths.iter().max().unwrap() < 17_000);
        assert!(lengths.iter().sum::<usize>() < 9_000_000);
    }
    let text = printed(telemetry).await;
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("telemetry: 0 of 601 spans lost: ") && last.contains("contents left out"),
        "{last}"
    );
}

#[test]
fn open_spans_end_with_the_run_and_without_its_end_at_the_last_event() {
    let interrupted = telemetry(false);
    emit(&interrupted, [run_start(), step_start(Purpose::Step), tool_start("a"), Event::StepEnd]);
    let found = spans(&interrupted);
    let names: Vec<&str> = found.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["execute_tool read", "chat flash", "invoke_agent build"]);
    for span in &found {
        assert_eq!(span.error.as_deref(), Some("interrupted"));
        assert_eq!(span.end_ns, 1_000_004_000_000);
    }
    assert_eq!(
        found[1].get(conventions::PROVIDER_NAME),
        Some(&AttributeValue::Text("gcp.gemini".to_owned()))
    );
}

#[test]
fn a_step_that_a_fallback_model_repeats_keeps_its_number() {
    let telemetry = telemetry(false);
    let failure = agent_core::failure::Failure {
        kind: agent_core::failure::FailureKind::Server,
        message: "private text of the server".to_owned(),
        retryable: true,
    };
    let response = Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message::text(Role::Assistant, "done"),
        finish: FinishReason::Stop,
        usage: None,
        cost_usd: None,
        latency_ms: 1,
    };
    let failed = Event::ModelFailed { purpose: Purpose::Step, failure: failure.clone(), billed: None };
    let switched = Event::ModelSwitched { from: String::new(), to: "openai/other".to_owned(), failure };
    let request = || Event::RequestSent { attempt: 1 };
    let events = [
        run_start(),
        step_start(Purpose::Step),
        request(),
        request(),
        failed,
        switched,
        step_start(Purpose::Step),
        request(),
        response,
        step_start(Purpose::Closing),
        run_end(),
    ];
    emit(&telemetry, events);
    let found = spans(&telemetry);
    let steps: Vec<_> = found.iter().map(|span| span.get(conventions::STEP)).collect();
    let first = Some(&AttributeValue::Integer(1));
    assert_eq!(steps, [first, first, first, None]);
    assert_eq!(found[0].get(conventions::REQUESTS), Some(&AttributeValue::Integer(2)));
    assert_eq!((found[0].name.as_str(), found[1].name.as_str()), ("chat flash", "chat other"));
    assert_eq!(found[0].error.as_deref(), Some("server"));
    assert!(!format!("{found:?}").contains("private"));
}
