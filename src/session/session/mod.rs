//! The session: the fold of its journal, and the decision on the next action.

mod approvals;
mod breakers;
mod compaction;
mod conversation;
mod evaluation;
mod gates;
mod guardrails;
mod images;
mod low_budget;
mod model;
mod outcome;
mod review;
mod structured_output;
mod subagents;
mod tool_calls;

use crate::breakers::Breakers;
use crate::compaction::PromptPositions;
use crate::context_window::PromptEstimate;
use crate::limit_check::{self, LimitReadings};
use crate::spending::Spending;
use crate::tally::Tally;
use agent_core::budget_share::BudgetCap;
use agent_core::evaluation::Evaluation;
use agent_core::event::{Event, FinishReason, HookVerdict, MessageOrigin, PrefixHashes, Purpose, Record};
use agent_core::event_sink::EventSink;
use agent_core::failure::{Failure, FailureKind};
use agent_core::limits::Limits;
use agent_core::message::{Message, Role, ToolCall, ToolResult};
use agent_core::run_result::Output;
use agent_core::stop_reason::{LimitReached, Status, StopReason};
use agent_text::delimiter::Delimiter;
use approvals::PendingApprovals;
pub use compaction::CompactionAction;
use compaction::CompactionProgress;
use evaluation::EvaluationProgress;
use gates::GateProgress;
use guardrails::GuardrailState;
pub use guardrails::UnreadText;
use review::ReviewProgress;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use structured_output::StructuredOutput;
pub use subagents::{SubagentLimits, subagent_id};
pub use tool_calls::unknown_outcome;

/// The next action of the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum NextAction {
    /// Call the model.
    CallModel(Purpose),
    /// Compact the conversation.
    Compact(CompactionAction),
    /// Run the quality gates.
    RunGates,
    /// Emit the evaluation of the last answer.
    RecordEvaluation(Evaluation),
    /// Have the changes reviewed.
    ReviewChanges,
    /// Run these calls and record a result for each.
    RunTools(Vec<ToolCall>),
    /// Refuse these calls with this message.
    RefuseCalls(Vec<ToolCall>, String),
    /// Add this user message to the conversation.
    AddUserMessage(MessageOrigin, String),
    /// Switch to the next model, because this one cannot be used.
    SwitchModel {
        /// The model that failed.
        from: String,
        /// The model that takes over.
        to: String,
        /// The failure.
        failure: Failure,
    },
    /// Start the closing, because a limit is reached.
    StartClosing(StopReason, Option<LimitReached>),
    /// End the run.
    Stop(RunEnd),
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// The stop reason.
    pub reason: StopReason,
    /// The final answer.
    pub output: Output,
    /// The limit that caused it.
    pub limit: Option<LimitReached>,
    /// The failure.
    pub error: Option<Failure>,
    /// The status: that of the reason, or `partial` when the finished answer has not passed its checks.
    pub status: Status,
}

/// External input of a decision.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Time since the run started.
    pub elapsed: Duration,
    /// Whether the user has interrupted the run.
    pub interrupted: bool,
}

/// State of one run within the session.
#[derive(Debug, Clone, Default, PartialEq)]
struct RunState {
    steps: u32,
    closing: Option<Closing>,
    failure: Option<Failure>,
    /// Spending of the run.
    spending: Spending,
    /// The run's own caps on money and tokens, if it shares a budget.
    own_caps: Option<BudgetCap>,
    /// Purpose of the last model call.
    purpose: Option<Purpose>,
    /// State of the request of the current model call.
    request: RequestState,
    /// Why the model call of a step was abandoned: `timeout`, `user_interrupt` or `budget_exceeded`.
    abandoned: Option<StopReason>,
    /// Reason given by a hook that stopped the run.
    stopped: Option<String>,
    /// State of the guardrails.
    guardrails: GuardrailState,
    /// State of the quality gates.
    gates: GateProgress,
    /// State of the evaluations.
    evaluation: EvaluationProgress,
    /// State of the reviews of the changes.
    review: ReviewProgress,
    /// Position of the model in use in the fallback chain.
    model: usize,
    /// Failures of the models before it, as text.
    unusable: Vec<String>,
    /// Whether a model has answered.
    answered: bool,
    /// State of the compaction under way.
    compaction: Option<CompactionProgress>,
    /// Whether the last compaction did not free enough.
    still_full: bool,
    /// State of the breakers.
    breakers: Breakers,
}

