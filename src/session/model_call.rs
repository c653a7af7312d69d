//! Calls the model for any purpose, within its time limit, and emits the result.

use crate::Agent;
use crate::loop_services::LoopServices;
use crate::output_schema::OutputSchema;
use crate::total_budget::TotalShare;
use agent_core::event::{BilledUsage, Event, Purpose};
use agent_core::failure::FailureKind;
use agent_core::message::{Message, Part};
use agent_core::price::Usd;
use agent_core::stop_reason::StopReason;
use agent_llm::response_schema::AnswerValidator;
use agent_llm::{LlmError, Progress, Request, Response};
use agent_runtime::emitter::EmitError;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Reason why a model call gave no answer.
enum CallFailure {
    Failed(LlmError),
    Abandoned(StopReason),
}

/// Calls the model for `purpose` and emits the result. Returns false without a call when the budget no longer allows it (hooks may have used some
/// of it) or when a guardrail halts the run.
///
/// # Errors
/// When the journal can no longer be written.
pub async fn call_model<S: LoopServices>(agent: &Agent<S>, purpose: Purpose) -> Result<bool, EmitError> {
    agent.wait_for_total_budget(purpose).await?;
    if !agent.can_afford(purpose) || agent.halts_on_guardrail()? {
        return Ok(false);
    }
    let (messages, partial_answer, max_output_tokens) = {
        let session = agent.session.borrow();
        let partial_answer = if purpose.is_internal() { "" } else { session.partial_answer() };
        (session.messages_for(purpose), partial_answer.to_owned(), session.output_limit(purpose))
    };
    // Internal requests are derived from the conversation, whose other requests have a digest.
    let digest = (!purpose.is_internal()).then(|| agent.digest(&messages));
    agent.emitter.emit(Event::StepStart { purpose, messages: messages.len(), digest })?;
    let started = agent.source.last_event_time();
    let (deadline, schema) = agent.call_bounds(purpose);
    let tools = if agent.offers_tools(purpose) { agent.definitions.as_slice() } else { &[] };
    let session = agent.session.borrow().id().to_owned();
    let request = Request {
        messages: &messages,
        tools,
        stream: agent.stream && !agent.session.borrow().improves_answer(),
        max_output_tokens,
        deadline,
        session: Some(&session),
        images: agent.engine.images(),
        partial: &partial_answer,
        schema: schema.as_deref().map(OutputSchema::server_schema),
        answer_validator: schema.as_deref().map(|schema| schema as &dyn AnswerValidator),
    };
    if agent.offers_tools(purpose) {
        agent.report_prefix_change(&request)?;
    }
    let outcome = complete_within_limits(agent, purpose, &request).await?;
    let event = result_event(agent, purpose, outcome, started)?;
    agent.emitter.emit(event)?;
    agent.total_budget.iter().for_each(TotalShare::notify);
    Ok(true)
}

/// Returns the event about the result of a call that started at `started`.
fn result_event<S: LoopServices>(
    agent: &Agent<S>,
    purpose: Purpose,
    outcome: Result<Response, CallFailure>,
    started: Duration,
) -> Result<Event, EmitError> {
    Ok(match outcome {
        Ok(response) => {
            if response.is_cached {
                agent.emitter.emit(Event::CachedAnswer)?;
            } else if let (Purpose::Step, Some(usage)) = (purpose, response.usage) {
                agent.report_cache_loss(usage)?;
            }
            let latency = agent.source.elapsed().saturating_sub(started);
            Event::ModelResponse {
                purpose,
                cost_usd: agent.cost(&response),
                message: agent.apply_output_guardrails(fit_to_conversation(
                    agent,
                    purpose,
                    response.message,
                ))?,
                finish: response.finish,
                usage: response.usage,
                latency_ms: u64::try_from(latency.as_millis()).unwrap_or(u64::MAX),
            }
        }
        Err(CallFailure::Failed(error)) => {
            let billed = agent.billed(&error);
            Event::ModelFailed { purpose, failure: error.into(), billed }
        }
        Err(CallFailure::Abandoned(reason)) => Event::ModelAbandoned { purpose, reason },
    })
}

/// Runs one model call until it answers, fails, runs out of time or budget, or is interrupted.
async fn complete_within_limits<S: LoopServices>(
    agent: &Agent<S>,
    purpose: Purpose,
    request: &Request<'_>,
) -> Result<Result<Response, CallFailure>, EmitError> {
    let unaffordable = CancellationToken::new();
    let mut emitted = Ok(());
    let started = agent.source.last_event_time();
    let spent = || agent.source.elapsed().saturating_sub(started);
    let out_of_time = || request.deadline.is_some_and(|deadline| spent() >= deadline);
    // Internal answers, and answers that a guardrail may withhold, are not shown in pieces.
    let unseen = agent.has_output_guardrails() || purpose.is_internal();
    let outcome = {
        let mut on_progress = |progress: Progress<'_>| {
            if unseen && matches!(progress, Progress::Text(_) | Progress::Thinking(_)) {
                return;
            }
            if let Err(error) = agent.emitter.emit(event_of(agent, &progress, !unseen)) {
                emitted = Err(error);
            }
            if matches!(progress, Progress::Retry { .. }) {
                if let Err(error) = agent.update_budget_cap() {
                    emitted = Err(error);
                }
                if !agent.session.borrow().can_afford_retry(purpose) {
                    unaffordable.cancel();
                }
            }
        };
        let call = agent.llm().complete(request, &mut on_progress);
        let time = tokio::time::sleep(request.deadline.unwrap_or(Duration::MAX));
        tokio::select! {
            biased;
            () = agent.interrupt.cancelled() => Err(CallFailure::Abandoned(StopReason::UserInterrupt)),
            () = unaffordable.cancelled() => Err(CallFailure::Abandoned(StopReason::BudgetExceeded)),
            outcome = call => outcome.map_err(|error| match error.kind {
                FailureKind::Timeout if out_of_time() => CallFailure::Abandoned(StopReason::Timeout),
                _ => CallFailure::Failed(error),
            }),
            () = time => Err(CallFailure::Abandoned(StopReason::Timeout)),
        }
    };
    emitted.map(|()| outcome)
}

