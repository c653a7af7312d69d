//! Calls that were under way when their process was killed, as the journal tells them.

use crate::change::Change;
use crate::event::{Event, Record};
use crate::message::ToolCall;

/// A call that began and has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOff {
    /// The call.
    pub call: ToolCall,
    /// What it was to do, one line.
    pub summary: String,
    /// What it was about to do to files when it was heard of last; nothing of a program, and nothing is listed of a call that
    /// had not come so far.
    pub announced: Option<Vec<Change>>,
}

/// Those of a session, in the order in which they began.
pub fn cut_off<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<CutOff> {
    let mut open: Vec<CutOff> = Vec::new();
    for record in records {
        match &record.event {
            Event::ToolStart { call, summary } => {
                open.push(CutOff { call: call.clone(), summary: summary.clone(), announced: None });
            }
            Event::Changing { call_id, changes } => {
                if let Some(one) = open.iter_mut().find(|one| one.call.id == *call_id) {
                    one.announced.get_or_insert_default().extend(changes.iter().cloned());
                }
            }
            Event::ToolEnd { result, .. } => open.retain(|one| one.call.id != result.call_id),
            _ => {}
        }
    }
    open
}
