//! Hashes the conversation of each request, so that a replay detects a different request.

use agent_core::message::Message;
use agent_text::delimiter::Delimiter;
use std::sync::Arc;

/// Characters of a hash in an event: enough to detect a difference.
const HASH_CHARS: usize = 16;

/// The messages of the last request, each with the hash of the conversation up to it. An update hashes only new messages.
#[derive(Debug, Default)]
pub struct ConversationDigest(Vec<(Arc<Message>, blake3::Hash)>);

impl ConversationDigest {
    /// Returns the hash of `messages` without the delimiter token of `session`, which differs in a copy of the session.
    pub fn update(&mut self, messages: &[Arc<Message>], session: &str) -> String {
        let common = self.0.iter().zip(messages).take_while(|((known, _), new)| Arc::ptr_eq(known, new));
        let common = common.count();
        self.0.truncate(common);
        let delimiter = Delimiter::for_session(session);
        for message in messages.iter().skip(common) {
            let mut hasher = blake3::Hasher::new();
            if let Some((_, before)) = self.0.last() {
                hasher.update(before.as_bytes());
            }
            let written = serde_json::to_string(message.as_ref()).unwrap_or_default();
            hasher.update(written.replace(delimiter.token(), "").as_bytes());
            self.0.push((Arc::clone(message), hasher.finalize()));
        }
        let last = self.0.last().map(|(_, hash)| hash.to_hex().chars().take(HASH_CHARS).collect());
        last.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::message::{Role, ToolResult};
    use proptest::prelude::*;

    fn digest(messages: &[Arc<Message>], session: &str) -> String {
        ConversationDigest::default().update(messages, session)
    }

    fn user_message(text: &str) -> Arc<Message> {
        Arc::new(Message::text(Role::User, text))
    }

    fn result(session: &str) -> Arc<Message> {
        let text = Delimiter::for_session(session).wrap("text");
        Arc::new(Message::tool_results(vec![ToolResult {
            call_id: "c".into(),
            text,
            is_error: false,
            images: Vec::new(),
        }]))
    }

    #[test]
    fn a_copy_of_a_session_has_the_same_hashes_under_its_own_marks() {
        assert_eq!(digest(&[result("a")], "a"), digest(&[result("b")], "b"));
        assert_ne!(digest(&[result("a")], "b"), digest(&[result("b")], "b"));
    }

    proptest! {
        #[test]
        fn a_conversation_that_grows_has_the_hash_of_a_new_one(texts in prop::collection::vec(".{0,3}", 1..6), cut in 0usize..6) {
            let messages: Vec<_> = texts.iter().map(|text| user_message(text)).collect();
            let mut growing = ConversationDigest::default();
            growing.update(messages.get(..cut).unwrap_or_default(), "s");
            prop_assert_eq!(growing.update(&messages, "s"), digest(&messages, "s"));
            let mut other = messages.clone();
            other[0] = user_message("another");
            prop_assert_ne!(growing.update(&other, "s"), digest(&messages, "s"));
        }
    }
}
