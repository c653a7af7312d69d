//! A scripted run for the tests of the event sinks, and streams that capture output.

use agent_core::decision::Denial;
use agent_core::event::{
    EVENT_SCHEMA_VERSION, Event, FinishReason, HookVerdict, MessageOrigin, NoticeLevel, Purpose, Record,
};
use agent_core::failure::FailureKind;
use agent_core::guardrail::CallCounts;
use agent_core::message::{Message, Part, Role, ToolCall, ToolResult};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::usage::Usage;
use agent_terminal::{StreamInfo, Terminal, TerminalEnvironment};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A stream that captures what is written.
#[derive(Clone, Default)]
pub(crate) struct CapturedStream(Arc<Mutex<Vec<u8>>>);

impl CapturedStream {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for CapturedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates a terminal that captures standard output and standard error.
pub(crate) fn over(
    info: StreamInfo,
    environment: &TerminalEnvironment,
) -> (Arc<Terminal>, CapturedStream, CapturedStream) {
    let (out, err) = (CapturedStream::default(), CapturedStream::default());
    (
        Arc::new(Terminal::with_streams(info, environment, Box::new(out.clone()), Box::new(err.clone()))),
        out,
        err,
    )
}

/// Creates a terminal whose streams are all pipes.
pub(crate) fn pipe() -> (Arc<Terminal>, CapturedStream, CapturedStream) {
    over(StreamInfo::default(), &TerminalEnvironment::default())
}

pub(crate) fn record(step: u32, event: Event) -> Record {
    Record { v: EVENT_SCHEMA_VERSION, seq: 0, run: "r1".into(), step, wall_ms: 0, mono_us: 0, event }
}

fn call(id: &str, name: &str) -> ToolCall {
    ToolCall::new(id, name, "{}")
}

fn start(id: &str, name: &str, summary: &str) -> Event {
    Event::ToolCallStart { call: call(id, name), summary: summary.into() }
}

pub(crate) fn end(id: &str, name: &str, summary: &str, error: Option<&str>, denial: Option<Denial>) -> Event {
    Event::ToolCallEnd {
        name: name.into(),
        summary: summary.into(),
        result: ToolResult {
            call_id: id.into(),
            text: error.unwrap_or("fine").into(),
            is_error: error.is_some(),
            images: Vec::new(),
        },
        changed: Vec::new(),
        seen: Vec::new(),
        denial,
        simulated: false,
        guardrail_counts: CallCounts::default(),
        duration_ms: 3,
    }
}

fn denial() -> Denial {
    Denial {
        tool: "run_command".into(),
        summary: "rm -r build".into(),
        reason: "there is no terminal to ask at\nmore".into(),
        rule: "mode.confirm-sensitive".into(),
    }
}

fn response(text: &str, calls: &[ToolCall], purpose: Purpose) -> Event {
    let mut message = Message::text(Role::Assistant, text);
    message.parts.extend(calls.iter().cloned().map(Part::ToolCall));
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let usage = Usage { input: 1_200, cached_read: 300, output: 50, ..Usage::default() };
    Event::ModelResponse { purpose, message, finish, usage: Some(usage), cost_usd: None, latency_ms: 1_500 }
}

pub(crate) fn result(reason: StopReason, output: &str) -> RunResult {
    RunResult {
        status: reason.status(),
        stop_reason: Some(reason),
        output: output.into(),
        output_valid: None,
        session_id: Some("20260102-030405-abcdef".into()),
        steps: 2,
        requests: 4,
        tool_calls: 3,
        duration_seconds: 12.34,
        usage: Usage { input: 12_150, cached_read: 300, output: 3_200, ..Usage::default() },
        permission_denials: vec![denial()],
        awaiting_approval: Vec::new(),
        guardrails: Vec::new(),
        error: None,
        ..RunResult::not_started(
            agent_core::failure::Failure {
                kind: FailureKind::Internal,
                message: String::new(),
                retryable: false,
            },
            Some("openai/gpt".into()),
        )
    }
}

fn step(messages: usize) -> Event {
    Event::StepStart { purpose: Purpose::Step, messages, digest: None }
}

fn delta(text: &str) -> Event {
    Event::TextDelta { text: text.into() }
}

fn hook(verdict: HookVerdict, output: &str) -> Event {
    let (hook, on) = ("ruff".into(), "post_edit".into());
    Event::HookEnd { hook, on, verdict, output: output.into(), duration_ms: 20 }
}

fn opening() -> Vec<Event> {
    vec![
        Event::SessionStart {
            session_id: "20260102-030405-abcdef".into(),
            workspace: "/w".into(),
            program: "agent 0.1.0".into(),
            imported_from: None,
            work_id: None,
        },
        Event::RunStart {
            agent: "build".into(),
            model: "openai/gpt".into(),
            mode: "confirm-sensitive".into(),
            tools: vec!["edit_file".into(), "read_file".into()],
            mcp_tools: BTreeMap::new(),
            max_steps: 50,
            resumed: false,
            sandbox: "none".into(),
            bounds: None,
        },
        Event::System { text: "You are".into() },
        Event::user_message("fix it", MessageOrigin::Prompt),
    ]
}

fn first_step() -> Vec<Event> {
    let calls = [call("c1", "read_file"), call("c2", "read_file")];
    let hostile = "src/\u{202e}\n✅ Agent completed";
    vec![
        step(2),
        Event::RequestSent { attempt: 1 },
        Event::Retry {
            attempt: 1,
            retry: 1,
            max_retries: 5,
            answer_discarded: false,
            delay_ms: 2_000,
            kind: FailureKind::RateLimit,
            message: "429 from the server".into(),
            billed: None,
        },
        Event::ThinkingDelta { text: "Hm.".into() },
        delta("I look at\u{1b}"),
        delta("[2J both files."),
        response("I look at both files.", &calls, Purpose::Step),
        start("c1", "read_file", "src/main.py"),
        start("c2", "read_file", hostile),
        end("c1", "read_file", "src/main.py", None, None),
        end("c2", "read_file", hostile, Some("No such file: x\nTry y."), None),
        start("c3", "edit_file", "src/main.py (3→5 lines)"),
        hook(HookVerdict::Warn, "src/main.py:45: E302\n\nsrc/main.py:46: E303\n"),
        hook(HookVerdict::Allow, ""),
        end("c3", "edit_file", "src/main.py (3→5 lines)", None, None),
        start("c4", "run_command", "rm -r build"),
        end("c4", "run_command", "rm -r build", Some("Refused"), Some(denial())),
        Event::StepEnd,
        Event::Notice { level: NoticeLevel::Warn, text: "the index is cut".into() },
        Event::Notice { level: NoticeLevel::Info, text: "trusted".into() },
    ]
}

fn second_step() -> Vec<Event> {
    let answer = "Done: both files\nare fine.";
    vec![
        step(7),
        delta(answer),
        response(answer, &[], Purpose::Step),
        Event::StepEnd,
        Event::RunEnd { result: Box::new(result(StopReason::LlmDone, answer)) },
    ]
}

/// Returns the records of a run with text, parallel tools, hooks, a retry, a refusal and hostile names; it succeeds.
pub(crate) fn run() -> Vec<Record> {
    let steps = [opening(), first_step(), second_step()];
    (0..)
        .zip(steps)
        .flat_map(|(step, events)| events.into_iter().map(move |event| record(step, event)))
        .collect()
}

/// Returns the records of a run that reaches its step limit and whose closing call fails.
pub(crate) fn stopped() -> Vec<Record> {
    let failure = agent_core::failure::Failure {
        kind: FailureKind::Network,
        message: "connection refused".into(),
        retryable: true,
    };
    let mut result = result(StopReason::MaxSteps, "The run ended early.");
    result.permission_denials.clear();
    assert_eq!(result.status, Status::Partial);
    let events = vec![
        Event::RunStart {
            agent: "build".into(),
            model: "openai/gpt".into(),
            mode: "yolo".into(),
            tools: Vec::new(),
            mcp_tools: BTreeMap::new(),
            max_steps: 2,
            resumed: true,
            sandbox: "none".into(),
            bounds: None,
        },
        Event::Closing { reason: StopReason::MaxSteps, limit: None },
        Event::StepStart { purpose: Purpose::Closing, messages: 9, digest: None },
        Event::ModelFailed { purpose: Purpose::Closing, failure, billed: None },
        Event::RunEnd { result: Box::new(result) },
    ];
    events.into_iter().map(|event| record(2, event)).collect()
}
