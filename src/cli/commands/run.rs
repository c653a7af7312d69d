//! `agent run` and `agent resume`: opens the session, runs the agent, and reports the result.

use crate::commands::report::RequestedReport;
use crate::commands::review_outcome::ReviewOutcome;
use crate::commands::run_args::{ResumeArgs, RunArgs, RunOptions};
use agent_core::failure::FailureKind;
use agent_report as report;
use agent_report::OutputFormat;
use agent_report::answer_shown::AnswerShown;
use agent_run::app::App;
use agent_run::error::{CliError, CliResult};
use agent_run::exit_code::{ExitCode, exit_code};
use agent_run::perform::{FinishedRun, catch_panic, export_telemetry, perform};
use agent_run::preparation::Preparation;
use agent_run::prompt::read_prompt;
use agent_run::request::{RunRequest, Task};
use agent_run::run::RunOutcome;

/// Runs `agent run` and returns the exit code.
pub fn run(app: &App, args: RunArgs) -> u8 {
    let prompt_is_data = is_from_stdin(args.prompt.as_deref());
    let history = args.history;
    let preparation =
        Preparation { plan: args.mixed, git_diff: args.context_git_diff, ..Preparation::default() };
    let request = read_prompt(&app.terminal, args.prompt).map(|prompt| {
        let task = Task::New { prompt, history, preparation };
        RunRequest { task, prompt_is_data, ..args.options.request() }
    });
    run_task(app, &args.options, request)
}

/// Runs `agent resume` and returns the exit code.
pub fn resume(app: &App, args: ResumeArgs) -> u8 {
    // With `--last` the prompt may stand in the place of the id.
    let prompt_is_data = [&args.id, &args.prompt].into_iter().any(|text| text.as_deref() == Some("-"));
    let (id, prompt) = match (args.last, args.id, args.prompt) {
        (true, prompt, None) => (None, prompt),
        (true, Some(_), Some(_)) => {
            let error = CliError::new(FailureKind::Usage, "use either an id or `--last`, not both");
            return run_task(app, &args.options, Err(error));
        }
        (false, None, _) => {
            let message = "no session: use `agent resume ID` or `agent resume --last`; `agent sessions list` lists the sessions";
            return run_task(app, &args.options, Err(CliError::new(FailureKind::Usage, message)));
        }
        (_, id, prompt) => (id, prompt),
    };
    let prompt = prompt.map(|prompt| read_prompt(&app.terminal, Some(prompt))).transpose();
    let request = prompt.map(|prompt| {
        let task = Task::Resume { id, prompt, preparation: Preparation::default() };
        RunRequest { task, prompt_is_data, ..args.options.request() }
    });
    run_task(app, &args.options, request)
}

/// Checks whether [`read_prompt`] reads the prompt from standard input.
fn is_from_stdin(prompt: Option<&str>) -> bool {
    prompt.is_none_or(|prompt| prompt == "-")
}

/// Performs the request, writes the result and returns the exit code.
pub fn run_task(app: &App, options: &RunOptions, request: CliResult<RunRequest>) -> u8 {
    run_or_review(app, options, request, None)
}

/// Performs the request, writes the result, whose form and exit code `review` decides if it is one, and returns the exit code.
pub fn run_or_review(
    app: &App,
    options: &RunOptions,
    request: CliResult<RunRequest>,
    review: Option<&ReviewOutcome>,
) -> u8 {
    let format = request.as_ref().map_or(options.format(), |request| request.format);
    let report = RequestedReport::from_options(app, options);
    let done = request.and_then(|request| catch_panic(|| app.block_on(perform(app, &request))));
    let (result, shown, settings, telemetry, code) = match done {
        Ok(FinishedRun { outcome, shown, telemetry }) => {
            let RunOutcome { result, settings, .. } = outcome;
            let code = exit_code(&result, options.exit_code_on_partial);
            let code = review.map_or(code, |review| review.exit_code(app, &settings, &result, code));
            (result, shown, Some(settings), telemetry, code)
        }
        Err(error) => {
            app.report_error(&error);
            (app.not_started(&error), AnswerShown::default(), None, None, error.exit_code().code())
        }
    };
    if let Some(report) = report {
        // A panic in it has been reported and does not change the result of the run.
        let _reported = catch_panic(|| {
            report.write(app, settings.as_ref(), &result);
            Ok(())
        });
    }
    let written = match (review, &settings) {
        (Some(review), Some(settings)) if format == OutputFormat::Text => {
            review.write(app, settings, &result)
        }
        _ => report::write_result(&app.terminal, format, &result, &shown),
    };
    export_telemetry(app, telemetry);
    match written {
        Err(_) if code == 0 => ExitCode::Failed.code(),
        _ => code,
    }
}
