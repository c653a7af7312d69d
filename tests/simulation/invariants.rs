//! What must hold after every record, reckoned from the events alone and compared with what the session says.

use super::context::SimulationContext;
use super::coverage;
use crate::agent::session::{Moment, Session};
use crate::core::event::{BilledUsage, Event, EventSink, MessageOrigin, Purpose, Record};
use crate::core::limits::{Limits, ModelTerms};
use crate::core::message::{Message, Part, Role};
use crate::core::price::Usd;
use crate::core::run_result::RunResult;
use crate::core::stop_reason::{ReachedLimit, Status, StopReason};
use crate::core::usage::Usage;
use crate::llm::call_assembler::CALLS_CAP;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What timers may be late by.
const LATE: Duration = Duration::from_millis(3);

/// Figures of a session, from its events.
#[derive(Debug, Default, Clone)]
struct Figures {
    steps: u32,
    requests: u32,
    calls: u32,
    ended: usize,
    usage: Usage,
    cost: Usd,
}

/// What is known of the run at work.
#[derive(Debug, Default)]
struct Run {
    began: Duration,
    steps: u32,
    /// Its calls that have begun and not ended.
    begun: BTreeSet<String>,
    ran: usize,
    place: usize,
    cost: Usd,
    /// Whether all that it cost was reported.
    is_reported: bool,
    /// When its model call began, and how much of the time for it there was then.
    asked: Option<(Purpose, Duration)>,
    closing: Option<StopReason>,
    closings: u32,
    has_ended: bool,
}

/// The checks of a session, over all of its runs.
pub struct InvariantChecker {
    shared: Rc<SimulationContext>,
    limits: Limits,
    figures: Figures,
    run: Run,
    /// The fold of what was told.
    fold: Session,
    /// Calls of the last answer that have no result.
    pending: BTreeSet<String>,
    last_said: Option<MessageOrigin>,
    last_time: Duration,
    /// How much of the conversation was looked at.
    looked_at: Vec<Arc<Message>>,
}

impl InvariantChecker {
    /// The checks of a scenario.
    pub fn new(shared: Rc<SimulationContext>) -> Self {
        let limits = shared.scenario.limits.clone();
        Self {
            fold: Session::new(limits.clone()),
            limits,
            shared,
            figures: Figures::default(),
            run: Run::default(),
            pending: BTreeSet::new(),
            last_said: None,
            last_time: Duration::ZERO,
            looked_at: Vec::new(),
        }
    }

    /// A process begins with `session`: what it says must be what the one before said, and it goes on from the journal.
    pub fn resume(&mut self, session: &Session, fold: Session) {
        // What a run sets aside for its schema is known only while it lasts.
        if self.shared.scenario.schema {
            assert_eq!(
                state(session),
                state(&fold),
                "a session that is gone on with is not the fold of its journal"
            );
        } else {
            // Also what is not written when it is kept.
            same(session, &fold, "a session that is gone on with is not the fold of its journal");
            same(&self.fold, &fold, "a journal folds to another state than the session had");
        }
        self.fold = fold;
        self.looked_at.clear();
        self.run = Run::default();
        self.last_time = Duration::ZERO;
    }

    /// Something happened between two runs, after which the session is `fold`.
    pub fn resume_later(&mut self, fold: &Session) {
        self.fold = fold.clone();
    }

