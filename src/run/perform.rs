//! Performs a request with the listeners that it asks for: the log on standard error, the events on standard output, the log file, telemetry, the client.

use crate::app::App;
use crate::client::ClientSink;
use crate::error::{AppError, AppResult};
use crate::request::RunRequest;
use crate::run::{Run, RunOutcome};
use agent_config::environment::Environment;
use agent_config::telemetry::ExporterKind;
use agent_config::verbosity::Verbosity;
use agent_core::budget_share::BudgetCap;
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::secret::Secret;
use agent_messages as messages;
use agent_redactor::environment_secrets::HEADER_VARIABLES;
use agent_report::answer_shown::AnswerShown;
use agent_report::telemetry::{
    Destination, OtlpEndpoint, Resource, Telemetry, TelemetryOptions, TraceContext,
};
use agent_report::{self as report, EventSinks, ReportOptions};
use agent_text::header_list::headers;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// File of the exporter `json-file` in the state directory.
const SPANS_FILE: &str = "telemetry.jsonl";
/// Address of a collector on this machine.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// Path of traces below the address of a collector.
const TRACES_PATH: &str = "/v1/traces";
/// Variables with the address of a collector: for traces, which is complete, and for everything.
const ENDPOINT_VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// A run that has ended, with what follows the result of a run at the terminal.
pub struct FinishedRun {
    /// How it ended.
    pub outcome: RunOutcome,
    /// Whether the answer was already shown.
    pub shown: AnswerShown,
    /// Its spans, to be exported after the result is written.
    pub telemetry: Option<Telemetry>,
}

/// Performs `request` with the listeners that it asks for.
///
/// # Errors
/// Fails when the configuration, the session or the model is unusable; a run that ends early is no error.
pub async fn perform(app: &App, request: &RunRequest) -> AppResult<FinishedRun> {
    let mut run = Run::prepare(app, request).await?;
    let telemetry = telemetry(app, &mut run);
    let EventSinks { sinks, answer_shown: shown, stream_end } =
        listeners(app, request, &run, telemetry.clone())?;
    for sink in sinks {
        run.add_sink(sink);
    }
    let outcome = run.perform().await;
    // What is queued for standard output comes before the result.
    drop(stream_end);
    Ok(FinishedRun { outcome: outcome?, shown, telemetry })
}

/// Creates the listeners at the terminal, the log file, `telemetry` and the client.
fn listeners(
    app: &App,
    request: &RunRequest,
    run: &Run<'_>,
    telemetry: Option<Telemetry>,
) -> AppResult<EventSinks> {
    let settings = run.settings();
    let report = ReportOptions {
        format: request.format,
        language: settings.language,
        detail: request.detail(settings),
        // The answer of a review is JSON, from which the findings on standard output are made.
        answer_detail: if request.review().is_some() { Verbosity::Debug } else { Verbosity::Human },
        log_file: settings.logging.file.as_ref().map(Into::into),
        dry_run: request.dry_run,
        show_costs: request.show_costs,
        chat: request.chat.clone(),
        session_id: run.resumed_id().map(str::to_owned),
        telemetry,
    };
    let mut built = report::build_sinks(&app.terminal, report)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    let client = request.client.as_ref().map(|client| ClientSink(Rc::clone(&client.listener)));
    built.sinks.extend(client.map(|sink| Box::new(sink) as Box<dyn EventSink>));
    Ok(built)
}

/// Creates the telemetry of a run if it is enabled, and adds notices on variables that are ignored.
fn telemetry(app: &App, run: &mut Run<'_>) -> Option<Telemetry> {
    let section = run.settings().telemetry.clone();
    if !section.enabled {
        return None;
    }
    let environment = &app.environment;
    let destination = match section.exporter {
        ExporterKind::Otlp => Destination::Otlp(OtlpEndpoint {
            url: endpoint(section.endpoint.as_deref(), environment),
            headers: endpoint_headers(environment, run),
        }),
        ExporterKind::JsonFile => {
            let default = || run.settings().directories.state.join(SPANS_FILE);
            Destination::JsonFile(section.file.as_ref().map_or_else(default, PathBuf::from))
        }
        ExporterKind::Console => Destination::Console,
    };
    let parent = environment.get("TRACEPARENT");
    let context = parent.and_then(TraceContext::parse);
    if parent.is_some() && context.is_none() {
        run.warn(messages::TRACEPARENT_INVALID);
    }
    let name = environment.get("OTEL_SERVICE_NAME").unwrap_or("agent");
    Some(Telemetry::new(TelemetryOptions {
        destination,
        resource: Resource { service_name: run.redactor().text(name).into_owned() },
        context: context.unwrap_or_else(|| TraceContext::new(app.source.random(), app.source.random())),
        session_id: run.resumed_id().map(str::to_owned),
        content: section.content,
        redactor: Arc::clone(run.redactor()),
        clock: Rc::clone(&app.source),
    }))
}

