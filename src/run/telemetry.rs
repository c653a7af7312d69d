//! The telemetry of a run: which spans are exported, and where.

use crate::app::App;
use crate::perform::catch_panic;
use crate::run::Run;
use agent_config::environment::Environment;
use agent_config::telemetry::ExporterKind;
use agent_core::secret::Secret;
use agent_messages as messages;
use agent_redactor::environment_secrets::HEADER_VARIABLES;
use agent_report::telemetry::{
    Destination, OtlpEndpoint, Resource, Telemetry, TelemetryOptions, TraceContext,
};
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

/// Creates the telemetry of a run if it is enabled, and adds notices on variables that are ignored.
pub fn telemetry(app: &App, run: &mut Run<'_>) -> Option<Telemetry> {
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
