//! Calls that were changing files when their process was killed, as the journal tells them.

use crate::change::Change;
use crate::event::{Event, Record};
use crate::message::ToolCall;

/// A call that has told that it changes files, and has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct CutOff {
    /// The call.
    pub call: ToolCall,
    /// What it was to do, one line.
    pub summary: String,
    /// What was to become of files; nothing is listed of a program.
    pub announced: Vec<Change>,
}

/// Those of a session, in the order in which they began. One that has changed nothing is not among them: it may wait for
/// something.
pub fn cut_off<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<CutOff> {
    let (mut begun, mut open) = (Vec::new(), Vec::<CutOff>::new());
    for record in records {
        match &record.event {
            Event::ToolStart { call, summary } => begun.push((call, summary)),
            Event::Changing { call_id, changes } => {
                if let Some(known) = open.iter_mut().find(|one| one.call.id == *call_id) {
                    known.announced.extend(changes.iter().cloned());
                } else if let Some((call, summary)) = begun.iter().rfind(|(call, _)| call.id == *call_id) {
                    let (call, summary) = ((*call).clone(), (*summary).clone());
                    open.push(CutOff { call, summary, announced: changes.clone() });
                }
            }
            Event::ToolEnd { result, .. } => {
                begun.retain(|(call, _)| call.id != result.call_id);
                open.retain(|one| one.call.id != result.call_id);
            }
            _ => {}
        }
    }
    open
}
