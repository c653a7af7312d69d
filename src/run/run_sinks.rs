//! Creates the event sinks of a run, among them that of telemetry, from settings and environment.

use crate::app::App;
use crate::client::ClientSink;
use crate::error::{CliError, CliResult};
use crate::request::RunRequest;
use crate::run_setup::RunSetup;
use agent_config::environment::Environment;
use agent_config::telemetry::ExporterKind;
use agent_config::verbosity::Verbosity;
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::secret::Secret;
use agent_messages as messages;
use agent_redactor::environment_secrets::HEADER_VARIABLES;
use agent_report::telemetry::{
    Destination, OtlpEndpoint, Resource, Telemetry, TelemetryOptions, TraceContext,
};
use agent_report::{self as report, EventSinks, ReportOptions};
use agent_text::header_list::headers;
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

/// Creates the sinks for standard output, standard error, the log file and `telemetry`.
///
/// # Errors
/// Fails when the log file cannot be opened.
pub fn build(
    app: &App,
    request: &RunRequest,
    setup: &RunSetup,
    telemetry: Option<Telemetry>,
) -> CliResult<EventSinks> {
    let settings = &setup.settings;
    let report = ReportOptions {
        format: request.format,
        language: settings.language,
        detail: request.detail(settings),
        // The answer of a review is JSON, from which the findings on standard output are made.
        answer_detail: if request.is_review() { Verbosity::Debug } else { Verbosity::Human },
        log_file: settings.logging.file.as_ref().map(Into::into),
        dry_run: request.dry_run,
        show_costs: request.show_costs,
        chat: request.chat.clone(),
        session_id: setup.resumed_session.as_ref().map(|session| session.id.clone()),
        telemetry,
    };
    let mut built = report::build_sinks(&app.terminal, report)
        .map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })?;
    let client = request.client.as_ref().map(|client| ClientSink(Rc::clone(&client.listener)));
    built.sinks.extend(client.map(|sink| Box::new(sink) as Box<dyn EventSink>));
    Ok(built)
}

/// Creates the telemetry of a run if it is enabled, and adds notices on variables that are ignored.
pub fn telemetry(app: &App, setup: &mut RunSetup) -> Option<Telemetry> {
    let settings = &setup.settings;
    let section = &settings.telemetry;
    if !section.enabled {
        return None;
    }
    let environment = &app.environment;
    let destination = match section.exporter {
        ExporterKind::Otlp => Destination::Otlp(OtlpEndpoint {
            url: endpoint(section.endpoint.as_deref(), environment),
            headers: endpoint_headers(environment, &mut setup.notices),
        }),
        ExporterKind::JsonFile => {
            let default = || settings.directories.state.join(SPANS_FILE);
            Destination::JsonFile(section.file.as_ref().map_or_else(default, PathBuf::from))
        }
        ExporterKind::Console => Destination::Console,
    };
    let parent = environment.get("TRACEPARENT");
    let context = parent.and_then(TraceContext::parse);
    if parent.is_some() && context.is_none() {
        setup.notices.push(messages::TRACEPARENT_INVALID.to_owned());
    }
    let name = environment.get("OTEL_SERVICE_NAME").unwrap_or("agent");
    Some(Telemetry::new(TelemetryOptions {
        destination,
        resource: Resource { service_name: setup.redactor.text(name).into_owned() },
        context: context.unwrap_or_else(|| TraceContext::new(app.source.random(), app.source.random())),
        session_id: setup.resumed_session.as_ref().map(|session| session.id.clone()),
        content: section.content,
        redactor: Arc::clone(&setup.redactor),
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
fn endpoint_headers(environment: &Environment, notices: &mut Vec<String>) -> Vec<(String, Secret)> {
    let set = HEADER_VARIABLES.into_iter().find_map(|name| Some((name, environment.get(name)?)));
    let Some((variable, list)) = set else { return Vec::new() };
    if headers(list).any(|header| header.is_none()) {
        notices.push(messages::telemetry_header_invalid(variable));
    }
    headers(list).flatten().map(|(name, value)| (name, Secret::new(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
}
