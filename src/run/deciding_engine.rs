//! The engine that decides on calls without running one, and its decision on a command that comes from neither a model nor the user: the
//! check of a task in a queue.

use crate::app::App;
use crate::approver::InteractionOptions;
use crate::assemble::{self, EngineParts};
use crate::error::AppResult;
use crate::toolbox::toolbox;
use agent_config::settings::Settings;
use agent_core::decision::Decision;
use agent_engine::Engine;
use agent_engine::skill_set::SkillSet;
use agent_process::launch::Launcher;
use agent_runtime::emitter::Emitter;
use agent_tools::run_command::RunCommand;
use agent_tools::toolbox::Toolbox;
use agent_tools::{Plan, TypedTool};
use std::rc::Rc;

/// Builds an engine that runs no call: it stores nothing and asks no user.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern of the configuration is invalid.
pub fn deciding_engine(
    app: &App,
    settings: &Settings,
    launcher: Rc<Launcher>,
    toolbox: Toolbox,
) -> AppResult<Engine> {
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
    assemble::engine(app, settings, parts, InteractionOptions::for_single_call(None))
}

/// Returns why a model could not run `command` without a question; `None` if it could.
///
/// # Errors
/// Fails when the workspace cannot be opened, or a pattern of the configuration is invalid.
pub fn command_refusal(app: &App, settings: &Settings, command: &str) -> AppResult<Option<String>> {
    if !settings.commands.enabled {
        return Ok(Some("commands are not enabled".to_owned()));
    }
    let launcher = assemble::launcher(app, settings)?;
    let engine = deciding_engine(app, settings, launcher, toolbox(settings))?;
    let plan = Plan { command: Some(command.to_owned()), ..Plan::default() };
    let Ok(tool) = engine.toolbox.get(RunCommand::NAME) else {
        return Ok(Some("the agent has no commands".to_owned()));
    };
    Ok(match engine.judge(tool, None, &plan) {
        Decision::Allow => None,
        Decision::Ask { reason, .. } => Some(format!("it needs approval: {reason}")),
        Decision::Deny { reason, .. } => Some(reason),
    })
}
