//! Plays the collected traces to a session: every loop must be detected and ended, no legitimate work disturbed.

use agent_config::schema::Document;
use agent_core::decision::Denial;
use agent_core::event::{Event, FinishReason, MessageOrigin, Purpose};
use agent_core::file_change::{Change, ChangeAction, ChangedBy};
use agent_core::guardrail::CallCounts;
use agent_core::limits::{BreakerLimits, Limits, OnRepeat};
use agent_core::message::{Message, Part, Role, ToolCall, ToolResult};
use agent_core::stop_reason::StopReason;
use agent_session::session::{Moment, NextAction, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

const LOOPS: &str = include_str!("../loops/loops.json");
const LOOK_ALIKES: &str = include_str!("../loops/look-alikes.json");
const README: &str = include_str!("../README.md");
const UPDATE: &str = "AGENT_UPDATE_DOCS";

/// Result of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TraceOutcome {
    /// Nothing was detected.
    Undisturbed,
    /// The run ended with the model's answer before the trace was over.
    Finished,
    /// The model was warned, or a call refused, and the run continued.
    Warned,
    /// The run was ended.
    Ended(StopReason),
}

fn traces(json: &str) -> Vec<Value> {
    serde_json::from_str(json).unwrap()
}

/// Returns the default limits of the configuration.
fn defaults() -> BreakerLimits {
    let document: Document = serde_yaml::from_str(include_str!("../../config/default.yaml")).unwrap();
    document.run_loop.breakers()
}

/// Returns the single steps of a trace, with the counts filled in.
fn steps(steps: &Value, count: Option<u64>) -> Vec<Value> {
    let mut all = Vec::new();
    for step in steps.as_array().unwrap() {
        match step.get("times").and_then(Value::as_u64) {
            Some(times) => (1..=times).for_each(|n| all.extend(self::steps(&step["steps"], Some(n)))),
            None => all.push(count.map_or_else(|| step.clone(), |n| filled_in(step, n))),
        }
    }
    all
}

