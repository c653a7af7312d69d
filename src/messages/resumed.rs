//! What is said when a session goes on otherwise than it was: to the model, and to people.

use crate::text::lines::one_line;

/// Characters shown of a name.
const NAME_CHARS: usize = 80;

/// Tells the model which tools came and went since it last heard of them.
pub fn other_tools(removed: &[String], added: &[String]) -> String {
    format!(
        "[SYSTEM] Your tools are not those of your last step. {}. Call only the tools that you are offered now.",
        came_and_went(removed, added)
    )
}

/// Tells people the same.
pub fn other_tools_told(removed: &[String], added: &[String]) -> String {
    format!(
        "the tools are not those of the run before, and the model is told: {}",
        came_and_went(removed, added)
    )
}

fn came_and_went(removed: &[String], added: &[String]) -> String {
    let parts = [("no longer offered", removed), ("new", added)];
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(what, names)| format!("{what}: {}", names.join(", "))).collect();
    parts.join("; ")
}

/// One thing that is other than in the run before, as [`goes_on_otherwise`] lists it.
pub fn other_now(what: &str, now: &str, before: &str) -> String {
    format!("{what} {} (before: {})", one_line(now, NAME_CHARS), one_line(before, NAME_CHARS))
}

/// Tells people what is other than in the run before.
pub fn goes_on_otherwise(changes: &[String]) -> String {
    format!("this run is not like the one before: {}", changes.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_what_went_is_named_only_where_there_is_some() {
        let (one, none) = (["a".to_owned(), "b".to_owned()], []);
        assert_eq!(came_and_went(&one, &none), "no longer offered: a, b");
        assert_eq!(came_and_went(&none, &one), "new: a, b");
        assert_eq!(came_and_went(&one, &one), "no longer offered: a, b; new: a, b");
    }
}
