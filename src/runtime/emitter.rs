//! Stamps events and tells them to every listener, the journal first.

use crate::core::event::{EVENT_SCHEMA_VERSION, Event, EventSink, Purpose, Record};
use crate::core::message::ToolCall;
use crate::redactor::{PendingText, Redactor};
use crate::runtime::clock::Clock;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;

/// The journal could not take an event; the run must end.
#[derive(Debug, thiserror::Error)]
#[error("the session journal cannot be written: {0}")]
pub struct EmitError(#[from] pub std::io::Error);

/// What arrives in pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
}

/// The one way a fact gets told.
pub struct Emitter {
    sinks: RefCell<Vec<Box<dyn EventSink>>>,
    source: Rc<Clock>,
    run: String,
    seq: Cell<u64>,
    step: Cell<u32>,
    redactor: Arc<Redactor>,
    /// The text and the reasoning that arrive in pieces, as far as they may begin a secret.
    pending: RefCell<[PendingText; 2]>,
    /// The arguments of calls in the last answer that were told otherwise, because a secret is in them.
    original_arguments: RefCell<BTreeMap<String, String>>,
}

impl Emitter {
    /// An emitter for one run; `next_seq` continues the numbering of a resumed journal.
    pub fn new(source: Rc<Clock>, run: String, next_seq: u64, sinks: Vec<Box<dyn EventSink>>) -> Self {
        Self {
            sinks: RefCell::new(sinks),
            source,
            run,
            seq: Cell::new(next_seq),
            step: Cell::new(0),
            redactor: Arc::default(),
            pending: RefCell::default(),
            original_arguments: RefCell::default(),
        }
    }

    /// The same, telling nobody what `redactor` knows for a secret.
    #[must_use]
    pub fn with_redactor(self, redactor: Arc<Redactor>) -> Self {
        Self { redactor, ..self }
    }

    /// What keeps secrets out of everything that is told.
    pub fn redactor(&self) -> &Arc<Redactor> {
        &self.redactor
    }

    /// Tells `event` to every listener and returns it as it was told, without secrets. A step begins with its
    /// `StepStart`, and again with another model after a `ModelSwitched`.
    ///
    /// # Errors
    /// When a required listener, the journal, could not take it.
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

    /// What of a piece can be told now.
    fn push_pending(&self, piece: DeltaKind, text: &str) -> String {
        let [words, thoughts] = &mut *self.pending.borrow_mut();
        let held = if piece == DeltaKind::Text { words } else { thoughts };
        held.take(&self.redactor, text)
    }

    /// Tells what was held back of a text that does not go on.
    fn flush_pending(&self, piece: DeltaKind) -> Result<(), EmitError> {
        let text = {
            let [words, thoughts] = &mut *self.pending.borrow_mut();
            let held = if piece == DeltaKind::Text { words } else { thoughts };
            held.finish(&self.redactor)
        };
        let event = match piece {
            _ if text.is_empty() => return Ok(()),
            DeltaKind::Text => Event::TextDelta { text },
            DeltaKind::Thinking => Event::ThinkingDelta { text },
        };
        self.dispatch(event).map(drop)
    }

    fn dispatch(&self, mut event: Event) -> Result<Record, EmitError> {
        let delta = event.is_delta();
        let meant = arguments(&event);
        self.redactor.redact_event(&mut event);
        if let Event::ModelResponse { message, .. } = &event {
            let calls = message.tool_calls().zip(meant).filter(|(told, meant)| told.arguments != *meant);
            self.original_arguments.replace(calls.map(|(told, meant)| (told.id.clone(), meant)).collect());
        }
        if matches!(event, Event::StepStart { purpose: Purpose::Step, .. }) {
            self.step.set(self.step.get().saturating_add(1));
        }
        let at = if delta { self.source.elapsed() } else { self.source.next_event_time() };
        let record = Record {
            v: EVENT_SCHEMA_VERSION,
            seq: self.seq.get(),
            run: self.run.clone(),
            step: self.step.get(),
            wall_ms: u64::try_from(self.source.unix_time().as_millis()).unwrap_or(u64::MAX),
            mono_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            event,
        };
        if matches!(record.event, Event::ModelSwitched { .. }) {
            self.step.set(self.step.get().saturating_sub(1));
        }
        if !delta {
            self.seq.set(record.seq.saturating_add(1));
        }
        self.for_each_sink(|sink| sink.emit(&record))?;
        Ok(record)
    }

