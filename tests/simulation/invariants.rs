//! Invariants that hold after every record, calculated from the events alone and compared with the session.

use super::context::SimulationContext;
use super::coverage;
use crate::session::{Moment, Session};
use agent_core::event::{BilledUsage, Event, MessageOrigin, Purpose, Record};
use agent_core::event_sink::EventSink;
use agent_core::limits::{Limits, ModelTerms};
use agent_core::message::{Message, Part, Role};
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{ReachedLimit, Status, StopReason};
use agent_core::usage::Usage;
use agent_llm::call_assembler::CALLS_CAP;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Allowed delay of timers.
const TIMER_TOLERANCE: Duration = Duration::from_millis(3);

/// Figures of a session, calculated from its events.
#[derive(Debug, Default, Clone)]
struct Figures {
    steps: u32,
    requests: u32,
    calls: u32,
    ended: usize,
    usage: Usage,
    cost: Usd,
}

/// State of the current run.
#[derive(Debug, Default)]
struct Run {
    start: Duration,
    steps: u32,
    /// Calls that have started and not ended.
    started: BTreeSet<String>,
    ran: usize,
    model_index: usize,
    cost: Usd,
    /// Whether all of its costs were reported.
    is_reported: bool,
    /// Whether the current model call has sent a request.
    is_sent: bool,
    /// Purpose and start time of the current model call.
    call_start: Option<(Purpose, Duration)>,
    closing: Option<StopReason>,
    closings: u32,
    has_ended: bool,
}

/// Checks the invariants of a session, over all of its runs.
pub struct InvariantChecker {
    shared: Rc<SimulationContext>,
    limits: Limits,
    figures: Figures,
    run: Run,
    /// The session folded from the emitted events.
    fold: Session,
    /// Calls of the last answer without a result.
    pending: BTreeSet<String>,
    last_origin: Option<MessageOrigin>,
    last_time: Duration,
    /// The messages already checked.
    checked_messages: Vec<Arc<Message>>,
}

impl InvariantChecker {
    /// Creates the checks of a scenario.
    pub fn new(shared: Rc<SimulationContext>) -> Self {
        let limits = shared.scenario.limits.clone();
        Self {
            fold: Session::new(limits.clone()),
            limits,
            shared,
            figures: Figures::default(),
            run: Run::default(),
            pending: BTreeSet::new(),
            last_origin: None,
            last_time: Duration::ZERO,
            checked_messages: Vec::new(),
        }
    }

    /// Starts a new process with `session`, read from its journal. It must equal `fold`, of the same records, and the session before.
    pub fn resume(&mut self, session: &Session, fold: Session) {
        same(session, &fold, "a resumed session is not the fold of its journal");
        // The size reserved for a schema is known only during a run.
        if !self.shared.scenario.schema {
            same(&self.fold, &fold, "the journal folds to another state than the session had");
        }
        self.fold = fold;
        self.checked_messages.clear();
        self.run = Run::default();
        self.last_time = Duration::ZERO;
    }

    /// Sets the session after an event between two runs.
    pub fn resume_later(&mut self, fold: &Session) {
        self.fold = fold.clone();
    }

