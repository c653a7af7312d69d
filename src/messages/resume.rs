//! Messages about tools and settings that changed before a session was resumed.

use agent_text::lines::one_line;

/// Characters shown of a name.
const NAME_CHARS: usize = 80;

/// Message to the model about tools that differ from those of the previous run; `changes` are names by kind.
pub fn tool_list_changed(changes: [&[String]; 3]) -> String {
    format!(
        "[SYSTEM] Your tools have changed since your last step ({}). Call only the tools that are offered now.",
        tool_changes(changes)
    )
}

/// Notice for users about the same change.
pub fn tool_list_changed_notice(changes: [&[String]; 3]) -> String {
    format!("the tools have changed since the previous run; the model is notified: {}", tool_changes(changes))
}

/// Lists the names of the tools that are no longer offered, new and changed.
fn tool_changes([removed, added, changed]: [&[String]; 3]) -> String {
    let parts = [("no longer offered", removed), ("new", added), ("changed", changed)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    parts.join("; ")
}

/// Entry of [`settings_changed`]: one setting with its new and previous value.
pub fn changed_setting(what: &str, now: &str, before: &str) -> String {
    format!("{what} {} (before: {})", one_line(now, NAME_CHARS), one_line(before, NAME_CHARS))
}

/// Notice about settings that differ from those of the previous run.
pub fn settings_changed(changes: &[String]) -> String {
    format!("settings differ from the previous run: {}", changes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_changes_omit_empty_parts() {
        let (one, none) = (["a".to_owned(), "b".to_owned()], []);
        assert_eq!(tool_changes([&one, &none, &none]), "no longer offered: a, b");
        assert_eq!(tool_changes([&none, &one, &none]), "new: a, b");
        assert_eq!(tool_changes([&one, &one, &one]), "no longer offered: a, b; new: a, b; changed: a, b");
    }
}
