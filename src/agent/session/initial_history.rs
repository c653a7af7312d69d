//! Adds the history that was passed to a new session.

use super::Session;
use crate::core::message::{HistoryMessage, Message};

impl Session {
    /// Adds the messages of `history`. All of them are unread for this model, whichever model wrote the answers.
    pub(super) fn add_history(&mut self, history: &[HistoryMessage]) {
        for message in history {
            self.unread.push(message.content.clone());
            self.push(Message::from(message));
        }
    }
}
