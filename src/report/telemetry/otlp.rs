//! Exporter of spans to a collector: OTLP over HTTP, in its JSON encoding (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).

use super::conventions::SCHEMA_URL;
use super::export_failure::ExportFailure;
use super::resource::Resource;
use super::span::{AttributeValue, Span, SpanKind};
use agent_core::secret::Secret;
use agent_http::HttpError;
use agent_http::post::{PostRequest, PostResponse, post, shown_address};
use agent_messages as messages;
use agent_terminal::one_line;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Time that an export may take, with its second attempt.
pub(super) const EXPORT_TIME: Duration = Duration::from_secs(2);
/// Wait before the second attempt.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Statuses after which OTLP lets a client try again.
const RETRYABLE: [u16; 4] = [429, 502, 503, 504];
/// Maximum characters of a collector's message.
const MESSAGE_CHARS: usize = 200;
/// The trace flag of W3C Trace Context for a trace that is recorded.
const SAMPLED: u32 = 1;
/// Numbers of the kinds of a span, and of a status that is an error.
const INTERNAL: u32 = 1;
const CLIENT: u32 = 3;
const ERROR: u32 = 2;

/// The answer of a collector.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answer {
    partial_success: PartialSuccess,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    /// A 64-bit number: in JSON a text of digits, or a number.
    rejected_spans: Value,
    error_message: String,
}

impl PartialSuccess {
    fn rejected(&self) -> usize {
        let number = self.rejected_spans.as_str().and_then(|text| text.parse().ok());
        let number = number.or_else(|| self.rejected_spans.as_u64()).unwrap_or_default();
        usize::try_from(number).unwrap_or(usize::MAX)
    }
}

/// A collector.
#[derive(Debug, Clone)]
pub struct OtlpEndpoint {
    /// Address to which spans are sent.
    pub url: String,
    /// Headers of the request, which may contain a key.
    pub headers: Vec<(String, Secret)>,
}

impl OtlpEndpoint {
    /// Sends the spans in one request.
    pub(super) async fn export(&self, spans: &[Span], resource: &Resource) -> Result<(), ExportFailure> {
        let body = request(spans, resource).to_string().into_bytes();
        let failure = |lost, reason: String| ExportFailure::new(lost, &shown_address(&self.url), &reason);
        let sent = timeout(EXPORT_TIME, self.send(body)).await;
        let response = sent
            .map_err(|_| failure(spans.len(), messages::telemetry_timeout(EXPORT_TIME)))?
            .map_err(|error| failure(spans.len(), error.to_string()))?;
        if !(200..300).contains(&response.status) {
            return Err(failure(spans.len(), messages::telemetry_refused(&response.status_line)));
        }
        // A body that is not OTLP is no sign of a loss.
        let answer: Answer = serde_json::from_slice(&response.body).unwrap_or_default();
        let rejected = answer.partial_success;
        match rejected.rejected() {
            0 => Ok(()),
            lost => {
                let reason = messages::telemetry_rejected(&one_line(&rejected.error_message, MESSAGE_CHARS));
                Err(failure(lost.min(spans.len()), reason))
            }
        }
    }

    /// Sends the request, twice if the collector is overloaded.
    async fn send(&self, body: Vec<u8>) -> Result<PostResponse, HttpError> {
        let request = PostRequest {
            url: &self.url,
            headers: &self.headers,
            content_type: "application/json",
            body: body.into(),
            connect: EXPORT_TIME,
        };
        let response = post(&request).await?;
        if !RETRYABLE.contains(&response.status) {
            return Ok(response);
        }
        sleep(RETRY_DELAY).await;
        post(&request).await
    }
}

/// Returns the message with all spans.
fn request(spans: &[Span], resource: &Resource) -> Value {
    let attributes = resource.attributes().into_iter();
    let attributes = attributes.map(|(name, value)| pair(name, &AttributeValue::Text(value.to_owned())));
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes.collect::<Vec<_>>()},
        "scopeSpans": [{
            "scope": {"name": "agent", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans.iter().map(encoded).collect::<Vec<_>>(),
            "schemaUrl": SCHEMA_URL,
        }],
        "schemaUrl": SCHEMA_URL,
    }]})
}

fn encoded(span: &Span) -> Value {
    let kind = match span.kind {
        SpanKind::Internal => INTERNAL,
        SpanKind::Client => CLIENT,
    };
    let attributes = span.attributes.iter().map(|(name, value)| pair(name, value));
    let mut encoded = json!({
        "traceId": span.trace_id.hex(),
        "spanId": span.id.hex(),
        "flags": SAMPLED,
        "name": span.name,
        "kind": kind,
        "startTimeUnixNano": span.start_ns.to_string(),
        "endTimeUnixNano": span.end_ns.to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = parent.hex().into();
    }
    if let Some(error) = &span.error {
        encoded["status"] = json!({"code": ERROR, "message": error});
    }
    encoded
}

fn pair(name: &str, value: &AttributeValue) -> Value {
    let text = |text: &String| json!({"stringValue": text});
    let value = match value {
        AttributeValue::Text(value) => text(value),
        // A 64-bit number is a text of digits.
        AttributeValue::Integer(value) => {
            json!({"intValue": i64::try_from(*value).unwrap_or(i64::MAX).to_string()})
        }
        AttributeValue::Number(value) => json!({"doubleValue": value}),
        AttributeValue::Bool(value) => json!({"boolValue": value}),
        AttributeValue::Texts(values) => {
            json!({"arrayValue": {"values": values.iter().map(text).collect::<Vec<_>>()}})
        }
    };
    json!({"key": name, "value": value})
}
