//! Decides on a command that does not come from a model, but from someone whom the user of this process has not asked: the check of a task
//! in a queue.

use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::core::decision::Decision;
use crate::core::failure::FailureKind;
use crate::engine::command_class::{CommandClass, CommandVerdict, classify, read_targets};
use crate::engine::links::touched_files;
use crate::tools::run_command::RunCommand;
use crate::tools::{Plan, TypedTool};

/// Returns why the policy does not let `command` run where nobody can be asked; `None` if it runs.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern of the configuration is invalid.
pub fn command_refusal(app: &App, settings: &Settings, command: &str) -> CliResult<Option<String>> {
    if !settings.commands.enabled {
        return Ok(Some("commands are not enabled".to_owned()));
    }
    let tier = compose::launcher(app, settings)?.tier();
    let (_, policy) = compose::guarded_workspace(app, settings, tier)?;
    let options = compose::command_options(app, settings);
    let options = options.map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })?;
    let mut plan = Plan { command: Some(command.to_owned()), ..Plan::default() };
    plan.touched_files = touched_files(&plan);
    let mut verdict = classify(command, &options);
    // What it reads may be a link out of the workspace, or a sensitive file.
    if verdict.class < CommandClass::Ask && !read_targets(command).is_empty() {
        verdict = CommandVerdict { class: CommandClass::Ask, is_known: false };
    }
    Ok(match policy.decide(RunCommand::NAME, RunCommand::ACCESS, &plan, Some(&verdict)) {
        Decision::Allow => None,
        Decision::Ask { reason, .. } | Decision::Deny { reason, .. } => Some(reason),
    })
}
