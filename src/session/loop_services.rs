//! Trait for the services that the loop calls: tools, hooks, gates, background commands, guardrails, checkpoints.
//!
//! A run uses the engine. A replay uses the recorded results of a journal.

use agent_core::change_review::ChangeReview;
use agent_core::event::Event;
use agent_core::guardrail::{ConversationSide, TriggeredGuardrail};
use agent_core::image::ImageSource;
use agent_core::message::ToolCall;
use agent_engine::Engine;
use agent_engine::hooks::{HookEvent, HookInput};
use agent_engine::reviewer::ReviewRequest;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_tools::outputs::Outputs;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Services of the loop other than the model. A method emits its events before it returns and fails only when the journal can no longer be
/// written.
pub trait LoopServices {
    /// Fires the hooks of `event` and returns their texts for the model.
    fn fire_hooks(
        &self,
        event: HookEvent,
        input: HookInput,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<Vec<String>, EmitError>>;

    /// Runs the calls of one turn within `left`, the time that remains.
    fn run_calls(
        &self,
        calls: &[ToolCall],
        interrupt: &CancellationToken,
        left: Option<Duration>,
    ) -> impl Future<Output = Result<(), EmitError>>;

    /// Runs the quality gates.
    fn run_gates(&self, cancel: &CancellationToken) -> impl Future<Output = Result<(), EmitError>>;

    /// Has the changes of the run reviewed and emits the result, unless `cancel` ends the review.
    fn review_changes(
        &self,
        request: ReviewRequest,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<(), EmitError>>;

    /// Emits the results of background commands that have ended.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    fn report_background(&self) -> Result<(), EmitError>;

    /// Adds the messages that the user has typed meanwhile.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    fn send_queued(&self) -> Result<(), EmitError>;

    /// Emits `cap`, the most that the run may use of a budget that other runs share, if there is one.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    fn report_budget_cap(&self, cap: Option<Event>) -> Result<(), EmitError>;

    /// Stops the background commands at the end of the run.
    fn stop_background(&self) -> impl Future<Output = Result<(), EmitError>>;

    /// Stores `text`, the output of the call `call_id`, so that the model can read it as `output:CALL_ID`. Returns whether it is stored.
    fn store_output(&self, call_id: &str, text: &str) -> bool;

    /// Returns the content of the images in the conversation; `None` where nothing is sent to a model.
    fn images(&self) -> Option<&dyn ImageSource> {
        None
    }

    /// Makes the checkpoint that is due after `step`; without a step, the one at the end of the run.
    fn commit_checkpoint(&self, step: Option<u32>) -> impl Future<Output = Result<(), EmitError>>;

    /// Whether guardrails check `side` of the conversation.
    fn has_guardrails(&self, side: ConversationSide) -> bool;

    /// Returns the first guardrail that `text` triggers.
    fn find_trigger(&self, side: ConversationSide, text: &str) -> Option<TriggeredGuardrail>;

    /// Waits, at the end of the run, for the background hooks that are still running.
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
        Self::run_calls(self, calls, interrupt, left).await
    }

    async fn run_gates(&self, cancel: &CancellationToken) -> Result<(), EmitError> {
        Self::run_gates(self, cancel).await
    }

    async fn review_changes(
        &self,
        request: ReviewRequest,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let passes = request.passes;
        let no_reviewer = || ChangeReview::failed(messages::NO_REVIEWER.to_owned());
        let reviewed = match &self.reviewer {
            Some(reviewer) => reviewer.review(request, cancel).await?,
            None => Some(no_reviewer()),
        };
        let Some(review) = reviewed else { return Ok(()) };
        self.emitter.emit(Event::ChangeReview { result: ChangeReview { passes, ..review } }).map(drop)
    }

    fn report_background(&self) -> Result<(), EmitError> {
        self.report_background()
    }

    fn send_queued(&self) -> Result<(), EmitError> {
        self.send_queued()
    }

    fn report_budget_cap(&self, cap: Option<Event>) -> Result<(), EmitError> {
        cap.map_or(Ok(()), |cap| self.emitter.emit(cap).map(drop))
    }

    async fn stop_background(&self) -> Result<(), EmitError> {
        Self::stop_background(self).await
    }

    fn store_output(&self, call_id: &str, text: &str) -> bool {
        self.outputs.open(&Outputs::name(call_id)).is_ok()
            || self.outputs.store(call_id, text.as_bytes()).is_ok()
    }

    fn images(&self) -> Option<&dyn ImageSource> {
        self.images.as_deref().map(|images| images as &dyn ImageSource)
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
