//! The calls of a session that wait for a person's answer, as its journal tells them.

use crate::core::approval::{ApprovalAnswer, ApprovalRequest};
use crate::core::event::{Event, Record};
use crate::journal::answer_signature::AnswerSigner;
use crate::journal::read;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A call that waits, and what was said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The question.
    pub approval: ApprovalRequest,
    /// The last answer.
    pub answer: Option<RecordedAnswer>,
}

impl PendingCall {
    /// What was said, as far as it counts: a yes only where it was given here.
    pub fn effective_answer(&self) -> Option<&ApprovalAnswer> {
        let answered = self.answer.as_ref()?;
        (answered.is_genuine || answered.answer != ApprovalAnswer::Approve).then_some(&answered.answer)
    }
}

/// An answer as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedAnswer {
    /// What was said.
    pub answer: ApprovalAnswer,
    seal: String,
    /// Whether it is known to have been given here, in this session and to this question.
    #[serde(skip)]
    pub is_genuine: bool,
}

/// The fold of a journal: questions about calls that have no result yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    /// In the order of the calls.
    waiting: Vec<PendingCall>,
    /// The calls of the model's last answer.
    calls: Vec<String>,
}

impl Approvals {
    /// What `records` tell.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut approvals = Self::default();
        records.into_iter().for_each(|record| approvals.apply(&record.event));
        approvals
    }

    /// What the journal at `path` tells.
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

    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ToolCallPending { approval: Some(approval), .. } => {
                self.forget(&approval.call_id);
                self.waiting.push(PendingCall { approval: approval.clone(), answer: None });
                let Self { waiting, calls } = self;
                waiting.sort_by_key(|one| calls.iter().position(|call| *call == one.approval.call_id));
            }
            Event::ApprovalAnswered { id, answer, seal } => {
                let answered =
                    RecordedAnswer { answer: answer.clone(), seal: seal.clone(), is_genuine: false };
                let asked = self.waiting.iter_mut().find(|waiting| waiting.approval.id == *id);
                if let Some(waiting) = asked {
                    waiting.answer = Some(answered);
                }
            }
            Event::ToolCallEnd { result, .. } => self.forget(&result.call_id),
            // A new answer of the model: whatever became of the calls before it, none of them runs any more.
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

    /// The same, knowing which of the answers bear the `seal`.
    #[must_use]
    pub fn verify_answers(mut self, seal: &AnswerSigner) -> Self {
        for PendingCall { approval, answer } in &mut self.waiting {
            if let Some(answered) = answer {
                answered.is_genuine = answered.seal == seal.sign(approval, &answered.answer);
            }
        }
        self
    }

    /// All of them, answered or not, in the order of the calls.
    pub fn all(&self) -> &[PendingCall] {
        &self.waiting
    }

    /// Those that nobody has answered.
    pub fn unanswered(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.waiting.iter().filter(|waiting| waiting.answer.is_none()).map(|waiting| &waiting.approval)
    }

    /// The question about a call and its answer, where it has one.
    pub fn answered(&self, call_id: &str) -> Option<(&ApprovalRequest, &RecordedAnswer)> {
        let asked = self.waiting.iter().find(|waiting| waiting.approval.call_id == call_id)?;
        Some((&asked.approval, asked.answer.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::approval::sample_request;
    use crate::core::event::{FinishReason, Purpose};
    use crate::core::message::{Message, Part, Role, ToolCall, ToolResult};

    fn waits(id: &str, call_id: &str) -> Event {
        Event::ToolCallPending { call_id: call_id.into(), approval: Some(sample_request(id, call_id)) }
    }

    fn says(id: &str, answer: ApprovalAnswer) -> Event {
        Event::ApprovalAnswered { id: id.into(), answer, seal: String::new() }
    }

    fn ended(call_id: &str) -> Event {
        Event::ToolCallEnd {
            name: "write_file".into(),
            summary: String::new(),
            result: ToolResult { call_id: call_id.into(), text: "done".into(), is_error: false },
            changed: Vec::new(),
            seen: Vec::new(),
            denial: None,
            simulated: false,
            counted: crate::core::guardrail::CallCounts::default(),
            duration_ms: 1,
        }
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
        let asked = fold([waits("a", "c1"), waits("b", "c2"), says("b", ApprovalAnswer::Approve)]);
        assert_eq!(open(&asked), ["a"]);
        assert_eq!(asked.all().len(), 2);
        let (question, answered) = asked.answered("c2").unwrap();
        assert_eq!((question.id.as_str(), answered.is_genuine), ("b", false));
        assert_eq!(asked.answered("c1"), None, "nobody has answered it");
        let mut done = asked;
        done.apply(&ended("c2"));
        assert_eq!((open(&done), done.answered("c2")), (vec!["a"], None));
    }

    #[test]
    fn s21_the_last_answer_counts_and_one_to_nothing_is_none() {
        let deny = ApprovalAnswer::Deny { reason: Some("not now".into()) };
        let asked =
            fold([waits("a", "c1"), says("a", ApprovalAnswer::Approve), says("x", ApprovalAnswer::Approve)]);
        let (_, answered) = asked.answered("c1").unwrap();
        assert_eq!(answered.answer, ApprovalAnswer::Approve);
        let mut again = asked;
        again.apply(&says("a", deny.clone()));
        assert_eq!(again.answered("c1").unwrap().1.answer, deny);
    }

    #[test]
    fn s22_an_answer_is_genuine_where_it_bears_the_seal() {
        let dir = tempfile::tempdir().unwrap();
        let seal = AnswerSigner::load_or_create(dir.path(), "s1").unwrap();
        let asks = waits("a", "c1");
        let Event::ToolCallPending { approval: Some(asked), .. } = &asks else { panic!("no question") };
        let sealed = Event::ApprovalAnswered {
            id: "a".into(),
            answer: ApprovalAnswer::Approve,
            seal: seal.sign(asked, &ApprovalAnswer::Approve),
        };
        let is_genuine = |events: Vec<Event>, seal: &AnswerSigner| {
            fold(events).verify_answers(seal).answered("c1").unwrap().1.is_genuine
        };
        assert!(is_genuine(vec![asks.clone(), sealed.clone()], &seal));
        assert!(!is_genuine(vec![asks.clone(), says("a", ApprovalAnswer::Approve)], &seal));
        let other = AnswerSigner::load_or_create(dir.path(), "s2").unwrap();
        assert!(!is_genuine(vec![asks, sealed], &other), "another session, as of one that was copied");
    }

    fn response(calls: &[&str]) -> Event {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "write_file".into(),
            arguments: "{}".into(),
            opaque: None,
        };
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
        let asked = fold([waits("a", "c1"), says("a", ApprovalAnswer::Approve), waits("b", "c1")]);
        assert_eq!(open(&asked), ["b"]);
        assert_eq!(asked.answered("c1"), None);
        let mut over = asked;
        over.apply(&response(&[]));
        assert!(over.all().is_empty());
    }

    #[test]
    fn s21_questions_stand_in_the_order_of_the_calls_whenever_they_were_asked() {
        let asked =
            fold([response(&["c1", "c2", "c3"]), waits("c", "c3"), waits("a", "c1"), waits("b", "c2")]);
        assert_eq!(open(&asked), ["a", "b", "c"]);
    }
}
