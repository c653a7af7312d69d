//! `agent mcp serve`: this program as an MCP server on standard input and output. Each call of `run` or `reply` is a run.

mod calls;
mod handler;
mod questions;
mod transport;

use crate::client_input::{Input, end_runs};
use crate::client_output::{ClientOutput, FLUSH_TIME};
use agent_config::settings::Settings;
use agent_core::event::{Event, Record};
use agent_core::failure::FailureKind;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_journal::read;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::client::{RunBounds, RunClient};
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::input_images::InputImages;
use agent_run::perform::run_for_client;
use agent_run::request::{RunRequest, Task};
use agent_run::session::session_store;
use agent_runtime::interrupt::SignalHandlers;
use agent_terminal::{Style, sanitize};
use calls::{Call, ReplyCall, RunCall, SessionCall};
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use handler::{Handler, Job, Outcome};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use transport::ClientTransport;

/// Calls that wait for this program to take them.
const MAX_WAITING_CALLS: usize = 64;
/// Calls that are performed side by side.
const MAX_RUNNING_CALLS: usize = 16;

/// Serves until the input ends or a signal arrives; then the runs are interrupted. Each run is `request` with a task.
///
/// # Errors
/// Fails for an invalid configuration, and when the client does not speak MCP.
pub fn serve(app: &App, request: RunRequest) -> AppResult<()> {
    let settings = app.load_and_notify(&request.effective_overrides())?.settings;
    directories::prepare(&settings)?;
    let request = RunRequest {
        // A client selects agents and sessions, but no mode that the server does not have without it.
        bounds: RunBounds { mode: Some(settings.policy.mode), ..request.bounds },
        ..request
    };
    app.block_on(async {
        let interrupt = app.interrupt()?.arm(SignalHandlers::silent());
        let (output, writer) = ClientOutput::start(interrupt.clone());
        let output = Arc::new(output);
        let input = Input { stdin: tokio::io::stdin(), ended: interrupt.clone() };
        let transport = ClientTransport::new(input, Arc::clone(&output));
        let served = serve_client(app, &settings, &request, transport, &interrupt).await;
        if output.is_full() {
            app.notify(Style::Warning, messages::CLIENT_DOES_NOT_READ);
        }
        drop(output);
        let _written = tokio::time::timeout(FLUSH_TIME, writer).await;
        served
    })
}

async fn serve_client(
    app: &App,
    settings: &Settings,
    request: &RunRequest,
    transport: ClientTransport,
    interrupt: &CancellationToken,
) -> AppResult<()> {
    let (jobs, mut waiting) = mpsc::channel(MAX_WAITING_CALLS);
    let handler = Handler::new(jobs, request.overrides.agent.clone());
    let service = tokio::select! {
        service = handler.serve(transport) => match service {
            Ok(service) => service,
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(no_mcp(&error)),
        },
        () = interrupt.cancelled() => return Ok(()),
    };
    let closed = service.waiting().fuse();
    futures_util::pin_mut!(closed);
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            () = interrupt.cancelled() => break,
            _closed = &mut closed => break,
            Some(job) = waiting.recv(), if running.len() < MAX_RUNNING_CALLS => {
                running.push(perform(app, settings, request, job, interrupt.child_token()));
            }
            Some(()) = running.next(), if !running.is_empty() => {}
        }
    }
    end_runs(running, interrupt).await;
    Ok(())
}

fn no_mcp(error: &ServerInitializeError) -> AppError {
    AppError::new(FailureKind::Request, format!("the client does not speak MCP: {error}"))
}

