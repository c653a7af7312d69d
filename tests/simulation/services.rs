//! Simulated tools, hooks, guardrails, background commands and checkpoints, with the events of the real engine.

use super::context::SimulationContext;
use super::deterministic_model::item_of;
use super::random::Random;
use super::scenario::FaultPlan;
use super::workspace::FIRST_UNWRITABLE;
use crate::loop_services::LoopServices;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest, ApprovalSubject};
use agent_core::change_review::{ChangeFinding, ChangeReview};
use agent_core::decision::Denial;
use agent_core::event::{Event, HookVerdict, MessageOrigin};
use agent_core::file_change::{Change, ChangedBy, FileState};
use agent_core::guardrail::{CallCounts, ConversationSide, GuardrailAction, Severity, TriggeredGuardrail};
use agent_core::language::Language;
use agent_core::message::{ToolCall, ToolResult};
use agent_core::quality_gate::GateResult;
use agent_engine::hooks::{HookEvent, HookInput};
use agent_engine::reviewer::ReviewRequest;
use agent_engine::{call_arguments, with_time_limit};
use agent_journal::approvals::Approvals;
use agent_messages as messages;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::{EmitError, Emitter};
use futures_util::future::join_all;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Lines of a result that exceeds the conversation before it, about 10,000 tokens.
const HUGE_RESULT_LINES: usize = 2_000;

/// The services of the loop in one run.
pub struct SimulatedServices {
    /// Shared state of the scenario.
    pub shared: Rc<SimulationContext>,
    /// The emitter.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Clock>,
    /// Their random numbers.
    pub random: Random,
    /// The answers of the user to approvals.
    pub approvals: Approvals,
    /// Whether a hook has stopped the run.
    pub stopped: Cell<bool>,
    /// Whether a call waits.
    pub has_pending_call: Cell<bool>,
    /// Running background commands, and their end times.
    pub running: RefCell<Vec<(String, Duration)>>,
    /// Started background commands that were not reported yet.
    pub unreported: RefCell<Vec<String>>,
    /// Whether files were changed since the last checkpoint.
    pub changed: Cell<bool>,
}

/// The result of a call.
#[derive(Default)]
struct CallResult {
    text: String,
    is_error: bool,
    changed: Vec<Change>,
    denial: Option<Denial>,
}

fn error(text: impl Into<String>) -> CallResult {
    CallResult { text: text.into(), is_error: true, ..CallResult::default() }
}

