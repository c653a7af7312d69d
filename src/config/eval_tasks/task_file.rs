//! Folders with a `task.yaml` and the files of a task in `workspace/`.

use super::{EvalTask, MAX_FILE_BYTES, TaskFiles, TaskReader, name_of};
use crate::pipeline::fields::Fields;
use crate::yaml::{self, Content, Node};
use std::collections::BTreeSet;
use std::path::Path;

/// The file that describes a task.
pub(super) const FILE: &str = "task.yaml";
/// The directory with the files that a run begins with.
const WORKSPACE: &str = "workspace";
/// Keys of the file.
const KEYS: [&str; 4] = ["prompt", "checks", "timeout", "max_steps"];
/// Highest limit of steps.
const MAX_STEPS: u32 = 10_000;

impl TaskReader {
    /// Reads the task of a folder.
    pub(super) fn folder(&mut self, folder: &Path) {
        let (file, workspace) = (folder.join(FILE), folder.join(WORKSPACE));
        let Some(text) = self.text(&file, MAX_FILE_BYTES, false) else { return };
        if !workspace.is_dir() {
            self.error(&workspace, "is no directory; it contains the files that the task begins with");
        }
        let mut fields = Fields::default();
        let files = TaskFiles::Directory { path: workspace, unseen: BTreeSet::new() };
        let mut task = EvalTask::new(name_of(folder), String::new(), files);
        match yaml::parse(&text) {
            Ok(node) => read_keys(&mut fields, &mut task, &node),
            Err(error) => {
                let at = (error.line.unwrap_or_default(), error.column.unwrap_or_default().into());
                fields.error_at(at, error.message);
            }
        }
        if fields.errors.is_empty() {
            return self.add(&file, task);
        }
        fields.errors.sort_by_key(|error| (error.line, error.column));
        self.errors.extend(fields.errors.iter().map(|error| format!("{}:{error}", file.display())));
    }
}

fn read_keys(fields: &mut Fields, task: &mut EvalTask, node: &Node) {
    let entries = fields.map(node, "a task");
    for entry in entries {
        match entry.name.as_str() {
            "prompt" => task.prompt = fields.filled("prompt", &entry.node).unwrap_or_default(),
            "checks" => task.checks = fields.list(&entry.node, |fields, item| fields.command("checks", item)),
            "timeout" => task.timeout = fields.seconds("timeout", &entry.node),
            "max_steps" => {
                let steps = fields.whole("max_steps", &entry.node, MAX_STEPS.into(), "steps");
                task.max_steps = steps.and_then(|steps| u32::try_from(steps).ok());
            }
            _ => fields.unknown_key(entry, &KEYS),
        }
    }
    if matches!(node.content, Content::Map(_)) && !entries.iter().any(|entry| entry.name == "prompt") {
        fields.error(node, "a task needs `prompt`");
    }
}
