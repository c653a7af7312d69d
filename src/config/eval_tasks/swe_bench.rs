//! Instances of SWE-bench (<https://github.com/SWE-bench/SWE-bench>): a file of instances beside clones of their repositories.

use super::{EvalTask, TaskFiles, TaskReader};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum bytes of the file.
const MAX_BYTES: u64 = 64 << 20;

/// The parts of an instance that are used; `patch`, the solution, is none of them.
#[derive(Deserialize)]
struct Instance {
    #[serde(rename = "instance_id")]
    id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    test_patch: String,
    #[serde(rename = "FAIL_TO_PASS")]
    fail_to_pass: Tests,
    #[serde(rename = "PASS_TO_PASS")]
    pass_to_pass: Tests,
}

/// Names of tests: a list, or as in the published data a list as JSON in a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tests {
    List(Vec<String>),
    Text(String),
}

impl Tests {
    fn names(self) -> Result<Vec<String>, serde_json::Error> {
        match self {
            Self::List(names) => Ok(names),
            Self::Text(text) => serde_json::from_str(&text),
        }
    }
}

/// Checks whether a path is that of a file of instances.
pub(super) fn is_instance_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") && path.is_file()
}

impl TaskReader {
    /// Reads the instances of `file`; the clones are in `directory`.
    pub(super) fn instances(&mut self, directory: &Path, file: &Path) {
        let Some(text) = self.text(file, MAX_BYTES, false) else { return };
        let values: Vec<Result<Value, serde_json::Error>> = if text.trim_start().starts_with('[') {
            match serde_json::from_str::<Vec<Value>>(&text) {
                Ok(values) => values.into_iter().map(Ok).collect(),
                Err(error) => return self.error(file, error.to_string()),
            }
        } else {
            text.lines().filter(|line| !line.trim().is_empty()).map(serde_json::from_str).collect()
        };
        for (number, value) in (1_usize..).zip(values) {
            let name =
                value.as_ref().ok().and_then(|value| value.get("instance_id")?.as_str().map(str::to_owned));
            let name = name.unwrap_or_else(|| format!("instance {number}"));
            match value
                .and_then(serde_json::from_value::<Instance>)
                .map_err(|error| error.to_string())
                .and_then(|instance| task(directory, instance))
            {
                Ok(task) => self.add(file, task),
                Err(why) => self.error(file, format!("{name}: {why}")),
            }
        }
    }
}

fn task(directory: &Path, instance: Instance) -> Result<EvalTask, String> {
    let Instance { id, repo, base_commit, problem_statement, test_patch, fail_to_pass, pass_to_pass } =
        instance;
    if id.contains('/') {
        return Err("an instance_id contains no `/`".to_owned());
    }
    if base_commit.len() < 7 || !base_commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("base_commit is no id of a commit".to_owned());
    }
    let lists = [("FAIL_TO_PASS", fail_to_pass), ("PASS_TO_PASS", pass_to_pass)];
    let variable = |(list, tests): (&str, Tests)| {
        let names = tests.names().map_err(|error| format!("{list}: {error}"))?;
        Ok((format!("AGENT_VAR_{list}"), names.join("\n")))
    };
    let variables: Result<BTreeMap<String, String>, String> = lists.into_iter().map(variable).collect();
    let files = TaskFiles::Commit { clone: clone(directory, &repo)?, commit: base_commit };
    Ok(EvalTask { variables: variables?, test_patch, ..EvalTask::new(id, problem_statement, files) })
}

/// Returns the clone of a repository with the name `OWNER/NAME`.
fn clone(directory: &Path, repository: &str) -> Result<PathBuf, String> {
    if !super::is_below(repository) {
        return Err(format!("{repository} is no name of a repository"));
    }
    let name = repository.rsplit('/').next().unwrap_or(repository);
    let names = [repository.replace('/', "__"), repository.to_owned(), name.to_owned()];
    let mut clones = names.iter().map(|name| directory.join(name));
    clones.find(|clone| clone.join(".git").exists()).ok_or_else(|| {
        format!("there is no clone of {repository}: its directory is called {}", names.join(" or "))
    })
}
