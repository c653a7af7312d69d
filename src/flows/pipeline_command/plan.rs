//! The plan of `--dry-run`: what each step would do.

use crate::pipeline_command::PipelineRequest;
use crate::pipeline_command::setup::PipelineSetup;
use crate::work::outcome::WorkOutcome;
use crate::work::request::WorkCommand;
use agent_config::pipeline::variables::replace;
use agent_config::pipeline::{Action, Checkpoint, Step};
use agent_core::stop_reason::Status;
use agent_core::work::{WorkResult, WorkStopReason};
use agent_messages as messages;
use agent_report::answer::AnswerShown;
use agent_terminal::one_line;
use std::fmt::Write as _;

/// Characters of a text in the plan.
const TEXT_CHARS: usize = 200;

/// Returns the plan as the output of a command.
pub fn outcome(setup: &PipelineSetup) -> WorkOutcome {
    let mut text = String::new();
    for (index, step) in setup.pipeline.steps.iter().enumerate() {
        let skipped = vec![("skipped", messages::BEFORE_FROM_STEP.to_owned())];
        let lines = if index < setup.first { skipped } else { step_lines(setup, step) };
        add(&mut text, "", index, step, lines);
        for (at, inner) in step.inner().iter().enumerate().filter(|_| index >= setup.first) {
            add(&mut text, "   ", at, inner, step_lines(setup, inner));
        }
    }
    let result = WorkResult {
        status: Status::Success,
        stop_reason: Some(WorkStopReason::Done),
        output: text,
        ..WorkResult::not_started(PipelineRequest::NAME, None)
    };
    WorkOutcome { result, shown: AnswerShown::default(), language: setup.settings.language }
}

/// Adds a step with its lines, after `indent`.
fn add(text: &mut String, indent: &str, index: usize, step: &Step, lines: Vec<(&str, String)>) {
    let _infallible = writeln!(text, "{indent}{}. {}", index + 1, one_line(&step.name, TEXT_CHARS));
    for (key, value) in lines {
        let _infallible = writeln!(text, "{indent}   {key}: {}", one_line(&value, TEXT_CHARS));
    }
}

fn step_lines<'a>(setup: &PipelineSetup, step: &'a Step) -> Vec<(&'a str, String)> {
    let filled = |text: &str| replace(text, &setup.variables);
    let conditions = [
        ("condition", step.condition.as_deref().map(filled)),
        ("if", step.if_expression.clone()),
        ("if_command", step.if_command.clone()),
    ];
    let mut lines: Vec<(&str, String)> =
        conditions.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    match &step.action {
        Action::Prompt(prompt) => {
            let agent = step.agent.clone().or_else(|| setup.request.overrides.agent.clone());
            lines.push(("agent", agent.unwrap_or_else(|| setup.settings.agent.name.clone())));
            lines.push(("prompt", filled(prompt)));
        }
        Action::Chain { prompt, agents } => {
            lines.push(("chain", agents.join(", ")));
            lines.push(("prompt", filled(prompt)));
        }
        Action::Run(command) => lines.push(("run", command.clone())),
        Action::Parallel(steps) => lines.push(("parallel", format!("{} steps", steps.len()))),
        Action::Consolidate(debate) => {
            lines.push(("question", filled(&debate.question)));
            lines.push(("models", debate.models.join(", ")));
            lines.push(("judge", debate.judge.clone()));
        }
    }
    lines.extend(step.model.clone().map(|model| ("model", model)));
    lines.extend(step.checks.iter().map(|check| ("check", check.clone())));
    lines.extend(step.output_var.clone().map(|name| ("output_var", name)));
    match step.checkpoint {
        Checkpoint::Off => {}
        Checkpoint::Reference => lines.push(("checkpoint", "true".to_owned())),
        Checkpoint::Commit => lines.push(("checkpoint", "commit".to_owned())),
    }
    lines
}
