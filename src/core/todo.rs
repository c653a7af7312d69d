//! The list of steps that the model keeps with the tool `todo`, as text and as data.

use agent_text::lines::words;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::{self, Display, Formatter};

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Finished.
    Done,
}

/// The marks before the steps of a list, by status.
const MARKS: [(StepStatus, &str); 3] =
    [(StepStatus::Pending, "[ ] "), (StepStatus::InProgress, "[>] "), (StepStatus::Done, "[x] ")];

/// A step of a list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoStep {
    /// A few words.
    pub text: String,
    /// How far it is.
    pub status: StepStatus,
}

/// A list of steps; as text a line with how many are done, and a line for each step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoList {
    /// All steps, in order.
    pub steps: Vec<TodoStep>,
}

impl TodoList {
    /// Name of the tool.
    pub const TOOL: &str = "todo";

    /// Reads the steps in a text of a list; other lines count for nothing.
    pub fn parse(text: &str) -> Self {
        let step = |line: &str| {
            let read = |(status, mark): &(StepStatus, &str)| {
                line.strip_prefix(mark).map(|text| TodoStep { text: text.to_owned(), status: *status })
            };
            MARKS.iter().find_map(read)
        };
        Self { steps: text.lines().filter_map(step).collect() }
    }

    /// Returns how many steps are done, in words.
    pub fn progress(&self) -> String {
        let done = self.steps.iter().filter(|step| step.status == StepStatus::Done).count();
        format!("{done} of {} done", self.steps.len())
    }
}

impl Display for TodoList {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.progress())?;
        for step in &self.steps {
            let mark = MARKS.iter().find(|(status, _)| *status == step.status).map_or("", |(_, mark)| mark);
            write!(out, "\n{mark}{}", words(&step.text))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u07_a_list_of_steps_is_read_from_its_text_as_it_was_written() {
        let step = |text: &str, status| TodoStep { text: text.to_owned(), status };
        let list = |last: &str| TodoList {
            steps: vec![
                step("read", StepStatus::Done),
                step("write [x] it", StepStatus::InProgress),
                step(last, StepStatus::Pending),
            ],
        };
        let text = list(" a\n[x] step\tof two lines").to_string();
        assert_eq!(text, "1 of 3 done\n[x] read\n[>] write [x] it\n[ ] a [x] step of two lines");
        assert_eq!(TodoList::parse(&text), list("a [x] step of two lines"));
    }
}
