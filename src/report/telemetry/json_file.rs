//! Exporter of spans to a file, one JSON object per line.

use super::resource::Resource;
use super::span::{AttributeValue, Span, SpanId, SpanKind, TraceId};
use crate::rotating_file::{RotatingFile, Writes};
use jiff::Timestamp;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::io;
use std::path::PathBuf;

/// The file of spans.
pub(super) struct JsonFile(RotatingFile);

/// A line of the file.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    trace_id: TraceId,
    span_id: SpanId,
    parent_span_id: Option<SpanId>,
    kind: SpanKind,
    start_time: String,
    end_time: String,
    start_time_unix_nano: u64,
    end_time_unix_nano: u64,
    #[serde(serialize_with = "as_map")]
    attributes: &'a [(&'static str, AttributeValue)],
    status: Status<'a>,
    #[serde(serialize_with = "as_map")]
    resource: &'a [(&'static str, &'a str)],
}

#[derive(Serialize)]
struct Status<'a> {
    /// `unset` or `error`.
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl JsonFile {
    /// Opens the file for appending. Writes to a pipe do not wait for its reader.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        RotatingFile::open(path, Writes::Fail).map(Self)
    }
}

/// Appends the spans, in the order of their start. After an error the rest is lost; the error comes with its number.
pub(super) fn export(
    file: io::Result<JsonFile>,
    spans: &[Span],
    resource: &Resource,
) -> Result<(), (usize, io::Error)> {
    let mut file = file.map_err(|error| (spans.len(), error))?;
    let mut ordered: Vec<&Span> = spans.iter().collect();
    ordered.sort_by_key(|span| span.start_ns);
    for (index, span) in ordered.iter().enumerate() {
        let written = line(span, resource).and_then(|line| file.0.append(line.as_bytes()));
        written.map_err(|error| (spans.len().saturating_sub(index), error))?;
    }
    Ok(())
}

fn line(span: &Span, resource: &Resource) -> io::Result<String> {
    let line = Line {
        name: &span.name,
        trace_id: span.trace_id,
        span_id: span.id,
        parent_span_id: span.parent,
        kind: span.kind,
        start_time: time(span.start_ns),
        end_time: time(span.end_ns),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: &span.attributes,
        status: Status {
            code: if span.error.is_some() { "error" } else { "unset" },
            message: span.error.as_deref(),
        },
        resource: &resource.attributes(),
    };
    Ok(format!("{}\n", serde_json::to_string(&line)?))
}

/// Returns a time in the form of RFC 3339, UTC.
fn time(unix_ns: u64) -> String {
    Timestamp::from_nanosecond(unix_ns.into()).unwrap_or_default().to_string()
}

fn as_map<S: Serializer, V: Serialize>(
    pairs: &[(&'static str, V)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (name, value) in pairs {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
