//! A span: a named, timed part of a trace with attributes.

use serde::{Serialize, Serializer};

/// Id of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceId(pub u128);

/// Id of a span within its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SpanId(pub u64);

/// Kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SpanKind {
    /// Work inside the program.
    Internal,
    /// A request to a server.
    Client,
}

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum AttributeValue {
    Text(String),
    Integer(u64),
    Number(f64),
    Bool(bool),
    Texts(Vec<String>),
}

/// A span.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub name: String,
    pub kind: SpanKind,
    pub trace_id: TraceId,
    pub id: SpanId,
    /// The span around this one; absent for the first span of a trace.
    pub parent: Option<SpanId>,
    /// Nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// Nanoseconds since the Unix epoch, not before the start.
    pub end_ns: u64,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Class of the failure, if the operation failed.
    pub error: Option<String>,
}

impl TraceId {
    /// Returns the id in 32 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl SpanId {
    /// Returns the id in 16 hexadecimal digits.
    pub(super) fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl Span {
    /// Adds an attribute.
    pub(super) fn set(&mut self, name: &'static str, value: AttributeValue) {
        self.attributes.push((name, value));
    }

    /// Returns the value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}
