//! The tools that the model of a session knows of, as its journal tells them, and what became of them since.

use crate::event::{Event, Record};

/// Characters of the longest name that is taken for a tool's.
const NAME_CHARS: usize = 64;

/// What became of the tools since the model last heard of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChanges {
    /// Those that it is no longer offered.
    pub removed: Vec<String>,
    /// Those that it was not offered before.
    pub added: Vec<String>,
}

impl ToolChanges {
    /// What is other in `now` than `records` tell; nothing when nothing is, or the model has heard of none yet.
    pub fn since(records: &[Record], now: &[String]) -> Option<Self> {
        let before = offered(records)?;
        let changes = Self { removed: without(before, now), added: without(now, before) };
        (!changes.removed.is_empty() || !changes.added.is_empty()).then_some(changes)
    }
}

/// The tools that the model last heard of. A run that was killed before it said anything has told it of none.
fn offered(records: &[Record]) -> Option<&[String]> {
    let (mut begun, mut known) = (None, None);
    for record in records {
        match &record.event {
            Event::RunStart { tools, .. } => begun = Some(tools.as_slice()),
            Event::UserMessage { .. } | Event::StepStart { .. } => known = begun,
            _ => {}
        }
    }
    known
}

/// The names of `these` that `those` lack; what cannot be a tool's name comes from no run and is not repeated.
fn without(these: &[String], those: &[String]) -> Vec<String> {
    let plain = |name: &&String| {
        name.len() <= NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    these.iter().filter(|name| !those.contains(name)).filter(plain).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Origin, SCHEMA_VERSION};

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

    fn said() -> Event {
        Event::UserMessage { text: String::new(), origin: Origin::Prompt }
    }

    fn since(events: Vec<Event>, now: &str) -> Option<(Vec<String>, Vec<String>)> {
        let record = |event| Record {
            v: SCHEMA_VERSION,
            seq: 0,
            run: "r".into(),
            step: 0,
            wall_ms: 0,
            mono_us: 0,
            event,
        };
        let records: Vec<Record> = events.into_iter().map(record).collect();
        ToolChanges::since(&records, &names(now)).map(|changes| (changes.removed, changes.added))
    }

    #[test]
    fn o15_tools_that_came_and_went_are_those_since_the_model_last_heard() {
        assert_eq!(since(vec![run("a b"), said()], "b c"), Some((names("a"), names("c"))));
        assert_eq!(since(vec![run("a b"), said()], "a b"), None);
        assert_eq!(since(vec![run("a"), said(), run("b"), said()], "b"), None);
    }

    #[test]
    fn o15_a_run_that_was_killed_before_it_said_anything_has_told_nothing() {
        assert_eq!(since(vec![run("a")], "b"), None);
        assert_eq!(since(vec![run("a"), said(), run("b")], "b"), Some((names("a"), names("b"))));
    }

    #[test]
    fn what_is_no_name_of_a_tool_is_not_repeated() {
        let long = "x".repeat(NAME_CHARS + 1);
        assert_eq!(since(vec![run(&format!("a \u{1b}[2J {long}")), said()], "a"), None);
    }
}