    /// Checks a record, after which the session is `live`.
    fn check_record(&mut self, record: &Record, live: &Session) {
        let now = Duration::from_micros(record.mono_us);
        self.fold.apply(&record.event);
        match &record.event {
            Event::RunStart { bounds, .. } => {
                self.start_run(Duration::from_micros(bounds.as_ref().unwrap().began_us));
            }
            Event::UserMessage { origin, .. } => self.last_origin = Some(*origin),
            Event::StepStart { purpose, messages, .. } => {
                assert_eq!(
                    *messages,
                    live.messages_for(*purpose).len(),
                    "the event reports another number of messages"
                );
                self.run.is_sent = false;
                self.check_call_start(*purpose, live);
            }
            Event::RequestSent { .. } => {
                self.figures.requests += 1;
                self.run.is_sent = true;
            }
            Event::Retry { kind, billed, .. } => self.billed(*billed, kind.may_be_billed()),
            Event::ModelFailed { failure, billed, .. } => {
                self.answered();
                self.billed(*billed, failure.kind.may_be_billed());
            }
            Event::ModelAbandoned { purpose, .. } => {
                if *purpose == Purpose::Step && !self.run.is_sent {
                    self.figures.steps -= 1;
                    self.run.steps -= 1;
                }
                self.run.is_reported = false;
                self.answered();
            }
            Event::ModelResponse { purpose, message, finish, usage, cost_usd, .. } => {
                self.answered();
                self.responded(*purpose, message, finish.is_usable());
                self.used(*usage, *cost_usd);
            }
            Event::ModelSwitched { to, .. } => self.switched(to),
            Event::ToolCallStart { call, .. } => drop(self.run.started.insert(call.id.clone())),
            Event::ToolCallEnd { result, .. } => self.tool_end(&result.call_id, now),
            Event::Closing { reason, .. } => self.closing(*reason, live),
            Event::StepEnd => self.compare(live, now),
            Event::RunEnd { result } => self.ended(result, live, now),
            _ => {}
        }
        assert!(
            now >= self.last_time
                || matches!(record.event, Event::SessionStart { .. } | Event::RunStart { .. }),
            "time goes back"
        );
        self.last_time = now;
        let is_expected_step =
            self.run.steps == record.step || matches!(record.event, Event::ModelSwitched { .. });
        assert!(
            is_expected_step || self.run.has_ended,
            "a record of step {} has the step number {}",
            self.run.steps,
            record.step
        );
    }

    fn elapsed(&self, now: Duration) -> Duration {
        now.saturating_sub(self.run.start)
    }

    fn start_run(&mut self, start: Duration) {
        self.run = Run { start, is_reported: true, ..Run::default() };
    }

    fn terms(&self) -> &ModelTerms {
        self.limits.models.at(self.run.model_index)
    }

    fn check_call_start(&mut self, purpose: Purpose, live: &Session) {
        assert!(
            self.pending.is_empty(),
            "the model is called while calls have no result: {:?}",
            self.pending
        );
        self.check_messages(live, purpose);
        let elapsed = self.last_elapsed();
        match purpose {
            Purpose::Step => {
                self.run.steps += 1;
                self.figures.steps += 1;
                assert!(self.run.steps <= self.limits.max_steps, "more steps than the limit");
                assert_eq!(self.run.closing, None, "a step starts after the closing");
                assert_ne!(
                    self.last_origin,
                    Some(MessageOrigin::System),
                    "a step follows an instruction to close an earlier run"
                );
                assert!(self.limits.work_time().is_none_or(|end| elapsed <= end), "a step starts too late");
            }
            Purpose::Summary | Purpose::Evaluation => {
                assert_eq!(self.run.closing, None, "an internal call starts after the closing");
            }
            Purpose::Closing => {
                self.run.closings += 1;
                assert!(self.run.closing.is_some() && self.run.closings == 1, "a closing call too many");
            }
        }
        self.run.call_start = Some((purpose, elapsed));
    }

    fn last_elapsed(&self) -> Duration {
        self.elapsed(self.last_time)
    }

    /// Checks that the call ended within its time limit.
    fn answered(&mut self) {
        let Some((purpose, start)) = self.run.call_start.take() else {
            panic!("an answer without a model call")
        };
        let time = match purpose {
            Purpose::Step | Purpose::Summary | Purpose::Evaluation => {
                let work = self.limits.timeout.map(|all| {
                    all.saturating_sub((all / 10).min(Duration::from_mins(1))).saturating_sub(start)
                });
                [work, self.limits.step_timeout].into_iter().flatten().min()
            }
            Purpose::Closing => {
                let left = self.limits.timeout.map(|all| all.saturating_sub(start));
                [left, Some(Duration::from_mins(1))].into_iter().flatten().min()
            }
        };
        let took = self.last_elapsed().saturating_sub(start);
        assert!(
            time.is_none_or(|time| took <= time + TIMER_TOLERANCE),
            "a model call took {took:?} with a limit of {time:?}"
        );
    }

    fn responded(&mut self, purpose: Purpose, message: &Message, counts: bool) {
        if purpose != Purpose::Step || !counts {
            return;
        }
        for call in message.tool_calls() {
            assert!(self.pending.insert(call.id.clone()), "two calls have the id {}", call.id);
            assert!(
                !self.shared.workspace.has_run(&call.id),
                "a call has the id of one that has run: {}",
                call.id
            );
            self.figures.calls += 1;
        }
    }

