//! The records of a run, given when their turn has come and compared with what the loop tells.

use super::divergence::{Divergence, is_equivalent, is_observation};
use crate::agent::session::Session;
use crate::core::event::{Event, EventSink, MessageOrigin, Purpose, Record};
use crate::core::run_result::Executables;
use crate::core::stop_reason::StopReason;
use crate::engine::hooks::HookEvent;
use crate::runtime::clock::Clock;
use crate::runtime::emitter::EmitError;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a tape came to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum PlaybackEnd {
    /// With the end of the run, whose reason that is.
    Same(Option<StopReason>),
    /// In the middle of the run.
    Incomplete,
    /// Before its end.
    Differs(Box<Divergence>),
}

/// The records of a run. The session is their fold: what passes is applied to it as the journal has it.
pub struct Playback {
    records: Vec<Record>,
    at: Cell<usize>,
    divergence: RefCell<Option<Box<Divergence>>>,
    session: Rc<RefCell<Session>>,
    source: Rc<Clock>,
    interrupt: CancellationToken,
    /// From where on the person had interrupted the run.
    interrupted_from: usize,
}

impl Playback {
    /// A tape of `records`, which moves `session`, the clock of `source`, and `interrupt` on.
    pub fn new(
        records: Vec<Record>,
        session: Rc<RefCell<Session>>,
        source: Rc<Clock>,
        interrupt: CancellationToken,
    ) -> Self {
        let interrupted_from = interrupted_from(&records);
        let (at, divergence) = (Cell::default(), RefCell::default());
        Self { records, at, divergence, session, source, interrupt, interrupted_from }
    }

    /// Passes what a run tells before its loop begins: nothing of it is decided by the loop.
    pub fn skip_startup(&self) {
        self.advance_while(|event| match event {
            Event::SessionStart { .. }
            | Event::RunStart { .. }
            | Event::System { .. }
            | Event::Instructions { .. }
            | Event::History { .. }
            | Event::ToolCallEnd { .. }
            | Event::Subagent { .. } => true,
            Event::UserMessage { origin, .. } => {
                matches!(
                    origin,
                    MessageOrigin::Prompt
                        | MessageOrigin::Background
                        | MessageOrigin::Plan
                        | MessageOrigin::GitDiff
                )
            }
            event => is_observation(event),
        });
    }

    /// What comes next; nothing once the run went another way.
    pub fn peek(&self) -> Option<&Event> {
        self.remaining().first().map(|record| &record.event)
    }

    /// What is still to come.
    pub fn remaining(&self) -> &[Record] {
        if self.divergence.borrow().is_some() {
            return &[];
        }
        self.records.get(self.at.get()..).unwrap_or_default()
    }

    /// Passes what comes next, and what was only noticed after it.
    pub fn advance(&self) {
        while let Some(Record { mono_us, event, .. }) = self.remaining().first() {
            self.session.borrow_mut().apply(event);
            self.source.set(Duration::from_micros(*mono_us));
            self.at.set(self.at.get().saturating_add(1));
            if !self.peek().is_some_and(is_observation) {
                break;
            }
        }
        if self.at.get() >= self.interrupted_from {
            self.interrupt.cancel();
        }
    }

    /// Passes what comes next as long as `fits` says so.
    pub fn advance_while(&self, fits: impl Fn(&Event) -> bool) {
        while self.peek().is_some_and(&fits) {
            self.advance();
        }
    }

    /// Interrupts the run.
    pub fn interrupt(&self) {
        self.interrupt.cancel();
    }

    /// Whether no step follows in a run that a person or the time ended: calls at work then were cut short.
    pub fn is_cut_short(&self) -> bool {
        let ended = |record: &Record| match &record.event {
            Event::RunEnd { result } => {
                matches!(result.stop_reason, Some(StopReason::UserInterrupt | StopReason::Timeout))
            }
            _ => false,
        };
        let is_step =
            |record: &Record| matches!(record.event, Event::StepStart { purpose: Purpose::Step, .. });
        self.records.last().is_some_and(ended) && !self.remaining().iter().any(is_step)
    }

    /// Lets the time pass up to `record`.
    pub fn advance_clock_to(&self, record: &Record) {
        self.source.set(Duration::from_micros(record.mono_us));
    }

    /// The run goes another way: `now` comes where the journal has `recorded`, or where it ends.
    pub fn diverge(&self, recorded: Option<&Record>, now: Event) -> EmitError {
        if let Some(recorded) = recorded {
            let divergence = Divergence { recorded: recorded.clone(), actual: now };
            self.divergence.borrow_mut().get_or_insert(Box::new(divergence));
        }
        EmitError(io::Error::other("the journal does not go on like this"))
    }

    /// Takes note that the loop tells `now`, in the step with this number.
    fn compare_emitted(&self, now: &Event, step: u32) -> Result<(), EmitError> {
        match self.remaining().first() {
            Some(record) if record.step == step && is_equivalent(&record.event, now) => {
                self.advance();
                Ok(())
            }
            recorded => Err(self.diverge(recorded, now.clone())),
        }
    }

    /// What the files with a right to be executed were that the run had made: nobody looks at files now.
    pub fn executables(&self) -> Executables {
        match self.peek() {
            Some(Event::RunEnd { result }) => result.executables.clone(),
            _ => Executables::default(),
        }
    }

    /// How it came to its end.
    pub fn end(&self) -> PlaybackEnd {
        if let Some(divergence) = &*self.divergence.borrow() {
            return PlaybackEnd::Differs(divergence.clone());
        }
        match self.records.last().map(|record| &record.event) {
            Some(Event::RunEnd { result }) if self.remaining().is_empty() => {
                PlaybackEnd::Same(result.stop_reason)
            }
            _ => PlaybackEnd::Incomplete,
        }
    }
}

/// Where in a run that a person interrupted nothing follows but what an end tells. Whether the interrupt came a little
/// earlier makes no difference to what the loop decides: an answer that was given up for it says so itself.
fn interrupted_from(records: &[Record]) -> usize {
    let ended = |record: &Record| match &record.event {
        Event::RunEnd { result } => result.stop_reason == Some(StopReason::UserInterrupt),
        _ => false,
    };
    if !records.last().is_some_and(ended) {
        return usize::MAX;
    }
    let of_the_end = |record: &Record| match &record.event {
        Event::RunEnd { .. } | Event::BackgroundEnd { .. } | Event::Checkpoint { .. } => true,
        Event::HookEnd { on, .. } => on == HookEvent::SessionEnd.name(),
        event => is_observation(event),
    };
    records.iter().rposition(|record| !of_the_end(record)).map_or(0, |last| last.saturating_add(1))
}

/// The tape as the one listener to the run.
pub struct PlaybackSink(pub Rc<Playback>);

impl EventSink for PlaybackSink {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if record.event.is_delta() || is_observation(&record.event) {
            return Ok(());
        }
        self.0.compare_emitted(&record.event, record.step).map_err(|EmitError(error)| error)
    }

    fn is_required(&self) -> bool {
        true
    }
}
