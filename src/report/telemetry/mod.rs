//! Telemetry, off by default: makes spans in the sense of OpenTelemetry from the events of a run and exports them at its end.

mod agent_spans;
mod console;
mod conventions;
mod export_failure;
mod json_file;
mod otlp;
mod resource;
mod span;
mod span_buffer;
mod trace_context;

pub use otlp::OtlpEndpoint;
pub use resource::Resource;
pub use trace_context::TraceContext;

use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_messages as messages;
use agent_redactor::Redactor;
use agent_runtime::clock::Clock;
use agent_spans::AgentSpans;
use agent_terminal::{Style, Terminal};
use export_failure::ExportFailure;
use json_file::JsonFile;
use span::Span;
use span_buffer::{MAX_SPANS, SpanBuffer};
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Where the spans of a run are exported to.
#[derive(Debug)]
pub enum Destination {
    /// A collector.
    Otlp(OtlpEndpoint),
    /// A file, which is appended to.
    JsonFile(PathBuf),
    /// Standard error.
    Console,
}

/// Options of the telemetry of one run.
pub struct TelemetryOptions {
    /// Where the spans are exported to.
    pub destination: Destination,
    /// The program that the spans come from.
    pub resource: Resource,
    /// The trace that the run is a part of.
    pub context: TraceContext,
    /// Id of a resumed session; a new session emits its id.
    pub session_id: Option<String>,
    /// Whether spans contain prompts, answers, arguments and results.
    pub content: bool,
    /// Removes secrets.
    pub redactor: Arc<Redactor>,
    /// Random ids of spans.
    pub clock: Rc<Clock>,
}

/// The spans of one run; clones share them.
#[derive(Clone)]
pub struct Telemetry(Rc<RefCell<State>>);

struct State {
    /// Absent once the spans are exported.
    exporter: Option<Exporter>,
    resource: Resource,
    buffer: SpanBuffer,
    /// The spans of the run's agent, once it has started.
    agent: Option<AgentSpans>,
    /// Wall clock minus monotonic clock at the first record, in nanoseconds: spans are timed by the monotonic clock.
    offset_ns: Option<i128>,
    /// Time of the last record, in nanoseconds since the Unix epoch.
    last_ns: u64,
}

enum Exporter {
    Otlp(OtlpEndpoint),
    /// Opened before any command runs, which could replace the file.
    JsonFile(PathBuf, io::Result<JsonFile>),
    Console,
}

/// The spans of a finished run.
struct Finished {
    exporter: Exporter,
    resource: Resource,
    redactor: Arc<Redactor>,
    spans: Vec<Span>,
    /// Number of spans over the limit.
    dropped: usize,
    /// Number of contents over the limit.
    omitted: usize,
}

struct TelemetrySink(Rc<RefCell<State>>);

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Telemetry")
    }
}

impl Telemetry {
    /// Creates the telemetry of a run. A file that cannot be opened is reported by [`export`](Self::export).
    pub fn new(options: TelemetryOptions) -> Self {
        let exporter = match options.destination {
            Destination::Otlp(endpoint) => Exporter::Otlp(endpoint),
            Destination::JsonFile(path) => Exporter::JsonFile(path.clone(), JsonFile::open(path)),
            Destination::Console => Exporter::Console,
        };
        let mut buffer = SpanBuffer::new(options.clock, options.redactor, options.context, options.content);
        buffer.conversation = options.session_id;
        let resource = options.resource;
        let exporter = Some(exporter);
        let state = State { exporter, resource, buffer, agent: None, offset_ns: None, last_ns: 0 };
        Self(Rc::new(RefCell::new(state)))
    }

    /// Returns the sink that receives the events of the run.
    pub fn sink(&self) -> Box<dyn EventSink> {
        Box::new(TelemetrySink(Rc::clone(&self.0)))
    }

    /// Exports the spans, once, and reports in one line on standard error how many are lost, and why. Takes at most
    /// `otlp::EXPORT_TIME`.
    pub async fn export(self, terminal: &Terminal) {
        let finished = self.0.borrow_mut().finish();
        let Some(Finished { exporter, resource, redactor, spans, dropped, omitted }) = finished else {
            return;
        };
        let exported = match exporter {
            Exporter::Otlp(endpoint) => endpoint.export(&spans, &resource).await,
            Exporter::JsonFile(path, file) => {
                json_file::export(file, &spans, &resource).map_err(|(lost, error)| {
                    ExportFailure::new(lost, &path.display().to_string(), &error.to_string())
                })
            }
            Exporter::Console => console::print(terminal, &spans),
        };
        let failure = exported.err();
        let over_limit = (dropped > 0).then(|| messages::telemetry_over_limit(dropped, MAX_SPANS));
        let contents = (omitted > 0).then(|| messages::telemetry_contents_omitted(omitted));
        let lost = dropped.saturating_add(failure.as_ref().map_or(0, |failure| failure.lost));
        let reasons: Vec<String> =
            over_limit.into_iter().chain(failure.map(|failure| failure.reason)).chain(contents).collect();
        if !reasons.is_empty() {
            let total = spans.len().saturating_add(dropped);
            let line = messages::telemetry_lost(lost, total, &reasons.join("; "));
            // The line may contain a message of the collector. If standard error is closed, nothing else can be done.
            drop(terminal.eprintln(Style::Warning, &redactor.text(&line)));
        }
    }
}

impl State {
    /// Ends the run; `None` if it has no spans, or they have been exported.
    fn finish(&mut self) -> Option<Finished> {
        let (spans, resource) = (self.take_spans(), self.resource.clone());
        let redactor = Arc::clone(&self.buffer.redactor);
        let (dropped, omitted) = (self.buffer.dropped, self.buffer.omitted_contents);
        let exporter = self.exporter.take().filter(|_| !spans.is_empty())?;
        Some(Finished { exporter, resource, redactor, spans, dropped, omitted })
    }

    /// Ends the open spans and takes all.
    fn take_spans(&mut self) -> Vec<Span> {
        if let Some(mut agent) = self.agent.take() {
            agent.end(&mut self.buffer, None, self.last_ns);
        }
        std::mem::take(&mut self.buffer.ended)
    }

    /// Returns the time of a record, in nanoseconds since the Unix epoch.
    fn time(&mut self, record: &Record) -> u64 {
        let mono = i128::from(record.mono_us) * 1_000;
        let offset = *self.offset_ns.get_or_insert(i128::from(record.wall_ms) * 1_000_000 - mono);
        u64::try_from(offset + mono).unwrap_or_default()
    }
}

impl EventSink for TelemetrySink {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() {
            return Ok(());
        }
        let state = &mut *self.0.borrow_mut();
        let at = state.time(record);
        state.last_ns = at;
        match (&record.event, &mut state.agent) {
            (Event::SessionStart { session_id, .. }, _) => {
                state.buffer.conversation = Some(session_id.clone());
            }
            (Event::RunStart { agent, model, .. }, None) => {
                let parent = state.buffer.context.parent;
                state.agent = Some(AgentSpans::start(&mut state.buffer, agent, model, parent, at));
            }
            (event, Some(agent)) => agent.apply(&mut state.buffer, event, at),
            (_, None) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