/// State of the request of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RequestState {
    #[default]
    NotSent,
    /// It may be billed when it is abandoned.
    UnderWay,
    /// It failed and is to be repeated.
    Failed,
}

/// State of the closing.
#[derive(Debug, Clone, PartialEq)]
struct Closing {
    reason: StopReason,
    /// The limit that caused it.
    limit: Option<LimitReached>,
    stage: ClosingStage,
    /// The model's closing summary.
    text: Option<String>,
}

impl Closing {
    /// Returns the model's closing summary, unless it is empty.
    fn summary(&self) -> Option<&str> {
        self.text.as_deref().filter(|text| !text.trim().is_empty())
    }
}

/// Stages of a closing, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClosingStage {
    Started,
    Instructed,
    Over,
}

/// A session: the conversation, its figures and the state of the current run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// Limits of the current run; a resumed session gets new ones.
    limits: Limits,
    id: String,
    /// The delimiters around results in the conversation.
    delimiter: Delimiter,
    model: String,
    sandbox: Option<String>,
    messages: Vec<Arc<Message>>,
    /// Estimated length of the conversation.
    prompt_estimate: PromptEstimate,
    /// Positions of the first and last user message.
    prompts: PromptPositions,
    /// Number of steps at the last compaction.
    compacted_at: Option<u32>,
    pending: Vec<ToolCall>,
    pending_approvals: PendingApprovals,
    results: BTreeMap<String, ToolResult>,
    /// Number of tool uses before the last answer.
    uses_before: usize,
    call_ids: BTreeSet<String>,
    /// The last result of the tool `todo`.
    todo: Option<String>,
    finish: Option<FinishReason>,
    /// Number of calls in the last answer that do not run, because the answer is unusable.
    dropped_calls: usize,
    answer_so_far: String,
    continuations: u32,
    malformed: u32,
    /// Whether the user has given it a task.
    has_task: bool,
    /// Whether the model was instructed to close a run and the user has not written since.
    instructed_to_close: bool,
    /// Messages added since the last answer, except those of the agent itself.
    unread: Vec<String>,
    /// The required schema of the answer.
    structured_output: StructuredOutput,
    tally: Tally,
    /// The prefix of the last request.
    prefix: Option<PrefixHashes>,
    run: RunState,
}

/// Event sink of the session: the only way it changes.
pub struct SessionSink(pub Rc<RefCell<Session>>);

impl EventSink for SessionSink {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        self.0.borrow_mut().apply(&record.event);
        Ok(())
    }
}

