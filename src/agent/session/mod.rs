//! A session: the fold of its journal, and what is next.

mod ending;
mod structured;

use crate::agent::spending::Spending;
use crate::agent::tally::Tally;
use crate::agent::watchdogs::{self, Limits, OnLimit, Readings};
use crate::event::{Event, FinishReason, Origin, Purpose, Record, SCHEMA_VERSION};
use crate::failure::{ErrorKind, Failure};
use crate::message::{Message, Role, ToolCall, ToolResult};
use crate::messages;
use crate::price::Usd;
use crate::result::{ChangedBy, Output, RunResult};
use crate::stop_reason::{Limit, StopReason};
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use structured::Demand;

/// What the loop has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model.
    CallModel(Purpose),
    /// Run these calls and record a result for each.
    RunTools(Vec<ToolCall>),
    /// Record for these calls that they are beyond what may be called.
    Refuse(Vec<ToolCall>),
    /// Put this user message into the conversation.
    Say(Origin, String),
    /// A limit is reached: begin the closing.
    Close(StopReason),
    /// The run is over.
    Stop(Verdict),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The one reason.
    pub reason: StopReason,
    /// The final answer.
    pub output: Output,
    /// The limit behind it.
    pub limit: Option<Limit>,
    /// What went wrong.
    pub error: Option<Failure>,
}

/// What the session cannot know by itself.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time since the run began.
    pub elapsed: Duration,
    /// Whether the person asked to stop.
    pub interrupted: bool,
}

/// State that belongs to one run and not to the session.
#[derive(Debug, Clone, Default, PartialEq)]
struct RunState {
    steps: u32,
    closing: Option<Closing>,
    failure: Option<Failure>,
    /// What it has spent.
    spending: Spending,
    /// Why a step's model call was given up: `timeout`, `user_interrupt` or `budget_exceeded`.
    abandoned: Option<StopReason>,
}

/// How far the closing has come.
#[derive(Debug, Clone, PartialEq)]
struct Closing {
    reason: StopReason,
    /// The limit behind it.
    limit: Option<Limit>,
    stage: Stage,
    /// The model's closing summary.
    text: Option<String>,
}

/// The stages of a closing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Instructed,
    Over,
}

/// The conversation and its figures.
#[derive(Debug, Clone)]
pub struct Session {
    limits: Limits,
    id: String,
    model: String,
    sandbox: String,
    messages: Vec<Arc<Message>>,
    pending: Vec<ToolCall>,
    results: BTreeMap<String, ToolResult>,
    call_ids: HashSet<String>,
    finish: Option<FinishReason>,
    answer_so_far: String,
    continuations: u32,
    malformed: u32,
    /// The model was told to close a run and the person has not said anything since.
    told_to_close: bool,
    /// What the answer must fit.
    demand: Demand,
    tally: Tally,
    run: RunState,
}

