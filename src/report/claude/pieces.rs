//! Streamed pieces of answers as the events of Anthropic's streams (`stream_event`).

use serde_json::{Value, json};

/// The state of the answer that is streamed.
#[derive(Debug, Default)]
pub struct Pieces {
    /// The blocks so far, by kind; the last one is open.
    blocks: Vec<&'static str>,
    has_begun: bool,
}

impl Pieces {
    /// Returns the events for a piece of the answer `id`; `kind` is `text` or `thinking`.
    pub fn add(&mut self, kind: &'static str, piece: &str, id: &str, model: &str) -> Vec<Value> {
        let mut events = self.begin(id, model);
        if self.blocks.last() != Some(&kind) {
            events.extend(self.stop_block());
            self.blocks.push(kind);
            events.push(self.start_block(&json!({"type": kind, kind: ""})));
        }
        events.push(self.delta(&json!({"type": format!("{kind}_delta"), kind: piece})));
        events
    }

    /// Returns the events that complete the answer with this content.
    pub fn end(
        &mut self,
        content: &[Value],
        stop_reason: &str,
        usage: &Value,
        id: &str,
        model: &str,
    ) -> Vec<Value> {
        let mut events = Vec::new();
        for block in content {
            let kind = if block["type"] == "text" { "text" } else { "thinking" };
            match block["type"].as_str() {
                Some("tool_use") => events.extend(self.call(block, id, model)),
                _ if self.blocks.contains(&kind) => {}
                _ => events.extend(self.add(kind, block[kind].as_str().unwrap_or_default(), id, model)),
            }
        }
        if self.has_begun {
            events.extend(self.stop_block());
            events.push(event(&json!({"type": "message_delta", "usage": usage,
                "delta": {"stop_reason": stop_reason, "stop_sequence": null}})));
        }
        events.extend(self.discard());
        events
    }

    /// Returns the event that ends an answer, also one that is not complete.
    pub fn discard(&mut self) -> Vec<Value> {
        let has_begun = std::mem::take(self).has_begun;
        has_begun.then(|| event(&json!({"type": "message_stop"}))).into_iter().collect()
    }

    fn begin(&mut self, id: &str, model: &str) -> Vec<Value> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Vec::new();
        }
        let message = json!({"id": id, "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0}});
        vec![event(&json!({"type": "message_start", "message": message}))]
    }

    fn call(&mut self, block: &Value, id: &str, model: &str) -> Vec<Value> {
        let mut events = self.begin(id, model);
        events.extend(self.stop_block());
        self.blocks.push("tool_use");
        events.push(self.start_block(
            &json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}),
        ));
        events.push(
            self.delta(&json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})),
        );
        events
    }

    /// Returns the index of the open block.
    fn index(&self) -> usize {
        self.blocks.len().saturating_sub(1)
    }

    fn start_block(&self, block: &Value) -> Value {
        event(&json!({"type": "content_block_start", "index": self.index(), "content_block": block}))
    }

    fn delta(&self, delta: &Value) -> Value {
        event(&json!({"type": "content_block_delta", "index": self.index(), "delta": delta}))
    }

    fn stop_block(&self) -> Option<Value> {
        (!self.blocks.is_empty())
            .then(|| event(&json!({"type": "content_block_stop", "index": self.index()})))
    }
}

fn event(event: &Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}
