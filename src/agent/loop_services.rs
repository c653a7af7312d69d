//! What the loop has done for it and cannot decide itself: tools, hooks, background commands, guardrails on texts. A run has
//! the engine; a replay has what a journal says that they did.

use crate::core::guardrail::{ConversationSide, TriggeredGuardrail};
use crate::core::message::ToolCall;
use crate::engine::Engine;
use crate::engine::hooks::{HookEvent, HookInput};
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::tools::outputs::Outputs;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Everything around the loop but the model. Whatever happens is told before a method returns; each fails only when the
/// journal can no longer be written.
pub trait LoopServices {
    /// Fires the hooks of `event`; what they say is returned as the model reads it.
    fn fire_hooks(
        &self,
        event: HookEvent,
        input: HookInput,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<Vec<String>, EmitError>>;

    /// Runs the calls of one turn within `left`.
    fn run_calls(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        left: Option<Duration>,
    ) -> impl Future<Output = Result<(), EmitError>>;

    /// Looks at the quality gates.
    fn run_gates(&self, cancel: &CancellationToken) -> impl Future<Output = Result<(), EmitError>>;

    /// Tells what became of background commands.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    fn report_background(&self) -> Result<(), EmitError>;

    /// Ends the background commands with the run.
    fn stop_background(&self) -> impl Future<Output = Result<(), EmitError>>;

    /// Keeps `text`, the output of the call `call_id`, where the model can read it as `output:CALL_ID`; whether that is so now.
    fn store_output(&self, call_id: &str, text: &str) -> bool;

    /// Makes a checkpoint after `step`, or of what came after the last one when the run ends, if it is time for one.
    fn commit_checkpoint(&self, step: Option<u32>) -> impl Future<Output = Result<(), EmitError>>;

    /// Whether guardrails look at `side` of the conversation.
    fn has_guardrails(&self, side: ConversationSide) -> bool;

    /// What a guardrail finds in `text`.
    fn find_trigger(&self, side: ConversationSide, text: &str) -> Option<TriggeredGuardrail>;

    /// The run is over: waits for hooks that nothing else waits for.
    fn close(&self) -> impl Future<Output = ()>;
}

impl LoopServices for Engine {
    async fn fire_hooks(
        &self,
        event: HookEvent,
        input: HookInput,
        cancel: &CancellationToken,
    ) -> Result<Vec<String>, EmitError> {
        let outcome = self.fire(event, input, cancel).await?;
        Ok(outcome.into_model_texts().map(|context| messages::hook_context(&context)).collect())
    }

    async fn run_calls(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        left: Option<Duration>,
    ) -> Result<(), EmitError> {
        self.run_batch(calls, interrupt, left).await
    }

    async fn run_gates(&self, cancel: &CancellationToken) -> Result<(), EmitError> {
        Self::run_gates(self, cancel).await
    }

    fn report_background(&self) -> Result<(), EmitError> {
        self.report_background()
    }

    async fn stop_background(&self) -> Result<(), EmitError> {
        self.end_background().await
    }

    fn store_output(&self, call_id: &str, text: &str) -> bool {
        self.outputs.open(&Outputs::name(call_id)).is_ok()
            || self.outputs.store(call_id, text.as_bytes()).is_ok()
    }

    async fn commit_checkpoint(&self, step: Option<u32>) -> Result<(), EmitError> {
        match step {
            Some(step) => self.checkpoint(step).await,
            None => self.last_checkpoint().await,
        }
    }

    fn has_guardrails(&self, side: ConversationSide) -> bool {
        self.guardrails.texts.checks_side(side)
    }

    fn find_trigger(&self, side: ConversationSide, text: &str) -> Option<TriggeredGuardrail> {
        self.guardrails.texts.find(side, text).cloned()
    }

    async fn close(&self) {
        self.hooks.end().await;
    }
}
