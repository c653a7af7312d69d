//! A deterministic model whose answers depend only on the conversation: it writes items, verifies uncertain ones, and answers when all are written.

use agent_core::message::{Message, Part, ToolCall};
use agent_messages as messages;
use std::collections::BTreeMap;
use std::sync::Arc;

/// State of an item as the conversation shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ItemState {
    #[default]
    Missing,
    Done,
    /// The write was interrupted, so its outcome is unknown.
    Unsure,
}

/// Returns the item that a call is about.
pub fn item_of(arguments: &str) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(arguments).ok()?.get("item")?.as_u64()
}

/// Returns the next answer when `items` are to be written: calls, or the final text.
pub fn next(messages: &[Arc<Message>], items: u64) -> Vec<Part> {
    let known = known(messages);
    let open: Vec<(u64, ItemState)> = (0..items)
        .map(|item| (item, known.get(&item).copied().unwrap_or_default()))
        .filter(|(_, known)| *known != ItemState::Done)
        .take(1 + messages.len() % 3)
        .collect();
    if open.is_empty() {
        return vec![Part::Text { text: format!("All {items} items are written.") }];
    }
    let calls = open.into_iter().map(|(item, known)| {
        let name = if known == ItemState::Unsure { "read" } else { "write_file" };
        let (id, arguments) = (format!("c{}-{item}", messages.len()), format!("{{\"item\":{item}}}"));
        Part::ToolCall(ToolCall::new(id, name, arguments))
    });
    calls.collect()
}

fn known(messages: &[Arc<Message>]) -> BTreeMap<u64, ItemState> {
    let mut known = BTreeMap::new();
    let mut calls: Vec<(&str, u64)> = Vec::new();
    for message in messages {
        if message.tool_calls().next().is_some() {
            calls = message
                .tool_calls()
                .filter_map(|call| Some((call.id.as_str(), item_of(&call.arguments)?)))
                .collect();
        }
        for part in &message.parts {
            let Part::ToolResult(result) = part else { continue };
            let Some((_, item)) = calls.iter().find(|(id, _)| *id == result.call_id) else { continue };
            let now = if result.text.contains(messages::OUTCOME_UNKNOWN) {
                ItemState::Unsure
            } else if result.text.contains("content of") {
                ItemState::Done
            } else {
                ItemState::Missing
            };
            known.insert(*item, now);
        }
    }
    known
}
