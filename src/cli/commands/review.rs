//! `agent review`: has the agent `review` look at the changes since a commit, and prints its findings.

use crate::commands::run_args::RunOptions;
use agent_config::agents::REVIEWER;
use agent_config::flag_values::parse_name;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::message_origin::MessageOrigin;
use agent_core::review::{FindingSeverity, Review};
use agent_core::run_result::{Output, RESULT_SCHEMA_VERSION, RunResult};
use agent_core::stop_reason::Status;
use agent_messages as messages;
use agent_report as report;
use agent_report::OutputFormat;
use agent_report::answer::AnswerShown;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::perform::run_task;
use agent_run::preparation::PromptData;
use agent_run::request::{AnswerSchema, RunRequest, Task};
use agent_run::requested_report::RequestedReport;
use agent_run::review_outcome::ReviewOutcome;
use agent_terminal::Style;
use agent_workspace::git::review_diff::ReviewDiff;
use clap::Args;

/// Arguments of `agent review`.
#[derive(Debug, Args)]
pub struct ReviewArgs {
    /// Commit or branch; reviewed is what was added since the common ancestor. Default: the default branch
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Exit with 2 if a finding has this severity or a higher one
    #[arg(long, value_parser = |text: &str| parse_name::<FindingSeverity>("it is one of", text), value_name = "info|low|medium|high|critical")]
    pub fail_on: Option<FindingSeverity>,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Runs `agent review` and returns the exit code.
pub fn review(app: &App, args: &ReviewArgs) -> u8 {
    let mut request = RunRequest { prompt_is_data: true, ..args.options.request() };
    let prepared = unusable_option(&args.options).map_or(Ok(()), Err).and_then(|()| {
        request.overrides.agent = Some(REVIEWER.to_owned());
        let settings = app.load(&request.effective_overrides())?.settings;
        Ok((changes(app, &settings, args.base.as_deref())?, settings))
    });
    let (diff, settings) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return run_task(app, request, Err(error)),
    };
    let is_diff_complete = diff.too_large.is_empty();
    let outcome = ReviewOutcome { fail_on: args.fail_on, changed: diff.changed, is_diff_complete };
    if outcome.changed.is_empty() {
        return nothing_to_review(app, &request, &settings, &diff.base);
    }
    let language = settings.language;
    if !is_diff_complete {
        app.notify(Style::Warning, &messages::not_in_review_diff(&diff.too_large, language));
    }
    if !diff.not_shown.is_empty() {
        app.notify(Style::Warning, &messages::never_in_review_diff(&diff.not_shown, language));
    }
    let heading = messages::review_changes(&diff.base);
    let data = vec![PromptData { heading, text: diff.text, origin: MessageOrigin::GitDiff }];
    request.schema = Some(AnswerSchema::Review(outcome));
    run_task(app, request, Ok(Task::new(messages::REVIEW_TASK).with_data(data)))
}

/// Returns the error about an option of `run` that a review does not have.
fn unusable_option(options: &RunOptions) -> Option<AppError> {
    let option = match options {
        RunOptions { agent: Some(_), .. } => "--agent",
        RunOptions { output_schema: Some(_), .. } => "--output-schema",
        RunOptions { review_changes: true, .. } => "--review",
        _ => return None,
    };
    Some(AppError::new(FailureKind::Usage, messages::no_review_option(option)))
}

/// Returns the changes to review.
fn changes(app: &App, settings: &Settings, base: Option<&str>) -> AppResult<ReviewDiff> {
    let launcher = assemble::launcher(app, settings)?;
    let (workspace, policy) = assemble::guarded_workspace(app, settings, launcher.tier())?;
    let hidden = |path: &str| policy.is_sensitive(path);
    app.block_on(async {
        let diff = ReviewDiff::new(&launcher, &workspace, base, hidden).await;
        diff.map_err(|why| AppError::new(FailureKind::Config, messages::changes_unknown(&why)))
    })
}

/// Writes the result of a review without changes; no model is called.
fn nothing_to_review(app: &App, request: &RunRequest, settings: &Settings, base: &str) -> u8 {
    let text = messages::nothing_to_review(base, settings.language);
    let review = Review { summary: text.clone(), findings: Vec::new() };
    let result = RunResult {
        schema_version: RESULT_SCHEMA_VERSION,
        status: Status::Success,
        output: serde_json::to_value(review).map_or_else(|_| text.clone().into(), Output::Value),
        output_valid: Some(true),
        ..RunResult::default()
    };
    if let Some(report) = RequestedReport::of(app, request) {
        report.write(app, Some(settings), &result);
    }
    let written = match request.format {
        OutputFormat::Text => app.terminal.print(&text),
        format => report::write_result(&app.terminal, format, &result, &AnswerShown::default()),
    };
    written.map_or(ExitCode::Failed, |_| ExitCode::Success).code()
}
