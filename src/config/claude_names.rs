//! Names of Claude Code: its tools with their arguments and those here, and its flags without a counterpart (`config/claude.json`).

use agent_core::message::MCP_PREFIX;
use agent_tools::toolbox::CALL_TOOL;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

const TABLE: &str = include_str!("../../config/claude.json");

/// The table.
#[derive(Debug, Default, Deserialize)]
pub struct ClaudeNames {
    tools: Vec<ToolNames>,
    /// Overrides that have no effect except a warning.
    pub ignored_flags: Overrides,
    /// Overrides that take permission away and have no counterpart.
    pub refused_flags: Overrides,
}

/// Names of flags, without `--`.
#[derive(Debug, Default, Deserialize)]
pub struct Overrides {
    /// Those that are followed by a value.
    pub with_value: Vec<String>,
    /// The others.
    pub without_value: Vec<String>,
}

/// A tool of this program.
#[derive(Debug, Deserialize)]
struct ToolNames {
    ours: String,
    /// The tool there that does the same.
    theirs: Option<String>,
    /// Other names of that tool.
    #[serde(default)]
    aliases: Vec<String>,
    /// Tools there whose refusal refuses this one too.
    #[serde(default)]
    covered_by: Vec<String>,
    /// Names of the arguments there, by those here.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    /// Arguments here that are paths, which are absolute there.
    #[serde(default)]
    paths: Vec<String>,
    /// Arguments here in seconds, which are in milliseconds there.
    #[serde(default)]
    milliseconds: Vec<String>,
    /// Whether it changes files.
    #[serde(default)]
    edits: bool,
}

/// Returns the table.
pub fn names() -> &'static ClaudeNames {
    static NAMES: OnceLock<ClaudeNames> = OnceLock::new();
    // A test checks that the table can be read.
    NAMES.get_or_init(|| serde_json::from_str(TABLE).unwrap_or_default())
}

impl ClaudeNames {
    /// Returns the tools here that the tool `theirs` stands for where it is refused or matched: those that do the same, and
    /// those that could do it too.
    pub fn covered<'a>(&'a self, theirs: &'a str) -> impl Iterator<Item = &'a str> {
        let covers = move |tool: &&ToolNames| {
            let others = tool.aliases.iter().chain(&tool.covered_by);
            tool.theirs.iter().chain(others).any(|name| name == theirs)
        };
        self.tools.iter().filter(covers).map(|tool| tool.ours.as_str())
    }

    /// Returns the tools here that do the same as the tool `theirs`.
    pub fn ours<'a>(&'a self, theirs: &'a str) -> impl Iterator<Item = &'a str> {
        let is_same = move |tool: &&ToolNames| {
            tool.theirs.iter().chain(&tool.aliases).chain([&tool.ours]).any(|name| name == theirs)
        };
        self.tools.iter().filter(is_same).map(|tool| tool.ours.as_str())
    }

    /// Returns the name there of the tool `ours`; tools without one keep their name.
    pub fn theirs<'a>(&'a self, ours: &'a str) -> &'a str {
        self.tool(ours).and_then(|tool| tool.theirs.as_deref()).unwrap_or(ours)
    }

    /// Returns all names under which a rule there may mean the tool `ours`.
    pub fn meanings<'a>(&'a self, ours: &'a str) -> impl Iterator<Item = &'a str> {
        let known = self.tool(ours).into_iter();
        let names = known.flat_map(|tool| tool.theirs.iter().chain(&tool.aliases).chain(&tool.covered_by));
        names.map(String::as_str).chain([ours])
    }

    /// Checks whether the tool `ours` changes files.
    pub fn edits(&self, ours: &str) -> bool {
        self.tool(ours).is_some_and(|tool| tool.edits)
    }

    /// Returns a call here as a call there: name and arguments. Paths become absolute below `root`.
    pub fn call_there(&self, name: &str, arguments: &Value, root: &Path) -> (String, Value) {
        let called = arguments["name"].as_str().filter(|_| name == CALL_TOOL);
        if let Some(called) = called {
            return (called.to_owned(), arguments.get("input").cloned().unwrap_or_else(|| Map::new().into()));
        }
        let Some((tool, fields)) = self.tool(name).zip(arguments.as_object()) else {
            return (name.to_owned(), arguments.clone());
        };
        let there = fields.iter().map(|(key, value)| {
            let value = match value {
                Value::String(path) if tool.paths.contains(key) => {
                    root.join(path).to_string_lossy().into_owned().into()
                }
                value if tool.milliseconds.contains(key) => {
                    scaled(value, |seconds| seconds.checked_mul(1000))
                }
                value => value.clone(),
            };
            (tool.arguments.get(key).unwrap_or(key).clone(), value)
        });
        (self.theirs(name).to_owned(), Value::Object(there.collect()))
    }

