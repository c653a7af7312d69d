//! Messages about telemetry: spans that are lost, and settings that are ignored.

use super::numbers::{count, thousands};
use std::time::Duration;

/// Warning that `lost` of `total` spans, or contents of spans, are lost.
pub fn telemetry_lost(lost: usize, total: usize, reasons: &str) -> String {
    let (lost, total) = (thousands(lost as u64), count(total as u64, "span"));
    format!("telemetry: {lost} of {total} lost: {reasons}")
}

/// Reason: the run had more spans than are kept.
pub fn telemetry_over_limit(dropped: usize, limit: usize) -> String {
    format!("{} over the limit of {}", thousands(dropped as u64), thousands(limit as u64))
}

/// Reason: the contents of a run are larger than what is kept.
pub fn telemetry_contents_omitted(omitted: usize) -> String {
    format!("{} left out, because the run has too many", count(omitted as u64, "content"))
}

/// Reason: spans could not be exported to `destination`.
pub fn telemetry_not_exported(destination: &str, reason: &str) -> String {
    format!("not exported to {destination}: {reason}")
}

/// Reason: no response in time.
pub fn telemetry_timeout(time: Duration) -> String {
    format!("no response within {time:?}")
}

/// Reason: a response with an error status.
pub fn telemetry_refused(status: &str) -> String {
    format!("the response is {status}")
}

/// Reason: the collector accepted only a part of the spans.
pub fn telemetry_rejected(message: &str) -> String {
    if message.is_empty() { "rejected".to_owned() } else { format!("rejected: {message}") }
}

/// Warning about an invalid `TRACEPARENT`.
pub const TRACEPARENT_INVALID: &str =
    "TRACEPARENT is not valid in the sense of W3C Trace Context and is ignored: the run starts a new trace";

/// Warning about an entry of `variable` that is not a header.
pub fn telemetry_header_invalid(variable: &str) -> String {
    format!("{variable}: an entry is not `name=value` and is ignored")
}
