//! Calls that were changing files when their process was killed, folded from the journal.

use agent_core::event::{Event, Record};
use agent_core::file_change::Change;
use agent_core::message::ToolCall;

/// A call that announced file changes and has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct InterruptedCall {
    /// The call.
    pub call: ToolCall,
    /// One-line summary of the call.
    pub summary: String,
    /// The announced file changes; empty for a program.
    pub announced: Vec<Change>,
    /// Id of the call of the subagent that announced them; absent for changes by the call itself.
    subagent_call: Option<String>,
}

impl InterruptedCall {
    /// Checks whether the call `call_id` announced the changes, or the call `subagent_call` of the subagent that it started.
    fn is_by(&self, call_id: &str, subagent_call: Option<&str>) -> bool {
        self.call.id == call_id && self.subagent_call.as_deref() == subagent_call
    }
}

/// State folded from a journal: calls that started and have no result.
#[derive(Debug, Clone, Default, PartialEq)]
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
            Event::FileChangesPlanned { call_id, changes } => self.changes(call_id, None, changes),
            Event::Subagent { call_id, event, .. } => match event.as_ref() {
                Event::FileChangesPlanned { call_id: own, changes } => {
                    self.changes(call_id, Some(own), changes);
                }
                // The changes of a subagent's call are recorded in that call's own end event.
                Event::ToolCallEnd { result, .. } => {
                    let has_ended = |one: &InterruptedCall| one.is_by(call_id, Some(&result.call_id));
                    self.changing.retain(|one| !has_ended(one));
                }
                _ => {}
            },
            Event::ToolCallEnd { result, .. } => {
                self.begun.retain(|(call, _)| call.id != result.call_id);
                self.changing.retain(|one| one.call.id != result.call_id);
            }
            Event::Imported => *self = Self::default(),
            _ => {}
        }
    }

    fn changes(&mut self, call_id: &str, subagent_call: Option<&str>, changes: &[Change]) {
        if let Some(known) = self.changing.iter_mut().find(|one| one.is_by(call_id, subagent_call)) {
            known.announced.extend(changes.iter().cloned());
        } else if let Some((call, summary)) = self.begun.iter().rfind(|(call, _)| call.id == call_id) {
            let (call, summary) = (call.clone(), summary.clone());
            let subagent_call = subagent_call.map(str::to_owned);
            self.changing.push(InterruptedCall { call, summary, announced: changes.to_vec(), subagent_call });
        }
    }

    /// Returns the calls that were interrupted, in the order in which they started, if no process works on the session. A
    /// call that changed nothing is not included: it may be waiting.
    pub fn into_interrupted(self) -> Vec<InterruptedCall> {
        let mut calls: Vec<InterruptedCall> = Vec::new();
        for one in self.changing {
            match calls.iter_mut().find(|call| call.call.id == one.call.id) {
                Some(call) => call.announced.extend(one.announced),
                None => calls.push(one),
            }
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::file_change::{ChangedBy, FileState};
    use agent_core::message::ToolResult;

    // Fault E1: the changes of a subagent's call were looked up by the call that started the subagent.
    #[test]
    fn the_end_of_a_call_of_a_subagent_does_not_end_another_one() {
        let call = ToolCall::new("s", "t", "{}");
        let of_subagent =
            |event| Event::Subagent { call_id: "s".into(), event: Box::new(event), budget_share: None };
        let planned = |call_id: &str| {
            let changes =
                vec![Change::between(call_id, ChangedBy::Tool, &FileState::Absent, &FileState::Unknown)];
            of_subagent(Event::FileChangesPlanned { call_id: call_id.into(), changes })
        };
        let result = ToolResult { call_id: "a".into(), ..ToolResult::default() };
        let ended = of_subagent(Event::tool_not_run("t".into(), String::new(), result, Vec::new()));
        let start = Event::ToolCallStart { call, summary: String::new() };
        let mut unfinished = UnfinishedCalls::default();
        for event in [start, planned("a"), planned("b"), planned("c"), ended] {
            unfinished.apply(&event);
        }
        let [interrupted] = &unfinished.into_interrupted()[..] else { panic!() };
        let paths: Vec<&str> = interrupted.announced.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["b", "c"]);
    }
}
