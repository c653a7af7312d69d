//! Property tests: a saved state plus the records after it equals the fold of the whole journal, wherever the state was saved.

use super::*;
use crate::session::Moment;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest, ApprovalSubject};
use agent_core::event::{
    BilledUsage, EVENT_SCHEMA_VERSION, FinishReason, HookVerdict, MessageOrigin, NoticeLevel, PrefixHashes,
    Purpose,
};
use agent_core::failure::{Failure, FailureKind};
use agent_core::file_change::{Change, ChangedBy, FileState, ObservedFile, RestoreDirection};
use agent_core::guardrail::{CallCounts, ConversationSide, GuardrailAction, Severity, TriggeredGuardrail};
use agent_core::message::{
    HistoryMessage, HistoryRole, Message, OpaqueData, Part, Role, ToolCall, ToolResult,
};
use agent_core::run_result::InstructionFile;
use agent_core::stop_reason::StopReason;
use agent_core::usage::Usage;
use proptest::prelude::*;
use std::time::Duration;

fn limits() -> Limits {
    Limits { max_steps: 5, max_continuations: 2, max_malformed: 3, ..Limits::default() }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: "no".into(), retryable: false }
}

fn call(at: usize) -> ToolCall {
    let opaque =
        (at == 1).then(|| OpaqueData { codec: "c".into(), data: serde_json::json!({"seal": [1, null]}) });
    ToolCall::new(format!("c{at}"), "edit_file", r#"{"path":"a"}"#).with_opaque(opaque)
}

fn answer(purpose: Purpose, parts: Vec<Part>, finish: FinishReason) -> Event {
    let usage = Some(Usage { input: 10, output: 3, ..Usage::default() });
    let message = Message { role: Role::Assistant, parts };
    Event::ModelResponse { purpose, message, finish, usage, cost_usd: None, latency_ms: 1 }
}

fn change(at: usize) -> Change {
    let states = [FileState::Absent, FileState::regular_file("h1".into(), 0o644), FileState::Unknown];
    let (was, became) = (&states[at % 3], &states[(at + 1) % 3]);
    Change::between(&format!("file{}", at % 2), ChangedBy::Tool, was, became)
}

fn ended(at: usize) -> Event {
    Event::ToolCallEnd {
        name: "edit_file".into(),
        summary: "s".into(),
        result: ToolResult {
            call_id: format!("c{at}"),
            text: format!("result {at}"),
            is_error: at == 2,
            images: Vec::new(),
        },
        changed: vec![change(at)],
        seen: vec![ObservedFile { path: format!("seen{at}"), hash: "h".into() }],
        denial: None,
        simulated: false,
        guardrail_counts: CallCounts { lines: 2, command: true, tests_passed: (at == 3).then_some(true) },
        duration_ms: 1,
    }
}

fn waits(at: usize) -> Event {
    let approval = ApprovalRequest {
        id: format!("q{at}"),
        call_id: format!("c{at}"),
        tool: "edit_file".into(),
        summary: "s".into(),
        reason: "r".into(),
        notes: Vec::new(),
        preview: None,
        asked_ms: 1,
        subject: ApprovalSubject { arguments: "h".into(), links: "h".into(), files: Vec::new() },
    };
    Event::ToolCallPending { call_id: format!("c{at}"), approval: (at > 0).then_some(approval) }
}

fn run_start(at: usize) -> Event {
    Event::RunStart {
        agent: "build".into(),
        model: format!("p/m{}", at % 2),
        mode: "yolo".into(),
        tools: Vec::new(),
        mcp_tools: BTreeMap::new(),
        max_steps: 5,
        resumed: true,
        sandbox: "none".into(),
        bounds: None,
    }
}

/// Events of models and tools.
fn of_work(kind: usize, at: usize) -> Event {
    let text = |text: &str| Part::Text { text: text.into() };
    let billed =
        (at == 0).then(|| BilledUsage { usage: Usage { input: 1, ..Usage::default() }, cost_usd: None });
    match kind {
        0 => Event::StepStart {
            purpose: if at == 0 { Purpose::Closing } else { Purpose::Step },
            messages: 1,
            digest: None,
        },
        1 => Event::RequestSent { attempt: 1 },
        2 => Event::Retry {
            attempt: 1,
            retry: 1,
            max_retries: 5,
            answer_discarded: false,
            delay_ms: 1,
            kind: FailureKind::Server,
            message: "m".into(),
            billed,
        },
        3 => answer(
            Purpose::Step,
            (0..=at).map(|at| Part::ToolCall(call(at))).collect(),
            FinishReason::ToolCalls,
        ),
        4 => answer(Purpose::Step, vec![text("done")], FinishReason::Stop),
        5 => {
            let opaque = Some(OpaqueData { codec: "c".into(), data: "sealed".into() });
            let parts = vec![Part::Thinking { text: "hm".into(), opaque }, text("half")];
            answer(Purpose::Step, parts, FinishReason::Length)
        }
        6 => answer(Purpose::Closing, vec![text("sum")], FinishReason::Other("x".into())),
        7 => Event::ModelFailed { purpose: Purpose::Step, failure: failure(FailureKind::Network), billed },
        8 => Event::ModelAbandoned { purpose: Purpose::Step, reason: StopReason::Timeout },
        9 => Event::ModelSwitched { from: "a".into(), to: "b".into(), failure: failure(FailureKind::Quota) },
        10 => Event::ToolCallStart { call: call(at), summary: "s".into() },
        11 => Event::FileChangesPlanned { call_id: format!("c{at}"), changes: vec![change(at)] },
        12 => waits(at),
        13 => Event::CachedAnswer,
        14 => Event::History {
            messages: vec![HistoryMessage { role: HistoryRole::User, content: "before".into() }],
        },
        _ => ended(at),
    }
}

/// Events of users, hooks and the loop.
fn of_people(kind: usize, at: usize) -> Event {
    let origins = [
        MessageOrigin::Prompt,
        MessageOrigin::System,
        MessageOrigin::Continuation,
        MessageOrigin::Repair,
        MessageOrigin::Hook,
    ];
    let hashes = || PrefixHashes { parameters: "p".into(), tools: "t".into(), system: format!("s{at}") };
    match kind {
        0 => run_start(at),
        1 => Event::user_message(format!("words {at}"), origins[at]),
        2 => Event::System { text: format!("system {at}") },
        3 => Event::RequestPrefix { hashes: hashes(), changed: vec!["system".into()] },
        4 => Event::ApprovalAnswered {
            id: format!("q{at}"),
            answer: ApprovalAnswer::Approve,
            signature: "x".into(),
        },
        5 => Event::BackgroundStart { id: format!("bg{at}"), command: "c".into() },
        6 => Event::BackgroundEnd {
            id: format!("bg{at}"),
            command: "c".into(),
            outcome: "o".into(),
            ended_by_run_end: at == 0,
        },
        7 => Event::HookEnd {
            hook: "h".into(),
            on: "pre_llm_call".into(),
            verdict: if at == 0 { HookVerdict::Stop } else { HookVerdict::Warn },
            output: "o".into(),
            duration_ms: 1,
        },
        8 => Event::Guardrail {
            triggered: TriggeredGuardrail {
                name: "g".into(),
                on: if at == 0 { ConversationSide::Input } else { ConversationSide::Output },
                severity: Severity::default(),
                action: if at == 1 { GuardrailAction::Halt } else { GuardrailAction::Block },
                message: "m".into(),
            },
        },
        9 => Event::StepEnd,
        10 => Event::Closing { reason: StopReason::MaxSteps, limit: None },
        11 => Event::Restored { direction: RestoreDirection::Undo, to_step: 0, changed: vec![change(at)] },
        12 => Event::Restored { direction: RestoreDirection::Redo, to_step: 0, changed: vec![change(at)] },
        13 => Event::Instructions {
            file: InstructionFile { path: "A".into(), hash: "h".into(), bytes: 1, before: None },
        },
        _ => Event::Notice { level: NoticeLevel::Info, text: "n".into() },
    }
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = (any::<bool>(), 0usize..16, 0usize..5)
        .prop_map(|(work, kind, at)| if work { of_work(kind, at) } else { of_people(kind, at) });
    prop::collection::vec(one, 1..60)
}

fn records(events: Vec<Event>) -> Vec<Record> {
    let start = Event::SessionStart {
        session_id: "id".into(),
        workspace: "/w".into(),
        program: "a".into(),
        imported_from: None,
        work_id: None,
    };
    let all = [start, run_start(0)].into_iter().chain(events);
    let record = |(seq, event): (u64, Event)| Record {
        v: EVENT_SCHEMA_VERSION,
        seq,
        run: "r".into(),
        step: u32::try_from(seq / 4).unwrap(),
        wall_ms: seq,
        mono_us: seq,
        event,
    };
    (0..).zip(all).map(record).collect()
}

fn folded(mut known: SessionState, records: &[Record]) -> SessionState {
    known.session = known.session.with_limits(limits());
    for record in records {
        known.apply(record);
    }
    known
}

proptest! {
    #[test]
    fn o11_a_state_and_what_came_after_it_are_the_whole_session(events in events(), at in any::<prop::sample::Index>()) {
        let records = records(events);
        let (before, after) = records.split_at(at.index(records.len() + 1));
        let saved = serde_json::to_vec(&folded(SessionState::default(), before)).unwrap();
        let resumed = folded(serde_json::from_slice(&saved).unwrap(), after);
        let whole = folded(SessionState::default(), &records);
        prop_assert_eq!(serde_json::to_string(&resumed).unwrap(), serde_json::to_string(&whole).unwrap());
        let moment = Moment { elapsed: Duration::ZERO, interrupted: false };
        prop_assert_eq!(resumed.session.next_action(moment), whole.session.next_action(moment));
        prop_assert_eq!(resumed.session.messages(), whole.session.messages());
    }
}

#[test]
fn a_state_of_another_format_is_rejected() {
    let state = serde_json::to_value(SessionState::default()).unwrap();
    for (name, object) in [("about", "/about"), ("session", "/session"), ("history", "")] {
        let mut less = state.clone();
        less.as_object_mut().unwrap().shift_remove(name);
        assert!(serde_json::from_value::<SessionState>(less).is_err(), "without {name}");
        let mut more = state.clone();
        let target = more.pointer_mut(object).unwrap().as_object_mut().unwrap();
        target.insert("of_tomorrow".into(), 1.into());
        assert!(serde_json::from_value::<SessionState>(more).is_err(), "more in {object}");
    }
}