/// Returns the address for traces: of the setting, else of the variables, else on this machine.
fn endpoint(setting: Option<&str>, environment: &Environment) -> String {
    let [traces, everything] = ENDPOINT_VARIABLES.map(|name| environment.get(name));
    if let (None, Some(complete)) = (setting, traces) {
        return complete.to_owned();
    }
    let base = setting.or(everything).unwrap_or(DEFAULT_ENDPOINT).trim_end_matches('/');
    if base.ends_with(TRACES_PATH) { base.to_owned() } else { format!("{base}{TRACES_PATH}") }
}

/// Returns the headers of the first variable that is set.
fn endpoint_headers(environment: &Environment, run: &mut Run<'_>) -> Vec<(String, Secret)> {
    let set = HEADER_VARIABLES.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let Some((variable, list)) = set else { return Vec::new() };
    if headers(list).any(|header| header.is_none()) {
        run.warn(messages::telemetry_header_invalid(variable));
    }
    headers(list).flatten().map(|(name, value)| (name, Secret::new(value))).collect()
}

/// Turns a panic, which the panic hook has reported, into an error, so that it gets an exit code and a result document.
///
/// # Errors
/// Fails with the error of `work`, and after a panic.
pub fn catch_panic<T>(work: impl FnOnce() -> AppResult<T>) -> AppResult<T> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let message = "a bug in agent ended the run; what was done stands, and the session can be resumed";
        Err(AppError::new(FailureKind::Internal, message))
    })
}

/// Exports the spans of a run whose result is written.
pub fn export_telemetry(app: &App, telemetry: Option<Telemetry>) {
    let Some(telemetry) = telemetry else { return };
    let export = async {
        telemetry.export(&app.terminal).await;
        Ok(())
    };
    // A panic in it has been reported and does not change the result of the run.
    let _reported = catch_panic(|| app.block_on(export));
}

/// Runs the task within the budget that is left for all runs, exports its telemetry and returns how it ended.
///
/// # Errors
/// Fails when the run cannot start, or nothing is left of the budget; a run that ends early is no error. A panic, which the panic
/// hook has reported, is one.
pub async fn run_for_client(app: &App, request: &RunRequest) -> AppResult<FinishedRun> {
    let Some(total) = &request.total_budget else {
        return run_and_export(app, request).await?;
    };
    if total.is_used_up() {
        return Err(AppError::new(FailureKind::Quota, messages::TOTAL_BUDGET_USED));
    }
    let mut request = request.clone();
    let BudgetCap { usd, tokens } = total.at_most();
    request.bounds.budget = request.bounds.budget.into_iter().chain(usd).min();
    request.bounds.tokens = request.bounds.tokens.into_iter().chain(tokens).min();
    run_and_export(app, &request).await?
}

/// Runs the task and exports its telemetry. The outer error is a panic, the inner one a run that cannot start.
async fn run_and_export(app: &App, request: &RunRequest) -> AppResult<AppResult<FinishedRun>> {
    let run = async {
        let mut finished = Box::pin(perform(app, request)).await?;
        if let Some(telemetry) = finished.telemetry.take() {
            telemetry.export(&app.terminal).await;
        }
        Ok(finished)
    };
    AssertUnwindSafe(run)
        .catch_unwind()
        .await
        .map_err(|_| AppError::new(FailureKind::Internal, "a bug in agent ended the run"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::ExitCode;
    use std::collections::BTreeMap;
    use std::path::Path;

    #[test]
    fn o24_the_setting_precedes_the_variables_and_these_the_address_on_this_machine() {
        let [traces, everything] = ENDPOINT_VARIABLES;
        let of = |setting, variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let variables: BTreeMap<_, _> = variables.collect();
            endpoint(setting, &Environment::from_variables(variables, Path::new("/")))
        };
        assert_eq!(of(None, &[]), "http://localhost:4318/v1/traces");
        assert_eq!(of(None, &[(everything, "https://c/otlp/")]), "https://c/otlp/v1/traces");
        assert_eq!(of(None, &[(everything, "https://c"), (traces, "https://t/x")]), "https://t/x");
        assert_eq!(of(Some("http://s:1"), &[(traces, "https://t/x")]), "http://s:1/v1/traces");
        assert_eq!(of(Some("http://s:1/v1/traces"), &[]), "http://s:1/v1/traces");
    }

    #[test]
    fn a_panic_is_an_internal_error_that_exits_1() {
        let error = catch_panic::<()>(|| panic!("a bug")).unwrap_err();
        assert_eq!(error.exit_code(), ExitCode::Failed);
    }
}
