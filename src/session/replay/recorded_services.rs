//! The recorded model and the recorded services of the loop for a replay.

use super::live_tools::LiveTools;
use super::playback::Playback;
use crate::loop_services::LoopServices;
use agent_core::change_review::ChangeReview;
use agent_core::compaction::CompactionEvent;
use agent_core::event::{Event, MessageOrigin, Record};
use agent_core::failure::FailureKind;
use agent_core::guardrail::{ConversationSide, TriggeredGuardrail};
use agent_core::message::ToolCall;
use agent_core::stop_reason::StopReason;
use agent_engine::hooks::{HookEvent, HookInput};
use agent_engine::reviewer::ReviewRequest;
use agent_llm::{LlmClient, LlmError, Progress, Request, Response};
use agent_runtime::emitter::EmitError;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A model that returns its recorded answers.
pub struct RecordedModel {
    /// Name of the model, `provider/model`.
    pub name: String,
    /// The playback with its answers.
    pub playback: Rc<Playback>,
}

impl LlmClient for RecordedModel {
    fn model(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        _request: &'a Request<'a>,
        progress: &'a mut dyn FnMut(Progress<'_>),
    ) -> LocalBoxFuture<'a, Result<Response, LlmError>> {
        Box::pin(async move {
            loop {
                match self.playback.peek().cloned() {
                    Some(Event::RequestSent { attempt }) => progress(Progress::Sent { attempt }),
                    Some(Event::Retry {
                        attempt,
                        retry,
                        max_retries,
                        answer_discarded: discarded,
                        delay_ms,
                        kind,
                        message,
                        billed,
                    }) => {
                        let usage = billed.map(|billed| billed.usage);
                        let error = LlmError { usage, ..LlmError::new(kind, message) };
                        let delay = Duration::from_millis(delay_ms);
                        progress(Progress::Retry {
                            attempt,
                            retry,
                            max_retries,
                            discarded,
                            delay,
                            error: &error,
                        });
                        // The loop may now find that it cannot pay for another attempt.
                        tokio::task::yield_now().await;
                    }
                    _ => return self.outcome().await,
                }
            }
        })
    }
}

impl RecordedModel {
    /// Returns the recorded result of the call.
    async fn outcome(&self) -> Result<Response, LlmError> {
        let ahead = self.playback.remaining();
        let is_cached = matches!(self.playback.peek(), Some(Event::CachedAnswer));
        let precedes_answer = |record: &&Record| match &record.event {
            Event::CachedAnswer => true,
            Event::Guardrail { triggered } => triggered.on == ConversationSide::Output,
            _ => false,
        };
        let last = ahead.iter().find(|record| !precedes_answer(record));
        match last.map(|record| (record, &record.event)) {
            Some((_, Event::ModelResponse { message, finish, usage, .. })) => {
                Ok(Response { message: message.clone(), finish: finish.clone(), usage: *usage, is_cached })
            }
            Some((_, Event::ModelFailed { failure, billed, .. })) => Err(LlmError {
                retryable: failure.retryable,
                usage: billed.map(|billed| billed.usage),
                ..LlmError::new(failure.kind, failure.message.clone())
            }),
            Some((_, Event::ModelAbandoned { reason: StopReason::UserInterrupt, .. })) => {
                self.playback.interrupt();
                std::future::pending().await
            }
            Some((record, Event::ModelAbandoned { .. })) => {
                self.playback.advance_clock_to(record);
                Err(LlmError::new(FailureKind::Timeout, "the recorded time of the call is over"))
            }
            other => {
                self.playback.diverge(other.map(|(record, _)| record), Event::RequestSent { attempt: 1 });
                Err(LlmError::new(FailureKind::Internal, "the journal contains no answer"))
            }
        }
    }
}

/// Tools, hooks, background commands and guardrails with their recorded results.
pub struct RecordedServices<'a> {
    /// The playback with their results.
    pub playback: Rc<Playback>,
    /// The tools with which calls are repeated.
    pub live: Option<&'a LiveTools>,
}

impl RecordedServices<'_> {
    /// Passes the recorded result of a check of the answer. It is missing when the process was killed during the check.
    ///
    /// # Errors
    /// When there is no such result where the loop emits `now`.
    fn pass_result(&self, is_result: impl Fn(&Event) -> bool, now: Event) -> Result<(), EmitError> {
        match self.playback.remaining().first() {
            Some(record) if is_result(&record.event) => {
                self.playback.advance();
                Ok(())
            }
            other => Err(self.playback.diverge(other, now)),
        }
    }

    /// Repeats calls in the model's order, up to the first with a different result.
    async fn repeat_calls(&self, live: &LiveTools, calls: &[ToolCall]) -> Result<(), EmitError> {
        let batch = self.playback.remaining().iter().take_while(|record| is_of_calls(&record.event));
        let ends: Vec<&Record> =
            batch.filter(|record| matches!(record.event, Event::ToolCallEnd { .. })).collect();
        let is_cut_short = self.playback.is_cut_short();
        for call in calls {
            let of_subagents = self.playback.remaining().iter().map(|record| &record.event);
            let its =
                |event: &&Event| matches!(event, Event::Subagent { call_id, .. } if *call_id == call.id);
            for event in of_subagents.take_while(|event| is_of_calls(event)).filter(its) {
                live.files.apply_recorded(event.changed());
            }
            let is_its = |record: &&&Record| matches!(&record.event, Event::ToolCallEnd { result, .. } if result.call_id == call.id);
            let Some(then) = ends.iter().find(is_its) else { continue };
            if let Some(now) = live.call(call, &then.event, is_cut_short).await? {
                return Err(self.playback.diverge(Some(then), now));
            }
        }
        Ok(())
    }

    /// Compares `calls` with the recorded batch; fails at the first difference.
    fn compare(&self, calls: &[ToolCall]) -> Result<(), EmitError> {
        let about_to = |call: &ToolCall| Event::ToolCallStart { call: call.clone(), summary: String::new() };
        let (mut started, mut waits) = (Vec::new(), false);
        for record in self.playback.remaining() {
            let id = match &record.event {
                Event::ToolCallStart { call, .. } => &call.id,
                Event::ToolCallEnd { result, .. } => &result.call_id,
                Event::ToolCallPending { call_id, .. } => call_id,
                event if is_of_calls(event) => continue,
                _ => {
                    let left_out = calls.iter().find(|call| !waits && !started.contains(&&call.id));
                    return left_out
                        .map_or(Ok(()), |call| Err(self.playback.diverge(Some(record), about_to(call))));
                }
            };
            let wanted = calls.iter().find(|call| call.id == *id);
            let as_recorded = wanted.is_some_and(|wanted| match &record.event {
                Event::ToolCallStart { call, .. } => {
                    (&call.name, &call.arguments) == (&wanted.name, &wanted.arguments)
                }
                _ => true,
            });
            let open = calls.iter().find(|call| !started.contains(&&call.id));
            match wanted.or(open) {
                Some(call) if !as_recorded => {
                    return Err(self.playback.diverge(Some(record), about_to(call)));
                }
                None => return Err(self.playback.diverge(Some(record), Event::StepEnd)),
                Some(_) => {}
            }
            started.push(id);
            waits |= matches!(record.event, Event::ToolCallPending { .. });
        }
        Ok(())
    }
}

