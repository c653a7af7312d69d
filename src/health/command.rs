//! `agent health`: measures the code of the workspace, now or in comparison with a commit.

use crate::earlier_files::EarlierFiles;
use crate::project::{MeasuredProject, compare};
use crate::scope::{HealthScope, MEASURE_TIME, measure};
use agent_cli::commands::common_args::CommonArgs;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::health::{CodeHealth, HealthDocument};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_report::json;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_runtime::blocking::run_blocking;
use agent_workspace::Workspace;
use clap::Args;
use std::fmt::Display;
use tokio_util::sync::CancellationToken;

/// Arguments of `agent health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// File or directory to measure; without it the whole workspace
    pub path: Option<String>,
    /// Commit or branch; the code is compared with that of the common ancestor
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// One JSON document on standard output
    #[arg(long)]
    pub json: bool,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Prints the figures, and returns the exit code: 2 if they do not cover all files.
///
/// # Errors
/// Fails for an unknown path or commit, and when standard output cannot be written.
pub fn health(app: &App, args: &HealthArgs) -> AppResult<u8> {
    let settings = app.load_and_notify(&args.common.overrides())?.settings;
    let mut health = app.block_on(async {
        let launcher = assemble::launcher(app, &settings)?;
        let (workspace, _policy) = assemble::guarded_workspace(app, &settings, launcher.tier())?;
        let scope = scope(&settings, &workspace, args.path.as_deref())?;
        let after = measure(&scope, None, MEASURE_TIME, &CancellationToken::new()).await.map_err(failed)?;
        match &args.base {
            Some(base) => since(&launcher, &workspace, scope, after, base).await,
            None => Ok(compare(None, &after)),
        }
    })?;
    app.redactor(&settings).redact_code_health(&mut health);
    let is_complete = health.after.complete && health.before.as_ref().is_none_or(|before| before.complete);
    let text = if args.json {
        json::line(&HealthDocument::new(health)).map_err(failed)?
    } else {
        messages::code_health(&health, settings.language).join("\n")
    };
    print(&app.terminal, &text)?;
    Ok(if is_complete { ExitCode::Success } else { ExitCode::Partial }.code())
}

fn scope(settings: &Settings, workspace: &Workspace, path: Option<&str>) -> AppResult<HealthScope> {
    let base = workspace.path(path.unwrap_or(".")).map_err(|error| usage(error.to_string()))?;
    workspace.resolve(&base).map_err(|error| usage(error.to_string()))?;
    let health = &settings.health;
    HealthScope::new(workspace.clone(), base, &health.include_patterns, &health.exclude_dirs).map_err(failed)
}

/// Compares the code with its state in the commit `base`.
async fn since(
    launcher: &Launcher,
    workspace: &Workspace,
    scope: HealthScope,
    after: MeasuredProject,
    base: &str,
) -> AppResult<CodeHealth> {
    let files = EarlierFiles::read(launcher, workspace, base, |path| scope.is_selected(path)).await;
    let EarlierFiles { commit, changed } = files.map_err(failed)?;
    let work = move |stop: &_| {
        let before = scope.before(&after, &changed, stop);
        compare(Some(&before), &after)
    };
    let compared = run_blocking(MEASURE_TIME, &CancellationToken::new(), work).await;
    let health = compared.map_err(failed)?;
    Ok(CodeHealth { base: Some(commit), ..health })
}

fn usage(why: String) -> AppError {
    AppError::new(FailureKind::Usage, why)
}

fn failed(why: impl Display) -> AppError {
    AppError::new(FailureKind::Config, messages::health_failed(&why.to_string()))
}
