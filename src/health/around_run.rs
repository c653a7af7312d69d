//! Measures the code before and after a run, for the program that performs the run.

use crate::project::compare;
use crate::scope::{HealthScope, MEASURE_TIME, measure};
use agent_core::failure::FailureKind;
use agent_core::health::{CodeHealth, HealthAnswer, HealthRequest};
use agent_engine::policy::Policy;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_workspace::Workspace;
use agent_workspace::path::RelPath;
use std::io::BufRead;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Reads a [`HealthRequest`] from standard input and answers when the code is measured; measures again and answers with the comparison at
/// the next line. The end of standard input ends it.
///
/// # Errors
/// Fails for a request that cannot be read, and when standard output cannot be written.
pub fn around_run(app: &App) -> AppResult<()> {
    let mut lines = std::io::stdin().lock().lines();
    let Some(request) = next(&mut lines)? else { return Ok(()) };
    let request: HealthRequest = serde_json::from_str(&request).map_err(|error| failed(&error))?;
    let limit = Duration::from_millis(request.limit_ms).min(MEASURE_TIME);
    let measured = |known| {
        let scope = scope(&request)?;
        let work = async { Ok(measure(&scope, known, limit, &CancellationToken::new()).await) };
        app.block_on(work).map_err(|error| error.to_string())?
    };
    let before = match measured(None) {
        Ok(before) => before,
        Err(why) => return answer(app, Err(why)),
    };
    answer(app, Ok(None))?;
    if next(&mut lines)?.is_none() {
        return Ok(());
    }
    let compared = measured(Some(before.clone())).map(|after| Some(compare(Some(&before), &after)));
    answer(app, compared)
}

fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> AppResult<Option<String>> {
    lines.next().transpose().map_err(|error| failed(&error))
}

fn scope(request: &HealthRequest) -> Result<HealthScope, String> {
    let workspace = Workspace::open(&request.workspace).map_err(|error| error.to_string())?;
    let root = request.workspace.to_string_lossy();
    let guard = Policy::guard_of_sensitive_files(&request.sensitive_files, &root);
    workspace.protect_files(guard.map_err(|error| error.to_string())?);
    HealthScope::new(workspace, RelPath::root(), &request.include, &request.exclude_dirs)
        .map_err(|error| error.to_string())
}

fn answer(app: &App, health: Result<Option<CodeHealth>, String>) -> AppResult<()> {
    let answer = match health {
        Ok(health) => HealthAnswer { health, error: None },
        Err(error) => HealthAnswer { health: None, error: Some(error) },
    };
    let line = serde_json::to_string(&answer).map_err(|error| failed(&error))?;
    print(&app.terminal, &(line + "\n"))
}

fn failed(why: &dyn std::fmt::Display) -> AppError {
    AppError::new(FailureKind::Internal, why.to_string())
}
