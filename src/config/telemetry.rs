//! The section `telemetry` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Form in which spans are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExporterKind {
    /// OTLP over HTTP, to a collector.
    Otlp,
    /// A file with one JSON object per line.
    JsonFile,
    /// Standard error, one line per span.
    Console,
}

/// Export of spans for OpenTelemetry, at the end of a run (`agent help telemetry`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Whether spans are made and exported.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub enabled: bool,
    /// Where they are exported to: a collector, a file, or standard error.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub exporter: ExporterKind,
    /// Address of the collector, without `/v1/traces`; absent: the variables of OpenTelemetry, else `http://localhost:4318`.
    #[schemars(extend("x-scope" = "never-from-project", "x-format" = "url"))]
    pub endpoint: Option<String>,
    /// The file of the exporter `json-file`; absent: `telemetry.jsonl` in the state directory.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub file: Option<String>,
    /// Whether spans contain prompts, answers, arguments and results.
    #[schemars(extend("x-scope" = "never-from-project"))]
    pub content: bool,
}
