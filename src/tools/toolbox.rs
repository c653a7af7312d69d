//! The set of tools of a run, and their definitions for the model.

use crate::apply_patch::ApplyPatch;
use crate::arguments::nearest;
use crate::ask_user::AskUser;
use crate::command_output::CommandOutput;
use crate::delete_file::DeleteFile;
use crate::edit_file::EditFile;
use crate::find_files::FindFiles;
use crate::grep::Grep;
use crate::list_files::ListFiles;
use crate::read_file::ReadFile;
use crate::remember::{Forget, Remember};
use crate::run_command::RunCommand;
use crate::search_code::SearchCode;
use crate::stop_command::StopCommand;
use crate::todo::Todo;
use crate::use_skill::UseSkill;
use crate::web_fetch::WebFetch;
use crate::web_search::WebSearch;
use crate::write_file::WriteFile;
use crate::{Tool, TypedTool};
use agent_llm::ToolDefinition;
use agent_messages as messages;
use agent_text::lines::{QUOTE_CHARS, one_line};
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Name of the tool that starts subagents, which is implemented in `agent_session::subagent::tool`.
pub const DISPATCH_SUBAGENT: &str = "dispatch_subagent";

/// Name of the tool that finds tools of MCP servers.
pub const TOOL_SEARCH: &str = "tool_search";

/// Name of the tool that calls a tool by its name.
pub const CALL_TOOL: &str = "call_tool";

/// Names of the tools that change the contents of files.
pub const EDIT_TOOLS: [&str; 3] = [EditFile::NAME, WriteFile::NAME, ApplyPatch::NAME];

/// Settings of the file tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolOptions {
    /// `workspace.allow_delete`: whether files may be deleted.
    pub allow_delete: bool,
    /// `context.max_tool_result_tokens`: maximum tokens of one result, 0 for no limit.
    pub max_result_tokens: usize,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self { allow_delete: false, max_result_tokens: 8000 }
    }
}

/// Tools by name.
#[derive(Default)]
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    /// Names of the tools that requests do not list.
    unlisted: BTreeSet<String>,
    /// Built on first use: schemas are expensive, and the toolbox is usually restricted before.
    definitions: OnceCell<Vec<ToolDefinition>>,
}

impl Toolbox {
    /// Creates a toolbox of `tools`, sorted by name. Names must be unique.
    pub fn new(mut tools: Vec<Box<dyn Tool>>) -> Self {
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        Self { tools, unlisted: BTreeSet::new(), definitions: OnceCell::new() }
    }

    /// Creates a toolbox of the file tools and `more`.
    pub fn standard(options: ToolOptions, more: Vec<Box<dyn Tool>>) -> Self {
        let mut tools = file_tools(options);
        tools.extend(more);
        Self::new(tools)
    }

    /// Adds `tool`, if there is one.
    #[must_use]
    pub fn with(mut self, tool: Option<Box<dyn Tool>>) -> Self {
        self.tools.extend(tool);
        Self { unlisted: self.unlisted, ..Self::new(self.tools) }
    }

    /// Adds `tools`, which requests do not list; [`CALL_TOOL`] calls them.
    #[must_use]
    pub fn with_unlisted(mut self, tools: Vec<Box<dyn Tool>>) -> Self {
        let names = tools.iter().map(|tool| tool.name().to_owned()).collect();
        self.tools.extend(tools);
        Self { unlisted: names, ..Self::new(self.tools) }
    }

    /// Returns the tool that a call of [`CALL_TOOL`] with `args` names, and its arguments.
    ///
    /// # Errors
    /// A message for the model when the arguments are invalid, or there is no such tool.
    pub fn called_by_name(&self, call_tool: &dyn Tool, args: &Value) -> Result<(&dyn Tool, Value), String> {
        call_tool.plan(args)?;
        let (name, input) = named_tool(args);
        if !self.unlisted.contains(name) {
            let shown = one_line(name, QUOTE_CHARS);
            return Err(format!("There is no tool '{shown}' to call: find its name with {TOOL_SEARCH}."));
        }
        self.get(name).map(|tool| (tool, input))
    }

    /// Removes the tools whose name `keep` rejects; calls of them fail then.
    #[must_use]
    pub fn restricted(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.tools.retain(|tool| keep(tool.name()));
        Self { unlisted: self.unlisted, ..Self::new(self.tools) }
    }

