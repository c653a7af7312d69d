//! Serializes shared messages as plain messages.

use agent_core::message::Message;
use serde::{Deserialize, Deserializer, Serializer};
use std::sync::Arc;

pub(super) fn serialize<S: Serializer>(messages: &[Arc<Message>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(messages.iter().map(AsRef::as_ref))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Arc<Message>>, D::Error> {
    Ok(Vec::<Message>::deserialize(from)?.into_iter().map(Arc::new).collect())
}
