//! The list of tools a run has, and their definitions as the model reads them.

use crate::llm::ToolDefinition;
use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::apply_patch::ApplyPatch;
use crate::tools::arguments::nearest;
use crate::tools::command_output::CommandOutput;
use crate::tools::delete_file::DeleteFile;
use crate::tools::edit_file::EditFile;
use crate::tools::find_files::FindFiles;
use crate::tools::grep::Grep;
use crate::tools::list_files::ListFiles;
use crate::tools::read_file::ReadFile;
use crate::tools::run_command::RunCommand;
use crate::tools::search_code::SearchCode;
use crate::tools::stop_command::StopCommand;
use crate::tools::web_fetch::WebFetch;
use crate::tools::write_file::WriteFile;
use crate::tools::{Tool, TypedTool};
use std::cell::OnceCell;

/// The tool that asks subagents; it stands above the loop that they run in (`agent::subagent`).
pub const DISPATCH_SUBAGENT: &str = "dispatch_subagent";

/// What the file tools can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolOptions {
    /// `workspace.allow_delete`: whether `delete_file` does anything.
    pub allow_delete: bool,
    /// `context.max_tool_result_tokens`: tokens of one result, 0 for no limit.
    pub max_result_tokens: usize,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self { allow_delete: false, max_result_tokens: 8000 }
    }
}

/// Tools by name.
pub struct Toolbox {
    tools: Vec<Box<dyn Tool>>,
    /// Made when they are asked for: their schemas are the dearest part of a toolbox, and it is narrowed before.
    definitions: OnceCell<Vec<ToolDefinition>>,
}

impl Toolbox {
    /// Holds `tools`, sorted by name; no two may share one.
    pub fn new(mut tools: Vec<Box<dyn Tool>>) -> Self {
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        Self { tools, definitions: OnceCell::new() }
    }

    /// The file tools and `more`.
    pub fn standard(options: ToolOptions, more: Vec<Box<dyn Tool>>) -> Self {
        let mut tools = file_tools(options);
        tools.extend(more);
        Self::new(tools)
    }

    /// The same and `tool`.
    #[must_use]
    pub fn with(mut self, tool: Option<Box<dyn Tool>>) -> Self {
        self.tools.extend(tool);
        Self::new(self.tools)
    }

    /// The same without the tools that `keep` refuses by name; they can then not be called either.
    #[must_use]
    pub fn restricted(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.tools.retain(|tool| keep(tool.name()));
        Self::new(self.tools)
    }

    /// The tool called `name`.
    ///
    /// # Errors
    /// A text for the model that lists the tools there are.
    pub fn get(&self, name: &str) -> Result<&dyn Tool, String> {
        let found = self.tools.iter().find(|tool| tool.name() == name);
        found.map(AsRef::as_ref).ok_or_else(|| {
            let hint =
                nearest(name, self.names()).map_or_else(String::new, |near| format!(" Did you mean {near}?"));
            let known: Vec<&str> = self.names().collect();
            let shown = one_line(name, QUOTE_CHARS);
            format!("Unknown tool '{shown}'.{hint} Available tools: {}.", known.join(", "))
        })
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// What the model is told about the tools, sorted by name, the same bytes for the whole run.
    pub fn definitions(&self) -> &[ToolDefinition] {
        self.definitions.get_or_init(|| self.tools.iter().map(|tool| definition(tool.as_ref())).collect())
    }
}

/// What the model is told about `tool`.
fn definition(tool: &dyn Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name().to_owned(),
        description: tool.description().into(),
        parameters: tool.parameters().into(),
    }
}

/// The names of all tools that a configuration may speak of, those that are switched off among them.
pub fn known_names() -> Vec<String> {
    let tools = file_tools(ToolOptions::default());
    let others =
        [CommandOutput::NAME, DISPATCH_SUBAGENT, RunCommand::NAME, StopCommand::NAME, WebFetch::NAME];
    tools.iter().map(|tool| tool.name().to_owned()).chain(others.map(str::to_owned)).collect()
}

/// Every tool that works on files: THE list.
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