    fn used(&mut self, usage: Option<Usage>, cost: Option<Usd>) {
        let expected = self.terms().price.and_then(|price| match usage {
            Some(usage) => Some(price.cost(usage)),
            None => (price == agent_core::price::Price::FREE).then_some(Usd::ZERO),
        });
        assert_eq!(cost, expected, "an answer of {} has a wrong cost", self.terms().model);
        self.figures.usage += usage.unwrap_or_default();
        self.figures.cost += cost.unwrap_or_default();
        self.run.cost += cost.unwrap_or_default();
        self.run.is_reported &= usage.is_some();
        self.check_caps();
    }

    fn billed(&mut self, billed: Option<BilledUsage>, may_be_billed: bool) {
        match billed {
            Some(BilledUsage { usage, cost_usd }) => self.used(Some(usage), cost_usd),
            None => self.run.is_reported &= !may_be_billed,
        }
    }

    /// Checks that spending is within the caps.
    fn check_caps(&self) {
        if !self.shared.scenario.is_honest() {
            return;
        }
        let (usd, tokens) = self.shared.actual_spending.spent();
        assert!(
            self.limits.caps.usd.is_none_or(|cap| usd <= cap),
            "{usd} were spent with a cap of {:?}",
            self.limits.caps.usd
        );
        let cap = self.limits.caps.tokens;
        assert!(cap.is_none_or(|cap| tokens <= cap), "{tokens} tokens were used with a cap of {cap:?}");
    }

    fn switched(&mut self, to: &str) {
        self.run.model_index += 1;
        assert_eq!(self.terms().model, to, "the wrong model takes over");
        self.run.steps -= 1;
        self.figures.steps -= 1;
        self.shared.count("event", "switch to a fallback model");
    }

    fn tool_end(&mut self, id: &str, now: Duration) {
        assert!(self.pending.remove(id), "a result without a call, or a second one: {id}");
        self.figures.ended += 1;
        self.run.ran += usize::from(self.run.started.remove(id) && self.shared.workspace.has_run(id));
        let cap = self.limits.caps.tool_calls.map(|cap| usize::try_from(cap).unwrap());
        assert!(
            cap.is_none_or(|cap| self.run.ran <= cap),
            "{} calls ran with a cap of {cap:?}",
            self.run.ran
        );
        assert!(
            self.run.ran <= CALLS_CAP * usize::try_from(self.run.steps + 1).unwrap(),
            "too many calls ran at once"
        );
        let end = self.limits.work_time();
        assert!(
            end.is_none_or(|end| self.elapsed(now) <= end.max(self.last_elapsed()) + TIMER_TOLERANCE),
            "a call took too long"
        );
    }

    fn closing(&mut self, reason: StopReason, live: &Session) {
        assert_eq!(self.run.closing.replace(reason), None, "a run closes twice");
        if reason == StopReason::BudgetExceeded {
            self.check_budget_stop(live);
        }
    }

    /// Checks, if all costs are known, that a run that ends for its budget had too little left.
    fn check_budget_stop(&self, live: &Session) {
        let caps = &self.limits.caps;
        let (Some(cap), Some(price)) = (caps.usd, self.terms().price) else { return };
        if !self.run.is_reported || !self.shared.scenario.is_honest() {
            return;
        }
        let of = |part: &Part| match part {
            Part::Text { text } | Part::Thinking { text, .. } => text.len(),
            Part::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Part::ToolResult(result) => result.call_id.len() + result.text.len(),
            Part::Image(_) => 0,
        };
        let parts = live
            .messages()
            .iter()
            .map(|message| 16 + message.parts.iter().map(|part| 16 + of(part)).sum::<usize>());
        let prompt = parts.sum::<usize>() as u64 + caps.tools_tokens + 500;
        let usable = if caps.closes { cap.saturating_sub(cap.div_floor(10)) } else { cap };
        let left = usable.saturating_sub(self.run.cost);
        let least = self.terms().output_limit.unwrap_or(1_024).min(1_024);
        assert!(
            left <= price.max_cost(prompt, least.into()),
            "the run ended for its budget although {left} of {cap} were left"
        );
    }

