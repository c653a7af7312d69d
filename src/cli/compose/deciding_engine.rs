//! The engine that decides on calls without running one, and its decision on a command that comes from neither a model nor the user: the
//! check of a task in a queue.

use crate::cli::compose::app::App;
use crate::cli::compose::approver::InteractionOptions;
use crate::cli::compose::toolbox::toolbox;
use crate::cli::compose::{self, EngineParts};
use crate::cli::error::CliResult;
use crate::config::settings::Settings;
use crate::core::decision::Decision;
use crate::engine::Engine;
use crate::engine::skill_set::SkillSet;
use crate::process::launch::Launcher;
use crate::runtime::emitter::Emitter;
use crate::tools::run_command::RunCommand;
use crate::tools::toolbox::Toolbox;
use crate::tools::{Plan, TypedTool};
use std::rc::Rc;

/// Builds an engine that runs no call: it stores nothing and asks no user.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern of the configuration is invalid.
pub fn deciding_engine(
    app: &App,
    settings: &Settings,
    (launcher, toolbox): (Rc<Launcher>, Toolbox),
) -> CliResult<Engine> {
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, Vec::new());
    let parts = EngineParts {
        launcher,
        emitter: Rc::new(emitter),
        outputs: settings.state.join("calls"),
        toolbox,
        images: None,
        undo_store: None,
        skills: SkillSet::default(),
        kept: None,
    };
    compose::engine(app, settings, parts, InteractionOptions::for_single_call(None))
}

/// Returns why a model could not run `command` without a question; `None` if it could.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern of the configuration is invalid.
pub fn command_refusal(app: &App, settings: &Settings, command: &str) -> CliResult<Option<String>> {
    if !settings.commands.enabled {
        return Ok(Some("commands are not enabled".to_owned()));
    }
    let launcher = compose::launcher(app, settings)?;
    let engine = deciding_engine(app, settings, (launcher, toolbox(settings)))?;
    let plan = Plan { command: Some(command.to_owned()), ..Plan::default() };
    let Ok(tool) = engine.toolbox.get(RunCommand::NAME) else {
        return Ok(Some("the agent has no commands".to_owned()));
    };
    Ok(match engine.judge(tool, None, &plan) {
        Decision::Allow => None,
        Decision::Ask { reason, .. } | Decision::Deny { reason, .. } => Some(reason),
    })
}
