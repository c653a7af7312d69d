//! Stamps events and tells them to every listener, the journal first.

use crate::event::{Event, EventSink, Purpose, Record, SCHEMA_VERSION};
use crate::source::Source;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The journal could not take an event; the run must end.
#[derive(Debug, thiserror::Error)]
#[error("the session journal cannot be written: {0}")]
pub struct EmitError(#[from] pub std::io::Error);

/// The one way a fact gets told.
pub struct Emitter {
    sinks: RefCell<Vec<Box<dyn EventSink>>>,
    source: Rc<Source>,
    run: String,
    seq: Cell<u64>,
    step: Cell<u32>,
}

impl Emitter {
    /// An emitter for one run; `next_seq` continues the numbering of a resumed journal.
    pub fn new(source: Rc<Source>, run: String, next_seq: u64, sinks: Vec<Box<dyn EventSink>>) -> Self {
        Self { sinks: RefCell::new(sinks), source, run, seq: Cell::new(next_seq), step: Cell::new(0) }
    }

    /// Tells `event` to every listener and returns it as it was recorded. A step begins with its `StepStart`,
    /// and again with another model after a `ModelSwitched`.
    ///
    /// # Errors
    /// When a required listener, the journal, could not take it.
    pub fn emit(&self, event: Event) -> Result<Record, EmitError> {
        let delta = event.is_delta();
        if matches!(event, Event::StepStart { purpose: Purpose::Step, .. }) {
            self.step.set(self.step.get().saturating_add(1));
        }
        let record = Record {
            v: SCHEMA_VERSION,
            seq: self.seq.get(),
            run: self.run.clone(),
            step: self.step.get(),
            wall_ms: u64::try_from(self.source.wall().as_millis()).unwrap_or(u64::MAX),
            mono_us: u64::try_from(self.source.elapsed().as_micros()).unwrap_or(u64::MAX),
            event,
        };
        if matches!(record.event, Event::ModelSwitched { .. }) {
            self.step.set(self.step.get().saturating_sub(1));
        }
        if !delta {
            self.seq.set(record.seq.saturating_add(1));
        }
        self.each(|sink| sink.emit(&record))?;
        Ok(record)
    }

    /// Makes everything told so far durable.
    ///
    /// # Errors
    /// When the journal could not be synced.
    pub fn sync(&self) -> Result<(), EmitError> {
        self.each(|sink| sink.sync())
    }

    /// Runs `f` on each listener; one that fails is dropped, unless it is required.
    fn each(&self, mut f: impl FnMut(&mut dyn EventSink) -> std::io::Result<()>) -> Result<(), EmitError> {
        let mut failure = None;
        self.sinks.borrow_mut().retain_mut(|sink| match f(sink.as_mut()) {
            Ok(()) => true,
            Err(error) if sink.required() => {
                failure.get_or_insert(error);
                true
            }
            Err(_) => false,
        });
        failure.map_or(Ok(()), |error| Err(EmitError(error)))
    }
}