    /// Takes note of a record after which the session is `live`.
    fn note(&mut self, record: &Record, live: &Session) {
        let now = Duration::from_micros(record.mono_us);
        self.fold.apply(&record.event);
        match &record.event {
            Event::RunStart { bounds, .. } => {
                self.begin(Duration::from_micros(bounds.as_ref().unwrap().began_us));
            }
            Event::UserMessage { origin, .. } => self.last_said = Some(*origin),
            Event::StepStart { purpose, messages, .. } => {
                assert_eq!(*messages, live.request(*purpose).len(), "another number of messages is told");
                self.asked(*purpose, live);
            }
            Event::RequestSent { .. } => self.figures.requests += 1,
            Event::Retry { kind, billed, .. } => self.billed(*billed, kind.may_be_billed()),
            Event::ModelFailed { failure, billed, .. } => {
                self.answered();
                self.billed(*billed, failure.kind.may_be_billed());
            }
            Event::ModelAbandoned { .. } => {
                self.run.is_reported = false;
                self.answered();
            }
            Event::ModelResponse { purpose, message, finish, usage, cost_usd, .. } => {
                self.answered();
                self.responded(*purpose, message, finish.is_usable());
                self.used(*usage, *cost_usd);
            }
            Event::ModelSwitched { to, .. } => self.switched(to),
            Event::ToolCallStart { call, .. } => drop(self.run.begun.insert(call.id.clone())),
            Event::ToolCallEnd { result, .. } => self.tool_end(&result.call_id, now),
            Event::Closing { reason } => self.closing(*reason, live),
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
        let kept = self.run.steps == record.step || matches!(record.event, Event::ModelSwitched { .. });
        assert!(kept || self.run.has_ended, "a record of step {} says {}", self.run.steps, record.step);
    }

    fn elapsed(&self, now: Duration) -> Duration {
        now.saturating_sub(self.run.began)
    }

    fn begin(&mut self, began: Duration) {
        self.run = Run { began, is_reported: true, ..Run::default() };
    }

    fn terms(&self) -> &ModelTerms {
        self.limits.models.at(self.run.place)
    }

    fn asked(&mut self, purpose: Purpose, live: &Session) {
        assert!(self.pending.is_empty(), "calls have no result and the model is asked: {:?}", self.pending);
        self.look_at(live, purpose);
        let elapsed = self.last_elapsed();
        match purpose {
            Purpose::Step => {
                self.run.steps += 1;
                self.figures.steps += 1;
                assert!(self.run.steps <= self.limits.max_steps, "more steps than there may be");
                assert_eq!(self.run.closing, None, "a step after the closing began");
                assert_ne!(
                    self.last_said,
                    Some(MessageOrigin::System),
                    "the last word is to close an earlier run"
                );
                assert!(self.limits.work_time().is_none_or(|end| elapsed <= end), "a step begins too late");
            }
            Purpose::Summary | Purpose::Evaluation => {
                assert_eq!(self.run.closing, None, "a call aside after the closing began");
            }
            Purpose::Closing => {
                self.run.closings += 1;
                assert!(self.run.closing.is_some() && self.run.closings == 1, "a closing call too many");
            }
        }
        self.run.asked = Some((purpose, elapsed));
    }

    fn last_elapsed(&self) -> Duration {
        self.elapsed(self.last_time)
    }

    /// The call has ended within its time.
    fn answered(&mut self) {
        let Some((purpose, began)) = self.run.asked.take() else { panic!("an answer without a question") };
        let time = match purpose {
            Purpose::Step | Purpose::Summary | Purpose::Evaluation => {
                let work = self.limits.timeout.map(|all| {
                    all.saturating_sub((all / 10).min(Duration::from_mins(1))).saturating_sub(began)
                });
                [work, self.limits.step_timeout].into_iter().flatten().min()
            }
            Purpose::Closing => {
                let left = self.limits.timeout.map(|all| all.saturating_sub(began));
                [left, Some(Duration::from_mins(1))].into_iter().flatten().min()
            }
        };
        let took = self.last_elapsed().saturating_sub(began);
        assert!(time.is_none_or(|time| took <= time + LATE), "a call took {took:?} and had {time:?}");
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
            None => (price == crate::core::price::Price::FREE).then_some(Usd::ZERO),
        });
        assert_eq!(cost, expected, "an answer of {} costs something else", self.terms().model);
        self.figures.usage += usage.unwrap_or_default();
        self.figures.cost += cost.unwrap_or_default();
        self.run.cost += cost.unwrap_or_default();
        self.run.is_reported &= usage.is_some();
        self.afford();
    }

    fn billed(&mut self, billed: Option<BilledUsage>, may_be_billed: bool) {
        match billed {
            Some(BilledUsage { usage, cost_usd }) => self.used(Some(usage), cost_usd),
            None => self.run.is_reported &= !may_be_billed,
        }
    }

    /// Nothing was spent that was not there.
    fn afford(&self) {
        if !self.shared.scenario.is_honest() {
            return;
        }
        let (usd, tokens) = self.shared.actual_spending.spent();
        assert!(
            self.limits.caps.usd.is_none_or(|cap| usd <= cap),
            "{usd} were spent of {:?}",
            self.limits.caps.usd
        );
        let cap = self.limits.caps.tokens;
        assert!(cap.is_none_or(|cap| tokens <= cap), "{tokens} tokens were used of {cap:?}");
    }

    fn switched(&mut self, to: &str) {
        self.run.place += 1;
        assert_eq!(self.terms().model, to, "another model takes over");
        self.run.steps -= 1;
        self.figures.steps -= 1;
        self.shared.count("around", "a model that takes over");
    }

    fn tool_end(&mut self, id: &str, now: Duration) {
        assert!(self.pending.remove(id), "a result without a call, or a second one: {id}");
        self.figures.ended += 1;
        self.run.ran += usize::from(self.run.begun.remove(id) && self.shared.workspace.has_run(id));
        let cap = self.limits.caps.tool_calls.map(|cap| usize::try_from(cap).unwrap());
        assert!(cap.is_none_or(|cap| self.run.ran <= cap), "{} calls ran of {cap:?}", self.run.ran);
        assert!(
            self.run.ran <= CALLS_CAP * usize::try_from(self.run.steps + 1).unwrap(),
            "too many calls ran at once"
        );
        let end = self.limits.work_time();
        assert!(
            end.is_none_or(|end| self.elapsed(now) <= end.max(self.last_elapsed()) + LATE),
            "a call took too long"
        );
    }

    fn closing(&mut self, reason: StopReason, live: &Session) {
        assert_eq!(self.run.closing.replace(reason), None, "a run closes twice");
        if reason == StopReason::BudgetExceeded {
            self.justified(live);
        }
    }

    /// Where all costs are known, a run that ends for money had really too little left.
    fn justified(&self, live: &Session) {
        let caps = &self.limits.caps;
        let (Some(cap), Some(price)) = (caps.usd, self.terms().price) else { return };
        if !self.run.is_reported || !self.shared.scenario.is_honest() {
            return;
        }
        let of = |part: &Part| match part {
            Part::Text { text } | Part::Thinking { text, .. } => text.len(),
            Part::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
            Part::ToolResult(result) => result.call_id.len() + result.text.len(),
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
            "{left} of {cap} are left and a step is not made"
        );
    }

    /// The conversation is whole: looks at what was added since it last was.
    fn look_at(&mut self, live: &Session, purpose: Purpose) {
        let messages = live.messages();
        let same =
            self.looked_at.iter().zip(messages).take_while(|(known, new)| Arc::ptr_eq(known, new)).count();
        for at in same.max(1)..messages.len() {
            let (before, message) = (&messages[at - 1], &messages[at]);
            let ids = |message: &Message| -> Vec<String> {
                let results = message.parts.iter().filter_map(|part| match part {
                    Part::ToolResult(result) => Some(result.call_id.clone()),
                    Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
                });
                results.collect()
            };
            let called: Vec<String> = before.tool_calls().map(|call| call.id.clone()).collect();
            assert_eq!(called, ids(message), "calls and results do not pair up at message {at}");
            assert_ne!(message.role, Role::System, "a second system message");
            assert!(
                before.role != Role::Assistant || message.role != Role::Assistant,
                "the model speaks twice in a row at message {at}"
            );
        }
        let last = messages.last().map(|message| message.role);
        let has_to_speak = matches!(last, Some(Role::User | Role::Tool));
        let judges = purpose == Purpose::Evaluation;
        assert!(has_to_speak || judges, "the model is asked after its own word");
        self.looked_at = messages.to_vec();
    }

    /// The fold of what was told is the session.
    fn compare(&self, live: &Session, now: Duration) {
        let moment = Moment { elapsed: self.elapsed(now), interrupted: false };
        assert_eq!(
            self.fold.next_action(moment),
            live.next_action(moment),
            "the journal decides otherwise than the session"
        );
        same(&self.fold, live, "the journal folds to another state");
    }

    fn ended(&mut self, result: &RunResult, live: &Session, now: Duration) {
        assert!(!std::mem::replace(&mut self.run.has_ended, true), "a run ends twice");
        let reason = result.stop_reason.expect("a run has a reason");
        let wanting = result.quality_gates.iter().any(|gate| !gate.passed)
            || result.evaluation.as_ref().is_some_and(|evaluation| !evaluation.passed);
        let fails = reason == StopReason::LlmDone && wanting;
        let status = if fails { Status::Partial } else { reason.status() };
        assert_eq!(result.status, status, "the status belongs to another reason");
        let told = (result.steps, result.requests, result.tool_calls, result.tools_used.len(), result.usage);
        let Figures { steps, requests, calls, ended, usage, cost } = self.figures.clone();
        assert_eq!(
            told,
            (steps, requests, calls, ended, usage),
            "the figures of the result are not those of the events"
        );
        let costs = result.cost.by_source.values().fold(Usd::ZERO, |sum, cost| sum + *cost);
        assert!((f64::from(costs) - f64::from(cost)).abs() < 1e-9, "the costs are {costs} and not {cost}");
        let held = self.run.closing.is_none_or(|closing| {
            [closing, StopReason::UserInterrupt, StopReason::Guardrail, StopReason::InternalError]
                .contains(&reason)
        });
        assert!(held, "a run that closes for {:?} ends for {reason}", self.run.closing);
        if reason == StopReason::BudgetExceeded
            && result.limit != Some(ReachedLimit::ToolCalls)
            && self.run.closing.is_none()
        {
            self.justified(live);
        }
        let most = self.limits.timeout.map(|all| all + self.shared.grace.get() + LATE);
        let elapsed = self.elapsed(now);
        assert!(most.is_none_or(|most| elapsed <= most), "a run took {elapsed:?} of {most:?}");
        self.afford();
        same(&self.fold, live, "the journal folds to another state at the end");
    }

    /// Steps of the run at work.
    pub fn steps(&self) -> u32 {
        self.run.steps
    }
}

/// Two sessions know the same.
fn same(one: &Session, other: &Session, wrong: &str) {
    if one != other {
        assert_eq!(state(one), state(other), "{wrong}");
        panic!("{wrong}: {one:?} is not {other:?}");
    }
}

/// All that is kept of what a session knows.
fn state(session: &Session) -> String {
    serde_json::to_string(session).unwrap()
}

/// The checks as a listener to one run.
pub struct InvariantSink {
    /// The checks.
    pub checks: Rc<RefCell<InvariantChecker>>,
    /// The session, which has heard it before.
    pub session: Rc<RefCell<Session>>,
}

impl EventSink for InvariantSink {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if !record.event.is_delta() {
            let mut checks = self.checks.borrow_mut();
            checks.note(record, &self.session.borrow());
            coverage::count(&checks.shared, &record.event);
        }
        Ok(())
    }
}