    /// Checks the messages added since the last check.
    fn check_messages(&mut self, live: &Session, purpose: Purpose) {
        let messages = live.messages();
        let same = self
            .checked_messages
            .iter()
            .zip(messages)
            .take_while(|(known, new)| Arc::ptr_eq(known, new))
            .count();
        for at in same.max(1)..messages.len() {
            let (before, message) = (&messages[at - 1], &messages[at]);
            let ids = |message: &Message| -> Vec<String> {
                let results = message.parts.iter().filter_map(|part| match part {
                    Part::ToolResult(result) => Some(result.call_id.clone()),
                    Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
                });
                results.collect()
            };
            let called: Vec<String> = before.tool_calls().map(|call| call.id.clone()).collect();
            assert_eq!(called, ids(message), "calls and results do not pair up at message {at}");
            assert_ne!(message.role, Role::System, "a second system message");
            assert!(
                before.role != Role::Assistant || message.role != Role::Assistant,
                "two assistant messages in a row at message {at}"
            );
        }
        let last = messages.last().map(|message| message.role);
        let needs_answer = matches!(last, Some(Role::User | Role::Tool));
        let judges = purpose == Purpose::Evaluation;
        assert!(needs_answer || judges, "the model is called although the last message is its own");
        self.checked_messages = messages.to_vec();
    }

    /// Checks that the fold of the emitted events equals the session.
    fn compare(&self, live: &Session, now: Duration) {
        let moment = Moment { elapsed: self.elapsed(now), interrupted: false };
        assert_eq!(
            self.fold.next_action(moment),
            live.next_action(moment),
            "the fold of the journal has another next action than the session"
        );
        same(&self.fold, live, "the journal folds to another state");
    }

    fn ended(&mut self, result: &RunResult, live: &Session, now: Duration) {
        assert!(!std::mem::replace(&mut self.run.has_ended, true), "a run ends twice");
        let reason = result.stop_reason.expect("a run has a stop reason");
        let wanting = result.quality_gates.iter().any(|gate| !gate.passed)
            || result.evaluation.as_ref().is_some_and(|evaluation| !evaluation.passed)
            || result.review.as_ref().is_some_and(|review| !review.has_passed());
        let fails = reason == StopReason::LlmDone && wanting;
        let status = if fails { Status::Partial } else { reason.status() };
        assert_eq!(result.status, status, "the status does not match the stop reason");
        let reported_figures =
            (result.steps, result.requests, result.tool_calls, result.tools_used.len(), result.usage);
        let Figures { steps, requests, calls, ended, usage, cost } = self.figures.clone();
        assert_eq!(
            reported_figures,
            (steps, requests, calls, ended, usage),
            "the figures of the result are not those of the events"
        );
        let costs = result.cost.by_source.values().fold(Usd::ZERO, |sum, cost| sum + *cost);
        assert!(
            (f64::from(costs) - f64::from(cost)).abs() < 1e-9,
            "the reported cost is {costs} instead of {cost}"
        );
        let held = self.run.closing.is_none_or(|closing| {
            [closing, StopReason::UserInterrupt, StopReason::Guardrail, StopReason::InternalError]
                .contains(&reason)
        });
        assert!(held, "a run that closed for {:?} ended for {reason}", self.run.closing);
        if reason == StopReason::BudgetExceeded
            && result.limit != Some(ReachedLimit::ToolCalls)
            && self.run.closing.is_none()
        {
            self.check_budget_stop(live);
        }
        let most = self.limits.timeout.map(|all| all + self.shared.grace.get() + TIMER_TOLERANCE);
        let elapsed = self.elapsed(now);
        assert!(most.is_none_or(|most| elapsed <= most), "a run took {elapsed:?} with a limit of {most:?}");
        self.check_caps();
        same(&self.fold, live, "the journal folds to another state at the end");
    }

    /// Returns the steps of the current run.
    pub fn steps(&self) -> u32 {
        self.run.steps
    }
}

/// Asserts that two sessions are equal.
fn same(one: &Session, other: &Session, wrong: &str) {
    assert!(one == other, "{wrong}: {one:?} differs from {other:?}");
}

/// Event sink that runs the checks during one run.
pub struct InvariantSink {
    /// The checks.
    pub checks: Rc<RefCell<InvariantChecker>>,
    /// The session, which must receive each event first.
    pub session: Rc<RefCell<Session>>,
}

impl EventSink for InvariantSink {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if !record.event.is_delta() {
            let mut checks = self.checks.borrow_mut();
            checks.check_record(record, &self.session.borrow());
            coverage::count(&checks.shared, &record.event);
        }
        Ok(())
    }
}
