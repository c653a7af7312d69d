//! Reads a file of tasks for `agent submit -f FILE`: a list in YAML, or one JSON object a line.

use crate::error::ConfigError;
use crate::pipeline::fields::Fields;
use crate::yaml::{self, Content, Node};
use agent_core::fleet::{Priority, TaskSpec, check_id};
use agent_engine::policy::Mode;
use agent_text::invisible::escape_json;

/// Maximum bytes of the file: 1,000 tasks of the longest kind.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Highest number of attempts.
pub const MAX_ATTEMPTS: u32 = 1_000;
/// Highest limit of steps.
const MAX_STEPS: u64 = 10_000;
/// Keys of a task.
const KEYS: [&str; 12] = [
    "prompt",
    "id",
    "dir",
    "priority",
    "agent",
    "model",
    "mode",
    "max_steps",
    "timeout",
    "budget",
    "executor",
    "checks",
];
/// The remaining key: the number of attempts.
const ATTEMPTS: &str = "max_attempts";

/// A task of the file.
#[derive(Debug, PartialEq)]
pub struct ListedTask {
    /// Its line, from 1.
    pub line: u64,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it says, and the defaults.
    pub spec: TaskSpec,
}

/// Reads the tasks of `text`; `defaults` has what a task leaves out.
///
/// # Errors
/// All errors, each with line and column.
pub fn parse(text: &str, defaults: &TaskSpec) -> Result<Vec<ListedTask>, Vec<String>> {
    let mut fields = Fields::default();
    let mut tasks = Vec::new();
    if text.trim_start().starts_with('{') {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut own = Fields::default();
            match yaml::parse(&escape_json(line)) {
                Ok(node) => {
                    let found = task(&mut own, &node, defaults);
                    tasks.extend(found.map(|task| ListedTask { line: index as u64 + 1, ..task }));
                }
                Err(error) => unreadable(&mut own, error),
            }
            for error in own.errors {
                fields.error_at((error.line.max(1) + index as u64, error.column), error.message);
            }
        }
    } else {
        match yaml::parse(text) {
            Ok(Node { content: Content::List(items), .. }) => {
                tasks.extend(items.iter().filter_map(|item| task(&mut fields, item, defaults)));
            }
            Ok(node) => fields.error(&node, "the file is a list of tasks, or has one JSON object a line"),
            Err(error) => unreadable(&mut fields, error),
        }
    }
    if fields.errors.is_empty() && tasks.is_empty() {
        fields.error_at((1, 1), "the file has no task");
    }
    if fields.errors.is_empty() {
        Ok(tasks)
    } else {
        Err(fields.errors.iter().map(ToString::to_string).collect())
    }
}

fn unreadable(fields: &mut Fields, error: ConfigError) {
    fields.error_at((error.line.unwrap_or_default(), error.column.unwrap_or_default().into()), error.message);
}

