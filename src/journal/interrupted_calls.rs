//! Calls that were changing files when their process was killed, folded from the journal.

use crate::core::event::{Event, Record};
use crate::core::file_change::Change;
use crate::core::message::ToolCall;
use serde::{Deserialize, Serialize};

/// A call that announced file changes and has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptedCall {
    /// The call.
    pub call: ToolCall,
    /// One-line summary of the call.
    pub summary: String,
    /// The announced file changes; empty for a program.
    pub announced: Vec<Change>,
}

/// State folded from a journal: calls that started and have no result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedCalls {
    begun: Vec<(ToolCall, String)>,
    changing: Vec<InterruptedCall>,
}

impl UnfinishedCalls {
    /// Creates the state from `records`.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut unfinished = Self::default();
        records.into_iter().for_each(|record| unfinished.apply(&record.event));
        unfinished
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart { call, summary } => self.begun.push((call.clone(), summary.clone())),
            Event::FileChangesPlanned { call_id, changes } => self.changes(call_id, changes),
            Event::Subagent { call_id, event, .. } => match event.as_ref() {
                Event::FileChangesPlanned { changes, .. } => self.changes(call_id, changes),
                // The changes of a subagent's call are recorded in that call's own end event.
                Event::ToolCallEnd { .. } => self.changing.retain(|one| one.call.id != *call_id),
                _ => {}
            },
            Event::ToolCallEnd { result, .. } => {
                self.begun.retain(|(call, _)| call.id != result.call_id);
                self.changing.retain(|one| one.call.id != result.call_id);
            }
            _ => {}
        }
    }

    fn changes(&mut self, call_id: &str, changes: &[Change]) {
        if let Some(known) = self.changing.iter_mut().find(|one| one.call.id == call_id) {
            known.announced.extend(changes.iter().cloned());
        } else if let Some((call, summary)) = self.begun.iter().rfind(|(call, _)| call.id == call_id) {
            let (call, summary) = (call.clone(), summary.clone());
            self.changing.push(InterruptedCall { call, summary, announced: changes.to_vec() });
        }
    }

    /// Returns the calls that were interrupted, in the order in which they started, if no process works on the session. A
    /// call that changed nothing is not included: it may be waiting.
    pub fn into_interrupted(self) -> Vec<InterruptedCall> {
        self.changing
    }
}