    /// `calls` of the last answer, as everybody was told of it, as the model meant them: nothing is run with a mark in place of
    /// a secret.
    pub fn original_calls(&self, calls: &[ToolCall]) -> Vec<ToolCall> {
        let meant = self.original_arguments.borrow();
        let arguments = |call: &ToolCall| meant.get(&call.id).unwrap_or(&call.arguments).clone();
        calls.iter().map(|call| ToolCall { arguments: arguments(call), ..call.clone() }).collect()
    }

    /// Makes everything told so far durable.
    ///
    /// # Errors
    /// When the journal could not be synced.
    pub fn sync(&self) -> Result<(), EmitError> {
        Ok(self.file_to_sync()?.map_or(Ok(()), |file| file.sync_data())?)
    }

    /// The file that makes everything told so far durable when it is synced, where there is one.
    ///
    /// # Errors
    /// When the journal lacks something that was told.
    pub fn file_to_sync(&self) -> Result<Option<Arc<File>>, EmitError> {
        let mut required = None;
        for sink in self.sinks.borrow().iter().filter(|sink| sink.is_required()) {
            required = required.or(sink.file_to_sync()?);
        }
        Ok(required)
    }

    /// Goes on without the journal, which has failed: whoever else listens can still be told how the run ended.
    pub fn remove_journal(&self) {
        self.sinks.borrow_mut().retain(|sink| !sink.is_required());
    }

    /// Runs `f` on each listener; one that fails is dropped. Where a required one fails nobody after it is told: what the
    /// journal does not hold has not happened for anybody.
    fn for_each_sink(
        &self,
        mut f: impl FnMut(&mut dyn EventSink) -> std::io::Result<()>,
    ) -> Result<(), EmitError> {
        let mut failure = None;
        self.sinks.borrow_mut().retain_mut(|sink| {
            let told = if failure.is_none() { f(sink.as_mut()) } else { Ok(()) };
            match told {
                Err(error) if sink.is_required() => failure = Some(error),
                Err(_) => return false,
                Ok(()) => {}
            }
            true
        });
        failure.map_or(Ok(()), |error| Err(EmitError(error)))
    }
}

/// The arguments of the calls in an answer.
fn arguments(event: &Event) -> Vec<String> {
    let Event::ModelResponse { message, .. } = event else { return Vec::new() };
    message.tool_calls().map(|call| call.arguments.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Counts what it is told, and fails when it is told to.
    struct Listener {
        told: Rc<Cell<usize>>,
        fails: Rc<Cell<bool>>,
        required: bool,
    }

    impl EventSink for Listener {
        fn emit(&mut self, _: &Record) -> io::Result<()> {
            if self.fails.get() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.told.set(self.told.get() + 1);
            Ok(())
        }

        fn is_required(&self) -> bool {
            self.required
        }
    }

    #[test]
    fn what_the_journal_cannot_take_nobody_is_told_until_it_is_given_up() {
        let (full, fine, told) = (Rc::new(Cell::new(false)), Rc::default(), Rc::new(Cell::new(0)));
        let journal = Listener { told: Rc::default(), fails: Rc::clone(&full), required: true };
        let log = Listener { told: Rc::clone(&told), fails: fine, required: false };
        let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(journal), Box::new(log)];
        let emitter = Emitter::new(Rc::new(Clock::new()), String::new(), 0, sinks);
        emitter.emit(Event::StepEnd).unwrap();
        full.set(true);
        emitter.emit(Event::StepEnd).unwrap_err();
        assert_eq!(told.get(), 1);
        emitter.remove_journal();
        emitter.emit(Event::StepEnd).unwrap();
        assert_eq!(told.get(), 2);
    }
}
