//! The tool `todo`: the list of steps that the model keeps for a long task.

use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_core::todo::{TodoList, TodoStep};
use agent_text::lines::words;

/// Maximum number of steps, and of characters of a step. The list stays in the conversation, and a person reads it at a glance.
const MAX_STEPS: usize = 30;
const MAX_CHARS: usize = 200;

/// The `todo` tool.
#[derive(Debug)]
pub struct Todo;

impl TypedTool for Todo {
    const NAME: &'static str = TodoList::TOOL;
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Keep the list of steps of a task that has several; the user sees it. Give all steps each time, and update it when a step begins or is done.";
    type Args = TodoList;

    fn plan(&self, list: &TodoList) -> Plan {
        Plan { summary: list.progress(), ..Plan::default() }
    }

    async fn run(&self, list: TodoList, _cx: &ToolContext) -> Result<ToolOutput, String> {
        if list.steps.is_empty() || list.steps.len() > MAX_STEPS {
            return Err(format!("Give 1 to {MAX_STEPS} steps."));
        }
        let fits = |step: &TodoStep| (1..=MAX_CHARS).contains(&words(&step.text).chars().count());
        if !list.steps.iter().all(fits) {
            return Err(format!("Each step has 1 to {MAX_CHARS} characters."));
        }
        Ok(ToolOutput::ok(list.to_string()))
    }
}