/// Returns true for one in `times` ids, always the same ones.
fn is_selected(id: &str, salt: u64, times: u64) -> bool {
    let sum = id.bytes().fold(salt, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    Random::new(sum, salt).one_in(times)
}

impl SimulatedServices {
    fn asks(&self, call: &ToolCall) -> bool {
        call.name == "write_file"
            && is_selected(&call.id, self.shared.scenario.seed, self.shared.scenario.rates.asks)
    }

    async fn run_groups(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        self.has_pending_call.set(false);
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let together = self.shared.scenario.parallel_calls && !self.asks(first);
            let group =
                if together { rest.iter().take(4).take_while(|call| !self.asks(call)).count() } else { 1 };
            let (now, later) = rest.split_at(group);
            let outcomes = join_all(now.iter().map(|call| self.run_call(call, interrupt, cancel)));
            outcomes.await.into_iter().collect::<Result<(), _>>()?;
            if self.has_pending_call.get() {
                return self.request_later_approvals(later, interrupt, cancel).await;
            }
            rest = later;
        }
        Ok(())
    }

    /// Requests approval of the calls behind one that waits.
    async fn request_later_approvals(
        &self,
        later: &[ToolCall],
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        for call in later.iter().filter(|call| self.asks(call)) {
            if !cancel.is_cancelled() {
                self.run_call(call, interrupt, cancel).await?;
            }
        }
        Ok(())
    }

    async fn run_call(
        &self,
        call: &ToolCall,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let start = self.source.elapsed();
        self.emitter.emit(Event::ToolCallStart { call: call.clone(), summary: call.name.clone() })?;
        let Some(done) = self.decide(call, interrupt, cancel).await? else { return Ok(()) };
        let mut text = done.text;
        if let Some(found) =
            self.find(ConversationSide::Input, &text).filter(|found| found.action == GuardrailAction::Block)
        {
            text = messages::withheld_text(&found.name, &found.message);
            self.emitter.emit(Event::Guardrail { triggered: found })?;
        }
        let took = self.source.elapsed().saturating_sub(start);
        let event = Event::ToolCallEnd {
            name: call.name.clone(),
            summary: call.name.clone(),
            result: ToolResult {
                call_id: call.id.clone(),
                text,
                is_error: done.is_error,
                images: Vec::new(),
            },
            changed: done.changed,
            seen: Vec::new(),
            denial: done.denial,
            simulated: false,
            guardrail_counts: CallCounts::default(),
            duration_ms: u64::try_from(took.as_millis()).unwrap(),
        };
        self.emitter.emit(event).map(drop)
    }

    /// Decides on a call; returns `None` when it waits.
    async fn decide(
        &self,
        call: &ToolCall,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<Option<CallResult>, EmitError> {
        if let Err(problem) = call_arguments::parse(&call.arguments) {
            return Ok(Some(error(problem)));
        }
        if !["read", "start", "write_file"].contains(&call.name.as_str()) {
            return Ok(Some(error("there is no such tool")));
        }
        if cancel.is_cancelled() {
            let cause = if interrupt.is_cancelled() { "the person" } else { "the time" };
            return Ok(Some(error(format!("not executed: {cause} ended the run"))));
        }
        if self.stopped.get() {
            return Ok(Some(error(messages::stopped_by_hook(Language::En))));
        }
        if self.random.one_in(self.shared.scenario.rates.denied) {
            return Ok(Some(denied(call, "the policy says no")));
        }
        self.hook(HookEvent::PreToolUse, cancel).await?;
        match self.approvals.answered(&call.id).map(|(_, answered)| &answered.answer) {
            Some(ApprovalAnswer::Deny { .. }) => return Ok(Some(denied(call, "the person says no"))),
            None if self.asks(call) => return self.wait(call, Some(question(call))),
            None if self.has_pending_call.get() => return self.wait(call, None),
            Some(ApprovalAnswer::Approve) | None => {}
        }
        self.execute(call, cancel).await.map(Some)
    }

    fn wait(
        &self,
        call: &ToolCall,
        approval: Option<ApprovalRequest>,
    ) -> Result<Option<CallResult>, EmitError> {
        self.has_pending_call.set(true);
        self.shared.count("event", "call waits for approval");
        self.emitter.emit(Event::ToolCallPending { call_id: call.id.clone(), approval })?;
        Ok(None)
    }

    async fn execute(&self, call: &ToolCall, cancel: &CancellationToken) -> Result<CallResult, EmitError> {
        let item = item_of(&call.arguments).unwrap_or_default();
        let announced = change(item, self.shared.workspace.read(item).is_some());
        if call.name == "write_file" {
            let changes = vec![announced.clone()];
            self.emitter.emit(Event::FileChangesPlanned { call_id: call.id.clone(), changes })?;
        }
        assert_eq!(self.shared.workspace.runs(&call.id), 1, "the call {} has run before", call.id);
        let done = self.effect(call, item, announced);
        let slow = self.random.one_in(self.shared.scenario.rates.slow);
        let time = if slow { 100_000 } else { self.random.between(1, 2_500) };
        if slow {
            self.shared.count("fault", "slow tool");
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Ok(CallResult { text: "cut short".into(), is_error: true, ..done }),
            () = tokio::time::sleep(Duration::from_millis(time)) => {}
        }
        Ok(done)
    }

    fn effect(&self, call: &ToolCall, item: u64, change: Change) -> CallResult {
        let (workspace, rates) = (&self.shared.workspace, &self.shared.scenario.rates);
        if self.random.one_in(rates.fails) {
            return error("it failed");
        }
        let lines = match self.shared.scenario.fault_plan {
            FaultPlan::HugeResults if self.random.one_in(12) => HUGE_RESULT_LINES,
            _ if self.random.one_in(rates.long) => 60,
            _ => 0,
        };
        let long = "line of a long result\n".repeat(lines);
        let mut text = match call.name.as_str() {
            "read" => workspace.read(item).unwrap_or_else(|| format!("item {item} has nothing")) + &long,
            "start" => self.start(),
            _ if item >= FIRST_UNWRITABLE => return error(format!("item {item} is too far away")),
            _ if item % 7 == 3 && workspace.tries(item) == 1 => {
                return error(format!("item {item} is locked"));
            }
            _ => {
                workspace.write(item);
                self.changed.set(true);
                return CallResult {
                    text: format!("wrote content of {item}{long}"),
                    changed: vec![change],
                    ..CallResult::default()
                };
            }
        };
        if let Some(secret) = self.shared.scenario.secret.as_ref().filter(|_| self.random.one_in(5)) {
            text.push_str(secret);
        }
        if self.random.one_in(rates.guarded) {
            text.push_str(" forbidden");
        }
        CallResult { text, ..CallResult::default() }
    }

    fn start(&self) -> String {
        let mut started = self.shared.workspace.started.borrow_mut();
        *started += 1;
        let id = format!("bg{started}");
        let end = self.source.elapsed() + Duration::from_millis(self.random.between(1, 60_000));
        self.running.borrow_mut().push((id.clone(), end));
        self.unreported.borrow_mut().push(id.clone());
        format!("{id} runs")
    }

    /// Runs a hook at random and returns its text.
    async fn hook(&self, event: HookEvent, cancel: &CancellationToken) -> Result<Vec<String>, EmitError> {
        let rates = &self.shared.scenario.rates;
        if cancel.is_cancelled() || !self.random.one_in(rates.hooks) {
            return Ok(Vec::new());
        }
        let time = Duration::from_millis(self.random.between(1, 900));
        if matches!(event, HookEvent::SessionEnd | HookEvent::AgentComplete) {
            self.shared.grace.set(self.shared.grace.get() + time + Duration::from_millis(2));
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = tokio::time::sleep(time) => {}
        }
        let verdict = if self.random.one_in(rates.stops) { HookVerdict::Stop } else { HookVerdict::Allow };
        self.stopped.set(self.stopped.get() || verdict == HookVerdict::Stop);
        let mut output = "the hook says so".to_owned();
        if let Some(secret) = &self.shared.scenario.secret {
            output.push_str(secret);
        }
        if self.random.one_in(rates.guarded) {
            output.push_str(" forbidden");
        }
        let duration_ms = u64::try_from(time.as_millis()).unwrap();
        let on = event.name().to_owned();
        self.emitter.emit(Event::HookEnd {
            hook: "h".into(),
            on,
            verdict,
            output: output.clone(),
            duration_ms,
        })?;
        Ok(vec![messages::hook_context(&output)])
    }

    fn find(&self, side: ConversationSide, text: &str) -> Option<TriggeredGuardrail> {
        (self.shared.scenario.rates.guarded > 0 && text.contains("forbidden")).then(|| TriggeredGuardrail {
            name: "words".to_owned(),
            on: side,
            severity: Severity::Medium,
            action: if self.shared.scenario.halts { GuardrailAction::Halt } else { GuardrailAction::Block },
            message: "such words are not wanted".to_owned(),
        })
    }

    fn ended(&self, id: &str, ended_by_run_end: bool) -> Result<(), EmitError> {
        let (id, command, outcome) = (id.to_owned(), "sleep".to_owned(), "exit code 0".to_owned());
        self.emitter.emit(Event::BackgroundEnd { id, command, outcome, ended_by_run_end }).map(drop)
    }
}

fn denied(call: &ToolCall, reason: &str) -> CallResult {
    let denial = Denial {
        tool: call.name.clone(),
        summary: call.name.clone(),
        reason: reason.to_owned(),
        rule: "rule".to_owned(),
    };
    CallResult { denial: Some(denial), ..error(reason) }
}

fn question(call: &ToolCall) -> ApprovalRequest {
    let of = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    ApprovalRequest {
        id: format!("ask-{}", call.id),
        call_id: call.id.clone(),
        tool: call.name.clone(),
        summary: call.name.clone(),
        reason: "it changes a file".to_owned(),
        notes: Vec::new(),
        preview: None,
        asked_ms: 1,
        subject: ApprovalSubject { arguments: of(&call.arguments), links: of(""), files: Vec::new() },
    }
}

fn change(item: u64, exists: bool) -> Change {
    let content =
        |text: &str| FileState::regular_file(blake3::hash(text.as_bytes()).to_hex().to_string(), 0o644);
    let before = if exists { content("before") } else { FileState::Absent };
    Change::between(&format!("item-{item}"), ChangedBy::Tool, &before, &content("after"))
}

impl LoopServices for SimulatedServices {
    async fn fire_hooks(
        &self,
        event: HookEvent,
        _input: HookInput,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, EmitError> {
        self.hook(event, cancel).await
    }

    async fn run_calls(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        left: Option<Duration>,
    ) -> Result<(), EmitError> {
        let cancel = interrupt.child_token();
        with_time_limit(left, &cancel, self.run_groups(calls, interrupt, &cancel)).await
    }

    async fn run_gates(&self, cancel: &CancellationToken) -> Result<(), EmitError> {
        let time = Duration::from_millis(self.random.between(1, 900));
        let over = tokio::time::timeout(time, cancel.cancelled()).await.is_ok();
        let result = GateResult {
            name: "tests".to_owned(),
            required: true,
            passed: !over && self.random.one_in(2),
            output: String::new(),
            duration_ms: 1,
        };
        self.emitter.emit(Event::QualityGates { results: vec![result] }).map(drop)
    }

    async fn review_changes(
        &self,
        request: ReviewRequest,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let time = Duration::from_millis(self.random.between(1, 900));
        if tokio::time::timeout(time, cancel.cancelled()).await.is_ok() {
            return Ok(());
        }
        let passes = request.passes;
        let finding = ChangeFinding { problem: "a bug".to_owned(), ..ChangeFinding::default() };
        let result = match self.random.below(4) {
            0 => ChangeReview { findings: vec![finding], parts: 1, passes, ..ChangeReview::default() },
            1 => ChangeReview { passes, ..ChangeReview::failed("no verdict".to_owned()) },
            2 => ChangeReview { skipped: true, passes, ..ChangeReview::default() },
            _ => ChangeReview { approved: true, parts: 1, passes, ..ChangeReview::default() },
        };
        self.emitter.emit(Event::ChangeReview { result }).map(drop)
    }

    fn store_output(&self, _call_id: &str, _text: &str) -> bool {
        !self.random.one_in(20)
    }

    fn send_queued(&self) -> Result<(), EmitError> {
        Ok(())
    }

    fn report_background(&self) -> Result<(), EmitError> {
        for id in self.unreported.take() {
            self.emitter.emit(Event::BackgroundStart { id, command: "sleep".to_owned() })?;
        }
        let now = self.source.elapsed();
        let (over, running): (Vec<_>, Vec<_>) =
            self.running.take().into_iter().partition(|(_, end)| *end <= now);
        self.running.replace(running);
        for (id, _) in over {
            self.ended(&id, false)?;
            let text = messages::background_ended(&id, "sleep", "exit code 0");
            self.emitter.emit(Event::user_message(text, MessageOrigin::Background))?;
        }
        Ok(())
    }

    fn report_budget_cap(&self, cap: Option<Event>) -> Result<(), EmitError> {
        cap.map_or(Ok(()), |cap| self.emitter.emit(cap).map(drop))
    }

    async fn stop_background(&self) -> Result<(), EmitError> {
        self.running.take().iter().try_for_each(|(id, _)| self.ended(id, true))
    }

    async fn commit_checkpoint(&self, step: Option<u32>) -> Result<(), EmitError> {
        let every = self.shared.scenario.checkpoints;
        let step = step.unwrap_or(every);
        if every == 0 || !step.is_multiple_of(every) || !self.changed.take() {
            return Ok(());
        }
        let (reference, commit) = ("refs/agent/1".to_owned(), "c0ffee".to_owned());
        self.emitter.emit(Event::Checkpoint { step, reference, commit, omitted_files: Vec::new() }).map(drop)
    }

    fn has_guardrails(&self, _side: ConversationSide) -> bool {
        self.shared.scenario.rates.guarded > 0
    }

    fn find_trigger(&self, side: ConversationSide, text: &str) -> Option<TriggeredGuardrail> {
        self.find(side, text)
    }

    async fn close(&self) {}
}