impl Session {
    /// A session in which nothing has happened yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            id: String::new(),
            model: String::new(),
            sandbox: String::new(),
            messages: Vec::new(),
            pending: Vec::new(),
            results: BTreeMap::new(),
            call_ids: HashSet::new(),
            finish: None,
            answer_so_far: String::new(),
            continuations: 0,
            malformed: 0,
            told_to_close: false,
            demand: Demand::default(),
            tally: Tally::default(),
            run: RunState::default(),
        }
    }

    /// The session that a journal tells of.
    pub fn replay<'a>(limits: Limits, records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut session = Self::new(limits);
        for record in records {
            session.apply(&record.event);
        }
        session
    }

    /// The conversation, system message first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The limits of this run.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The figures so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether a call id was used before in this session.
    pub fn knows_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    /// Calls of the last turn that have no result yet, in order.
    pub fn unanswered(&self) -> Vec<ToolCall> {
        self.pending.iter().filter(|call| !self.results.contains_key(&call.id)).cloned().collect()
    }

    /// Whether anybody has given the model a task.
    pub fn has_task(&self) -> bool {
        self.messages.iter().any(|message| message.role == Role::User)
    }

    /// Whether the model would only repeat itself if it were asked as things stand: it has answered, or the last it
    /// was told is to close an earlier run.
    pub fn waits_for_words(&self) -> bool {
        self.is_answered() || self.told_to_close
    }

    /// Whether the last word is the model's.
    fn is_answered(&self) -> bool {
        self.pending.is_empty() && self.messages.last().is_none_or(|message| message.role == Role::Assistant)
    }

    /// What is next. Pure: the same session at the same moment gives the same answer.
    pub fn next_step(&self, moment: Moment) -> Step {
        if !self.pending.is_empty() {
            return self.tools_step();
        }
        let interrupted = moment.interrupted || self.run.abandoned == Some(StopReason::UserInterrupt);
        match &self.run.closing {
            Some(_) if interrupted => return self.stop(StopReason::UserInterrupt, None),
            Some(closing) => return self.closing_step(closing, moment),
            None if self.is_answered() && self.finish.is_some() => return self.answered(),
            None if interrupted => return self.stop(StopReason::UserInterrupt, None),
            None => {}
        }
        if let Some(failure) = &self.run.failure {
            let auth = failure.kind == ErrorKind::Auth;
            let reason = if auth { StopReason::AuthError } else { StopReason::LlmError };
            return self.stop(reason, Some(failure.clone()));
        }
        let readings = Readings {
            steps: self.run.steps,
            malformed: self.malformed,
            elapsed: moment.elapsed,
            over_budget: self.exceeded(Purpose::Step).is_some(),
            step_timed_out: self.run.abandoned == Some(StopReason::Timeout),
        };
        match watchdogs::check(&self.limits, readings) {
            Some(reason) if self.limits.on_limit == OnLimit::Stop => self.stop(reason, None),
            Some(reason) => Step::Close(reason),
            None => Step::CallModel(Purpose::Step),
        }
    }

    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::SessionStart { session_id, .. } => self.id.clone_from(session_id),
            Event::RunStart { model, sandbox, .. } => self.run_start(model, sandbox),
            Event::System { text } => self.set_system(text),
            Event::UserMessage { text, origin } => self.user_message(text, *origin),
            Event::StepStart { purpose: Purpose::Step, .. } => {
                self.run.steps = self.run.steps.saturating_add(1);
                self.run.spending.reserve(&self.limits.caps);
                self.tally.steps = self.tally.steps.saturating_add(1);
            }
            Event::RequestSent { .. } => self.tally.requests = self.tally.requests.saturating_add(1),
            Event::Retry { kind, .. } => self.write_off(kind.may_be_billed()),
            Event::ModelResponse { purpose, message, finish, usage, cost_usd, .. } => {
                self.tally.usage += usage.unwrap_or_default();
                self.tally.cost(*purpose, *cost_usd);
                self.run.spending.settle(*usage, *cost_usd);
                self.response(*purpose, message, finish);
                if let (Purpose::Step, Some(usage)) = (purpose, usage) {
                    self.run.spending.counted(*usage);
                }
            }
            Event::ModelFailed { purpose, failure } => {
                self.write_off(failure.kind.may_be_billed());
                match purpose {
                    Purpose::Step => self.run.failure = Some(failure.clone()),
                    Purpose::Closing => self.closing_is(Stage::Over),
                }
            }
            Event::ModelAbandoned { purpose, reason } => {
                self.write_off(*reason != StopReason::BudgetExceeded);
                match purpose {
                    Purpose::Step => self.run.abandoned = Some(*reason),
                    Purpose::Closing => self.closing_is(Stage::Over),
                }
            }
            Event::ToolEnd { .. } => self.tool_end(event),
            Event::Closing { reason } => {
                let limit = self.limit_of(*reason);
                self.run.closing = Some(Closing { reason: *reason, limit, stage: Stage::Begun, text: None });
            }
            Event::StepStart { purpose: Purpose::Closing, .. } => {
                self.run.spending.reserve(&self.limits.caps);
            }
            Event::BudgetWarning { .. } => self.run.spending.warned(),
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::ToolStart { .. }
            | Event::HookEnd { .. }
            | Event::StepEnd
            | Event::Notice { .. }
            | Event::RunEnd { .. } => {}
        }
    }

    /// The result of a run that ended with `verdict` after `duration`.
    pub fn result(&self, verdict: Verdict, duration: Duration) -> RunResult {
        RunResult {
            schema_version: SCHEMA_VERSION,
            status: verdict.reason.status(),
            stop_reason: Some(verdict.reason),
            output_valid: self.demands().then(|| verdict.output.is_value()),
            output: verdict.output,
            session_id: Some(self.id.clone()),
            steps: self.tally.steps,
            requests: self.tally.requests,
            tool_calls: self.tally.tool_calls,
            tools_used: self.tally.tools_used.clone(),
            files_modified: self.tally.files.clone(),
            duration_seconds: (duration.as_secs_f64() * 1000.0).round() / 1000.0,
            model: Some(self.model.clone()),
            usage: self.tally.usage,
            cost: self.tally.total(self.limits.caps.price.is_some()),
            permission_denials: self.tally.denials.clone(),
            sandbox: self.sandbox.clone(),
            limit: verdict.limit,
            error: verdict.error,
        }
    }

    /// The tools that are to run, and then the calls that are too many.
    fn tools_step(&self) -> Step {
        let runnable = self.run.spending.runnable(&self.limits.caps, self.pending.len());
        let (run, beyond) = self.pending.split_at(runnable.min(self.pending.len()));
        let open = |calls: &[ToolCall]| -> Vec<ToolCall> {
            calls.iter().filter(|call| !self.results.contains_key(&call.id)).cloned().collect()
        };
        let run = open(run);
        if run.is_empty() { Step::Refuse(open(beyond)) } else { Step::RunTools(run) }
    }

    /// The cap that stands in the way of a call for `purpose`.
    pub fn exceeded(&self, purpose: Purpose) -> Option<Limit> {
        let spending = self.run.spending.exceeded(&self.limits.caps, purpose);
        let given_up = purpose == Purpose::Step && self.run.abandoned == Some(StopReason::BudgetExceeded);
        spending.or(given_up.then_some(Limit::Usd))
    }

    /// What the run has spent and the mark it has reached, when that is to be said now.
    pub fn cost_warning(&self) -> Option<(Usd, Usd)> {
        self.run.spending.warning(&self.limits.caps)
    }

    fn write_off(&mut self, billed: bool) {
        if billed {
            self.run.spending.write_off();
        }
    }

    fn recount(&mut self) {
        self.run.spending.recount(&self.limits.caps, self.messages.iter().map(AsRef::as_ref));
    }

    fn push(&mut self, message: Message) {
        self.run.spending.grow(&self.limits.caps, &message);
        self.messages.push(Arc::new(message));
    }

    fn closing_is(&mut self, stage: Stage) {
        if let Some(closing) = &mut self.run.closing {
            closing.stage = stage;
        }
    }

    /// The last answer, its earlier pieces included.
    fn answer(&self) -> String {
        let last = self.messages.last().map(|message| message.joined_text()).unwrap_or_default();
        format!("{}{last}", self.answer_so_far)
    }

    /// A run begins: limits, closing and refusals are its own, the conversation and the costs go on.
    fn run_start(&mut self, model: &str, sandbox: &str) {
        if provider(&self.model) != provider(model) {
            self.messages.iter_mut().for_each(|message| Arc::make_mut(message).forget_opaque());
        }
        model.clone_into(&mut self.model);
        sandbox.clone_into(&mut self.sandbox);
        self.run = RunState::default();
        self.recount();
        self.demand.begin();
        self.malformed = 0;
        self.tally.denials.clear();
    }

    fn set_system(&mut self, text: &str) {
        let message = Arc::new(Message::text(Role::System, text));
        match self.messages.first_mut() {
            Some(first) if first.role == Role::System => *first = message,
            _ => self.messages.insert(0, message),
        }
        self.recount();
    }

    fn user_message(&mut self, text: &str, origin: Origin) {
        self.close_pending();
        if origin == Origin::Continuation {
            self.answer_so_far = self.answer();
            self.continuations = self.continuations.saturating_add(1);
        } else {
            self.reset_answer();
        }
        match origin {
            Origin::System => {
                self.told_to_close = true;
                self.closing_is(Stage::Instructed);
            }
            Origin::Prompt => self.told_to_close = false,
            Origin::Continuation | Origin::Repair | Origin::Hook => {}
        }
        self.demand.said(origin);
        self.finish = None;
        self.push(Message::text(Role::User, text));
    }

    fn reset_answer(&mut self) {
        self.answer_so_far.clear();
        self.continuations = 0;
    }

    fn response(&mut self, purpose: Purpose, message: &Message, finish: &FinishReason) {
        self.close_pending();
        if purpose == Purpose::Closing {
            self.closing_is(Stage::Over);
            if let Some(closing) = &mut self.run.closing {
                closing.text = Some(message.joined_text());
            }
        } else {
            for call in message.tool_calls() {
                self.malformed =
                    if is_object(&call.arguments) { 0 } else { self.malformed.saturating_add(1) };
                self.tally.tool_calls = self.tally.tool_calls.saturating_add(1);
                self.call_ids.insert(call.id.clone());
                self.pending.push(call.clone());
            }
            if !self.pending.is_empty() {
                self.reset_answer();
            }
        }
        self.finish = Some(finish.clone());
        self.run.spending.called(self.pending.len());
        self.push(message.clone());
    }

    fn tool_end(&mut self, event: &Event) {
        let Event::ToolEnd { name, result, changed, seen, denial, .. } = event else { return };
        let path = changed.first().map(|c| &c.path).or_else(|| seen.first().map(|s| &s.path)).cloned();
        self.tally.tool(self.place_of(&result.call_id), name, path, result);
        let by = if name == "run_command" { ChangedBy::Command } else { ChangedBy::Tool };
        for change in changed {
            self.tally.change(change, by);
        }
        self.tally.denials.extend(denial.clone());
        if self.pending.iter().any(|call| call.id == result.call_id) {
            self.results.insert(result.call_id.clone(), result.clone());
        }
        if self.pending.iter().all(|call| self.results.contains_key(&call.id)) {
            self.close_pending();
        }
    }

    /// Where in the list of tool uses a call stands: in the model's order, whatever finished first.
    fn place_of(&self, call_id: &str) -> usize {
        let earlier = self.pending.iter().take_while(|call| call.id != call_id);
        let done = earlier.filter(|call| self.results.contains_key(&call.id)).count();
        self.tally.tools_used.len().saturating_sub(self.results.len()).saturating_add(done)
    }

    /// Puts the results of the last turn into the conversation. One that is missing, because its record was damaged,
    /// is made up: a call without a result, or a result without its call, and no provider takes the session again.
    fn close_pending(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        let mut result =
            |call: ToolCall| results.remove(&call.id).unwrap_or_else(|| unknown_outcome(call.id));
        let ordered: Vec<ToolResult> = self.pending.drain(..).map(&mut result).collect();
        if !ordered.is_empty() {
            self.push(Message::results(ordered));
        }
    }
}

/// The result of a call of which nobody knows what became of it.
pub fn unknown_outcome(call_id: String) -> ToolResult {
    ToolResult { call_id, text: messages::OUTCOME_UNKNOWN.to_owned(), is_error: true }
}

/// Whether the arguments of a call are a JSON object; anything else is of no use to any tool.
fn is_object(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok()
}

/// The provider of a `provider/model`: what it wants back unmodified, such as signatures, another could not read.
fn provider(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod tests;
