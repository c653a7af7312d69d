//! Tools last offered to the model of a session, folded from its journal, and the changes since then.

use crate::core::event::Event;
use serde::{Deserialize, Serialize};

/// Maximum characters of a tool name.
const NAME_CHARS: usize = 64;

/// Changes of the tools since they were last offered to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChanges {
    /// Tools that are no longer offered.
    pub removed: Vec<String>,
    /// Tools that are newly offered.
    pub added: Vec<String>,
}

impl ToolChanges {
    /// Returns the changes from the tools last offered to `now`; `None` if there are none, or no tools were offered yet.
    pub fn since(offered: &OfferedTools, now: &[String]) -> Option<Self> {
        let before = offered.known.as_ref()?;
        let changes = Self { removed: without(before, now), added: without(now, before) };
        (!changes.removed.is_empty() || !changes.added.is_empty()).then_some(changes)
    }
}

/// State folded from a journal: the tools last offered to the model. Tools of a run that was killed before its first
/// message were never offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferedTools {
    begun: Option<Vec<String>>,
    known: Option<Vec<String>>,
}

impl OfferedTools {
    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStart { tools, .. } => self.begun = Some(tools.clone()),
            Event::UserMessage { .. } | Event::StepStart { .. } if self.begun.is_some() => {
                self.known = self.begun.take();
            }
            _ => {}
        }
    }
}

/// Returns the names in `these` that are not in `those`; names that no tool can have are dropped.
fn without(these: &[String], those: &[String]) -> Vec<String> {
    let plain = |name: &&String| {
        name.len() <= NAME_CHARS
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    these.iter().filter(|name| !those.contains(name)).filter(plain).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::event::MessageOrigin;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn run(tools: &str) -> Event {
        let (text, tools) = (String::new, names(tools));
        Event::RunStart {
            agent: text(),
            model: text(),
            mode: text(),
            tools,
            max_steps: 1,
            resumed: false,
            sandbox: text(),
            bounds: None,
        }
    }

    fn user_message() -> Event {
        Event::user_message("", MessageOrigin::Prompt)
    }

    fn since(events: &[Event], now: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut offered = OfferedTools::default();
        for event in events {
            offered.apply(event);
        }
        ToolChanges::since(&offered, &names(now)).map(|changes| (changes.removed, changes.added))
    }

    #[test]
    fn o15_tools_that_came_and_went_are_those_since_the_model_last_heard() {
        assert_eq!(since(&[run("a b"), user_message()], "b c"), Some((names("a"), names("c"))));
        assert_eq!(since(&[run("a b"), user_message()], "a b"), None);
        assert_eq!(since(&[run("a"), user_message(), run("b"), user_message()], "b"), None);
    }

    #[test]
    fn o15_a_run_that_was_killed_before_it_said_anything_has_told_nothing() {
        assert_eq!(since(&[run("a")], "b"), None);
        assert_eq!(since(&[run("a"), user_message(), run("b")], "b"), Some((names("a"), names("b"))));
    }

    #[test]
    fn what_is_no_name_of_a_tool_is_not_repeated() {
        let long = "x".repeat(NAME_CHARS + 1);
        assert_eq!(since(&[run(&format!("a \u{1b}[2J {long}")), user_message()], "a"), None);
    }
}
