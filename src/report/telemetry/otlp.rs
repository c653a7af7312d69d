//! Exporter of spans to a collector: OTLP over HTTP, with protobuf.

use super::conventions::SCHEMA_URL;
use super::export_failure::ExportFailure;
use super::resource::Resource;
use super::span::{AttributeValue, Span, SpanKind};
use agent_core::secret::Secret;
use agent_http::HttpError;
use agent_http::post::{PostRequest, PostResponse, post, shown_address};
use agent_messages as messages;
use agent_terminal::one_line;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as ProtoResource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as ProtoSpan, Status, span, status,
};
use prost::Message;
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
        let body = request(spans, resource).encode_to_vec();
        let failure = |lost, reason: String| ExportFailure::new(lost, &shown_address(&self.url), &reason);
        let sent = timeout(EXPORT_TIME, self.send(body)).await;
        let response = sent
            .map_err(|_| failure(spans.len(), messages::telemetry_timeout(EXPORT_TIME)))?
            .map_err(|error| failure(spans.len(), error.to_string()))?;
        if !(200..300).contains(&response.status) {
            return Err(failure(spans.len(), messages::telemetry_refused(&response.status_line)));
        }
        // A body that is not OTLP is no sign of a loss.
        let answer = ExportTraceServiceResponse::decode(response.body.as_slice()).unwrap_or_default();
        let rejected = answer.partial_success.unwrap_or_default();
        match usize::try_from(rejected.rejected_spans).unwrap_or_default() {
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
            content_type: "application/x-protobuf",
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
fn request(spans: &[Span], resource: &Resource) -> ExportTraceServiceRequest {
    let attributes = resource.attributes().into_iter();
    let attributes =
        attributes.map(|(name, value)| pair(name, &AttributeValue::Text(value.to_owned()))).collect();
    let scope = InstrumentationScope {
        name: "agent".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(proto_span).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    let resource_spans = ResourceSpans {
        resource: Some(ProtoResource { attributes, ..ProtoResource::default() }),
        scope_spans: vec![scope_spans],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn proto_span(span: &Span) -> ProtoSpan {
    let kind = match span.kind {
        SpanKind::Internal => span::SpanKind::Internal,
        SpanKind::Client => span::SpanKind::Client,
    };
    let status = span
        .error
        .as_ref()
        .map(|error| Status { message: error.clone(), code: status::StatusCode::Error.into() });
    ProtoSpan {
        trace_id: span.trace_id.0.to_be_bytes().to_vec(),
        span_id: span.id.0.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|id| id.0.to_be_bytes().to_vec()).unwrap_or_default(),
        flags: SAMPLED,
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: span.start_ns,
        end_time_unix_nano: span.end_ns,
        attributes: span.attributes.iter().map(|(name, value)| pair(name, value)).collect(),
        status,
        ..ProtoSpan::default()
    }
}

fn pair(name: &str, value: &AttributeValue) -> KeyValue {
    let text = |text: &String| Value::StringValue(text.clone());
    let value = match value {
        AttributeValue::Text(value) => text(value),
        AttributeValue::Integer(value) => Value::IntValue(i64::try_from(*value).unwrap_or(i64::MAX)),
        AttributeValue::Number(value) => Value::DoubleValue(*value),
        AttributeValue::Bool(value) => Value::BoolValue(*value),
        AttributeValue::Texts(values) => {
            let values = values.iter().map(|value| AnyValue { value: Some(text(value)) }).collect();
            Value::ArrayValue(ArrayValue { values })
        }
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