impl Session {
    /// Creates an empty session.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the session with other limits, for a resumed run.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Folds the records of a journal into a session.
    pub fn from_records<'a>(limits: Limits, records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut session = Self::new(limits);
        for record in records {
            session.apply(&record.event);
        }
        session
    }

    /// Returns the session id; empty before the session started.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the conversation, system message first.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Returns the prefix of the last request.
    pub fn prefix(&self) -> Option<&PrefixHashes> {
        self.prefix.as_ref()
    }

    /// Returns the pieces so far of an answer that was cut and is being continued.
    pub fn partial_answer(&self) -> &str {
        &self.answer_so_far
    }

    /// Returns the limits of this run.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the figures so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether the user has given the model a task.
    pub fn has_task(&self) -> bool {
        self.has_task
    }

    /// Whether a model call needs a new user message first: the last message is the model's, or an instruction to close an earlier run.
    pub fn needs_user_message(&self) -> bool {
        self.is_answered() || self.instructed_to_close
    }

    /// Whether the last message is the model's.
    fn is_answered(&self) -> bool {
        self.pending.is_empty() && self.messages.last().is_none_or(|message| message.role == Role::Assistant)
    }

    /// Returns the next action. Pure: the same session and the same moment give the same action.
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
            Some(StopReason::ContextFull) => self.context_full(self.overflow_failure(), self.closing_fits()),
            Some(reason) => self.end_at_limit(reason, moment),
            None => self.low_budget_warning(moment).unwrap_or_else(|| self.warn_or_call_model()),
        }
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        self.pending_approvals.apply(event);
        self.fold(event);
        self.run.breakers.apply(event, &self.limits.breakers);
    }

    fn fold(&mut self, event: &Event) {
        self.tally.images.extend_from_slice(event.images());
        match event {
            Event::SessionStart { session_id, .. } => self.session_start(session_id),
            Event::RunStart { model, sandbox, .. } => self.run_start(model, sandbox),
            Event::System { text } => self.set_system(text),
            Event::Instructions { file } => self.tally.add_instructions(file),
            Event::History { messages } => self.add_history(messages),
            Event::UserMessage { text, origin, images } => self.add_user_message(text, *origin, images),
            Event::StepStart { purpose, .. } => self.step_start(*purpose),
            Event::RequestSent { .. } => self.record_request(),
            Event::RequestPrefix { hashes, changed } => self.record_prefix(hashes, changed),
            Event::CachedAnswer => self.tally.cached_answers = self.tally.cached_answers.saturating_add(1),
            Event::Retry { kind, billed, .. } => self.record_retry(*kind, *billed),
            Event::ModelResponse { purpose, message, finish, usage, cost_usd, .. } => {
                self.tally.add_request(*purpose, usage.unwrap_or_default(), *cost_usd);
                self.run.spending.settle(*usage, *cost_usd);
                self.add_response(*purpose, message, finish);
                if let (Purpose::Step, Some(usage)) = (purpose, usage) {
                    self.run.spending.record_usage(*usage);
                    self.prompt_estimate.record_usage(*usage);
                }
            }
            Event::ModelFailed { purpose, failure, billed } => {
                self.record_failed_request(*purpose, failure.kind, *billed);
                self.no_answer(*purpose, Some(failure), None);
            }
            Event::ModelAbandoned { purpose, reason } => self.record_abandoned(*purpose, *reason),
            Event::ModelSwitched { from, to, failure } => self.apply_model_switch(from, to, failure),
            Event::ToolCallEnd { .. } => self.record_tool_end(event),
            Event::Subagent { call_id, event, budget_share } => {
                self.apply_subagent_event(call_id, event, *budget_share);
            }
            Event::Closing { reason, limit } => self.start_closing(*reason, *limit),
            Event::Compaction { part } => self.apply_compaction_event(part),
            Event::QualityGates { results } => self.run.gates.set_results(results),
            Event::Evaluation { result } => self.record_evaluation(result),
            Event::ChangeReview { result } => self.run.review.record(result),
            Event::Guardrail { triggered } => self.record_guardrail(triggered),
            Event::BudgetCap(cap) => self.set_budget_cap(*cap),
            Event::BudgetWarning { .. } => self.run.spending.warned(),
            Event::HookEnd { verdict: HookVerdict::Stop, output, .. } => self.set_stopped_by_hook(output),
            Event::Restored { changed, .. } => self.tally.add_changes(changed),
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::ToolCallStart { .. }
            | Event::ToolCallPending { .. }
            | Event::ApprovalAnswered { .. }
            | Event::FileChangesPlanned { .. }
            | Event::Checkpoint { .. }
            | Event::BackgroundStart { .. }
            | Event::BackgroundEnd { .. }
            | Event::HookEnd { .. }
            | Event::StepEnd
            | Event::Notice { .. }
            | Event::RunEnd { .. }
            | Event::Imported
            | Event::Work { .. } => {}
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

    /// Records the end of a model call without an answer.
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
        self.prompt_estimate.add_message(&message);
        let has_images = message.images().next().is_some();
        self.messages.push(Arc::new(message));
        if has_images {
            self.remove_excess_images();
        }
    }

    fn start_closing(&mut self, reason: StopReason, limit: Option<LimitReached>) {
        self.run.closing = Some(Closing { reason, limit, stage: ClosingStage::Started, text: None });
    }

    fn set_closing_stage(&mut self, stage: ClosingStage) {
        if let Some(closing) = &mut self.run.closing {
            closing.stage = stage;
        }
    }

    /// Returns the last answer, including its earlier pieces.
    fn answer(&self) -> String {
        let last = self.messages.last().map(|message| message.joined_text()).unwrap_or_default();
        format!("{}{last}", self.answer_so_far)
    }

    fn session_start(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.delimiter = Delimiter::for_session(id);
    }

    /// Resets the state of the run (limits, closing, refusals). The conversation and the costs remain.
    fn run_start(&mut self, model: &str, sandbox: &str) {
        self.sandbox = Some(sandbox.to_owned());
        self.run = RunState::default();
        self.run.spending.called(self.resumed_call_count());
        self.use_model(model);
        self.structured_output.start_run();
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
        self.prompt_estimate.recount(self.messages.iter().map(AsRef::as_ref));
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
#[cfg(test)]
mod total_budget_tests;
