//! Upgrades JSON events of earlier schema versions.

use serde_json::Value;

/// Renames the tags in a JSON event of schema version 1 to those of this version; serde has no aliases for tags.
pub fn upgrade_tags(event: &mut Value) {
    let (tagged, old, new) = match event.get("type").and_then(Value::as_str) {
        Some("compaction") => (event, "way", "kind"),
        Some("approval_answered") => (&mut event["answer"], "says", "decision"),
        Some("subagent") => return upgrade_tags(&mut event["event"]),
        _ => return,
    };
    if let Some(members) = tagged.as_object_mut()
        && let Some(tag) = members.remove(old)
    {
        members.insert(new.to_owned(), tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use serde_json::json;

    #[test]
    fn names_of_schema_version_1_are_read() {
        let failure = json!({"kind": "server", "message": "m", "retryable": true});
        for (old, names) in [
            (json!({"type": "kept_answer"}), vec!["cached_answer"]),
            (json!({"type": "changing", "call_id": "c", "changes": []}), vec!["file_changes_planned"]),
            (json!({"type": "state_kept", "version": 4, "hash": "h", "lines": 1}), vec!["state_saved"]),
            (json!({"type": "gates", "results": []}), vec!["quality_gates"]),
            (json!({"type": "tool_call_waits", "call_id": "c"}), vec!["tool_call_pending"]),
            (json!({"type": "model_switched", "from": "a", "to": "b", "because": failure}), vec!["failure"]),
            (json!({"type": "restored", "way": "undo", "to_step": 0, "changed": []}), vec!["direction"]),
            (
                json!({"type": "background_end", "id": "bg1", "command": "c", "outcome": "o", "with_run": true}),
                vec!["ended_by_run_end"],
            ),
            (json!({"type": "budget_warning", "spent_usd": 1.0, "at_usd": 1.0}), vec!["threshold_usd"]),
            (
                json!({"type": "checkpoint", "step": 1, "reference": "r", "commit": "c", "left_out": ["a"]}),
                vec!["omitted_files"],
            ),
            (
                json!({"type": "compaction", "way": "left_out", "upto": 3}),
                vec!["kind", "messages_dropped", "message_count"],
            ),
            (
                json!({"type": "subagent", "call_id": "c", "event": {"type": "compaction", "way": "outputs", "call_ids": []}}),
                vec!["kind", "outputs_shortened"],
            ),
            (
                json!({"type": "approval_answered", "id": "a", "answer": {"says": "approve"}, "seal": "s"}),
                vec!["decision", "signature"],
            ),
        ] {
            let mut upgraded = old.clone();
            upgrade_tags(&mut upgraded);
            let event: Event =
                serde_json::from_value(upgraded).unwrap_or_else(|error| panic!("{old}: {error}"));
            let new: Value = serde_json::to_value(&event).unwrap();
            for name in names {
                assert!(new.to_string().contains(&format!("\"{name}\"")), "{old} became {new}");
            }
            assert_eq!(serde_json::from_value::<Event>(new).unwrap(), event);
        }
    }
}
