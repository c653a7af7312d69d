//! Measures the code of the workspace: for `agent health`, and before and after a run.

use agent_config::settings::Settings;
use agent_core::event::{Event, NoticeLevel};
use agent_core::health::CodeHealth;
use agent_engine::code_health::{HealthScope, MEASURE_TIME};
use agent_health::project::{MeasuredProject, compare};
use agent_messages as messages;
use agent_runtime::blocking::run_blocking;
use agent_session::Agent;
use agent_workspace::path::RelPath;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A run with a time limit is measured for at most this part of it, before and after its work.
const PART_OF_RUN: u32 = 10;

/// The code before a run.
pub struct MeasuredBefore {
    scope: HealthScope,
    project: MeasuredProject,
    limit: Duration,
}

/// Measures the code within `limit`. Files with the same content as in `known` are not parsed again.
///
/// # Errors
/// A message when the code cannot be measured.
pub async fn measure(
    scope: &HealthScope,
    known: Option<MeasuredProject>,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<MeasuredProject, String> {
    let scope = scope.clone();
    let measured = run_blocking(limit, cancel, move |stop| scope.measure(known.as_ref(), stop)).await;
    measured.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

impl MeasuredBefore {
    /// Measures the code before the work of a run, if the settings request it. A failure is only a notice.
    pub async fn of_run(settings: &Settings, agent: &Agent) -> Option<Self> {
        if !settings.health.enabled {
            return None;
        }
        let limit = settings.timeout.map_or(MEASURE_TIME, |timeout| MEASURE_TIME.min(timeout / PART_OF_RUN));
        let scope = settings.health.scope((*agent.engine.workspace).clone(), RelPath::root());
        let measured = match scope {
            Ok(scope) => {
                let project = measure(&scope, None, limit, &agent.interrupt).await;
                project.map(|project| Self { scope, project, limit })
            }
            Err(error) => Err(error.to_string()),
        };
        measured.map_err(|why| warn(agent, messages::health_failed(&why))).ok()
    }

    /// Measures the code after the work of the run and compares. An interrupted run is not measured.
    pub async fn compare(self, settings: &Settings, agent: &Agent) -> Option<CodeHealth> {
        if agent.interrupt.is_cancelled() {
            warn(agent, messages::health_interrupted(settings.language).to_owned());
            return None;
        }
        let after = measure(&self.scope, Some(self.project.clone()), self.limit, &agent.interrupt).await;
        let compared = after.map(|after| compare(Some(&self.project), &after));
        compared.map_err(|why| warn(agent, messages::health_failed(&why))).ok()
    }
}

fn warn(agent: &Agent, text: String) {
    // A journal that cannot be written ends the run by its own events.
    drop(agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }));
}
