//! Calls that were changing files when their process was killed, as the journal tells them.

use crate::core::event::{Event, Record};
use crate::core::file_change::Change;
use crate::core::message::ToolCall;
use serde::{Deserialize, Serialize};

/// A call that has told that it changes files, and has no result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptedCall {
    /// The call.
    pub call: ToolCall,
    /// What it was to do, one line.
    pub summary: String,
    /// What was to become of files; nothing is listed of a program.
    pub announced: Vec<Change>,
}

/// The fold of a journal: calls that have begun and have no result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedCalls {
    begun: Vec<(ToolCall, String)>,
    changing: Vec<InterruptedCall>,
}

impl UnfinishedCalls {
    /// What `records` tell.
    pub fn from_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut unfinished = Self::default();
        records.into_iter().for_each(|record| unfinished.apply(&record.event));
        unfinished
    }

    /// Takes note of an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::ToolCallStart { call, summary } => self.begun.push((call.clone(), summary.clone())),
            Event::Changing { call_id, changes } => self.changes(call_id, changes),
            Event::Subagent { call_id, event, .. } => match event.as_ref() {
                Event::Changing { changes, .. } => self.changes(call_id, changes),
                // What it has changed stands in its own end.
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

    /// Those that were cut off if nobody works on the session, in the order in which they began. One that has changed nothing
    /// is not among them: it may wait for something.
    pub fn into_interrupted(self) -> Vec<InterruptedCall> {
        self.changing
    }
}
