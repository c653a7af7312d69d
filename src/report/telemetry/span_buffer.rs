//! Collects the spans of a run, up to a limit, without secrets and with texts of limited length.

use super::conventions::{CONVERSATION_ID, ERROR_TYPE, OPERATION_NAME};
use super::span::{AttributeValue, Span, SpanId, SpanKind};
use super::trace_context::TraceContext;
use agent_redactor::Redactor;
use agent_runtime::clock::Clock;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum number of spans of a run. A span that starts later is dropped, so no kept span has a dropped parent.
pub(super) const MAX_SPANS: usize = 2048;
/// Maximum bytes of a name, and of an attribute that is no content.
const MAX_TEXT_BYTES: usize = 256;
/// Maximum bytes of a content.
const MAX_CONTENT_BYTES: usize = 16 << 10;
/// Maximum bytes of all contents of a run. Collectors refuse requests above 20 MiB.
const MAX_CONTENTS_BYTES: usize = 8 << 20;

/// The spans of a run.
pub(super) struct SpanBuffer {
    clock: Rc<Clock>,
    /// Removes secrets from all texts.
    pub redactor: Arc<Redactor>,
    /// The trace of the spans.
    pub context: TraceContext,
    /// Id of the session.
    pub conversation: Option<String>,
    /// The spans that have ended.
    pub ended: Vec<Span>,
    /// Number of spans that were dropped because of [`MAX_SPANS`].
    pub dropped: usize,
    /// Number of contents that were left out because of [`MAX_CONTENTS_BYTES`].
    pub omitted_contents: usize,
    started: usize,
    /// Bytes left for contents; `None` if contents are not wanted.
    content_bytes: Option<usize>,
}

impl SpanBuffer {
    /// Creates an empty buffer for spans of `context`.
    pub(super) fn new(
        clock: Rc<Clock>,
        redactor: Arc<Redactor>,
        context: TraceContext,
        has_content: bool,
    ) -> Self {
        Self {
            clock,
            redactor,
            context,
            conversation: None,
            ended: Vec::new(),
            dropped: 0,
            omitted_contents: 0,
            started: 0,
            content_bytes: has_content.then_some(MAX_CONTENTS_BYTES),
        }
    }

    /// Starts the span `operation target`; `None` if it is dropped.
    pub(super) fn start(
        &mut self,
        operation: &'static str,
        target: &str,
        kind: SpanKind,
        parent: Option<SpanId>,
        start_ns: u64,
    ) -> Option<Span> {
        if self.started >= MAX_SPANS {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        self.started = self.started.saturating_add(1);
        let name = self.clean(&format!("{operation} {target}"), MAX_TEXT_BYTES);
        let id = SpanId(self.clock.random());
        let trace_id = self.context.trace_id;
        let attributes = vec![(OPERATION_NAME, AttributeValue::Text(operation.to_owned()))];
        let (end_ns, error) = (start_ns, None);
        let mut span = Span { name, kind, trace_id, id, parent, start_ns, end_ns, attributes, error };
        if let Some(conversation) = &self.conversation {
            span.set(CONVERSATION_ID, self.text(conversation));
        }
        Some(span)
    }

    /// Ends a span; with `error`, the class of its failure.
    pub(super) fn end(&mut self, mut span: Span, end_ns: u64, error: Option<&str>) {
        span.end_ns = end_ns.max(span.start_ns);
        if let Some(error) = error {
            span.set(ERROR_TYPE, self.text(error));
            span.error = Some(error.to_owned());
        }
        self.ended.push(span);
    }

    /// Returns the value of an attribute that is no content.
    pub(super) fn text(&self, text: &str) -> AttributeValue {
        AttributeValue::Text(self.clean(text, MAX_TEXT_BYTES))
    }

    /// Adds a content to `span` if contents are wanted and there is room for it. `value` makes the attribute's value of the text.
    pub(super) fn add_content(
        &mut self,
        span: &mut Span,
        name: &'static str,
        text: &str,
        value: impl FnOnce(&str) -> String,
    ) {
        let Some(left) = self.content_bytes else { return };
        let value = value(&self.clean(text, MAX_CONTENT_BYTES));
        match left.checked_sub(value.len()) {
            None => self.omitted_contents = self.omitted_contents.saturating_add(1),
            Some(left) => {
                self.content_bytes = Some(left);
                span.set(name, AttributeValue::Text(value));
            }
        }
    }

    /// Returns `text` without secrets, cut to `max` bytes.
    fn clean(&self, text: &str, max: usize) -> String {
        let clean = self.redactor.text(text);
        let cut = clean.floor_char_boundary(max);
        match clean.get(..cut) {
            Some(start) if cut < clean.len() => format!("{start}…"),
            _ => clean.into_owned(),
        }
    }
}
