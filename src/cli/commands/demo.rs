//! `agent demo`: runs the real loop on a small project with a scripted model; requires only `/bin/sh`.

use crate::commands::common_args::CommonArgs;
use crate::commands::run;
use crate::commands::run_args::{RunArgs, RunOptions};
use agent_config::environment::Environment;
use agent_core::failure::FailureKind;
use agent_engine::policy::Mode;
use agent_process::scratch_dir::private_temp_dir;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_text::diff;
use std::fs;
use std::io;
use std::path::Path;

const SCRIPT: &str = include_str!("../../../config/demo/script.yaml");
const TOTAL: &str = include_str!("../../../config/demo/total.sh");
const CHECK: &str = include_str!("../../../config/demo/check.sh");
const TASK: &str = "check.sh fails. Find out why, fix it, and show that it passes.";

const INTRODUCTION: &str = "\
This is a demonstration. The model is SCRIPTED: it plays a fixed script, no key and no network are used. Everything
else is real: the loop, the tools, the permission rules, the journal. The project is two shell scripts in a temporary
directory; total.sh has a bug, and check.sh shows it.
";

const NEXT: &str = "\
What to try next, in a repository of yours:
  export OPENAI_API_KEY=…      and  agent run \"explain what this project does\" --model openai/MODEL
  ollama serve                 and  agent run \"…\" --model local/MODEL
  agent run \"…\" --dry-run      to see the changes without making them
  agent help                   for the manual
";

/// Runs the demonstration and shows its changes.
///
/// # Errors
/// Fails when the temporary project cannot be created, or the demonstration does not end as expected.
pub fn demo(app: &App) -> AppResult<()> {
    let mut named = tempfile::Builder::new();
    let dir = private_temp_dir(named.prefix("agent-demo-"), &std::env::temp_dir());
    let dir = dir.map_err(|error| setup_error(&error))?;
    let project = dir.path().join("project");
    let script = dir.path().join("script.yaml");
    create_project(&project, &script).map_err(|error| setup_error(&error))?;
    print(&app.terminal, &format!("{INTRODUCTION}\n$ agent run \"{TASK}\" --mode yolo\n"))?;
    let code = run::run(&with_temporary_home(app, dir.path()), run_args(&project, &script));
    if code != 0 {
        return Err(AppError::new(
            FailureKind::Internal,
            format!("the demonstration ended with exit code {code}"),
        ));
    }
    let after = read(&project.join("total.sh")).map_err(|error| setup_error(&error))?;
    let changed = diff::unified("total.sh", TOTAL, &after);
    print(&app.terminal, &format!("\nWhat it changed:\n\n{changed}\n{NEXT}"))
}

/// Returns the context with its state below `dir`, so that the demonstration leaves no files behind.
fn with_temporary_home(app: &App, dir: &Path) -> App {
    let mut variables = app.environment.variables().clone();
    variables.retain(|name, _| !name.starts_with("AGENT_"));
    variables.insert("AGENT_HOME".to_owned(), dir.join("home").to_string_lossy().into_owned());
    App::new(Environment::from_variables(variables, app.environment.current_dir()))
}

fn run_args(project: &Path, script: &Path) -> RunArgs {
    let options = RunOptions {
        common: CommonArgs { config: None, workspace: Some(project.to_owned()) },
        mode: Some(Mode::Yolo),
        model: Some(format!("scripted:{}", script.display())),
        ..RunOptions::default()
    };
    RunArgs { prompt: Some(TASK.to_owned()), history: None, mixed: false, context_git_diff: None, options }
}

#[expect(clippy::disallowed_methods, reason = "the demonstration makes its own temporary project")]
fn create_project(project: &Path, script: &Path) -> io::Result<()> {
    fs::create_dir(project)?;
    fs::write(project.join("total.sh"), TOTAL)?;
    fs::write(project.join("check.sh"), CHECK)?;
    fs::write(script, SCRIPT)
}

#[expect(clippy::disallowed_methods, reason = "the demonstration's own temporary project")]
fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

fn setup_error(error: &io::Error) -> AppError {
    AppError::new(FailureKind::Internal, format!("cannot set up the demonstration: {error}"))
}
