//! Tools last offered to the model of a session, folded from its journal, and the changes since then.

use agent_core::event::Event;
use std::collections::BTreeMap;

/// Maximum characters of a tool name.
const NAME_CHARS: usize = 64;

/// Changes of the tools since they were last offered to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChanges {
    /// Tools that are no longer offered.
    pub removed: Vec<String>,
    /// Tools that are newly offered.
    pub added: Vec<String>,
    /// Tools of MCP servers whose definition differs.
    pub changed: Vec<String>,
}

/// Tools by name, with the hash of the definition; empty for those that are not of MCP servers.
type ToolSet = BTreeMap<String, String>;

impl ToolChanges {
    /// Returns the changes from the tools last offered to those of the run that `start` begins; `None` if there are none, or no
    /// tools were offered yet.
    pub fn since(offered: &OfferedTools, start: &Event) -> Option<Self> {
        let (before, now) = (offered.known.as_ref()?, tool_set(start)?);
        let differs = |name: &String, hash: &String| {
            let was = before.get(name).filter(|was| !was.is_empty());
            was.is_some_and(|was| was != hash) && !hash.is_empty()
        };
        let changes = Self {
            removed: plain(before.keys().filter(|name| !now.contains_key(*name))),
            added: plain(now.keys().filter(|name| !before.contains_key(*name))),
            changed: plain(now.iter().filter(|(name, hash)| differs(name, hash)).map(|(name, _)| name)),
        };
        let is_same = changes.removed.is_empty() && changes.added.is_empty() && changes.changed.is_empty();
        (!is_same).then_some(changes)
    }
}

/// State folded from a journal: the tools last offered to the model. Tools of a run that was killed before its first
/// message were never offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedTools {
    begun: Option<ToolSet>,
    known: Option<ToolSet>,
}

impl OfferedTools {
    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStart { .. } => self.begun = tool_set(event),
            Event::UserMessage { .. } | Event::StepStart { .. } if self.begun.is_some() => {
                self.known = self.begun.take();
            }
            _ => {}
        }
    }
}

/// Returns the tools of the run that `start` begins.
fn tool_set(start: &Event) -> Option<ToolSet> {
    let Event::RunStart { tools, mcp_tools, .. } = start else { return None };
    let names = tools.iter().map(|name| (name.clone(), String::new()));
    Some(names.chain(mcp_tools.clone()).collect())
}

/// Returns `names` without those that no tool can have.
fn plain<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let is_plain = |name: &&String| {
        name.len() <= NAME_CHARS
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    };
    names.filter(is_plain).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::MessageOrigin;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// The start of a run with these tools; `NAME=HASH` is one of an MCP server.
    fn run(tools: &str) -> Event {
        let (text, all) = (String::new, names(tools));
        let (of_servers, tools): (Vec<String>, Vec<String>) =
            all.into_iter().partition(|name| name.contains('='));
        let hashes = of_servers.iter().filter_map(|tool| tool.split_once('='));
        Event::RunStart {
            agent: text(),
            model: text(),
            mode: text(),
            tools,
            mcp_tools: hashes.map(|(name, hash)| (name.to_owned(), hash.to_owned())).collect(),
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
        ToolChanges::since(&offered, &run(now)).map(|changes| (changes.removed, changes.added))
    }

    #[test]
    fn o15_tools_that_came_and_went_are_those_since_the_model_last_heard() {
        assert_eq!(since(&[run("a b"), user_message()], "b c"), Some((names("a"), names("c"))));
        assert_eq!(since(&[run("a b"), user_message()], "a b"), None);
        assert_eq!(since(&[run("a"), user_message(), run("b"), user_message()], "b"), None);
    }

    #[test]
    fn o15_a_tool_of_a_server_whose_definition_differs_has_changed() {
        let mut offered = OfferedTools::default();
        for event in [run("a m=1 n=1"), user_message()] {
            offered.apply(&event);
        }
        let changes = ToolChanges::since(&offered, &run("a m=2 n=1")).unwrap();
        assert_eq!((changes.changed, changes.removed, changes.added), (names("m"), names(""), names("")));
        assert_eq!(ToolChanges::since(&offered, &run("a m=1 n=1")), None);
        assert_eq!(ToolChanges::since(&offered, &run("a m n=1")), None, "a journal of an earlier version");
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
