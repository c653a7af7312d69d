//! Trait for the review of a run's changes by another agent.

use agent_core::change_review::ChangeReview;
use agent_runtime::emitter::EmitError;
use futures_util::future::LocalBoxFuture;
use tokio_util::sync::CancellationToken;

/// A request for a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequest {
    /// Id of the session whose changes are reviewed.
    pub session_id: String,
    /// The first user message, and the last one if it differs.
    pub task: Vec<String>,
    /// How often findings were sent to the model.
    pub passes: u32,
    /// Start of the call ids of the reviewing subagents; no call has such an id.
    pub call_id: String,
}

/// Reviews the changes of a run.
pub trait Reviewer {
    /// Reviews the changes. `None` when `cancel` ended the review.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    fn review<'a>(
        &'a self,
        request: ReviewRequest,
        cancel: &'a CancellationToken,
    ) -> LocalBoxFuture<'a, Result<Option<ChangeReview>, EmitError>>;
}