fn filled_in(value: &Value, n: u64) -> Value {
    match value {
        Value::String(text) => json!(text.replace("{n}", &n.to_string())),
        Value::Array(items) => items.iter().map(|item| filled_in(item, n)).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, item)| (key.clone(), filled_in(item, n)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// A session to which a trace is played.
struct TraceSession {
    session: Session,
    calls: usize,
    outcome: TraceOutcome,
}

impl TraceSession {
    fn new(breakers: BreakerLimits) -> Self {
        let limits = Limits {
            max_steps: 1000,
            max_malformed: 3,
            max_continuations: 20,
            breakers,
            ..Limits::default()
        };
        let mut session = Session::new(limits);
        session.apply(&Event::RunStart {
            agent: "build".into(),
            model: "m".into(),
            mode: "yolo".into(),
            tools: vec!["run_command".into()],
            mcp_tools: BTreeMap::new(),
            max_steps: 1000,
            resumed: false,
            sandbox: String::new(),
            bounds: None,
        });
        session.apply(&Event::user_message("do it", MessageOrigin::Prompt));
        Self { session, calls: 0, outcome: TraceOutcome::Undisturbed }
    }

    /// Executes actions until the model is called; returns whether it is.
    fn runs_to_model_call(&mut self) -> bool {
        loop {
            match self.session.next_action(Moment { elapsed: Duration::ZERO, interrupted: false }) {
                NextAction::CallModel(Purpose::Step) => return true,
                NextAction::AddUserMessage(MessageOrigin::Continuation, text) => {
                    self.session.apply(&Event::user_message(text, MessageOrigin::Continuation));
                }
                NextAction::AddUserMessage(origin, text) => {
                    assert_eq!(origin, MessageOrigin::Breaker, "{text}");
                    self.outcome = TraceOutcome::Warned;
                    self.session.apply(&Event::user_message(text, origin));
                }
                NextAction::StartClosing(reason, _) => {
                    self.outcome = TraceOutcome::Ended(reason);
                    return false;
                }
                NextAction::Stop(verdict) => {
                    if verdict.reason != StopReason::LlmDone {
                        self.outcome = TraceOutcome::Ended(verdict.reason);
                    }
                    return false;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn play(mut self, trace: &Value) -> TraceOutcome {
        let steps = steps(&trace["steps"], None);
        for step in &steps {
            if !self.runs_to_model_call() {
                return if matches!(self.outcome, TraceOutcome::Ended(_)) {
                    self.outcome
                } else {
                    TraceOutcome::Finished
                };
            }
            self.step(step);
        }
        self.runs_to_model_call();
        self.outcome
    }

    /// Adds one answer of the model and the results of its calls.
    fn step(&mut self, step: &Value) {
        let single = [step.clone()];
        let made = step["batch"].as_array().map_or(single.as_slice(), Vec::as_slice);
        let made: Vec<(ToolCall, &Value)> = made
            .iter()
            .filter(|one| one.get("call").is_some())
            .map(|one| (self.call(&one["call"]), one))
            .collect();
        let text = step["text"].as_str().or(step["cut"].as_str());
        let mut parts: Vec<Part> = text.map(|text| Part::Text { text: text.into() }).into_iter().collect();
        parts.extend(made.iter().map(|(call, _)| Part::ToolCall(call.clone())));
        let finish = if step.get("cut").is_some() { FinishReason::Length } else { FinishReason::Stop };
        let message = Message { role: Role::Assistant, parts };
        self.session.apply(&Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None });
        let purpose = Purpose::Step;
        self.session.apply(&Event::ModelResponse {
            purpose,
            message,
            finish,
            usage: None,
            cost_usd: None,
            latency_ms: 0,
        });
        while let NextAction::RefuseCalls(calls, message) = self.next() {
            self.outcome = TraceOutcome::Warned;
            for call in calls {
                self.session.apply(&ended(&call, &json!({"error": message})));
            }
        }
        if let NextAction::RunTools(calls) = self.next() {
            for (call, one) in made.iter().filter(|(call, _)| calls.contains(call)) {
                self.session.apply(&ended(call, one));
            }
        }
    }

    fn next(&self) -> NextAction {
        self.session.next_action(Moment { elapsed: Duration::ZERO, interrupted: false })
    }

    fn call(&mut self, call: &Value) -> ToolCall {
        self.calls += 1;
        let arguments = call[1].as_str().map_or_else(|| call[1].to_string(), str::to_owned);
        ToolCall::new(format!("c{}", self.calls), call[0].as_str().unwrap(), arguments)
    }
}

fn ended(call: &ToolCall, one: &Value) -> Event {
    let is_error = one.get("error").is_some();
    let text = one["ok"].as_str().or(one["error"].as_str()).unwrap().to_owned();
    let rule = || Denial {
        tool: call.name.clone(),
        summary: String::new(),
        reason: text.clone(),
        rule: "mode".into(),
    };
    let changed = one.get("changed").map(|change| Change {
        path: change[0].as_str().unwrap().into(),
        action: ChangeAction::Modified,
        by: if call.name == "run_command" { ChangedBy::Command } else { ChangedBy::Tool },
        before: change[1].as_str().map(str::to_owned),
        after: change[2].as_str().map(str::to_owned),
        before_mode: None,
        after_mode: None,
        directories: 0,
    });
    Event::ToolCallEnd {
        name: call.name.clone(),
        summary: String::new(),
        denial: one.get("denied").map(|_| rule()),
        result: ToolResult { call_id: call.id.clone(), text, is_error, images: Vec::new() },
        changed: changed.into_iter().collect(),
        seen: Vec::new(),
        simulated: false,
        guardrail_counts: CallCounts::default(),
        duration_ms: 0,
    }
}

fn fates(traces: &[Value], limits: &BreakerLimits) -> Vec<(String, TraceOutcome)> {
    let named = traces.iter().map(|trace| (trace["name"].as_str().unwrap().to_owned(), trace));
    named.map(|(name, trace)| (name, TraceSession::new(limits.clone()).play(trace))).collect()
}

#[test]
fn every_loop_is_ended_for_its_reason() {
    let traces = traces(LOOPS);
    assert!(traces.len() >= 30);
    let expected: Vec<(String, String)> = traces
        .iter()
        .map(|trace| (trace["name"].as_str().unwrap().into(), trace["ends"].as_str().unwrap().into()))
        .collect();
    let reached: Vec<(String, String)> = fates(&traces, &defaults())
        .into_iter()
        .map(|(name, outcome)| match outcome {
            TraceOutcome::Ended(reason) => (name, reason.name().to_owned()),
            other => (name, format!("{other:?}")),
        })
        .collect();
    assert_eq!(reached, expected);
}

#[test]
fn no_legitimate_work_is_disturbed() {
    let traces = traces(LOOK_ALIKES);
    assert!(traces.len() >= 30);
    let disturbed: Vec<(String, TraceOutcome)> = fates(&traces, &defaults())
        .into_iter()
        .filter(|(_, outcome)| *outcome != TraceOutcome::Undisturbed)
        .collect();
    assert!(disturbed.is_empty(), "{disturbed:#?}");
}

#[test]
fn l30_nothing_is_noticed_when_all_is_off() {
    for file in [LOOPS, LOOK_ALIKES] {
        for (name, outcome) in fates(&traces(file), &BreakerLimits::default()) {
            let by_arguments = TraceOutcome::Ended(StopReason::ConsecutiveErrors);
            let is_malformed = name == "calls that nobody can read" && outcome == by_arguments;
            assert!(
                is_malformed || matches!(outcome, TraceOutcome::Undisturbed | TraceOutcome::Finished),
                "{name}: {outcome:?}"
            );
        }
    }
}

#[test]
fn no_warning_is_sent_when_the_configuration_stops_at_once() {
    let limits = BreakerLimits { on_repeat: OnRepeat::Stop, ..defaults() };
    let fates = fates(&traces(LOOPS), &limits);
    let left: Vec<_> =
        fates.iter().filter(|(_, outcome)| !matches!(outcome, TraceOutcome::Ended(_))).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Returns a line of the table: changed threshold, loops ended, loops only warned about, names of disturbed legitimate work.
fn line(what: &str, limits: &BreakerLimits, traces: &[Vec<Value>; 2]) -> String {
    let [loops, work] = [0, 1].map(|file| fates(&traces[file], limits));
    let count =
        |wanted: &dyn Fn(&TraceOutcome) -> bool| loops.iter().filter(|(_, outcome)| wanted(outcome)).count();
    let ended = count(&|outcome| matches!(outcome, TraceOutcome::Ended(_)));
    let missed: Vec<&str> = loops
        .iter()
        .filter(|(_, outcome)| !matches!(outcome, TraceOutcome::Ended(_)))
        .map(|(name, _)| name.as_str())
        .collect();
    let warned = count(&|outcome| *outcome == TraceOutcome::Warned);
    let disturbed: Vec<&str> = work
        .iter()
        .filter(|(_, outcome)| *outcome != TraceOutcome::Undisturbed)
        .map(|(name, _)| name.as_str())
        .collect();
    format!(
        "| {what} | {ended} of {} | {warned} | {} | {} of {} | {} |\n",
        loops.len(),
        missed.join("; "),
        disturbed.len(),
        work.len(),
        disturbed.join("; ")
    )
}

/// Returns the table: each threshold one lower, one higher and off.
fn table() -> String {
    type Threshold = (&'static str, fn(&mut BreakerLimits) -> &mut u32);
    let thresholds: [Threshold; 8] = [
        ("max_repeated_calls", |limits| &mut limits.repeated_calls),
        ("repeat_window", |limits| &mut limits.repeat_window),
        ("max_consecutive_errors", |limits| &mut limits.consecutive_errors),
        ("max_same_errors", |limits| &mut limits.same_errors),
        ("max_same_results", |limits| &mut limits.same_results),
        ("max_reverted_edits", |limits| &mut limits.reverted_edits),
        ("max_repeated_texts", |limits| &mut limits.repeated_texts),
        ("max_announcements", |limits| &mut limits.announcements),
    ];
    let mut table = String::from(
        "| thresholds | loops ended | only told | loops not ended | work disturbed | which |\n|---|---|---|---|---|---|\n",
    );
    let traces = [LOOPS, LOOK_ALIKES].map(traces);
    table.push_str(&line("as they are", &defaults(), &traces));
    for (name, threshold) in thresholds {
        let default = *threshold(&mut defaults());
        let values: BTreeSet<u32> = [0, default - 1, default + 1].into();
        for value in values {
            let mut limits = defaults();
            *threshold(&mut limits) = value;
            table.push_str(&line(&format!("`{name}: {value}`"), &limits, &traces));
        }
    }
    table
}

#[test]
fn the_table_of_thresholds_is_up_to_date() {
    let (begin, end) = ("<!-- thresholds -->\n", "<!-- end of thresholds -->");
    let (start, stop) = (README.find(begin).unwrap() + begin.len(), README.find(end).unwrap());
    let table = table();
    if std::env::var_os(UPDATE).is_some() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/README.md");
        std::fs::write(path, format!("{}{table}{}", &README[..start], &README[stop..])).unwrap();
        return;
    }
    assert_eq!(&README[start..stop], table, "run the tests with {UPDATE}=1 to renew tests/README.md");
}
