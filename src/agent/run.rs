//! The loop: asks the session what is next and does it.

use crate::agent::Agent;
use crate::agent::ask::ask;
use crate::agent::session::{Compact, Moment, Step, Verdict};
use crate::agent::surroundings::Surroundings;
use crate::compaction::Compaction;
use crate::emit::EmitError;
use crate::engine::hooks::{HookEvent, HookInput};
use crate::engine::within;
use crate::event::{Event, Level, Origin, Purpose};
use crate::guardrail::Counted;
use crate::message::{ToolCall, ToolResult};
use crate::messages;
use crate::stop_reason::{Status, StopReason};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl<S> Agent<S> {
    /// Time from the beginning of this run to its last fact: what is decided by it can be decided again from the journal.
    pub fn elapsed(&self) -> Duration {
        self.source.stamped().saturating_sub(self.began)
    }
}

impl<S: Surroundings> Agent<S> {
    fn next_step(&self) -> Step {
        let moment = Moment { elapsed: self.elapsed(), interrupted: self.interrupt.is_cancelled() };
        self.session.borrow().next_step(moment)
    }

    /// What hooks around the run are told.
    fn input(&self) -> HookInput {
        HookInput {
            task: Some(self.task.clone()),
            agent: Some(self.name.clone()),
            model: Some(self.llm().model().to_owned()),
            step: Some(self.session.borrow().tally().steps),
            ..HookInput::default()
        }
    }

    /// The time that the run has left for its work.
    fn time_left(&self) -> Option<Duration> {
        let work_time = self.session.borrow().limits().work_time();
        work_time.map(|end| end.saturating_sub(self.elapsed()))
    }

    /// Fires the hooks of `event` within the time of the run; what they say to the model.
    async fn fire(&self, event: HookEvent, input: HookInput) -> Result<Vec<String>, EmitError> {
        let cancel = self.interrupt.child_token();
        within(self.time_left(), &cancel, self.engine.fire_hooks(event, input, &cancel)).await
    }

    /// Fires the hooks of `event`; what they say becomes a user message.
    async fn fire_for_context(&self, event: HookEvent, input: HookInput) -> Result<(), EmitError> {
        for text in self.fire(event, input).await? {
            self.emitter.emit(Event::UserMessage { text, origin: Origin::Hook })?;
        }
        Ok(())
    }

    /// Takes a step: calls the model, with the hooks around it.
    async fn take_step(&self) -> Result<(), EmitError> {
        self.engine.tell_of_background()?;
        let input = self.input();
        let step = input.step.map(|done| done.saturating_add(1));
        self.fire_for_context(HookEvent::PreLlmCall, HookInput { step, ..input }).await?;
        if self.session.borrow().is_stopped() {
            return Ok(());
        }
        if !ask(self, Purpose::Step).await? {
            return Ok(());
        }
        self.warn_of_costs().await?;
        let has_calls = !self.session.borrow().unanswered().is_empty();
        let input = HookInput { has_tool_calls: Some(has_calls), ..self.input() };
        self.fire(HookEvent::PostLlmCall, input).await?;
        if !has_calls {
            self.emitter.emit(Event::StepEnd)?;
            self.keep_state()?;
        }
        Ok(())
    }

    /// Tells people and hooks, once, that the run has cost as much as they wanted to be told of.
    async fn warn_of_costs(&self) -> Result<(), EmitError> {
        let Some((spent_usd, at_usd)) = self.session.borrow().cost_warning() else { return Ok(()) };
        self.emitter.emit(Event::BudgetWarning { spent_usd, at_usd })?;
        let input = HookInput { spent_usd: Some(spent_usd.into()), ..self.input() };
        self.fire(HookEvent::BudgetWarning, input).await?;
        Ok(())
    }

    /// Answers calls that do not run, so that the conversation stays whole.
    fn refuse(&self, calls: Vec<ToolCall>, why: &str) -> Result<(), EmitError> {
        let ends_step = self.session.borrow().is_answer(&calls);
        for call in calls {
            let text = why.to_owned();
            self.emitter.emit(Event::ToolEnd {
                name: call.name,
                summary: String::new(),
                result: ToolResult { call_id: call.id, text, is_error: true },
                changed: Vec::new(),
                seen: Vec::new(),
                denial: None,
                simulated: false,
                counted: Counted::default(),
                duration_ms: 0,
            })?;
        }
        if ends_step {
            self.emitter.emit(Event::StepEnd)?;
            self.keep_state()?;
        }
        Ok(())
    }

    /// Looks at the quality gates within the time of the run.
    async fn run_gates(&self) -> Result<(), EmitError> {
        let cancel = self.interrupt.child_token();
        within(self.time_left(), &cancel, self.engine.run_gates(&cancel)).await
    }

    /// Makes the conversation shorter, a part at a time.
    async fn compact(&self, compact: Compact) -> Result<(), EmitError> {
        let part = match compact {
            Compact::Begin { tokens, window } => {
                self.emitter.emit(Event::Compaction { part: Compaction::Start { tokens, window } })?;
                let input = HookInput { context_tokens: Some(tokens), ..self.input() };
                self.fire(HookEvent::ContextCompress, input).await?;
                return Ok(());
            }
            Compact::Outputs(outputs) => {
                let kept = outputs.into_iter().filter(|(id, text)| self.engine.keeps_output(id, text));
                Compaction::Outputs { call_ids: kept.map(|(id, _)| id).collect() }
            }
            Compact::Tell(part) => part,
        };
        self.emitter.emit(Event::Compaction { part })?;
        Ok(())
    }