/// Performs a call, and sends its outcome.
async fn perform(
    app: &App,
    settings: &Settings,
    request: &RunRequest,
    job: Job,
    interrupt: CancellationToken,
) {
    let Job { call, cancel, progress, questions, outcome, room: _room } = job;
    let client = RunClient {
        listener: Rc::new(move |record: &Record| {
            if let Some(text) = progress_text(&record.event) {
                // A client that has left needs none.
                let _sent = progress.send(text);
            }
        }),
        questions,
        unsaved: None,
        interrupt: interrupt.clone(),
        takes_deltas: false,
        images: InputImages::default(),
        hooks: None,
        servers: Vec::new(),
    };
    let work = async {
        match call {
            Call::Run(call) => run(app, request, client, call).await,
            Call::Reply(call) => reply(app, request, client, call).await,
            Call::Session(call) => session(app, settings, &call),
        }
    };
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = cancel.cancelled(), if !interrupt.is_cancelled() => interrupt.cancel(),
        }
    };
    let _sent = outcome.send(done);
}

async fn run(app: &App, request: &RunRequest, client: RunClient, call: RunCall) -> Outcome {
    let mut request = request.clone();
    request.overrides.agent = call.agent.or(request.overrides.agent);
    request.bounds.max_steps = call.max_steps.map(NonZeroU32::get);
    request.bounds.timeout = call.timeout_seconds.map(|seconds| Duration::from_secs(seconds.get()));
    request.bounds.budget = call.budget_usd;
    request.client = Some(client);
    request.task = Task::new(call.task);
    perform_task(app, &request).await
}

async fn reply(app: &App, request: &RunRequest, client: RunClient, call: ReplyCall) -> Outcome {
    let task = Task::resume(call.session_id, call.prompt);
    perform_task(app, &RunRequest { client: Some(client), ..request.with_task(task) }).await
}

async fn perform_task(app: &App, request: &RunRequest) -> Outcome {
    match run_for_client(app, request).await {
        Ok(finished) => Outcome::of(&finished.outcome.result),
        Err(error) => failed(app, &error),
    }
}

fn failed(app: &App, error: &AppError) -> Outcome {
    Outcome::of(&app.not_started(error))
}

/// Returns the result of the last run of a session.
fn session(app: &App, settings: &Settings, call: &SessionCall) -> Outcome {
    let mut last = None;
    let found =
        session_store(settings).journal_path(&call.session_id).map_err(AppError::from).and_then(|path| {
            read::for_each_record(&path, |_line, record| {
                match record.map(|record| record.event) {
                    // A damaged record may be the start of a run.
                    None | Some(Event::RunStart { .. }) => last = None,
                    Some(Event::RunEnd { result }) => last = Some(result),
                    _ => {}
                }
                true
            })
            .map_err(|error| {
                let message = format!("the session {} cannot be read: {error}", call.session_id);
                AppError::new(FailureKind::Session, message)
            })
        });
    match (found, last) {
        (Err(error), _) => failed(app, &error),
        (Ok(()), Some(result)) => Outcome::of(&result),
        (Ok(()), None) => Outcome::unfinished(&call.session_id),
    }
}

/// Returns the progress message for an event; `None` if it has none.
fn progress_text(event: &Event) -> Option<String> {
    match event {
        Event::ToolCallStart { call, summary } => {
            Some(sanitize(&format!("{} {summary}", call.name)).into_owned())
        }
        Event::Notice { text, .. } => Some(sanitize(text).into_owned()),
        _ => None,
    }
}

impl Outcome {
    /// Returns the outcome of a run: its document, an error unless the run succeeded.
    fn of(result: &RunResult) -> Self {
        let document = serde_json::to_value(result).unwrap_or_default();
        let answer = result.output.text();
        let is_error = result.status != Status::Success;
        let reason = result.stop_reason.map(|reason| reason.name().to_owned());
        let why = result.error.as_ref().map(|failure| failure.message.clone()).or(reason);
        let text = match (is_error, why) {
            (true, Some(why)) => format!("{} ({why})\n{answer}", result.status.name()),
            _ => answer.into_owned(),
        };
        Self { text, document, is_error }
    }

    /// Returns the outcome for a session whose last run has not ended.
    fn unfinished(session_id: &str) -> Self {
        let text = format!("the last run of session {session_id} has not ended");
        Self { text, document: serde_json::json!({ "session_id": session_id }), is_error: true }
    }
}
