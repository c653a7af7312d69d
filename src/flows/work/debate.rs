//! A debate: models answer a question in rounds; a judge, another model, ends them when they agree, and sums up.

use crate::work::limits::WorkLimits;
use crate::work::running::{NextRun, RunningWork, Stop, is_no_success, usage};
use crate::work::workers::{read_only_request, run_together};
use agent_config::overrides::Overrides;
use agent_config::pipeline::Debate;
use agent_core::failure::FailureKind;
use agent_core::run_result::{Output, RunResult};
use agent_core::work::Consolidation;
use agent_journal::played_turns::PlayedTurns;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::client::RunBounds;
use agent_run::error::AppResult;
use agent_run::preparation::PromptData;
use agent_run::request::{AnswerSchema, RunRequest, Task};
use agent_terminal::{Style, one_line};
use agent_text::excerpt;
use serde::Deserialize;

/// The agent of all runs, unless another one is chosen; it reads and searches.
const AGENT: &str = "explore";
/// Characters of an answer that the models are shown.
const ANSWER_CHARS: usize = 16_000;
/// Characters of the judge's reason in the log.
const REASON_CHARS: usize = 300;
/// JSON Schema of a [`Judgement`].
const JUDGEMENT_SCHEMA: &str = r#"{"type": "object", "properties": {"agreed": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["agreed", "reason"], "additionalProperties": false}"#;

/// What the judge says after a round.
#[derive(Debug, Deserialize)]
struct Judgement {
    agreed: bool,
    reason: String,
}

/// A debate that is part of a command.
pub struct HeldDebate<'a> {
    /// The command.
    pub work: &'a RunningWork<'a>,
    /// The limits of the debate.
    pub limits: &'a WorkLimits,
    /// The request of its runs.
    pub request: &'a RunRequest,
    /// What the names of its runs begin with.
    pub prefix: &'a str,
    /// Question, models and judge, which [`check_distinct`] has checked.
    pub debate: &'a Debate,
}

/// Checks that all models can be used, and that no two names stand for the same model.
///
/// # Errors
/// Fails for a model that cannot be used, and for one that is named twice.
pub async fn check_distinct(app: &App, request: &RunRequest, debate: &Debate) -> AppResult<()> {
    let mut names = Vec::new();
    for model in debate.models.iter().chain([&debate.judge]) {
        let settings = app.load(&with_model(request, model).effective_overrides())?.settings;
        let name = assemble::connect_model(app, &settings, &PlayedTurns::default()).await?.model().to_owned();
        if names.contains(&name) {
            return Err(usage(messages::same_model_twice(&name)));
        }
        names.push(name);
    }
    Ok(())
}

/// Returns the request of a run that uses `model` alone and changes nothing.
pub fn with_model(request: &RunRequest, model: &str) -> RunRequest {
    let request = read_only_request(request.clone());
    RunRequest {
        overrides: Overrides {
            model: Some(model.to_owned()),
            agent: request.overrides.agent.or_else(|| Some(AGENT.to_owned())),
            ..request.overrides
        },
        bounds: RunBounds { no_fallback: true, ..request.bounds },
        ..request
    }
}

impl HeldDebate<'_> {
    /// Holds the debate.
    ///
    /// # Errors
    /// Why it was stopped.
    pub async fn hold(&self) -> Result<Consolidation, Stop> {
        let Debate { question, judge, rounds, .. } = self.debate;
        let (mut answers, mut round, mut agreed_at) = (Vec::new(), 0, None);
        while agreed_at.is_none() && round < *rounds {
            round += 1;
            answers = self.answers(round, &answers).await?;
            agreed_at = self.do_agree(round, answers.clone()).await?.then_some(round);
        }
        let next = NextRun {
            name: self.name("summary"),
            heading: messages::debate_summary(judge, self.work.language),
            request: with_model(self.request, judge)
                .with_task(Task::new(messages::summary_prompt(question)).with_data(answers)),
            goes_on: is_no_success,
        };
        let summary = self.work.run(self.limits, next).await?.output.text().into_owned();
        Ok(Consolidation { summary, rounds: round, agreed_at })
    }

    fn name(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Has all models answer at the same time, each shown the answers of the round before; returns the answers in the order of the models.
    async fn answers(&self, round: u32, before: &[PromptData]) -> Result<Vec<PromptData>, Stop> {
        let Debate { question, models, rounds, .. } = self.debate;
        let next = |model: &String| NextRun {
            name: self.name(&format!("round {round}: {model}")),
            heading: messages::debate_round(round, *rounds, model, self.work.language),
            // A schema is about the summary.
            request: RunRequest {
                schema: None,
                task: Task::new(messages::debate_prompt(question, round, *rounds, model))
                    .with_data(before.to_vec()),
                ..with_model(self.request, model)
            },
            goes_on: is_no_success,
        };
        let results = run_together(self.work, self.limits, models.iter().map(next).collect()).await?;
        let answer = |(model, result): (&String, RunResult)| {
            let text = excerpt::by_chars(&result.output.text(), ANSWER_CHARS).into_owned();
            PromptData::background(messages::debate_answer(model, round), text)
        };
        Ok(models.iter().zip(results).map(answer).collect())
    }

    /// Asks the judge whether the answers agree. A reply that is no judgement means that they do not.
    async fn do_agree(&self, round: u32, answers: Vec<PromptData>) -> Result<bool, Stop> {
        let Debate { question, judge, rounds, .. } = self.debate;
        let next = NextRun {
            name: self.name(&format!("round {round}: judge {judge}")),
            heading: messages::debate_judge(round, *rounds, judge, self.work.language),
            request: RunRequest {
                schema: Some(AnswerSchema::Text(JUDGEMENT_SCHEMA.to_owned())),
                task: Task::new(messages::judge_prompt(question)).with_data(answers),
                ..with_model(self.request, judge)
            },
            goes_on: |result| is_no_success(result) && !is_no_judgement(result),
        };
        let judgement = match self.work.run(self.limits, next).await?.output {
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
