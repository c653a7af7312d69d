//! `agent run` and `agent resume`: opens the session, runs the agent, and reports the result.

use crate::commands::first_model::ask_if_missing;
use crate::commands::run_args::{ResumeArgs, RunArgs};
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::AppError;
use agent_run::perform::run_task;
use agent_run::preparation::Preparation;
use agent_run::prompt::read_prompt;
use agent_run::request::{RunRequest, Task};

/// Runs `agent run` and returns the exit code.
pub fn run(app: &App, args: RunArgs) -> u8 {
    let prompt_is_data = is_from_stdin(args.prompt.as_deref());
    let history = args.history;
    let preparation =
        Preparation { plan: args.mixed, git_diff: args.context_git_diff, ..Preparation::default() };
    let task =
        read_prompt(&app.terminal, args.prompt).map(|prompt| Task::New { prompt, history, preparation });
    let request = RunRequest { prompt_is_data, ..args.options.request() };
    let task = task.and_then(|task| ask_if_missing(app, &request.effective_overrides()).map(|()| task));
    run_task(app, request, task)
}

/// Runs `agent resume` and returns the exit code.
pub fn resume(app: &App, args: ResumeArgs) -> u8 {
    // With `--last` the prompt may stand in the place of the id.
    let prompt_is_data = [&args.id, &args.prompt].into_iter().any(|text| text.as_deref() == Some("-"));
    let request = RunRequest { prompt_is_data, ..args.options.request() };
    let (id, prompt) = match (args.last, args.id, args.prompt) {
        (true, prompt, None) => (None, prompt),
        (true, Some(_), Some(_)) => {
            let error = AppError::new(FailureKind::Usage, "use either an id or `--last`, not both");
            return run_task(app, request, Err(error));
        }
        (false, None, _) => {
            let message = "no session: use `agent resume ID` or `agent resume --last`; `agent sessions list` lists the sessions";
            return run_task(app, request, Err(AppError::new(FailureKind::Usage, message)));
        }
        (_, id, prompt) => (id, prompt),
    };
    let prompt = prompt.map(|prompt| read_prompt(&app.terminal, Some(prompt))).transpose();
    let task = prompt.map(|prompt| Task::Resume { id, prompt, preparation: Preparation::default() });
    run_task(app, request, task)
}

/// Checks whether [`read_prompt`] reads the prompt from standard input.
fn is_from_stdin(prompt: Option<&str>) -> bool {
    prompt.is_none_or(|prompt| prompt == "-")
}
