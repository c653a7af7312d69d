//! A session: the fold of its journal, and what is next.

mod approvals;
mod breakers;
mod compaction;
mod conversation;
mod evaluation;
mod gates;
mod guardrails;
mod initial_history;
mod low_budget;
mod message_serde;
mod model;
mod outcome;
mod structured_output;
mod subagents;
mod tool_calls;

use crate::agent::breakers::Breakers;
use crate::agent::compaction::PromptPositions;
use crate::agent::context_window::PromptEstimate;
use crate::agent::limit_check::{self, LimitReadings};
use crate::agent::spending::Spending;
use crate::agent::tally::Tally;
use crate::core::evaluation::Evaluation;
use crate::core::event::{Event, FinishReason, HookVerdict, MessageOrigin, PrefixHashes, Purpose, Record};
use crate::core::failure::{Failure, FailureKind};
use crate::core::limits::{Limits, OnLimit};
use crate::core::message::{Message, Role, ToolCall, ToolResult};
use crate::core::run_result::Output;
use crate::core::stop_reason::{ReachedLimit, Status, StopReason};
use crate::text::delimiter::Delimiter;
use approvals::PendingApprovals;
pub use compaction::CompactionAction;
use compaction::CompactionProgress;
use evaluation::EvaluationProgress;
use gates::GateProgress;
use guardrails::GuardrailState;
pub use guardrails::UnreadText;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use structured_output::StructuredOutput;
pub use subagents::SubagentLimits;
pub use tool_calls::unknown_outcome;

/// What the loop has to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum NextAction {
    /// Ask the model.
    CallModel(Purpose),
    /// Make the conversation shorter.
    Compact(CompactionAction),
    /// Look at the quality gates.
    RunGates,
    /// Say what became of the evaluation of the last answer.
    RecordEvaluation(Evaluation),
    /// Run these calls and record a result for each.
    RunTools(Vec<ToolCall>),
    /// Record for these calls that they are beyond what may be called, in these words.
    RefuseCalls(Vec<ToolCall>, String),
    /// Put this user message into the conversation.
    AddUserMessage(MessageOrigin, String),
    /// The model cannot be used: the next one takes over.
    SwitchModel {
        /// The model that failed.
        from: String,
        /// The one that takes over.
        to: String,
        /// What went wrong.
        because: Failure,
    },
    /// A limit is reached: begin the closing.
    StartClosing(StopReason),
    /// The run is over.
    Stop(RunOutcome),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The one reason.
    pub reason: StopReason,
    /// The final answer.
    pub output: Output,
    /// The limit behind it.
    pub limit: Option<ReachedLimit>,
    /// What went wrong.
    pub error: Option<Failure>,
    /// The three-way summary: that of the reason, unless what the model finished has not passed its checks.
    pub status: Status,
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct RunState {
    steps: u32,
    closing: Option<Closing>,
    failure: Option<Failure>,
    /// What it has spent.
    spending: Spending,
    /// What the model was last asked for.
    asked: Option<Purpose>,
    /// Whether a request is under way, so that giving it up may be billed.
    requested: bool,
    /// Why a step's model call was given up: `timeout`, `user_interrupt` or `budget_exceeded`.
    abandoned: Option<StopReason>,
    /// Why a hook ended it.
    stopped: Option<String>,
    /// What guardrails have done.
    screening: GuardrailState,
    /// What quality gates have.
    gating: GateProgress,
    /// What evaluations have found.
    evaluating: EvaluationProgress,
    /// Which of its models is in use, by its place in the chain.
    model: usize,
    /// What went wrong with those before it, in words.
    unusable: Vec<String>,
    /// Whether a model has answered.
    answered: bool,
    /// How far the conversation has been made shorter, while it is.
    compacting: Option<CompactionProgress>,
    /// Whether that did not make room enough.
    cramped: bool,
    /// Whether it goes anywhere.
    breakers: Breakers,
}

/// How far the closing has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Closing {
    reason: StopReason,
    /// The limit behind it.
    limit: Option<ReachedLimit>,
    stage: ClosingStage,
    /// The model's closing summary.
    text: Option<String>,
}

/// The stages of a closing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ClosingStage {
    Begun,
    Instructed,
    Over,
}

/// The conversation and its figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Those of the run: whoever goes on has others.
    #[serde(skip)]
    limits: Limits,
    id: String,
    /// What stands around results in the conversation.
    mark: Delimiter,
    model: String,
    sandbox: Option<String>,
    #[serde(with = "message_serde")]
    messages: Vec<Arc<Message>>,
    /// How long the conversation is.
    filling: PromptEstimate,
    /// What the person said in it first and last.
    prompts: PromptPositions,
    /// After how many steps it was last made shorter.
    compacted_at: Option<u32>,
    pending: Vec<ToolCall>,
    waiting: PendingApprovals,
    results: BTreeMap<String, ToolResult>,
    /// Uses of tools before the last answer.
    uses_before: usize,
    call_ids: BTreeSet<String>,
    finish: Option<FinishReason>,
    /// Calls of the last answer that do not run, because it does not count.
    dropped: usize,
    answer_so_far: String,
    continuations: u32,
    malformed: u32,
    /// Somebody has given it a task.
    has_task: bool,
    /// The model was told to close a run and the person has not said anything since.
    told_to_close: bool,
    /// What it was told since it last answered, our own words aside.
    unread: Vec<String>,
    /// What the answer must fit.
    demand: StructuredOutput,
    tally: Tally,
    /// What the last request began with.
    prefix: Option<PrefixHashes>,
    run: RunState,
}

