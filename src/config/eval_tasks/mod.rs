//! The tasks of `agent eval --tasks DIR`: folders with a `task.yaml`, instances of SWE-bench, or exercises of the polyglot benchmark of Aider.

mod polyglot;
mod swe_bench;
mod task_file;

use crate::text_file::read_text;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Maximum number of tasks.
const MAX_TASKS: usize = 1000;
/// Maximum number of entries of a directory that are looked at.
const MAX_ENTRIES: usize = 10_000;
/// Maximum characters of the name of a task.
const MAX_NAME_CHARS: usize = 200;
/// Maximum bytes of a file that describes a task.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Maximum bytes of a variable: the system takes no longer ones.
const MAX_VARIABLE_BYTES: usize = 120_000;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalTask {
    /// Its name; no other task has it. Its last part between `/` names the directory of a run.
    pub name: String,
    /// The prompt.
    pub prompt: String,
    /// Commands that must exit with 0 after a run.
    pub checks: Vec<String>,
    /// Time limit of a run in seconds.
    pub timeout: Option<u64>,
    /// Maximum number of steps of a run.
    pub max_steps: Option<u32>,
    /// Variables of the checks.
    pub variables: BTreeMap<String, String>,
    /// The files that a run begins with.
    pub files: TaskFiles,
    /// Files that get their first content back before the checks.
    pub tests: Vec<String>,
    /// Patch that is applied before the checks; empty for none.
    pub test_patch: String,
}

impl EvalTask {
    /// Creates a task without checks, limits, variables and tests.
    pub fn new(name: String, prompt: String, files: TaskFiles) -> Self {
        Self {
            name,
            prompt,
            checks: Vec::new(),
            timeout: None,
            max_steps: None,
            variables: BTreeMap::new(),
            files,
            tests: Vec::new(),
            test_patch: String::new(),
        }
    }
}

/// The files that a run begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskFiles {
    /// Those of a directory, without `unseen` ones.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Paths from the directory that a run must not see.
        unseen: BTreeSet<String>,
    },
    /// Those of a commit.
    Commit {
        /// A clone that has the commit.
        clone: PathBuf,
        /// Its id.
        commit: String,
    },
}

/// Reads the tasks below `directory`, in the order of their names. `has_checks` if all tasks have checks besides their own.
///
/// # Errors
/// Everything that cannot be used, each with its file.
pub fn read(directory: &Path, has_checks: bool) -> Result<Vec<EvalTask>, Vec<String>> {
    let mut reader = TaskReader { has_checks, tasks: Vec::new(), errors: Vec::new() };
    let folders = reader.entries(directory, Path::is_dir);
    let instances = reader.entries(directory, swe_bench::is_instance_file);
    if folders.iter().any(|folder| folder.join(task_file::FILE).exists()) {
        for folder in &folders {
            reader.folder(folder);
        }
    } else if let Some(practice) = polyglot::practice(directory) {
        reader.exercises(directory, &practice);
    } else if folders.iter().any(|folder| polyglot::practice(folder).is_some()) {
        for folder in &folders {
            reader.language(folder);
        }
    } else if let [file] = instances.as_slice() {
        reader.instances(directory, file);
    } else {
        reader.error(directory, "contains neither folders with a `task.yaml`, nor one file of SWE-bench instances (.json, .jsonl), nor \
             LANGUAGE/exercises/practice of the polyglot benchmark");
    }
    reader.finish(directory)
}

/// What was read so far.
struct TaskReader {
    has_checks: bool,
    tasks: Vec<EvalTask>,
    errors: Vec<String>,
}

impl TaskReader {
    fn error(&mut self, path: &Path, message: impl AsRef<str>) {
        self.errors.push(format!("{}: {}", path.display(), message.as_ref()));
    }

    /// Returns the entries of a directory, sorted, without hidden ones, that `is_wanted` accepts.
    fn entries(&mut self, directory: &Path, is_wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            Err(error) => {
                self.error(directory, format!("cannot be read: {error}"));
                return Vec::new();
            }
        };
        let paths =
            entries.take(MAX_ENTRIES.saturating_add(1)).filter_map(Result::ok).map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths.collect();
        if paths.len() > MAX_ENTRIES {
            self.error(directory, format!("contains more than {MAX_ENTRIES} files"));
            return Vec::new();
        }
        paths.retain(|path| !name_of(path).starts_with('.') && is_wanted(path));
        paths.sort_unstable();
        paths
    }

    /// Returns the text of a file; `None` if it does not exist or cannot be read, which is an error unless it is `optional`.
    fn text(&mut self, file: &Path, limit: u64, optional: bool) -> Option<String> {
        match read_text(file, limit) {
            Ok(None) if optional => None,
            Ok(None) => {
                self.error(file, "does not exist");
                None
            }
            Ok(text) => text,
            Err(error) => {
                self.error(file, error.to_string());
                None
            }
        }
    }

    /// Adds a task from `file`, which must be complete.
    fn add(&mut self, file: &Path, mut task: EvalTask) {
        let name = &task.name;
        if !is_below(name) || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            let message = format!(
                "{name}: the name of a task is one line of at most {MAX_NAME_CHARS} characters, and no `..`"
            );
            return self.error(file, message);
        }
        if task.prompt.trim().is_empty() {
            return self.error(file, "the task has no text");
        }
        if task.checks.is_empty() && !self.has_checks {
            return self.error(file, "the task has no checks: give `--check CMD`");
        }
        task.variables.insert("AGENT_VAR_TASK".to_owned(), name.clone());
        let long = task.variables.iter().find(|(_, value)| value.len() > MAX_VARIABLE_BYTES);
        if let Some((variable, _)) = long {
            return self.error(file, format!("{name}: {variable} has more than {MAX_VARIABLE_BYTES} bytes"));
        }
        if task.variables.values().any(|value| value.contains('\0')) {
            return self.error(file, format!("{name}: a variable contains a NUL character"));
        }
        self.tasks.push(task);
    }

    fn finish(mut self, directory: &Path) -> Result<Vec<EvalTask>, Vec<String>> {
        let mut names = BTreeSet::new();
        let twice: Vec<String> = self
            .tasks
            .iter()
            .filter(|task| !names.insert(&task.name))
            .map(|task| task.name.clone())
            .collect();
        for name in twice {
            self.error(directory, format!("two tasks have the name {name}"));
        }
        if self.tasks.len() > MAX_TASKS {
            self.error(directory, format!("{} tasks are more than {MAX_TASKS}", self.tasks.len()));
        }
        if self.tasks.is_empty() && self.errors.is_empty() {
            self.error(directory, "contains no task");
        }
        if self.errors.is_empty() { Ok(self.tasks) } else { Err(self.errors) }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks whether a path from a file is one below a directory.
fn is_below(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
#[path = "eval_tasks_tests.rs"]
mod tests;
