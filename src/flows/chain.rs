//! `agent chain`: agents work on a task one after another; the answer of each one is data for the next.

use crate::work::outcome::WorkOutcome;
use crate::work::request::{WorkCommand, WorkRequest};
use crate::work::running::{NextRun, RunningWork, Stop, is_no_success, usage};
use agent_config::overrides::Overrides;
use agent_core::work::WorkStopReason;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::AppResult;
use agent_run::preparation::PromptData;
use agent_run::request::{RunRequest, Task};
use agent_text::excerpt;
use serde::{Deserialize, Serialize};

/// Maximum number of agents.
const MAX_AGENTS: usize = 20;
/// Characters of an answer that the next agent is shown.
const ANSWER_CHARS: usize = 64 * 1024;

/// What `agent chain` is requested with.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ChainRequest {
    /// The agents, in order.
    pub agents: Vec<String>,
    /// Task and runs.
    pub work: WorkRequest,
}

impl WorkCommand for ChainRequest {
    const NAME: &'static str = "chain";

    fn work(&self) -> &WorkRequest {
        &self.work
    }

    fn work_mut(&mut self) -> &mut WorkRequest {
        &mut self.work
    }

    fn fixed_option(&self) -> Option<&'static str> {
        (!self.agents.is_empty()).then_some("--agents")
    }

    fn perform(self, app: &App) -> AppResult<WorkOutcome> {
        app.block_on(run(app, self))
    }
}

/// Checks the request and runs the agents.
async fn run(app: &App, command: ChainRequest) -> AppResult<WorkOutcome> {
    let ChainRequest { agents, work } = &command;
    if work.run.overrides.agent.is_some() {
        return Err(usage(messages::no_work_option("--agent", "--agents")));
    }
    if agents.is_empty() || agents.len() > MAX_AGENTS {
        return Err(usage(messages::chain_needs_agents(MAX_AGENTS)));
    }
    let task = work.read_task(app)?;
    let mut settings = app.load(&work.run.effective_overrides())?.settings;
    for agent in agents {
        settings = app.load(&with_agent(&work.run, agent).effective_overrides())?.settings;
    }
    directories::prepare(&settings)?;
    let work = RunningWork::begin(app, &settings, &command, work.run.clone(), task)?;
    let ended = in_turn(&work, agents).await;
    work.end(ended, |_| ())
}

fn with_agent(request: &RunRequest, agent: &str) -> RunRequest {
    let overrides = Overrides { agent: Some(agent.to_owned()), ..request.overrides.clone() };
    RunRequest { overrides, ..request.clone() }
}

/// Runs the agents one after another.
async fn in_turn(work: &RunningWork<'_>, agents: &[String]) -> Result<WorkStopReason, Stop> {
    let task = work.record.start().task;
    let mut data = Vec::new();
    for (index, agent) in agents.iter().enumerate() {
        let mut request = with_agent(&work.request, agent);
        if index + 1 < agents.len() {
            // The schema is about the output of the command.
            request.schema = None;
        }
        request.task = Task::new(messages::chain_prompt(&task, index, agents)).with_data(data);
        let next = NextRun {
            name: format!("{} {agent}", index + 1),
            heading: messages::chain_step(index + 1, agents.len(), agent, work.language),
            request,
            goes_on: is_no_success,
        };
        let answer = work.run(&work.limits, next).await?.output;
        let text = excerpt::by_chars(&answer.text(), ANSWER_CHARS).into_owned();
        data = vec![PromptData::background(messages::chain_answer(agent), text)];
    }
    Ok(WorkStopReason::Done)
}
