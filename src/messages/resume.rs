//! What is said when a session goes on otherwise than it was: to the model, and to people.

use crate::text::lines::one_line;

/// Characters shown of a name.
const NAME_CHARS: usize = 80;

/// Tells the model which tools came and went since it last heard of them.
pub fn tool_list_changed(removed: &[String], added: &[String]) -> String {
    format!(
        "[SYSTEM] Your tools have changed since your last step ({}). Call only those that you are offered now.",
        tool_changes(removed, added)
    )
}

/// Tells people the same.
pub fn tool_list_changed_notice(removed: &[String], added: &[String]) -> String {
    format!(
        "the tools have changed since the run before, and the model is told: {}",
        tool_changes(removed, added)
    )
}

fn tool_changes(removed: &[String], added: &[String]) -> String {
    let parts = [("no longer offered", removed), ("new", added)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    parts.join("; ")
}

/// One thing that is other than in the run before, as [`settings_changed`] lists it.
pub fn changed_setting(what: &str, now: &str, before: &str) -> String {
    format!("{what} {} (before: {})", one_line(now, NAME_CHARS), one_line(before, NAME_CHARS))
}

/// Tells people what is other than in the run before.
pub fn settings_changed(changes: &[String]) -> String {
    format!("this run is not like the one before: {}", changes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_went_is_named_only_where_there_is_some() {
        let (one, none) = (["a".to_owned(), "b".to_owned()], []);
        assert_eq!(tool_changes(&one, &none), "no longer offered: a, b");
        assert_eq!(tool_changes(&none, &one), "new: a, b");
        assert_eq!(tool_changes(&one, &one), "no longer offered: a, b; new: a, b");
    }
}
