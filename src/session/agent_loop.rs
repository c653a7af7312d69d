//! The agent loop: requests the next action from the session and executes it.

use crate::Agent;
use crate::loop_services::LoopServices;
use crate::model_call::call_model;
use crate::session::{CompactionAction, Moment, NextAction, RunEnd};
use agent_core::compaction::CompactionEvent;
use agent_core::event::{Event, MessageOrigin, NoticeLevel, Purpose};
use agent_core::message::{ToolCall, ToolResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::call_arguments::effective_call;
use agent_engine::hooks::{HookEvent, HookInput};
use agent_engine::with_time_limit;
use agent_runtime::emitter::EmitError;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl<S> Agent<S> {
    /// Returns the time from the start of this run to its last event. Decisions use it instead of the clock, so that a replay repeats them.
    pub fn elapsed(&self) -> Duration {
        self.source.last_event_time().saturating_sub(self.started_at)
    }
}

impl<S: LoopServices> Agent<S> {
    fn next_action(&self) -> NextAction {
        let moment = Moment { elapsed: self.elapsed(), interrupted: self.interrupt.is_cancelled() };
        self.session.borrow().next_action(moment)
    }

    /// Returns the input for the hooks of the run.
    fn hook_input(&self) -> HookInput {
        HookInput {
            task: Some(self.task.clone()),
            agent: Some(self.name.clone()),
            model: Some(self.llm().model().to_owned()),
            step: Some(self.session.borrow().tally().steps),
            total_cost_usd: self.session.borrow().cost().total_usd.map(f64::from),
            ..HookInput::default()
        }
    }

    /// Returns the working time that the run has left.
    fn time_left(&self) -> Option<Duration> {
        let work_time = self.session.borrow().limits().work_time();
        work_time.map(|end| end.saturating_sub(self.elapsed()))
    }

    /// Fires the hooks of `event` within the time of the run and returns their texts for the model.
    async fn fire(&self, event: HookEvent, input: HookInput) -> Result<Vec<String>, EmitError> {
        let cancel = self.interrupt.child_token();
        with_time_limit(self.time_left(), &cancel, self.engine.fire_hooks(event, input, &cancel)).await
    }

    /// Fires the hooks of `event` and adds their texts as user messages.
    async fn fire_and_add_context(&self, event: HookEvent, input: HookInput) -> Result<(), EmitError> {
        for text in self.fire(event, input).await? {
            self.emitter.emit(Event::user_message(text, MessageOrigin::Hook))?;
        }
        Ok(())
    }

    /// Takes a step: calls the model, and fires the hooks before and after the call.
    async fn take_step(&self) -> Result<(), EmitError> {
        self.engine.report_background()?;
        self.engine.send_queued()?;
        let input = self.hook_input();
        let step = input.step.map(|done| done.saturating_add(1));
        self.fire_and_add_context(HookEvent::PreLlmCall, HookInput { step, ..input }).await?;
        if self.session.borrow().is_stopped_by_hook() {
            return Ok(());
        }
        if !call_model(self, Purpose::Step).await? {
            return Ok(());
        }
        self.emit_cost_warning().await?;
        let has_calls = !self.session.borrow().open_calls().is_empty();
        let input = HookInput { has_tool_calls: Some(has_calls), ..self.hook_input() };
        self.fire(HookEvent::PostLlmCall, input).await?;
        if !has_calls {
            self.emitter.emit(Event::StepEnd)?;
        }
        Ok(())
    }

    /// Emits the cost warning, once, and fires its hooks.
    async fn emit_cost_warning(&self) -> Result<(), EmitError> {
        let Some((spent_usd, threshold_usd)) = self.session.borrow().cost_warning() else { return Ok(()) };
        self.emitter.emit(Event::BudgetWarning { spent_usd, threshold_usd })?;
        let input = HookInput { spent_usd: Some(spent_usd.into()), ..self.hook_input() };
        self.fire(HookEvent::BudgetWarning, input).await?;
        Ok(())
    }

    /// Records an error result for calls that do not run, so that each call has a result.
    fn refuse(&self, calls: Vec<ToolCall>, message: &str) -> Result<(), EmitError> {
        let ends_step = self.session.borrow().is_whole_turn(&calls);
        for call in calls {
            let (text, name) = (message.to_owned(), effective_call(&call).name.clone());
            let result = ToolResult { call_id: call.id, text, is_error: true, images: Vec::new() };
            self.emitter.emit(Event::tool_not_run(name, String::new(), result, Vec::new()))?;
        }
        if ends_step {
            self.emitter.emit(Event::StepEnd)?;
        }
        Ok(())
    }

    /// Runs the quality gates within the time of the run.
    async fn run_gates(&self) -> Result<(), EmitError> {
        let cancel = self.interrupt.child_token();
        with_time_limit(self.time_left(), &cancel, self.engine.run_gates(&cancel)).await
    }

    /// Has the changes reviewed. The reviewer is a subagent, which has the time that the run has left.
    async fn review_changes(&self) -> Result<(), EmitError> {
        let request = self.session.borrow().review_request();
        self.engine.review_changes(request, &self.interrupt.child_token()).await
    }

    /// Executes one action of a compaction.
    async fn compact(&self, compact: CompactionAction) -> Result<(), EmitError> {
        let part = match compact {
            CompactionAction::Start { tokens, window } => {
                return self.start_compaction(tokens, window, false).await;
            }
            CompactionAction::Outputs(outputs) => {
                let stored = outputs.into_iter().filter(|(id, text)| self.engine.store_output(id, text));
                CompactionEvent::OutputsShortened { call_ids: stored.map(|(id, _)| id).collect() }
            }
            CompactionAction::Record(part) => part,
        };
        self.emitter.emit(Event::Compaction { part })?;
        Ok(())
    }

    /// Starts a compaction and fires its hooks. The user requests one with `/compact`, else it is needed.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn start_compaction(&self, tokens: u64, window: u64, requested: bool) -> Result<(), EmitError> {
        let part = CompactionEvent::Start { tokens, window, requested };
        self.emitter.emit(Event::Compaction { part })?;
        let input = HookInput { context_tokens: Some(tokens), ..self.hook_input() };
        self.fire(HookEvent::ContextCompress, input).await?;
        Ok(())
    }

    /// Runs the calls of one turn within the time of the run.
    async fn run_tools(&self, calls: &[ToolCall]) -> Result<(), EmitError> {
        let calls: Vec<ToolCall> = calls.iter().map(ToolCall::with_unredacted_arguments).collect();
        self.engine.run_calls(&calls, &self.interrupt, self.time_left()).await?;
        // User messages must follow all results of the turn, so none are added before the calls beyond the cap are refused.
        if !matches!(self.next_action(), NextAction::RefuseCalls(..)) {
            self.engine.report_background()?;
        }
        let step = self.emitter.emit(Event::StepEnd)?.step;
        self.engine.commit_checkpoint(Some(step)).await
    }

    /// Fires the hooks at the end of the run, within their own time limits. After an interrupt they still run; a second interrupt stops them.
    async fn fire_end_hooks(&self, outcome: &RunEnd) -> Result<(), EmitError> {
        let input = HookInput {
            steps: Some(self.session.borrow().tally().steps),
            status: Some(outcome.status.name().to_owned()),
            ..self.hook_input()
        };
        let was_interrupted = outcome.reason == StopReason::UserInterrupt;
        let cancel = if was_interrupted { CancellationToken::new() } else { self.interrupt.clone() };
        if outcome.status == Status::Success {
            self.engine.fire_hooks(HookEvent::AgentComplete, input.clone(), &cancel).await?;
        }
        self.engine.fire_hooks(HookEvent::SessionEnd, input, &cancel).await?;
        Ok(())
    }
}

