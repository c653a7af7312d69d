//! `agent consolidate`: models answer a question in rounds; a judge, another model, ends them when they agree, and sums up.

use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::work::outcome::WorkOutcome;
use crate::cli::commands::work::running::{
    NextRun, RunWords, RunningWork, Stop, WorkArgs, is_no_success, run_command, usage,
};
use crate::cli::compose;
use crate::cli::compose::app::App;
use crate::cli::compose::directories;
use crate::cli::compose::preparation::PromptData;
use crate::cli::compose::run_client::RunBounds;
use crate::cli::error::CliResult;
use crate::core::failure::FailureKind;
use crate::core::run_result::{Output, RunResult};
use crate::core::work::{Consolidation, WorkStopReason};
use crate::messages;
use crate::terminal::{Style, one_line};
use crate::text::excerpt;
use clap::Args;
use serde::Deserialize;

/// Name of the command in records.
const COMMAND: &str = "consolidate";
/// The agent of all runs, unless another one is chosen; it reads and searches.
const AGENT: &str = "explore";
/// Maximum number of models that answer.
const MAX_MODELS: usize = 8;
/// Characters of an answer that the models are shown.
const ANSWER_CHARS: usize = 16_000;
/// Characters of the judge's reason in the log.
const REASON_CHARS: usize = 300;
/// JSON Schema of a [`Judgement`].
const JUDGEMENT_SCHEMA: &str = r#"{"type": "object", "properties": {"agreed": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["agreed", "reason"], "additionalProperties": false}"#;

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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10))]
    pub rounds: u32,
    /// Question and options.
    #[command(flatten)]
    pub work: WorkArgs,
}

/// What the judge says after a round.
#[derive(Debug, Deserialize)]
struct Judgement {
    agreed: bool,
    reason: String,
}

/// A debate whose arguments are checked.
struct Debate<'a> {
    work: &'a RunningWork<'a>,
    question: String,
    models: Vec<String>,
    judge: String,
    rounds: u32,
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
        (2..=MAX_MODELS).contains(&models.len()) && models.iter().all(|model| !model.is_empty());
    let Some(judge) = judge.filter(|_| is_complete) else {
        return Err(usage(messages::consolidate_needs_models(MAX_MODELS)));
    };
    let task = args.task(app)?;
    check_distinct(app, &args.options, models.iter().chain([&judge])).await?;
    let settings = app.load(&with_model(&args.options, &judge).flags())?.settings;
    directories::prepare(&settings)?;
    let work = RunningWork::begin(app, &settings, args.options, COMMAND, task)?;
    let question = work.record.start().task;
    let debated = Debate { work: &work, question, models, judge, rounds }.hold().await;
    match debated {
        Ok(consolidation) => {
            work.end(Ok(WorkStopReason::Done), |result| result.consolidation = Some(consolidation))
        }
        Err(stop) => work.end(Err(stop), |_| ()),
    }
}

/// Checks that all models can be used, and that no two names stand for the same model.
async fn check_distinct(
    app: &App,
    options: &RunOptions,
    models: impl Iterator<Item = &String>,
) -> CliResult<()> {
    let mut names = Vec::new();
    for model in models {
        let settings = app.load(&with_model(options, model).flags())?.settings;
        let name = compose::connect_model(app, &settings).await?.model().to_owned();
        if names.contains(&name) {
            return Err(usage(messages::same_model_twice(&name)));
        }
        names.push(name);
    }
    Ok(())
}

/// Returns the options of a run that uses `model` alone and changes nothing.
fn with_model(options: &RunOptions, model: &str) -> RunOptions {
    RunOptions {
        model: Some(model.to_owned()),
        agent: options.agent.clone().or_else(|| Some(AGENT.to_owned())),
        no_commands: true,
        bounds: RunBounds { read_only: true, no_fallback: true, ..options.bounds.clone() },
        ..options.clone()
    }
}

impl Debate<'_> {
    async fn hold(&self) -> Result<Consolidation, Stop> {
        let (mut answers, mut round, mut agreed_at) = (Vec::new(), 0, None);
        while agreed_at.is_none() && round < self.rounds {
            round += 1;
            answers = self.answers(round, answers).await?;
            agreed_at = self.do_agree(round, answers.clone()).await?.then_some(round);
        }
        let result = self.work.run(NextRun {
            name: "summary".to_owned(),
            heading: messages::debate_summary(&self.judge, self.work.language),
            options: with_model(&self.work.options, &self.judge),
            prompt: messages::summary_prompt(&self.question),
            data: answers,
            goes_on: is_no_success,
        });
        let summary = result.await?.output.text().into_owned();
        Ok(Consolidation { summary, rounds: round, agreed_at })
    }

    /// Has each model answer, which is shown the answers of the round before; returns the answers.
    async fn answers(&self, round: u32, before: Vec<PromptData>) -> Result<Vec<PromptData>, Stop> {
        let mut answers = Vec::new();
        for model in &self.models {
            // The schema is about the output of the command.
            let options = RunOptions { output_schema: None, ..with_model(&self.work.options, model) };
            let result = self.work.run(NextRun {
                name: format!("round {round}: {model}"),
                heading: messages::debate_round(round, self.rounds, model, self.work.language),
                options,
                prompt: messages::debate_prompt(&self.question, round, self.rounds, model),
                data: before.clone(),
                goes_on: is_no_success,
            });
            let output = result.await?.output;
            let text = excerpt::by_chars(&output.text(), ANSWER_CHARS).into_owned();
            answers.push(PromptData::background(messages::debate_answer(model, round), text));
        }
        Ok(answers)
    }

    /// Asks the judge whether the answers agree. A reply that is no judgement means that they do not.
    async fn do_agree(&self, round: u32, answers: Vec<PromptData>) -> Result<bool, Stop> {
        let schema = Some(JUDGEMENT_SCHEMA.to_owned());
        let options = with_model(&self.work.options, &self.judge);
        let result = self.work.run(NextRun {
            name: format!("round {round}: judge {}", self.judge),
            heading: messages::debate_judge(round, self.rounds, &self.judge, self.work.language),
            options: RunOptions { schema, output_schema: None, ..options },
            prompt: messages::judge_prompt(&self.question),
            data: answers,
            goes_on: |result| is_no_success(result) && !is_no_judgement(result),
        });
        let judgement = match result.await?.output {
            Output::Value(value) => serde_json::from_value::<Judgement>(value).ok(),
            Output::Text(_) => None,
        };
        let agreed = judgement.as_ref().is_some_and(|judgement| judgement.agreed);
        let reason = judgement.map(|judgement| one_line(&judgement.reason, REASON_CHARS));
        self.work.log(Style::Plain, &messages::judgement(agreed, reason.as_deref(), self.work.language));
        Ok(agreed)
    }
}

/// Checks whether the judge answered something else than a judgement, repairs included.
fn is_no_judgement(result: &RunResult) -> bool {
    result.error.as_ref().is_some_and(|error| error.kind == FailureKind::OutputSchema)
}
