//! Emitter of events: numbers, timestamps and redacts them, and sends them to every sink, the journal first.

use crate::clock::Clock;
use crate::private_file::synced;
use agent_core::event::{EVENT_SCHEMA_VERSION, Event, Purpose, Record};
use agent_core::event_sink::EventSink;
use agent_redactor::{PendingText, Redactor};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

/// The journal could not write an event; the run must end.
#[derive(Debug, thiserror::Error)]
#[error("the session journal cannot be written: {0}")]
pub struct EmitError(#[from] pub std::io::Error);

/// Kind of streamed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
}

/// Sends the events of a run to its sinks; all events go through it.
pub struct Emitter {
    sinks: RefCell<Vec<Box<dyn EventSink>>>,
    clock: Rc<Clock>,
    run: String,
    seq: Cell<u64>,
    step: Cell<u32>,
    redactor: Arc<Redactor>,
    /// Streamed text and reasoning that may be the start of a secret and are held back.
    pending: RefCell<[PendingText; 2]>,
}

impl Emitter {
    /// Creates an emitter for one run; `next_seq` continues the numbering of a resumed journal.
    pub fn new(clock: Rc<Clock>, run: String, next_seq: u64, sinks: Vec<Box<dyn EventSink>>) -> Self {
        Self {
            sinks: RefCell::new(sinks),
            clock,
            run,
            seq: Cell::new(next_seq),
            step: Cell::new(0),
            redactor: Arc::default(),
            pending: RefCell::default(),
        }
    }

    /// Sets the redactor, which removes secrets from all emitted events.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// Returns the redactor of emitted events.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Emits `event` to every sink and returns the redacted record. `StepStart` starts a step; after a `ModelSwitched` the
    /// next `StepStart` repeats the same step.
    ///
    /// # Errors
    /// When a required sink, the journal, could not write the event.
    pub fn emit(&self, event: Event) -> Result<Record, EmitError> {
        match event {
            Event::TextDelta { text } => {
                self.flush_pending(DeltaKind::Thinking)?;
                self.dispatch(Event::TextDelta { text: self.push_pending(DeltaKind::Text, &text) })
            }
            Event::ThinkingDelta { text } => {
                self.flush_pending(DeltaKind::Text)?;
                self.dispatch(Event::ThinkingDelta { text: self.push_pending(DeltaKind::Thinking, &text) })
            }
            event => {
                self.flush_pending(DeltaKind::Thinking)?;
                self.flush_pending(DeltaKind::Text)?;
                self.dispatch(event)
            }
        }
    }

    /// Adds streamed text and returns the part that can be emitted now.
    fn push_pending(&self, kind: DeltaKind, text: &str) -> String {
        let [answer, thinking] = &mut *self.pending.borrow_mut();
        let pending = if kind == DeltaKind::Text { answer } else { thinking };
        pending.take(&self.redactor, text)
    }

    /// Emits the text that was held back, at the end of a stream.
    fn flush_pending(&self, kind: DeltaKind) -> Result<(), EmitError> {
        let text = {
            let [answer, thinking] = &mut *self.pending.borrow_mut();
            let pending = if kind == DeltaKind::Text { answer } else { thinking };
            pending.finish(&self.redactor)
        };
        let event = match kind {
            _ if text.is_empty() => return Ok(()),
            DeltaKind::Text => Event::TextDelta { text },
            DeltaKind::Thinking => Event::ThinkingDelta { text },
        };
        self.dispatch(event).map(drop)
    }

    fn dispatch(&self, mut event: Event) -> Result<Record, EmitError> {
        let delta = event.is_delta();
        self.redactor.redact_event(&mut event);
        if matches!(event, Event::StepStart { purpose: Purpose::Step, .. }) {
            self.step.set(self.step.get().saturating_add(1));
        }
        let at = if delta { self.clock.elapsed() } else { self.clock.next_event_time() };
        let record = Record {
            v: EVENT_SCHEMA_VERSION,
            seq: self.seq.get(),
            run: self.run.clone(),
            step: self.step.get(),
            wall_ms: u64::try_from(self.clock.unix_time().as_millis()).unwrap_or(u64::MAX),
            mono_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            event,
        };
        if matches!(record.event, Event::ModelSwitched { .. }) {
            self.step.set(self.step.get().saturating_sub(1));
        }
        if !delta {
            self.seq.set(record.seq.saturating_add(1));
        }
        // The text so far may be held back, because it may be the start of a secret.
        let is_empty = matches!(&record.event, Event::TextDelta { text } | Event::ThinkingDelta { text } if text.is_empty());
        if !is_empty {
            self.for_each_sink(|sink| sink.emit(&record))?;
        }
        Ok(record)
    }