impl<S> Agent<S> {
    /// Returns the time limit of a call for `purpose` that starts now, and the schema of its answer.
    fn call_bounds(&self, purpose: Purpose) -> (Option<Duration>, Option<Rc<OutputSchema>>) {
        let (session, elapsed) = (self.session.borrow(), self.elapsed());
        match purpose {
            Purpose::Step => (session.limits().step_time(elapsed), session.schema()),
            Purpose::Summary | Purpose::Evaluation => (session.limits().step_time(elapsed), None),
            Purpose::Closing => (Some(session.limits().closing_time(elapsed)), None),
        }
    }

    /// Returns the hash of the messages to send.
    fn digest(&self, messages: &[Arc<Message>]) -> String {
        let session = self.session.borrow();
        self.digest.borrow_mut().update(messages, session.id())
    }

    /// Returns the cost of an answer if usage and price are known; a cached answer is free.
    fn cost(&self, response: &Response) -> Option<Usd> {
        if response.is_cached { Some(Usd::ZERO) } else { self.session.borrow().cost_of(response.usage) }
    }

    /// Whether a request for `purpose` still fits into the budget.
    fn can_afford(&self, purpose: Purpose) -> bool {
        self.session.borrow().exceeded_limit(purpose).is_none()
    }

    /// Returns the usage that the provider reported for a failed request.
    fn billed(&self, error: &LlmError) -> Option<BilledUsage> {
        error.usage.map(|usage| BilledUsage { usage, cost_usd: self.session.borrow().cost_of(Some(usage)) })
    }

    /// Whether tools are offered: not in the closing, and not when an answer is repaired.
    fn offers_tools(&self, purpose: Purpose) -> bool {
        purpose == Purpose::Step && !self.session.borrow().is_repairing()
    }
}

impl<S: LoopServices> Agent<S> {
    /// Updates the caps of the run to what other runs leave of a shared budget.
    fn update_budget_cap(&self) -> Result<(), EmitError> {
        self.engine.report_budget_cap(self.total_budget.as_ref().and_then(TotalShare::cap_event))
    }

    /// Updates the caps of the run; waits while a request for `purpose` only exceeds what requests of other runs have reserved.
    pub(super) async fn wait_for_total_budget(&self, purpose: Purpose) -> Result<(), EmitError> {
        loop {
            self.update_budget_cap()?;
            let waits = !self.can_afford(purpose) && self.session.borrow().is_over_total_budget();
            let Some(shared) = self.total_budget.as_ref().filter(|it| waits && it.others_may_release())
            else {
                return Ok(());
            };
            let time = self.session.borrow().limits().work_time();
            let left =
                time.map(|end| end.saturating_sub(self.source.elapsed().saturating_sub(self.started_at)));
            tokio::select! {
                biased;
                () = self.interrupt.cancelled() => return Ok(()),
                () = shared.changed() => {}
                () = tokio::time::sleep(left.unwrap_or(Duration::MAX)) => return Ok(()),
            }
        }
    }
}

/// Converts progress to an event; `shown` is whether pieces of the answer are emitted.
fn event_of<S>(agent: &Agent<S>, progress: &Progress<'_>, shown: bool) -> Event {
    match *progress {
        Progress::Sent { attempt } => Event::RequestSent { attempt },
        Progress::Retry { attempt, retry, max_retries, discarded, delay, error } => Event::Retry {
            attempt,
            retry,
            max_retries,
            answer_discarded: discarded && shown,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            kind: error.kind,
            message: error.message.clone(),
            billed: agent.billed(error),
        },
        Progress::Text(text) => Event::TextDelta { text: text.to_owned() },
        Progress::Thinking(text) => Event::ThinkingDelta { text: text.to_owned() },
    }
}

/// Adapts an answer to the conversation: makes call ids unique in the session, and removes calls when no tools were offered.
fn fit_to_conversation<S>(agent: &Agent<S>, purpose: Purpose, mut message: Message) -> Message {
    if !agent.offers_tools(purpose) {
        message.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
        return message;
    }
    let session = agent.session.borrow();
    let mut taken = HashSet::new();
    for part in &mut message.parts {
        let Part::ToolCall(call) = part else { continue };
        let wanted = call.id.clone();
        let mut copy = 2u32;
        while call.id.is_empty() || session.has_call_id(&call.id) || taken.contains(&call.id) {
            call.id = format!("{wanted}_{copy}");
            copy = copy.saturating_add(1);
        }
        taken.insert(call.id.clone());
    }
    message
}