/// Runs the session to its end. The task is in the conversation already; `preparation` takes the steps before the work on the task.
///
/// # Errors
/// When the journal can no longer be written: nothing else may happen then.
pub async fn run_to_end<S: LoopServices>(
    agent: &Agent<S>,
    preparation: impl Future<Output = Result<(), EmitError>>,
) -> Result<RunEnd, EmitError> {
    let outcome = prepare_and_drive(agent, preparation).await;
    agent.engine.close().await;
    outcome
}

/// Runs the session of a subagent to its end. Only the run that started it fires the hooks of start and end.
///
/// # Errors
/// When the journal can no longer be written.
pub async fn run_subagent<S: LoopServices>(agent: &Agent<S>) -> Result<RunEnd, EmitError> {
    let outcome = drive(agent).await;
    agent.engine.stop_background().await?;
    outcome
}

async fn prepare_and_drive<S: LoopServices>(
    agent: &Agent<S>,
    preparation: impl Future<Output = Result<(), EmitError>>,
) -> Result<RunEnd, EmitError> {
    agent.fire_and_add_context(HookEvent::SessionStart, agent.hook_input()).await?;
    if !agent.session.borrow().is_stopped_by_hook() {
        preparation.await?;
    }
    let outcome = drive(agent).await;
    agent.engine.stop_background().await?;
    let outcome = outcome?;
    let best = agent.session.borrow().best_answer_notice(&outcome);
    if let Some(text) = best {
        agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
    }
    agent.engine.commit_checkpoint(None).await?;
    agent.fire_end_hooks(&outcome).await?;
    Ok(outcome)
}

async fn drive<S: LoopServices>(agent: &Agent<S>) -> Result<RunEnd, EmitError> {
    loop {
        if agent.session.borrow().is_over_total_budget() {
            agent.wait_for_total_budget(Purpose::Step).await?;
        }
        match agent.next_action() {
            NextAction::CallModel(Purpose::Step) => agent.take_step().await?,
            NextAction::CallModel(purpose @ (Purpose::Closing | Purpose::Summary | Purpose::Evaluation)) => {
                call_model(agent, purpose).await?;
            }
            NextAction::RunGates => agent.run_gates().await?,
            NextAction::RecordEvaluation(result) => {
                agent.emitter.emit(Event::Evaluation { result })?;
            }
            NextAction::ReviewChanges => agent.review_changes().await?,
            NextAction::Compact(compact) => agent.compact(compact).await?,
            NextAction::RunTools(calls) => agent.run_tools(&calls).await?,
            NextAction::RefuseCalls(calls, message) => agent.refuse(calls, &message)?,
            NextAction::SwitchModel { from, to, failure } => {
                agent.emitter.emit(Event::ModelSwitched { from, to, failure })?;
            }
            NextAction::AddUserMessage(origin, text) => {
                agent.emitter.emit(Event::user_message(text, origin))?;
            }
            NextAction::StartClosing(reason, limit) => {
                agent.emitter.emit(Event::Closing { reason, limit })?;
            }
            NextAction::Stop(outcome) => return Ok(outcome),
        }
    }
}
