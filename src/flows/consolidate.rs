//! `agent consolidate`: models answer a question in rounds; a judge, another model, ends them when they agree, and sums up.

use crate::work::debate::{HeldDebate, check_distinct, with_model};
use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use crate::work::running::{RunningWork, usage};
use agent_config::pipeline::Debate;
use agent_core::work::{DEFAULT_ROUNDS, MAX_DEBATE_MODELS, WorkStopReason};
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::AppResult;
use serde::{Deserialize, Serialize};

/// What `agent consolidate` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ConsolidateRequest {
    /// The models that answer.
    pub models: Vec<String>,
    /// The model that judges and sums up.
    pub judge: Option<String>,
    /// Maximum number of rounds.
    pub rounds: Option<u32>,
    /// Question and runs.
    pub work: WorkRequest,
}

impl WorkCommand for ConsolidateRequest {
    const NAME: &'static str = "consolidate";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn fixed_option(&self) -> Option<&'static str> {
        let given = [("--models", !self.models.is_empty()), ("--judge", self.judge.is_some())];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        app.block_on(run(app, self))
    }
}

/// Checks the request and holds the debate.
async fn run(app: &App, command: ConsolidateRequest) -> AppResult<WorkOutcome> {
    let ConsolidateRequest { models, judge, rounds, work } = command.clone();
    let overrides = &work.run.overrides;
    let given =
        [("--model", overrides.model.is_some()), ("--fallback-model", !overrides.fallback.is_empty())];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(usage(messages::no_work_option(option, "--models")));
    }
    let is_complete =
        (2..=MAX_DEBATE_MODELS).contains(&models.len()) && models.iter().all(|model| !model.is_empty());
    let Some(judge) = judge.filter(|_| is_complete) else {
        return Err(usage(messages::consolidate_needs_models(MAX_DEBATE_MODELS)));
    };
    let task = work.read_task(app)?;
    let rounds = rounds.unwrap_or(DEFAULT_ROUNDS);
    let mut debate = Debate { question: String::new(), models, judge, rounds };
    check_distinct(app, &work.run, &debate).await?;
    let settings = app.load(&with_model(&work.run, &debate.judge).effective_overrides())?.settings;
    directories::prepare(&settings)?;
    let work = RunningWork::begin(app, &settings, &command, work.run, task)?;
    debate.question = work.record.start().task;
    let limits = &work.limits;
    let held = HeldDebate { work: &work, limits, request: &work.request, prefix: "", debate: &debate };
    let ended = held.hold().await;
    match ended {
        Ok(consolidation) => {
            work.end(Ok(WorkStopReason::Done), |result| result.consolidation = Some(consolidation))
        }
        Err(stop) => work.end(Err(stop), |_| ()),
    }
}