fn task(fields: &mut Fields, node: &Node, defaults: &TaskSpec) -> Option<ListedTask> {
    let (mut id, mut spec) = (None, defaults.clone());
    let entries = fields.map(node, "a task");
    for entry in entries {
        let value = &entry.node;
        match entry.name.as_str() {
            "prompt" => spec.prompt = fields.filled("prompt", value).unwrap_or_default(),
            "id" => {
                id = fields.text("id", value);
                if let Some(Err(why)) = id.as_deref().map(check_id) {
                    fields.error(value, why);
                }
            }
            "dir" => spec.dir = fields.filled("dir", value).unwrap_or_default(),
            "priority" => {
                let priority = fields.text("priority", value).and_then(|name| name.parse::<Priority>().ok());
                spec.priority = priority.unwrap_or_else(|| {
                    fields.error(value, "`priority` is high, normal or low");
                    Priority::Normal
                });
            }
            "agent" => spec.agent = fields.filled("agent", value),
            "model" => spec.model = fields.filled("model", value),
            "mode" => {
                spec.mode = fields.text("mode", value);
                if spec.mode.as_deref().is_none_or(|name| name.parse::<Mode>().is_err()) {
                    fields.error(value, "`mode` is confirm-all, confirm-sensitive, auto or yolo");
                }
            }
            "max_steps" => spec.max_steps = small(fields.whole("max_steps", value, MAX_STEPS, "steps")),
            "timeout" => spec.timeout = fields.seconds("timeout", value),
            "budget" => spec.budget = fields.dollars("budget", value),
            "executor" => spec.executor = fields.filled("executor", value),
            "checks" => spec.checks = fields.list(value, |fields, item| fields.filled("checks", item)),
            ATTEMPTS => {
                let attempts = small(fields.whole(ATTEMPTS, value, MAX_ATTEMPTS.into(), "attempts"));
                spec.max_attempts = attempts.unwrap_or(spec.max_attempts);
            }
            _ => fields.unknown_key(entry, &[KEYS.as_slice(), &[ATTEMPTS]].concat()),
        }
    }
    let Content::Map(_) = node.content else { return None };
    if !entries.iter().any(|entry| entry.name == "prompt") {
        fields.error(node, "a task needs `prompt`");
    }
    Some(ListedTask { line: node.line, id, spec })
}

fn small(number: Option<u64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> TaskSpec {
        TaskSpec { model: Some("m".to_owned()), ..TaskSpec::new("", "/w", 3) }
    }

    #[test]
    fn lines_of_json_and_a_list_in_yaml_are_the_same_tasks() {
        let lines = "{\"prompt\": \"a\", \"id\": \"x\", \"priority\": \"high\", \"checks\": [\"true\"]}\n\n{\"prompt\": \"b\", \"budget\": 0.5}\n";
        let list = "- {prompt: a, id: x, priority: high, checks: [\"true\"]}\n- prompt: b\n  budget: 0.5\n";
        let tasks = parse(lines, &defaults()).unwrap();
        let listed = parse(list, &defaults()).unwrap();
        for (task, line, other) in [(&tasks[0], 1, &listed[0]), (&tasks[1], 3, &listed[1])] {
            assert_eq!((task.line, &task.id, &task.spec), (line, &other.id, &other.spec));
        }
        assert_eq!((listed[0].line, listed[1].line), (1, 2));
        let ListedTask { id, spec, .. } = &tasks[0];
        assert_eq!(
            (id.as_deref(), spec.priority, spec.model.as_deref()),
            (Some("x"), Priority::High, Some("m"))
        );
        assert_eq!((tasks[1].id.as_ref(), tasks[1].spec.budget), (None, Some(0.5)));
        let raw = parse("{\"prompt\": \"a\u{7f}\u{feff}\u{e0041}\"}", &defaults()).unwrap();
        assert_eq!(raw[0].spec.prompt, "a\u{7f}\u{feff}\u{e0041}");
    }

    #[test]
    fn all_errors_have_their_line() {
        let text = "{\"prompt\": \"a\"}\n{\"promt\": \"a\"}\n{\"prompt\": \" \", \"priority\": 3}\nx\n";
        let errors = parse(text, &defaults()).unwrap_err();
        for (line, part) in [
            ("2:", "unknown key `promt`"),
            ("2:", "needs `prompt`"),
            ("3:", "`prompt` is empty"),
            ("3:", "`priority` is"),
            ("4:", "a task is a map"),
        ] {
            assert!(
                errors.iter().any(|error| error.starts_with(line) && error.contains(part)),
                "{part}: {errors:?}"
            );
        }
        for text in [
            "",
            "a: b",
            "- {prompt: a, mode: all}",
            "- {prompt: a, id: ../x}",
            "- {prompt: a, max_attempts: 0}",
        ] {
            assert_eq!(parse(text, &defaults()).unwrap_err().len(), 1, "{text}");
        }
    }
}
