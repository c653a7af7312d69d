//! What was said before the session began, as it is given to it.

use super::Session;
use crate::core::message::{HistoryMessage, Message};

impl Session {
    /// The conversation goes on after `said`. Whoever wrote the answers in it, this model reads them for the first time.
    pub(super) fn add_history(&mut self, said: &[HistoryMessage]) {
        for one in said {
            self.unread.push(one.content.clone());
            self.push(Message::from(one));
        }
    }
}
