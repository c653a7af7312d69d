//! `agent chain`: agents work on a task one after another; the answer of each one is data for the next.

use crate::flows::work::outcome::WorkOutcome;
use crate::flows::work::running::{
    NextRun, RunWords, RunningWork, Stop, WorkArgs, is_no_success, run_command, usage,
};
use agent_config::flags::Flags;
use agent_core::work::WorkStopReason;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::CliResult;
use agent_run::preparation::PromptData;
use agent_run::request::{RunRequest, Task};
use agent_text::excerpt;
use clap::Args;

/// Name of the command in records.
const COMMAND: &str = "chain";
/// Maximum number of agents.
const MAX_AGENTS: usize = 20;
/// Characters of an answer that the next agent is shown.
const ANSWER_CHARS: usize = 64 * 1024;

/// Arguments of `agent chain`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ChainArgs {
    /// The agents, in order, at most 20
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub agents: Vec<String>,
    /// Task and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Runs `agent chain` and returns the exit code.
pub fn chain(app: &App, args: ChainArgs, run_words: RunWords) -> u8 {
    let fixed = [("--agents", !args.agents.is_empty())];
    let work = args.work.clone();
    run_command(app, COMMAND, &work, &fixed, run_words, || app.block_on(run(app, args)))
}

/// Checks the arguments and runs the agents.
async fn run(app: &App, args: ChainArgs) -> CliResult<WorkOutcome> {
    let ChainArgs { agents, work: args } = args;
    if args.options.agent.is_some() {
        return Err(usage(messages::no_work_option("--agent", "--agents")));
    }
    if agents.is_empty() || agents.len() > MAX_AGENTS {
        return Err(usage(messages::chain_needs_agents(MAX_AGENTS)));
    }
    let task = args.task(app)?;
    let request = args.options.request();
    let mut settings = app.load(&request.flags())?.settings;
    for agent in &agents {
        settings = app.load(&with_agent(&request, agent).flags())?.settings;
    }
    directories::prepare(&settings)?;
    let work = RunningWork::begin(app, &settings, request, COMMAND, task)?;
    let ended = in_turn(&work, &agents).await;
    work.end(ended, |_| ())
}

fn with_agent(request: &RunRequest, agent: &str) -> RunRequest {
    let overrides = Flags { agent: Some(agent.to_owned()), ..request.overrides.clone() };
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