impl Session {
    /// A session in which nothing has happened yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The same, gone on with within these limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The session that a journal tells of.
    pub fn from_records<'a>(limits: Limits, records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut session = Self::new(limits);
        for record in records {
            session.apply(&record.event);
        }
        session
    }

    /// Its id; empty before it began.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The conversation, system message first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// What its last request began with, where one was made.
    pub fn prefix(&self) -> Option<&PrefixHashes> {
        self.prefix.as_ref()
    }

    /// What the model has said of an answer that was cut and is to be continued.
    pub fn partial_answer(&self) -> &str {
        &self.answer_so_far
    }

    /// The limits of this run.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The figures so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether anybody has given the model a task.
    pub fn has_task(&self) -> bool {
        self.has_task
    }

    /// Whether the model would only repeat itself if it were asked as things stand: it has answered, or the last it
    /// was told is to close an earlier run.
    pub fn needs_user_message(&self) -> bool {
        self.is_answered() || self.told_to_close
    }

    /// Whether the last word is the model's.
    fn is_answered(&self) -> bool {
        self.pending.is_empty() && self.messages.last().is_none_or(|message| message.role == Role::Assistant)
    }

    /// What is next. Pure: the same session at the same moment gives the same answer.
    pub fn next_action(&self, moment: Moment) -> NextAction {
        if !self.pending.is_empty() {
            return self.tools_step(moment);
        }
        if let Some(end) = self.guardrail_halt() {
            return end;
        }
        let interrupted = moment.interrupted || self.run.abandoned == Some(StopReason::UserInterrupt);
        match &self.run.closing {
            Some(_) if interrupted => return self.stop(StopReason::UserInterrupt, None),
            Some(closing) => return self.closing_step(closing, moment),
            None if self.is_answered() && self.finish.is_some() => {
                return self.after_answer(Moment { interrupted, ..moment });
            }
            None if interrupted => return self.stop(StopReason::UserInterrupt, None),
            None => {}
        }
        if let Some(reason) = &self.run.stopped {
            return self.stop_with_answer(StopReason::Guardrail, reason.clone(), None);
        }
        if let Some(failure) = &self.run.failure {
            let makes_room = failure.kind == FailureKind::ContextOverflow;
            let step = makes_room.then(|| self.compaction_step(moment)).flatten();
            return step.unwrap_or_else(|| self.after_model_failure(failure, moment));
        }
        let readings = LimitReadings {
            steps: self.run.steps,
            malformed: self.malformed,
            elapsed: moment.elapsed,
            over_budget: self.exceeded_limit(Purpose::Step).is_some(),
            step_timed_out: self.run.abandoned == Some(StopReason::Timeout),
            context_full: self.overflow().is_some() || self.is_still_full(),
            breaker_stop: self.run.breakers.stop_reason(),
        };
        let reached = limit_check::reached_limit(&self.limits, readings);
        let in_time = reached.is_none_or(|reason| reason == StopReason::ContextFull);
        if let Some(step) = in_time.then(|| self.compaction_step(moment)).flatten() {
            return step;
        }
        match reached {
            Some(StopReason::ContextFull) => self.context_full(self.overflow_failure()),
            Some(reason) if self.limits.on_limit == OnLimit::Stop => self.stop(reason, None),
            Some(reason) => NextAction::StartClosing(reason),
            None => self.low_budget_warning(moment).unwrap_or_else(|| self.warn_or_call_model()),
        }
    }

    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        self.waiting.apply(event);
        self.fold(event);
        self.run.breakers.apply(event, &self.limits.breakers);
    }

    fn fold(&mut self, event: &Event) {
        match event {
            Event::SessionStart { session_id, .. } => self.session_start(session_id),
            Event::RunStart { model, sandbox, .. } => self.run_start(model, sandbox),
            Event::System { text } => self.set_system(text),
            Event::Instructions { file } => self.tally.instructions = Some(file.clone()),
            Event::History { messages } => self.add_history(messages),
            Event::UserMessage { text, origin } => self.user_message(text, *origin),
            Event::StepStart { purpose, .. } => self.step_start(*purpose),
            Event::RequestSent { .. } => self.record_request(),
            Event::RequestPrefix { hashes, changed } => self.record_prefix(hashes, changed),
            Event::KeptAnswer => self.tally.kept_answers = self.tally.kept_answers.saturating_add(1),
            Event::Retry { kind, billed, .. } => self.record_retry(*kind, *billed),
            Event::ModelResponse { purpose, message, finish, usage, cost_usd, .. } => {
                self.tally.usage += usage.unwrap_or_default();
                self.tally.add_cost(*purpose, *cost_usd);
                self.run.spending.settle(*usage, *cost_usd);
                self.response(*purpose, message, finish);
                if let (Purpose::Step, Some(usage)) = (purpose, usage) {
                    self.run.spending.record_usage(*usage);
                    self.filling.record_usage(*usage);
                }
            }
            Event::ModelFailed { purpose, failure, billed } => {
                self.record_failed_request(*purpose, failure.kind, *billed);
                self.no_answer(*purpose, Some(failure), None);
            }
            Event::ModelAbandoned { purpose, reason } => {
                self.unreported_end(self.run.requested);
                self.no_answer(*purpose, None, Some(*reason));
            }
            Event::ModelSwitched { from, to, because } => self.apply_model_switch(from, to, because),
            Event::ToolCallEnd { .. } => self.tool_end(event),
            Event::Subagent { call_id, event, purse } => self.subagent(call_id, event, *purse),
            Event::Closing { reason } => self.start_closing(*reason),
            Event::Compaction { part } => self.compaction(part),
            Event::Gates { results } => self.run.gating.looked_at(results),
            Event::Evaluation { result } => self.record_evaluation(result),
            Event::Guardrail { triggered } => self.triggered(triggered),
            Event::BudgetWarning { .. } => self.run.spending.warned(),
            Event::HookEnd { verdict: HookVerdict::Stop, output, .. } => self.set_stopped_by_hook(output),
            Event::Restored { changed, .. } => {
                for change in changed {
                    self.tally.add_change(change);
                }
            }
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::ToolCallStart { .. }
            | Event::ToolCallPending { .. }
            | Event::ApprovalAnswered { .. }
            | Event::Changing { .. }
            | Event::Checkpoint { .. }
            | Event::BackgroundStart { .. }
            | Event::BackgroundEnd { .. }
            | Event::HookEnd { .. }
            | Event::StepEnd
            | Event::StateKept { .. }
            | Event::Notice { .. }
            | Event::RunEnd { .. } => {}
        }
    }

    fn record_prefix(&mut self, hashes: &PrefixHashes, changed: &[String]) {
        self.prefix = Some(hashes.clone());
        self.tally.add_prefix_changes(changed);
    }

    fn step_start(&mut self, purpose: Purpose) {
        let step = u32::from(purpose == Purpose::Step);
        self.run.steps = self.run.steps.saturating_add(step);
        self.reserve(purpose);
        self.tally.steps = self.tally.steps.saturating_add(step);
    }

    /// A call to the model has ended without an answer.
    fn no_answer(&mut self, purpose: Purpose, failure: Option<&Failure>, abandoned: Option<StopReason>) {
        match purpose {
            Purpose::Step => {
                self.run.failure = failure.cloned().or(self.run.failure.take());
                self.run.abandoned = abandoned.or(self.run.abandoned);
            }
            Purpose::Closing => self.set_closing_stage(ClosingStage::Over),
            Purpose::Summary => self.record_summary(None),
            Purpose::Evaluation => self.record_missing_evaluation(failure, abandoned),
        }
    }

    fn push(&mut self, message: Message) {
        self.run.spending.add_message(&self.limits.caps, &message);
        self.filling.add_message(&message);
        self.messages.push(Arc::new(message));
    }

    fn start_closing(&mut self, reason: StopReason) {
        let limit = self.limit_of(reason);
        self.run.closing = Some(Closing { reason, limit, stage: ClosingStage::Begun, text: None });
    }

    fn set_closing_stage(&mut self, stage: ClosingStage) {
        if let Some(closing) = &mut self.run.closing {
            closing.stage = stage;
        }
    }

    /// The last answer, its earlier pieces included.
    fn answer(&self) -> String {
        let last = self.messages.last().map(|message| message.joined_text()).unwrap_or_default();
        format!("{}{last}", self.answer_so_far)
    }

    fn session_start(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.mark = Delimiter::for_session(id);
    }

    /// A run begins: limits, closing and refusals are its own, the conversation and the costs go on.
    fn run_start(&mut self, model: &str, sandbox: &str) {
        self.sandbox = Some(sandbox.to_owned());
        self.run = RunState::default();
        self.run.spending.called(self.resumed_call_count());
        self.use_model(model);
        self.demand.start_run();
        self.malformed = 0;
        self.tally.denials.clear();
        self.tally.guardrails.clear();
    }

    fn set_system(&mut self, text: &str) {
        let message = Arc::new(Message::text(Role::System, text));
        match self.messages.first_mut() {
            Some(first) if first.role == Role::System => *first = message,
            _ => {
                self.messages.insert(0, message);
                self.prompts.shift_by_one();
            }
        }
        self.filling.recount(self.messages.iter().map(AsRef::as_ref));
        self.recount();
    }
}

#[cfg(test)]
mod approval_tests;
#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod compaction_tests;
#[cfg(test)]
mod guardrail_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod shared_budget_tests;
#[cfg(test)]
mod tests;
