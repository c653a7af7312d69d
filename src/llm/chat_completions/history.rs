//! The conversation as JSON, kept between requests, so that a step costs what it adds and not what is already there.

use crate::llm::chat_completions::request::{self, Quirks};
use crate::message::Message;
use std::sync::Arc;

/// The messages of the last request and their JSON, separated by commas.
#[derive(Debug, Default)]
pub struct History {
    known: Vec<Arc<Message>>,
    /// Where the JSON of each message ends.
    ends: Vec<usize>,
    json: Vec<u8>,
}

impl History {
    /// The JSON of `messages`; those that stand at the same place as last time are not written again.
    ///
    /// # Errors
    /// When a message has no JSON form.
    pub fn json(&mut self, messages: &[Arc<Message>], quirks: Quirks) -> serde_json::Result<&[u8]> {
        let same = self.known.iter().zip(messages).take_while(|(known, new)| Arc::ptr_eq(known, new)).count();
        self.known.truncate(same);
        self.ends.truncate(same);
        self.json.truncate(self.ends.last().copied().unwrap_or(0));
        for message in messages.iter().skip(same) {
            request::write_message(message, quirks, &mut self.json)?;
            self.known.push(Arc::clone(message));
            self.ends.push(self.json.len());
        }
        Ok(&self.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Role;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_written_anew(rounds in prop::collection::vec((0usize..6, 1usize..4), 1..8)) {
            let mut history = History::default();
            let mut messages: Vec<Arc<Message>> = Vec::new();
            for (round, (keep, add)) in rounds.into_iter().enumerate() {
                messages.truncate(keep);
                messages.extend((0..add).map(|n| Arc::new(Message::text(Role::User, format!("{round}.{n}")))));
                let kept = history.json(&messages, Quirks::default()).unwrap().to_vec();
                let anew = History::default().json(&messages, Quirks::default()).unwrap().to_vec();
                prop_assert_eq!(kept, anew);
            }
        }
    }
}