    /// Makes all events emitted so far durable.
    ///
    /// # Errors
    /// When the journal could not be synced.
    pub fn sync(&self) -> Result<(), EmitError> {
        Ok(self.file_to_sync()?.map_or(Ok(()), |file| synced(file.sync_data()))?)
    }

    /// Returns the file to sync to make all events emitted so far durable, if there is one.
    ///
    /// # Errors
    /// When an emitted event is missing from the journal.
    pub fn file_to_sync(&self) -> Result<Option<Arc<File>>, EmitError> {
        let mut required = None;
        for sink in self.sinks.borrow().iter().filter(|sink| sink.is_required()) {
            required = required.or(sink.file_to_sync()?);
        }
        Ok(required)
    }

    /// Removes the journal after it failed, so that the other sinks can still report the end of the run.
    pub fn remove_journal(&self) {
        self.sinks.borrow_mut().retain(|sink| !sink.is_required());
    }

    /// Runs `f` on each sink and removes sinks that fail. If a required sink fails, the sinks after it are skipped: no sink
    /// may receive an event that the journal does not contain.
    fn for_each_sink(
        &self,
        mut f: impl FnMut(&mut dyn EventSink) -> std::io::Result<()>,
    ) -> Result<(), EmitError> {
        let mut failure = None;
        self.sinks.borrow_mut().retain_mut(|sink| {
            let emitted = if failure.is_none() { f(sink.as_mut()) } else { Ok(()) };
            match emitted {
                Err(error) if sink.is_required() => failure = Some(error),
                Err(_) => return false,
                Ok(()) => {}
            }
            true
        });
        failure.map_or(Ok(()), |error| Err(EmitError(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Counts events, and fails on demand.
    struct Listener {
        received: Rc<Cell<usize>>,
        fails: Rc<Cell<bool>>,
        required: bool,
    }

    impl EventSink for Listener {
        fn emit(&mut self, _: &Record) -> io::Result<()> {
            if self.fails.get() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.received.set(self.received.get() + 1);
            Ok(())
        }

        fn is_required(&self) -> bool {
            self.required
        }
    }

    // Fault B26: a piece of text that was held back was emitted without text.
    #[test]
    fn a_piece_without_text_reaches_no_sink() {
        let received = Rc::new(Cell::new(0));
        let log = Listener { received: Rc::clone(&received), fails: Rc::default(), required: false };
        let emitter = Emitter::new(Rc::new(Clock::new()), String::new(), 0, vec![Box::new(log)]);
        emitter.emit(Event::TextDelta { text: String::new() }).unwrap();
        emitter.emit(Event::TextDelta { text: "a".to_owned() }).unwrap();
        emitter.emit(Event::ThinkingDelta { text: String::new() }).unwrap();
        assert_eq!(received.get(), 1);
    }

    #[test]
    fn what_the_journal_cannot_take_nobody_is_told_until_it_is_given_up() {
        let (full, fine, received) = (Rc::new(Cell::new(false)), Rc::default(), Rc::new(Cell::new(0)));
        let journal = Listener { received: Rc::default(), fails: Rc::clone(&full), required: true };
        let log = Listener { received: Rc::clone(&received), fails: fine, required: false };
        let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(journal), Box::new(log)];
        let emitter = Emitter::new(Rc::new(Clock::new()), String::new(), 0, sinks);
        emitter.emit(Event::StepEnd).unwrap();
        full.set(true);
        emitter.emit(Event::StepEnd).unwrap_err();
        assert_eq!(received.get(), 1);
        emitter.remove_journal();
        emitter.emit(Event::StepEnd).unwrap();
        assert_eq!(received.get(), 2);
    }
}
