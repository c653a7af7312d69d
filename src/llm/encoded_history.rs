//! Caches the JSON of the conversation between requests, so that a step encodes only its new messages.

use crate::Images;
use crate::codec::Codec;
use agent_core::message::Message;
use std::sync::Arc;

/// The messages of the last request and their JSON.
#[derive(Debug, Default)]
pub struct EncodedHistory {
    known: Vec<Arc<Message>>,
    /// End of each message in the JSON, as a byte offset.
    ends: Vec<usize>,
    json: Vec<u8>,
}

impl EncodedHistory {
    /// Returns the JSON of `messages` in the format of `codec`; messages unchanged since the last request are not encoded again.
    ///
    /// # Errors
    /// When a message has no JSON form.
    pub fn encode_messages(
        &mut self,
        messages: &[Arc<Message>],
        images: Images<'_>,
        codec: &dyn Codec,
    ) -> serde_json::Result<&[u8]> {
        let same = self.known.iter().zip(messages).take_while(|(known, new)| Arc::ptr_eq(known, new)).count();
        self.known.truncate(same);
        self.ends.truncate(same);
        self.json.truncate(self.ends.last().copied().unwrap_or(0));
        for (at, message) in messages.iter().enumerate().skip(same) {
            codec.write_message(message, messages.get(..at).unwrap_or_default(), images, &mut self.json)?;
            self.known.push(Arc::clone(message));
            self.ends.push(self.json.len());
        }
        Ok(&self.json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::Quirks;
    use crate::wire_format::WireFormat;
    use agent_core::message::{Role, ToolResult};
    use proptest::prelude::*;

    fn message(role: Role, text: String) -> Arc<Message> {
        Arc::new(match role {
            Role::Tool => Message::tool_results(vec![ToolResult {
                call_id: "a".into(),
                text,
                is_error: false,
                images: Vec::new(),
            }]),
            role => Message::text(role, text),
        })
    }

    proptest! {
        #[test]
        fn cached_json_equals_freshly_encoded_json(
            format in prop::sample::select(WireFormat::ALL.to_vec()),
            rounds in prop::collection::vec((0usize..6, prop::collection::vec(0usize..3, 1..4)), 1..8),
        ) {
            let codec = format.codec(Quirks::default());
            let mut history = EncodedHistory::default();
            let mut messages: Vec<Arc<Message>> = Vec::new();
            for (round, (keep, roles)) in rounds.into_iter().enumerate() {
                messages.truncate(keep);
                let roles = roles.into_iter().map(|role| [Role::User, Role::Assistant, Role::Tool][role]);
                messages.extend(roles.enumerate().map(|(n, role)| message(role, format!("{round}.{n}"))));
                let kept = history.encode_messages(&messages, None, codec.as_ref()).unwrap().to_vec();
                let anew = EncodedHistory::default().encode_messages(&messages, None, codec.as_ref()).unwrap().to_vec();
                prop_assert_eq!(kept, anew);
            }
        }
    }
}
