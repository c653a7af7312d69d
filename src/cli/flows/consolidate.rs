//! `agent consolidate`: models answer a question in rounds; a judge, another model, ends them when they agree, and sums up.

use crate::flows::work::debate::{HeldDebate, check_distinct, with_model};
use crate::flows::work::outcome::WorkOutcome;
use crate::flows::work::running::{RunWords, RunningWork, WorkArgs, run_command, usage};
use agent_config::pipeline::Debate;
use agent_core::work::{DEFAULT_ROUNDS, MAX_DEBATE_MODELS, MAX_ROUNDS, WorkStopReason};
use agent_messages as messages;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::CliResult;
use clap::Args;

/// Name of the command in records.
const COMMAND: &str = "consolidate";

/// Arguments of `agent consolidate`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true)]
pub struct ConsolidateArgs {
    /// The models that answer, 2 to 8
    #[arg(long, value_name = "P/M,P/M,…", value_delimiter = ',')]
    pub models: Vec<String>,
    /// The model that judges and sums up; none of those that answer
    #[arg(long, value_name = "P/M")]
    pub judge: Option<String>,
    /// Maximum number of rounds, 1 to 10
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ROUNDS)))]
    pub rounds: u32,
    /// Question and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// Runs `agent consolidate` and returns the exit code.
pub fn consolidate(app: &App, args: ConsolidateArgs, run_words: RunWords) -> u8 {
    let fixed = [("--models", !args.models.is_empty()), ("--judge", args.judge.is_some())];
    let work = args.work.clone();
    run_command(app, COMMAND, &work, &fixed, run_words, || app.block_on(run(app, args)))
}

/// Checks the arguments and holds the debate.
async fn run(app: &App, args: ConsolidateArgs) -> CliResult<WorkOutcome> {
    let ConsolidateArgs { models, judge, rounds, work: args } = args;
    let given = [
        ("--model", args.options.model.is_some()),
        ("--fallback-model", !args.options.fallback_model.is_empty()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(usage(messages::no_work_option(option, "--models")));
    }
    let is_complete =
        (2..=MAX_DEBATE_MODELS).contains(&models.len()) && models.iter().all(|model| !model.is_empty());
    let Some(judge) = judge.filter(|_| is_complete) else {
        return Err(usage(messages::consolidate_needs_models(MAX_DEBATE_MODELS)));
    };
    let task = args.task(app)?;
    let mut debate = Debate { question: String::new(), models, judge, rounds };
    let request = args.options.request();
    check_distinct(app, &request, &debate).await?;
    let settings = app.load(&with_model(&request, &debate.judge).flags())?.settings;
    directories::prepare(&settings)?;
    let work = RunningWork::begin(app, &settings, request, COMMAND, task)?;
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
