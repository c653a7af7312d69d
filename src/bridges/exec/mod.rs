//! `agent exec`: a run in place of `codex exec`, whose command line it takes and whose events it prints.

pub mod args;
mod codex_config;
mod options;
mod stream;

use agent_core::event::Record;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_run::app::App;
use agent_run::client::RunClient;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::exit_code;
use agent_run::perform::FinishedRun;
use agent_run::perform::run_task;
use agent_run::perform::{catch_panic, perform};
use agent_run::prompt::read_prompt;
use agent_run::request::{RunRequest, Task};
use agent_run::telemetry::export_telemetry;
use agent_runtime::interrupt::SignalHandlers;
use agent_terminal::{Style, when_reader_is_gone};
use args::ExecArgs;
use options::run_request;
use std::rc::Rc;
use stream::CodexStream;

/// A run that can start.
struct PreparedRun {
    request: RunRequest,
    /// The session that it resumes.
    thread: Option<String>,
    warnings: Vec<String>,
}

/// Runs `agent exec` and returns the exit code.
pub fn exec(app: &App, args: &ExecArgs) -> u8 {
    let prepared = prepare(app, args);
    if args.json {
        return run_with_events(app, prepared);
    }
    match prepared {
        Ok(PreparedRun { request, warnings, .. }) => {
            for warning in &warnings {
                app.notify(Style::Warning, warning);
            }
            let task = request.task.clone();
            run_task(app, request, Ok(task))
        }
        Err(error) => run_task(app, RunRequest::default(), Err(error)),
    }
}

fn prepare(app: &App, args: &ExecArgs) -> AppResult<PreparedRun> {
    let (thread, prompt) = words(&args.words)?;
    let (mut request, warnings) = run_request(app, args)?;
    request.prompt_is_data = prompt.as_deref().is_none_or(|prompt| prompt == "-");
    let prompt = read_prompt(&app.terminal, prompt)?;
    request.task = match &thread {
        Some(id) => Task::resume(id, prompt),
        None => Task::new(prompt),
    };
    let warnings = warnings.iter().map(|warning| app.redact(warning)).collect();
    Ok(PreparedRun { request, thread, warnings })
}

/// Returns the session to resume, and the prompt.
fn words(words: &[String]) -> AppResult<(Option<String>, Option<String>)> {
    match words {
        [] => Ok((None, None)),
        [resume, id] if resume == "resume" => Ok((Some(id.clone()), None)),
        [resume, id, prompt] if resume == "resume" => Ok((Some(id.clone()), Some(prompt.clone()))),
        [prompt] if prompt != "resume" => Ok((None, Some(prompt.clone()))),
        _ => Err(AppError::new(FailureKind::Usage, "use `agent exec TASK` or `agent exec resume ID [TASK]`")),
    }
}

/// Runs the task, writes Codex's events and returns the exit code.
fn run_with_events(app: &App, prepared: AppResult<PreparedRun>) -> u8 {
    let (stream, end) = CodexStream::start(&app.terminal);
    let stream = Rc::new(stream);
    let done = prepared.and_then(|PreparedRun { mut request, thread, warnings }| {
        stream.begin(thread, warnings);
        let listener = Rc::clone(&stream);
        catch_panic(|| {
            app.block_on(async {
                let interrupt = app.interrupt()?.arm(SignalHandlers::silent());
                let when_gone = interrupt.clone();
                when_reader_is_gone(move || when_gone.cancel());
                // The receiver is dropped: questions get no answer, so that calls that need one are refused.
                let (client, _) = RunClient::new(interrupt);
                let listener = Rc::new(move |record: &Record| listener.event(&record.event));
                request.client = Some(RunClient { listener, ..client });
                Box::pin(perform(app, &request)).await
            })
        })
    });
    match done {
        Ok(finished) => {
            let FinishedRun { outcome, telemetry, .. } = finished;
            stream.finish(&outcome.result, outcome.settings.language);
            drop(end);
            export_telemetry(app, telemetry);
            exit_code(&outcome.result, None)
        }
        Err(error) => {
            app.report_error(&error);
            stream.finish(&app.not_started(&error), Language::En);
            drop(end);
            error.exit_code().code()
        }
    }
}