    /// Returns the tool with this name.
    ///
    /// # Errors
    /// A message for the model that lists the available tools.
    pub fn get(&self, name: &str) -> Result<&dyn Tool, String> {
        let found = self.tools.iter().find(|tool| tool.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| {
            if name == AskUser::NAME {
                return messages::NOBODY_TO_ASK.to_owned();
            }
            let hint =
                nearest(name, self.names()).map_or_else(String::new, |near| format!(" Did you mean {near}?"));
            let known: Vec<&str> = self.listed().map(Tool::name).collect();
            let shown = one_line(name, QUOTE_CHARS);
            format!("Unknown tool '{shown}'.{hint} Available tools: {}.", known.join(", "))
        })
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Returns the tools that requests list, sorted.
    fn listed(&self) -> impl Iterator<Item = &dyn Tool> {
        self.tools.iter().map(AsRef::as_ref).filter(|tool| !self.unlisted.contains(tool.name()))
    }

    /// Returns the definitions sent to the model, sorted by name; the same bytes for the whole run.
    pub fn definitions(&self) -> &[ToolDefinition] {
        self.definitions.get_or_init(|| self.listed().map(definition).collect())
    }
}

/// Returns the name and the arguments of the tool that a call of [`CALL_TOOL`] with `args` names; the name is empty without one.
pub fn named_tool(args: &Value) -> (&str, Value) {
    let name = args.get("name").and_then(Value::as_str).unwrap_or_default();
    (name, args.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new())))
}

/// Returns the definition of `tool` sent to the model.
fn definition(tool: &dyn Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name().to_owned(),
        description: tool.description().into(),
        parameters: tool.parameters().into(),
    }
}

/// Names of the tools that the program `agent-fleet` adds to the runs of the agents of a Hub.
const HUB_TOOLS: [&str; 3] = ["hub_get_thread", "hub_post", "hub_search"];

/// Returns the names of all tools that a configuration can contain, including disabled ones.
pub fn known_names() -> Vec<String> {
    let tools = file_tools(ToolOptions::default());
    let others = [
        AskUser::NAME,
        CommandOutput::NAME,
        DISPATCH_SUBAGENT,
        Forget::NAME,
        Remember::NAME,
        RunCommand::NAME,
        StopCommand::NAME,
        Todo::NAME,
        UseSkill::NAME,
        WebFetch::NAME,
        WebSearch::NAME,
    ];
    let own = tools.iter().map(|tool| tool.name());
    own.chain(others).chain(HUB_TOOLS).map(str::to_owned).collect()
}

/// Names of the tools whose results may be kept for later sessions: the others change something, or their results mean something only
/// in their session.
pub const KEEPABLE: [&str; 8] = [
    ReadFile::NAME,
    ListFiles::NAME,
    FindFiles::NAME,
    SearchCode::NAME,
    Grep::NAME,
    RunCommand::NAME,
    WebFetch::NAME,
    WebSearch::NAME,
];

/// Creates every file tool. A new file tool is added here.
fn file_tools(options: ToolOptions) -> Vec<Box<dyn Tool>> {
    vec![
        Box::new(ReadFile { max_result_tokens: options.max_result_tokens }),
        Box::new(WriteFile),
        Box::new(EditFile),
        Box::new(ApplyPatch { allow_delete: options.allow_delete }),
        Box::new(DeleteFile { allow_delete: options.allow_delete }),
        Box::new(ListFiles),
        Box::new(FindFiles),
        Box::new(SearchCode),
        Box::new(Grep),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_two_tools_share_a_name() {
        let tools = file_tools(ToolOptions::default());
        let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tools.len());
    }

    #[test]
    fn t21_an_unknown_tool_is_answered_with_the_names_there_are() {
        let toolbox = Toolbox::standard(ToolOptions::default(), Vec::new());
        let text = toolbox.get("readfile").err().unwrap();
        assert!(
            text.starts_with(
                "Unknown tool 'readfile'. Did you mean read_file? Available tools: apply_patch, "
            )
        );
        assert!(toolbox.get("grep").is_ok());
    }

    #[test]
    fn t23_a_tool_that_was_taken_away_is_not_there() {
        let toolbox = Toolbox::standard(ToolOptions::default(), Vec::new())
            .restricted(|name| !name.starts_with("write"));
        assert!(toolbox.get("write_file").is_err());
        assert!(toolbox.definitions().iter().all(|tool| tool.name != "write_file"));
    }

    #[test]
    fn k12_definitions_are_sorted_and_small() {
        let toolbox = Toolbox::standard(ToolOptions::default(), Vec::new());
        let definitions = toolbox.definitions();
        assert!(definitions.is_sorted_by_key(|tool| &tool.name));
        let size: usize = definitions
            .iter()
            .map(|tool| json!([tool.name, tool.description, tool.parameters]).to_string().len())
            .sum();
        assert!(size < 5000, "{size} bytes of at most 12 KB for the whole first request");
    }

    #[test]
    fn no_piece_of_code_in_a_description_is_broken_over_lines() {
        let toolbox = Toolbox::standard(ToolOptions::default(), Vec::new());
        for tool in toolbox.definitions() {
            let texts = format!("{}\\n{}", tool.description.json(), tool.parameters.json());
            for line in texts.split("\\n") {
                assert!(line.matches('`').count().is_multiple_of(2), "{}: {line}", tool.name);
            }
        }
    }
}
