//! The calls of a session that wait for a person's answer, as its journal tells them.

use crate::approval::{Answer, Approval};
use crate::event::{Event, Record};
use crate::journal::read;
use crate::journal::seal::Seal;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// A call that waits, and what was said about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// The question.
    pub approval: Approval,
    /// The last answer.
    pub answer: Option<Answered>,
}

impl Waiting {
    /// What was said, as far as it counts: a yes only where it was given here.
    pub fn said(&self) -> Option<&Answer> {
        let answered = self.answer.as_ref()?;
        (answered.is_genuine || answered.answer != Answer::Approve).then_some(&answered.answer)
    }
}

/// An answer as it stands in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// What was said.
    pub answer: Answer,
    seal: String,
    /// Whether it is known to have been given here, in this session and to this question.
    #[serde(skip)]
    pub is_genuine: bool,
}

/// The fold of a journal: questions about calls that have no result yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    /// In the order of the calls.
    waiting: Vec<Waiting>,
    /// The calls of the model's last answer.
    calls: Vec<String>,
}

impl Approvals {
    /// What `records` tell.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut approvals = Self::default();
        records.into_iter().for_each(|record| approvals.note(&record.event));
        approvals
    }

    /// What the journal at `path` tells.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut approvals = Self::default();
        read::visit(path, |_, record| {
            if let Some(record) = record {
                approvals.note(&record.event);
            }
            true
        })?;
        Ok(approvals)
    }

    /// Takes note of an event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::ToolWaits { approval: Some(approval), .. } => {
                self.forget(&approval.call_id);
                self.waiting.push(Waiting { approval: approval.clone(), answer: None });
                let Self { waiting, calls } = self;
                waiting.sort_by_key(|one| calls.iter().position(|call| *call == one.approval.call_id));
            }
            Event::ApprovalAnswered { id, answer, seal } => {
                let answered = Answered { answer: answer.clone(), seal: seal.clone(), is_genuine: false };
                let asked = self.waiting.iter_mut().find(|waiting| waiting.approval.id == *id);
                if let Some(waiting) = asked {
                    waiting.answer = Some(answered);
                }
            }
            Event::ToolEnd { result, .. } => self.forget(&result.call_id),
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
    pub fn verified(mut self, seal: &Seal) -> Self {
        for Waiting { approval, answer } in &mut self.waiting {
            if let Some(answered) = answer {
                answered.is_genuine = answered.seal == seal.on(approval, &answered.answer);
            }
        }
        self
    }

    /// All of them, answered or not, in the order of the calls.
    pub fn all(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Those that nobody has answered.
    pub fn open(&self) -> impl Iterator<Item = &Approval> {
        self.waiting.iter().filter(|waiting| waiting.answer.is_none()).map(|waiting| &waiting.approval)
    }

    /// The question about a call and its answer, where it has one.
    pub fn answered(&self, call_id: &str) -> Option<(&Approval, &Answered)> {
        let asked = self.waiting.iter().find(|waiting| waiting.approval.call_id == call_id)?;
        Some((&asked.approval, asked.answer.as_ref()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::question;
    use crate::event::{FinishReason, Purpose};
    use crate::message::{Message, Part, Role, ToolCall, ToolResult};

    fn waits(id: &str, call_id: &str) -> Event {
        Event::ToolWaits { call_id: call_id.into(), approval: Some(question(id, call_id)) }
    }

    fn says(id: &str, answer: Answer) -> Event {
        Event::ApprovalAnswered { id: id.into(), answer, seal: String::new() }
    }

    fn ended(call_id: &str) -> Event {
        Event::ToolEnd {
            name: "write_file".into(),
            summary: String::new(),
            result: ToolResult { call_id: call_id.into(), text: "done".into(), is_error: false },
            changed: Vec::new(),
            seen: Vec::new(),
            denial: None,
            simulated: false,
            counted: crate::guardrail::Counted::default(),
            duration_ms: 1,
        }
    }

    fn fold(events: impl IntoIterator<Item = Event>) -> Approvals {
        let mut approvals = Approvals::default();
        events.into_iter().for_each(|event| approvals.note(&event));
        approvals
    }

    fn open(approvals: &Approvals) -> Vec<&str> {
        approvals.open().map(|approval| approval.id.as_str()).collect()
    }

    #[test]
    fn s21_a_question_is_open_until_it_is_answered_and_gone_with_its_result() {
        let asked = fold([waits("a", "c1"), waits("b", "c2"), says("b", Answer::Approve)]);
        assert_eq!(open(&asked), ["a"]);
        assert_eq!(asked.all().len(), 2);
        let (question, answered) = asked.answered("c2").unwrap();
        assert_eq!((question.id.as_str(), answered.is_genuine), ("b", false));
        assert_eq!(asked.answered("c1"), None, "nobody has answered it");
        let mut done = asked;
        done.note(&ended("c2"));
        assert_eq!((open(&done), done.answered("c2")), (vec!["a"], None));
    }

    #[test]
    fn s21_the_last_answer_counts_and_one_to_nothing_is_none() {
        let deny = Answer::Deny { reason: Some("not now".into()) };
        let asked = fold([waits("a", "c1"), says("a", Answer::Approve), says("x", Answer::Approve)]);
        let (_, answered) = asked.answered("c1").unwrap();
        assert_eq!(answered.answer, Answer::Approve);
        let mut again = asked;
        again.note(&says("a", deny.clone()));
        assert_eq!(again.answered("c1").unwrap().1.answer, deny);
    }

    #[test]
    fn s22_an_answer_is_genuine_where_it_bears_the_seal() {
        let dir = tempfile::tempdir().unwrap();
        let seal = Seal::of(dir.path(), "s1").unwrap();
        let asks = waits("a", "c1");
        let Event::ToolWaits { approval: Some(asked), .. } = &asks else { panic!("no question") };
        let sealed = Event::ApprovalAnswered {
            id: "a".into(),
            answer: Answer::Approve,
            seal: seal.on(asked, &Answer::Approve),
        };
        let is_genuine = |events: Vec<Event>, seal: &Seal| {
            fold(events).verified(seal).answered("c1").unwrap().1.is_genuine
        };
        assert!(is_genuine(vec![asks.clone(), sealed.clone()], &seal));
        assert!(!is_genuine(vec![asks.clone(), says("a", Answer::Approve)], &seal));
        let other = Seal::of(dir.path(), "s2").unwrap();
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
        let asked = fold([waits("a", "c1"), says("a", Answer::Approve), waits("b", "c1")]);
        assert_eq!(open(&asked), ["b"]);
        assert_eq!(asked.answered("c1"), None);
        let mut over = asked;
        over.note(&response(&[]));
        assert!(over.all().is_empty());
    }

    #[test]
    fn s21_questions_stand_in_the_order_of_the_calls_whenever_they_were_asked() {
        let asked =
            fold([response(&["c1", "c2", "c3"]), waits("c", "c3"), waits("a", "c1"), waits("b", "c2")]);
        assert_eq!(open(&asked), ["a", "b", "c"]);
    }
}
