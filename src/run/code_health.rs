//! The figures on the code before and after a run, which the program `agent-health` measures.

use crate::app::App;
use agent_config::settings::Settings;
use agent_core::event::{Event, NoticeLevel};
use agent_core::health::{CodeHealth, HealthAnswer, HealthRequest};
use agent_messages as messages;
use agent_process::program::{self, Conversation};
use agent_session::Agent;
use std::ffi::OsString;
use std::time::Duration;

/// The program that measures.
pub const HEALTH: &str = "agent-health";
/// Its command.
const COMMAND: &str = "around-run";
/// Time limit of one measurement.
const MEASURE_TIME: Duration = Duration::from_secs(10);
/// A run with a time limit is measured for at most this part of it, before and after its work.
const PART_OF_RUN: u32 = 10;
/// The line that requests the comparison.
const COMPARE: &str = "compare";

/// The program that has measured the code before a run, and waits.
pub struct MeasuredBefore(Conversation);

impl MeasuredBefore {
    /// Measures the code before the work of a run, if the settings request it. A failure is only a notice.
    pub async fn of_run(app: &App, settings: &Settings, agent: &Agent) -> Option<Self> {
        if !settings.health.enabled {
            return None;
        }
        let measured = start(app, settings, agent).await;
        measured.map_err(|why| warn(agent, messages::health_failed(&why))).ok().map(Self)
    }

    /// Measures the code after the work of the run and compares. An interrupted run is not measured.
    pub async fn compare(mut self, settings: &Settings, agent: &Agent) -> Option<CodeHealth> {
        if agent.interrupt.is_cancelled() {
            warn(agent, messages::health_interrupted(settings.language).to_owned());
            return None;
        }
        let answer = ask(&mut self.0, COMPARE).await;
        answer.map_err(|why| warn(agent, messages::health_failed(&why))).ok().flatten()
    }
}

/// Starts the program and waits until it has measured the code.
async fn start(app: &App, settings: &Settings, agent: &Agent) -> Result<Conversation, String> {
    let path = program::find(HEALTH, app.environment.get("PATH"), &settings.workspace);
    let path = path.ok_or_else(|| messages::program_missing("agent run --health", HEALTH, "health"))?;
    let limit = settings.timeout.map_or(MEASURE_TIME, |timeout| MEASURE_TIME.min(timeout / PART_OF_RUN));
    let request = HealthRequest {
        workspace: settings.workspace.clone(),
        include: settings.health.include_patterns.clone(),
        exclude_dirs: settings.health.exclude_dirs.clone(),
        sensitive_files: agent.engine.policy.sensitive_files().to_vec(),
        limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
    };
    let request = serde_json::to_string(&request).map_err(|error| error.to_string())?;
    let arguments = [OsString::from(COMMAND)];
    let mut measuring = Conversation::start(&path, &arguments, app.environment.variables())
        .map_err(|error| messages::program_not_started(&path.to_string_lossy(), error))?;
    ask(&mut measuring, &request).await?;
    Ok(measuring)
}

/// Sends a line and returns the comparison in the answer.
async fn ask(measuring: &mut Conversation, line: &str) -> Result<Option<CodeHealth>, String> {
    let answer = measuring.ask(line).await.map_err(|error| error.to_string())?;
    let HealthAnswer { health, error } =
        serde_json::from_str(&answer).map_err(|_| messages::health_program_ended())?;
    error.map_or(Ok(health), Err)
}

fn warn(agent: &Agent, text: String) {
    // A journal that cannot be written ends the run by its own events.
    drop(agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }));
}
