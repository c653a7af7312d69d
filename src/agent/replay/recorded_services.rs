//! What was around the loop of a run, as its playback tells it: the model, and everything else.

use super::live_tools::LiveTools;
use super::playback::Playback;
use crate::agent::loop_services::LoopServices;
use crate::core::compaction::CompactionEvent;
use crate::core::event::{Event, MessageOrigin, Record};
use crate::core::failure::FailureKind;
use crate::core::guardrail::{ConversationSide, TriggeredGuardrail};
use crate::core::message::ToolCall;
use crate::core::stop_reason::StopReason;
use crate::engine::hooks::{HookEvent, HookInput};
use crate::llm::{LlmClient, LlmError, Progress, Request, Response};
use crate::runtime::emitter::EmitError;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A model that answers as it answered then.
pub struct RecordedModel {
    /// `provider/model`.
    pub name: String,
    /// What it answered.
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
                        // Now the run may find that it cannot pay for another attempt.
                        tokio::task::yield_now().await;
                    }
                    _ => return self.outcome().await,
                }
            }
        })
    }
}

impl RecordedModel {
    /// How the call ended.
    async fn outcome(&self) -> Result<Response, LlmError> {
        let ahead = self.playback.remaining();
        let kept = matches!(self.playback.peek(), Some(Event::KeptAnswer));
        let told_before = |record: &&Record| match &record.event {
            Event::KeptAnswer => true,
            Event::Guardrail { triggered } => triggered.on == ConversationSide::Output,
            _ => false,
        };
        let last = ahead.iter().find(|record| !told_before(record));
        match last.map(|record| (record, &record.event)) {
            Some((_, Event::ModelResponse { message, finish, usage, .. })) => Ok(Response {
                message: message.clone(),
                finish: finish.clone(),
                usage: *usage,
                is_cached: kept,
            }),
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
                Err(LlmError::new(FailureKind::Timeout, "the time that the journal gives the call is over"))
            }
            other => {
                self.playback.diverge(other.map(|(record, _)| record), Event::RequestSent { attempt: 1 });
                Err(LlmError::new(FailureKind::Internal, "the journal has no answer"))
            }
        }
    }
}

/// Tools, hooks, background commands and guardrails that do what they did then.
pub struct RecordedServices<'a> {
    /// What they did.
    pub playback: Rc<Playback>,
    /// What the tools are called again with, where they are.
    pub live: Option<&'a LiveTools>,
}

impl RecordedServices<'_> {
    /// Calls the tools again, in the model's order, up to the first that gives another result.
    async fn call_again(&self, live: &LiveTools, calls: &[ToolCall]) -> Result<(), EmitError> {
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

    /// Whether `calls` are those of the batch that comes next; the first other one is told.
    fn compare(&self, calls: &[ToolCall]) -> Result<(), EmitError> {
        let about_to = |call: &ToolCall| Event::ToolCallStart { call: call.clone(), summary: String::new() };
        let (mut begun, mut waits) = (Vec::new(), false);
        for record in self.playback.remaining() {
            let id = match &record.event {
                Event::ToolCallStart { call, .. } => &call.id,
                Event::ToolCallEnd { result, .. } => &result.call_id,
                Event::ToolCallPending { call_id, .. } => call_id,
                event if is_of_calls(event) => continue,
                _ => {
                    let left_out = calls.iter().find(|call| !waits && !begun.contains(&&call.id));
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
            let open = calls.iter().find(|call| !begun.contains(&&call.id));
            match wanted.or(open) {
                Some(call) if !as_recorded => {
                    return Err(self.playback.diverge(Some(record), about_to(call)));
                }
                None => return Err(self.playback.diverge(Some(record), Event::StepEnd)),
                Some(_) => {}
            }
            begun.push(id);
            waits |= matches!(record.event, Event::ToolCallPending { .. });
        }
        Ok(())
    }
}

/// Whether calls that run tell `event`.
fn is_of_calls(event: &Event) -> bool {
    matches!(
        event,
        Event::ToolCallStart { .. }
            | Event::Changing { .. }
            | Event::ToolCallEnd { .. }
            | Event::ToolCallPending { .. }
            | Event::Subagent { .. }
            | Event::HookEnd { .. }
            | Event::Guardrail { .. }
            | Event::Notice { .. }
    )
}

/// What it says when a hook or the end of a command speaks to the model.
fn said(event: &Event, who: MessageOrigin) -> Option<&str> {
    match event {
        Event::UserMessage { text, origin } if *origin == who => Some(text),
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
        Ok(ahead.map_while(|record| said(&record.event, MessageOrigin::Hook)).map(str::to_owned).collect())
    }

    async fn run_calls(
        &self,
        calls: &[ToolCall],
        _interrupt: &CancellationToken,
        _left: Option<Duration>,
    ) -> Result<(), EmitError> {
        self.compare(calls)?;
        if let Some(live) = self.live {
            self.call_again(live, calls).await?;
        }
        self.playback.advance_while(is_of_calls);
        Ok(())
    }

    async fn run_gates(&self, _cancel: &CancellationToken) -> Result<(), EmitError> {
        self.playback.advance_while(|next| matches!(next, Event::Gates { .. }));
        Ok(())
    }

    fn report_background(&self) -> Result<(), EmitError> {
        self.playback.advance_while(|next| match next {
            Event::BackgroundStart { .. } | Event::BackgroundEnd { .. } => true,
            other => said(other, MessageOrigin::Background).is_some(),
        });
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
            Some(Event::Compaction { part: CompactionEvent::Outputs { call_ids } }) => {
                call_ids.iter().any(|kept| kept == call_id)
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
