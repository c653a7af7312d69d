//! Approval requests and answers of a session, read from its journal.

use crate::answer_signature::AnswerSigner;
use crate::read;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest};
use agent_core::event::{Event, Record};
use std::io;
use std::path::Path;

/// A call that is pending approval, and the answer recorded for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    /// The approval request.
    pub approval: ApprovalRequest,
    /// The last answer.
    pub answer: Option<RecordedAnswer>,
}

impl PendingCall {
    /// Returns the answer if it counts: an approval counts only if its signature is valid.
    pub fn effective_answer(&self) -> Option<&ApprovalAnswer> {
        let answered = self.answer.as_ref()?;
        (answered.is_genuine || answered.answer != ApprovalAnswer::Approve).then_some(&answered.answer)
    }
}

/// An answer recorded in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedAnswer {
    /// The answer.
    pub answer: ApprovalAnswer,
    signature: String,
    /// Whether the signature is valid: the answer was given on this machine, in this session and to this request.
    pub is_genuine: bool,
}

/// State folded from a journal: approval requests of calls without a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    /// Requests in the order of the calls.
    waiting: Vec<PendingCall>,
    /// The calls of the last response.
    calls: Vec<String>,
}

impl Approvals {
    /// Creates the state from `records`.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut approvals = Self::default();
        records.into_iter().for_each(|record| approvals.apply(&record.event));
        approvals
    }

    /// Creates the state from the journal at `path`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut approvals = Self::default();
        read::for_each_record(path, |_, record| {
            if let Some(record) = record {
                approvals.apply(&record.event);
            }
            true
        })?;
        Ok(approvals)
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ToolCallPending { approval: Some(approval), .. } => {
                self.forget(&approval.call_id);
                self.waiting.push(PendingCall { approval: approval.clone(), answer: None });
                let Self { waiting, calls } = self;
                waiting.sort_by_key(|one| calls.iter().position(|call| *call == one.approval.call_id));
            }
            Event::ApprovalAnswered { id, answer, signature } => {
                let answered = RecordedAnswer {
                    answer: answer.clone(),
                    signature: signature.clone(),
                    is_genuine: false,
                };
                let pending = self.waiting.iter_mut().find(|waiting| waiting.approval.id == *id);
                if let Some(waiting) = pending {
                    waiting.answer = Some(answered);
                }
            }
            Event::ToolCallEnd { result, .. } => self.forget(&result.call_id),
            // After a new response, no call of the previous one can run any more.
            Event::ModelResponse { message, .. } => {
                self.waiting.clear();
                self.calls = message.tool_calls().map(|call| call.id.clone()).collect();
            }
            _ => {}
        }
    }

    fn forget(&mut self, call_id: &str) {
        self.waiting.retain(|waiting| waiting.approval.call_id != call_id);
    }

    /// Checks the signatures of all answers with `signer`.
    #[must_use]
    pub fn verify_answers(mut self, signer: &AnswerSigner) -> Self {
        for PendingCall { approval, answer } in &mut self.waiting {
            if let Some(answered) = answer {
                answered.is_genuine = answered.signature == signer.sign(approval, &answered.answer);
            }
        }
        self
    }

    /// Returns all requests, answered or not, in the order of the calls.
    pub fn all(&self) -> &[PendingCall] {
        &self.waiting
    }

    /// Iterates over the requests without an answer.
    pub fn unanswered(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.waiting.iter().filter(|waiting| waiting.answer.is_none()).map(|waiting| &waiting.approval)
    }

    /// Returns the request for a call and its answer, if it has both.
    pub fn answered(&self, call_id: &str) -> Option<(&ApprovalRequest, &RecordedAnswer)> {
        let pending = self.waiting.iter().find(|waiting| waiting.approval.call_id == call_id)?;
        Some((&pending.approval, pending.answer.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::{FinishReason, Purpose};
    use agent_core::message::{Message, Part, Role, ToolCall, ToolResult};

    fn pending_event(id: &str, call_id: &str) -> Event {
        Event::ToolCallPending {
            call_id: call_id.into(),
            approval: Some(ApprovalRequest {
                id: id.into(),
                call_id: call_id.into(),
                ..ApprovalRequest::default()
            }),
        }
    }

    fn answer_event(id: &str, answer: ApprovalAnswer) -> Event {
        Event::ApprovalAnswered { id: id.into(), answer, signature: String::new() }
    }

    fn ended(call_id: &str) -> Event {
        Event::tool_not_run(
            "write_file".into(),
            String::new(),
            ToolResult { call_id: call_id.into(), text: "done".into(), is_error: false, images: Vec::new() },
            Vec::new(),
        )
    }

    fn fold(events: impl IntoIterator<Item = Event>) -> Approvals {
        let mut approvals = Approvals::default();
        events.into_iter().for_each(|event| approvals.apply(&event));
        approvals
    }

    fn open(approvals: &Approvals) -> Vec<&str> {
        approvals.unanswered().map(|approval| approval.id.as_str()).collect()
    }

    #[test]
    fn s21_a_question_is_open_until_it_is_answered_and_gone_with_its_result() {
        let approvals = fold([
            pending_event("a", "c1"),
            pending_event("b", "c2"),
            answer_event("b", ApprovalAnswer::Approve),
        ]);
        assert_eq!(open(&approvals), ["a"]);
        assert_eq!(approvals.all().len(), 2);
        let (question, answered) = approvals.answered("c2").unwrap();
        assert_eq!((question.id.as_str(), answered.is_genuine), ("b", false));
        assert_eq!(approvals.answered("c1"), None, "it has no answer");
        let mut done = approvals;
        done.apply(&ended("c2"));
        assert_eq!((open(&done), done.answered("c2")), (vec!["a"], None));
    }

    #[test]
    fn s21_the_last_answer_counts_and_one_to_nothing_is_none() {
        let deny = ApprovalAnswer::Deny { reason: Some("not now".into()) };
        let approvals = fold([
            pending_event("a", "c1"),
            answer_event("a", ApprovalAnswer::Approve),
            answer_event("x", ApprovalAnswer::Approve),
        ]);
        let (_, answered) = approvals.answered("c1").unwrap();
        assert_eq!(answered.answer, ApprovalAnswer::Approve);
        let mut again = approvals;
        again.apply(&answer_event("a", deny.clone()));
        assert_eq!(again.answered("c1").unwrap().1.answer, deny);
    }

    #[test]
    fn s22_an_answer_is_genuine_where_it_bears_the_seal() {
        let dir = tempfile::tempdir().unwrap();
        let signer = AnswerSigner::load_or_create(dir.path(), "s1").unwrap();
        let asks = pending_event("a", "c1");
        let Event::ToolCallPending { approval: Some(request), .. } = &asks else { panic!("no question") };
        let sealed = Event::ApprovalAnswered {
            id: "a".into(),
            answer: ApprovalAnswer::Approve,
            signature: signer.sign(request, &ApprovalAnswer::Approve),
        };
        let is_genuine = |events: Vec<Event>, signer: &AnswerSigner| {
            fold(events).verify_answers(signer).answered("c1").unwrap().1.is_genuine
        };
        assert!(is_genuine(vec![asks.clone(), sealed.clone()], &signer));
        assert!(!is_genuine(vec![asks.clone(), answer_event("a", ApprovalAnswer::Approve)], &signer));
        let other = AnswerSigner::load_or_create(dir.path(), "s2").unwrap();
        assert!(!is_genuine(vec![asks, sealed], &other), "another session, as of one that was copied");
    }

    fn response(calls: &[&str]) -> Event {
        let call = |id: &&str| ToolCall::new(*id, "write_file", "{}");
        let parts = calls.iter().map(|id| Part::ToolCall(call(id))).collect();
        Event::ModelResponse {
            purpose: Purpose::Step,
            message: Message { role: Role::Assistant, parts },
            finish: FinishReason::ToolCalls,
            usage: None,
            cost_usd: None,
            latency_ms: 1,
        }
    }

    #[test]
    fn s21_a_question_that_is_asked_again_has_no_answer_yet() {
        let approvals = fold([
            pending_event("a", "c1"),
            answer_event("a", ApprovalAnswer::Approve),
            pending_event("b", "c1"),
        ]);
        assert_eq!(open(&approvals), ["b"]);
        assert_eq!(approvals.answered("c1"), None);
        let mut over = approvals;
        over.apply(&response(&[]));
        assert!(over.all().is_empty());
    }

    #[test]
    fn s21_questions_stand_in_the_order_of_the_calls_whenever_they_were_asked() {
        let approvals = fold([
            response(&["c1", "c2", "c3"]),
            pending_event("c", "c3"),
            pending_event("a", "c1"),
            pending_event("b", "c2"),
        ]);
        assert_eq!(open(&approvals), ["a", "b", "c"]);
    }
}