    /// Returns the arguments here of a call of the tool `ours` with these arguments there.
    pub fn arguments_here(&self, ours: &str, arguments: &Value) -> Value {
        let Some((tool, fields)) = self.tool(ours).zip(arguments.as_object()) else {
            return arguments.clone();
        };
        let here = fields.iter().map(|(name, value)| {
            let key =
                tool.arguments.iter().find(|(_, theirs)| *theirs == name).map_or(name, |(ours, _)| ours);
            let is_time = tool.milliseconds.contains(key);
            let value = if is_time { scaled(value, |time| Some(time.div_ceil(1000))) } else { value.clone() };
            (key.clone(), value)
        });
        Value::Object(here.collect())
    }

    fn tool(&self, ours: &str) -> Option<&ToolNames> {
        self.tools.iter().find(|tool| tool.ours == ours)
    }
}

/// Checks whether a name is that of a tool of an MCP server; both programs form it in the same way.
pub fn is_of_server(name: &str) -> bool {
    name.starts_with(MCP_PREFIX)
}

fn scaled(value: &Value, scale: impl Fn(u64) -> Option<u64>) -> Value {
    value.as_u64().and_then(scale).map_or_else(|| value.clone(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_tools::toolbox::known_names;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_table_is_read_and_names_tools_that_there_are() {
        let table: ClaudeNames = serde_json::from_str(TABLE).unwrap();
        let known = known_names();
        for tool in &table.tools {
            assert!(known.contains(&tool.ours), "{}", tool.ours);
            let keys: Vec<&String> = tool.paths.iter().chain(&tool.milliseconds).collect();
            assert!(keys.iter().all(|key| tool.arguments.contains_key(*key)), "{}", tool.ours);
        }
    }

    #[test]
    fn a_refused_tool_takes_those_along_that_could_do_its_work() {
        let covered = |name| names().covered(name).collect::<Vec<_>>();
        assert_eq!(covered("Write"), ["write_file", "apply_patch", "delete_file"]);
        assert_eq!(covered("Grep"), ["grep", "search_code"]);
        assert_eq!(covered("Nothing"), Vec::<&str>::new());
        assert_eq!(names().ours("Write").collect::<Vec<_>>(), ["write_file"]);
        assert!(names().meanings("apply_patch").any(|name| name == "Edit"));
    }

    #[test]
    fn a_call_has_the_names_there_and_back() {
        let ours = json!({"path": "a.txt", "old_str": "a", "new_str": "b", "more": 1});
        let (name, there) = names().call_there("edit_file", &ours, Path::new("/w"));
        let expected = json!({"file_path": "/w/a.txt", "old_string": "a", "new_string": "b", "more": 1});
        assert_eq!((name.as_str(), &there), ("Edit", &expected));
        let back = names().arguments_here("edit_file", &there);
        assert_eq!(back, json!({"path": "/w/a.txt", "old_str": "a", "new_str": "b", "more": 1}));
        let (_, there) =
            names().call_there("run_command", &json!({"command": "x", "timeout": 5}), Path::new("/"));
        assert_eq!(there, json!({"command": "x", "timeout": 5000}));
        let named = json!({"name": "mcp__s__t", "input": {"x": 1}});
        assert_eq!(
            names().call_there(CALL_TOOL, &named, Path::new("/")),
            ("mcp__s__t".to_owned(), json!({"x": 1}))
        );
    }

    proptest! {
        #[test]
        fn arguments_survive_the_way_there_and_back(command in ".*", seconds in 0_u64..1_000_000, odd in "[a-z]{3}") {
            let ours = json!({"command": command, "timeout": seconds, odd: true});
            let (_, there) = names().call_there("run_command", &ours, Path::new("/w"));
            prop_assert_eq!(names().arguments_here("run_command", &there), ours);
        }
    }
}
