//! Handles reviews of the changes in a session: an answer counts as done when another agent has approved the changes.

use super::{Moment, NextAction, RunEnd, Session};
use agent_core::change_review::ChangeReview;
use agent_core::event::MessageOrigin;
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::reviewer::ReviewRequest;
use agent_messages as messages;

/// State of the reviews in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ReviewProgress {
    /// The last review.
    last: Option<ChangeReview>,
    /// Whether it was made after the last answer.
    is_current: bool,
    /// How often findings were sent to the model.
    passes: u32,
}

impl ReviewProgress {
    /// Marks the last review as one of an earlier answer, because a new answer arrived.
    pub(super) fn answered(&mut self) {
        self.is_current = false;
    }

    /// Records that findings were sent to the model.
    pub(super) fn note_pass(&mut self) {
        self.passes = self.passes.saturating_add(1);
    }

    pub(super) fn record(&mut self, review: &ChangeReview) {
        (self.last, self.is_current) = (Some(review.clone()), true);
    }

    /// Returns the last review.
    pub(super) fn last(&self) -> Option<ChangeReview> {
        self.last.clone()
    }
}

impl Session {
    /// Returns the action after a finished answer whose checks have passed: have the changes reviewed, send the findings to the
    /// model, or end the run with the result of the review.
    pub(super) fn check_review(&self, done: RunEnd, moment: Moment) -> NextAction {
        let Some(max_passes) = self.limits.review_passes else { return NextAction::Stop(done) };
        let progress = &self.run.review;
        let Some(review) = progress.last.as_ref().filter(|_| progress.is_current) else {
            return if moment.interrupted {
                let interrupted = self.stop_with(StopReason::UserInterrupt, None);
                NextAction::Stop(RunEnd { output: done.output, ..interrupted })
            } else {
                NextAction::ReviewChanges
            };
        };
        let may_fix = review.problem.is_none()
            && !review.findings.is_empty()
            && progress.passes < max_passes
            && self.has_room_for_a_step(moment);
        if review.has_passed() {
            NextAction::Stop(done)
        } else if may_fix && moment.interrupted {
            self.stop(StopReason::UserInterrupt, None)
        } else if may_fix {
            let findings = self.delimiter.wrap(&messages::change_findings(review));
            NextAction::AddUserMessage(MessageOrigin::Review, messages::changes_not_approved(&findings))
        } else {
            NextAction::Stop(RunEnd { status: Status::Partial, ..done })
        }
    }

    /// Returns the request for a review of the changes.
    pub fn review_request(&self) -> ReviewRequest {
        let is_used = |prefix: &String| self.call_ids.iter().any(|id| id.starts_with(prefix.as_str()));
        let mut prefixes = (self.tally.steps..).map(|number| format!("review-{number}"));
        ReviewRequest {
            session_id: self.id.clone(),
            task: self.prompts.first_and_last(&self.messages),
            passes: self.run.review.passes,
            call_id: prefixes.find(|prefix| !is_used(prefix)).unwrap_or_default(),
        }
    }
}