/// Whether `event` can be emitted while calls run.
fn is_of_calls(event: &Event) -> bool {
    matches!(
        event,
        Event::ToolCallStart { .. }
            | Event::FileChangesPlanned { .. }
            | Event::ToolCallEnd { .. }
            | Event::ToolCallPending { .. }
            | Event::Subagent { .. }
            | Event::HookEnd { .. }
            | Event::Guardrail { .. }
            | Event::Notice { .. }
    )
}

/// Returns the text of `event` if it is a user message from `source`, a hook or a background command.
fn message_text(event: &Event, source: MessageOrigin) -> Option<&str> {
    match event {
        Event::UserMessage { text, origin, .. } if *origin == source => Some(text),
        _ => None,
    }
}

impl LoopServices for RecordedServices<'_> {
    async fn fire_hooks(
        &self,
        event: HookEvent,
        _input: HookInput,
        _cancel: &CancellationToken,
    ) -> Result<Vec<String>, EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::HookEnd { on, .. } if on == event.name()));
        let ahead = self.playback.remaining().iter();
        Ok(ahead
            .map_while(|record| message_text(&record.event, MessageOrigin::Hook))
            .map(str::to_owned)
            .collect())
    }

    async fn run_calls(
        &self,
        calls: &[ToolCall],
        _interrupt: &CancellationToken,
        _left: Option<Duration>,
    ) -> Result<(), EmitError> {
        self.compare(calls)?;
        if let Some(live) = self.live {
            self.repeat_calls(live, calls).await?;
        }
        self.playback.advance_while(is_of_calls);
        Ok(())
    }

    async fn run_gates(&self, _cancel: &CancellationToken) -> Result<(), EmitError> {
        self.pass_result(
            |event| matches!(event, Event::QualityGates { .. }),
            Event::QualityGates { results: Vec::new() },
        )
    }

    async fn review_changes(
        &self,
        _request: ReviewRequest,
        _cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::Subagent { .. }));
        if self.playback.is_interrupted() {
            return Ok(());
        }
        let result = ChangeReview::default();
        self.pass_result(|event| matches!(event, Event::ChangeReview { .. }), Event::ChangeReview { result })
    }

    fn report_background(&self) -> Result<(), EmitError> {
        self.playback.advance_while(|next| match next {
            Event::BackgroundStart { .. } | Event::BackgroundEnd { .. } | Event::Instructions { .. } => true,
            other => [MessageOrigin::Background, MessageOrigin::Skill, MessageOrigin::Instructions]
                .into_iter()
                .any(|origin| message_text(other, origin).is_some()),
        });
        Ok(())
    }

    fn send_queued(&self) -> Result<(), EmitError> {
        self.playback.advance_while(|next| message_text(next, MessageOrigin::Queued).is_some());
        Ok(())
    }

    fn report_budget_cap(&self, _cap: Option<Event>) -> Result<(), EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::BudgetCap(_)));
        Ok(())
    }

    async fn stop_background(&self) -> Result<(), EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::BackgroundEnd { .. }));
        match self.live {
            Some(live) => live.end().await,
            None => Ok(()),
        }
    }

    fn store_output(&self, call_id: &str, _text: &str) -> bool {
        match self.playback.peek() {
            Some(Event::Compaction { part: CompactionEvent::OutputsShortened { call_ids } }) => {
                call_ids.iter().any(|id| id == call_id)
            }
            _ => false,
        }
    }

    async fn commit_checkpoint(&self, _step: Option<u32>) -> Result<(), EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::Checkpoint { .. }));
        Ok(())
    }

    fn has_guardrails(&self, side: ConversationSide) -> bool {
        matches!(self.playback.peek(), Some(Event::Guardrail { triggered }) if triggered.on == side)
    }

    fn find_trigger(&self, side: ConversationSide, _text: &str) -> Option<TriggeredGuardrail> {
        match self.playback.peek() {
            Some(Event::Guardrail { triggered }) if triggered.on == side => Some(triggered.clone()),
            _ => None,
        }
    }

    async fn close(&self) {}
}