    /// Runs the calls of one turn within the time of the run.
    async fn run_tools(&self, calls: &[ToolCall]) -> Result<(), EmitError> {
        let calls = self.emitter.meant(calls);
        self.engine.run_calls(&calls, &self.interrupt, self.time_left()).await?;
        // Words end the answers to a turn: none come before the refusal of the calls that are too many.
        if !matches!(self.next_step(), Step::Refuse(..)) {
            self.engine.tell_of_background()?;
        }
        let step = self.emitter.emit(Event::StepEnd)?.step;
        self.keep_state()?;
        self.engine.commit_after(Some(step)).await
    }

    /// Keeps the state of the session where that is due. The run goes on without, and more is read when it is resumed.
    fn keep_state(&self) -> Result<(), EmitError> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let limits = self.session.borrow().limits().clone();
        match keeper.keep(&limits) {
            Ok(Some((event, before))) => {
                self.emitter.emit(event)?;
                if let Some(before) = before {
                    keeper.forget(&before);
                }
            }
            Ok(None) => {}
            Err(error) => {
                let text = messages::state_not_kept(&error);
                self.emitter.emit(Event::Notice { level: Level::Info, text })?;
            }
        }
        Ok(())
    }

    /// Fires the hooks of the end. They run even when an interrupt ended the run, and then only a second one ends
    /// them; they have the time of their own limits.
    async fn fire_end(&self, verdict: &Verdict) -> Result<(), EmitError> {
        let input = HookInput {
            steps: Some(self.session.borrow().tally().steps),
            status: Some(verdict.status.name().to_owned()),
            ..self.input()
        };
        let was_interrupted = verdict.reason == StopReason::UserInterrupt;
        let cancel = if was_interrupted { CancellationToken::new() } else { self.interrupt.clone() };
        if verdict.status == Status::Success {
            self.engine.fire_hooks(HookEvent::AgentComplete, input.clone(), &cancel).await?;
        }
        self.engine.fire_hooks(HookEvent::SessionEnd, input, &cancel).await?;
        Ok(())
    }
}

/// Runs the session to its end. What is `given` to the model before it begins comes after the hooks of the beginning.
///
/// # Errors
/// When the journal can no longer be written: nothing more may happen then.
pub async fn run<S: Surroundings>(
    agent: &Agent<S>,
    given: impl Future<Output = Result<(), EmitError>>,
) -> Result<Verdict, EmitError> {
    let verdict = work(agent, given).await;
    agent.engine.close().await;
    verdict
}

/// Does the work of a subagent: what stands around a run, its hooks at both ends among it, is that of the run which asked it.
///
/// # Errors
/// When the journal can no longer be written.
pub async fn assist<S: Surroundings>(agent: &Agent<S>) -> Result<Verdict, EmitError> {
    let verdict = drive(agent).await;
    agent.engine.stop_background().await?;
    verdict
}

async fn work<S: Surroundings>(
    agent: &Agent<S>,
    given: impl Future<Output = Result<(), EmitError>>,
) -> Result<Verdict, EmitError> {
    agent.fire_for_context(HookEvent::SessionStart, agent.input()).await?;
    if !agent.session.borrow().is_stopped() {
        given.await?;
    }
    let verdict = drive(agent).await;
    agent.engine.stop_background().await?;
    let verdict = verdict?;
    let best = agent.session.borrow().told_of_best(&verdict);
    if let Some(text) = best {
        agent.emitter.emit(Event::Notice { level: Level::Warn, text })?;
    }
    agent.engine.commit_after(None).await?;
    agent.fire_end(&verdict).await?;
    Ok(verdict)
}

async fn drive<S: Surroundings>(agent: &Agent<S>) -> Result<Verdict, EmitError> {
    loop {
        match agent.next_step() {
            Step::CallModel(Purpose::Step) => agent.take_step().await?,
            Step::CallModel(purpose @ (Purpose::Closing | Purpose::Summary | Purpose::Evaluation)) => {
                ask(agent, purpose).await?;
            }
            Step::RunGates => agent.run_gates().await?,
            Step::Evaluated(result) => {
                agent.emitter.emit(Event::Evaluation { result })?;
            }
            Step::Compact(compact) => agent.compact(compact).await?,
            Step::RunTools(calls) => agent.run_tools(&calls).await?,
            Step::Refuse(calls, why) => agent.refuse(calls, &why)?,
            Step::Switch { from, to, because } => {
                agent.emitter.emit(Event::ModelSwitched { from, to, because })?;
            }
            Step::Say(origin, text) => {
                agent.emitter.emit(Event::UserMessage { text, origin })?;
            }
            Step::Close(reason) => {
                agent.emitter.emit(Event::Closing { reason })?;
            }
            Step::Stop(verdict) => return Ok(verdict),
        }
    }
}
