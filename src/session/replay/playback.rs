//! Plays back the records of a run in order, and compares them with the events of the loop.

use super::divergence::{Divergence, is_equivalent, is_observation};
use crate::session::Session;
use agent_core::compaction::CompactionEvent;
use agent_core::event::{Event, MessageOrigin, Purpose, Record};
use agent_core::event_sink::EventSink;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;
use agent_engine::hooks::HookEvent;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::EmitError;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How a playback ended.
#[derive(Debug, Clone, PartialEq)]
pub enum PlaybackEnd {
    /// At the recorded end of the run, with its stop reason.
    Same(Option<StopReason>),
    /// In the middle of the run, where the records end.
    Incomplete,
    /// At a difference.
    Differs(Box<Divergence>),
}

/// The records of a run and the current position. Each record passed is applied to the session.
pub struct Playback {
    records: Vec<Record>,
    at: Cell<usize>,
    divergence: RefCell<Option<Box<Divergence>>>,
    session: Rc<RefCell<Session>>,
    source: Rc<Clock>,
    interrupt: CancellationToken,
    /// Position from which the run was interrupted.
    interrupted_from: usize,
}

impl Playback {
    /// Creates the playback of `records`, which advances `session` and the clock of `source`, and fires `interrupt`.
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

    /// Passes the events that a run emits before its loop starts; the loop decides nothing about them.
    pub fn skip_startup(&self) {
        self.advance_while(|event| match event {
            Event::SessionStart { .. }
            | Event::RunStart { .. }
            | Event::System { .. }
            | Event::Instructions { .. }
            | Event::History { .. }
            | Event::ToolCallEnd { .. }
            | Event::Subagent { .. }
            | Event::Compaction { part: CompactionEvent::Start { requested: true, .. } } => true,
            Event::UserMessage { origin, .. } => {
                matches!(
                    origin,
                    MessageOrigin::Prompt
                        | MessageOrigin::Background
                        | MessageOrigin::Plan
                        | MessageOrigin::UserCommand
                        | MessageOrigin::Skill
                        | MessageOrigin::Instructions
                        | MessageOrigin::GitDiff
                )
            }
            // Here only those of a requested compaction: a needed one begins within the loop.
            Event::HookEnd { on, .. } if on == HookEvent::ContextCompress.name() => true,
            event => is_observation(event),
        });
    }

    /// Returns the next event; `None` at the end or after a difference.
    pub fn peek(&self) -> Option<&Event> {
        self.remaining().first().map(|record| &record.event)
    }

    /// Returns the records that remain; none after a difference.
    pub fn remaining(&self) -> &[Record] {
        if self.divergence.borrow().is_some() {
            return &[];
        }
        self.records.get(self.at.get()..).unwrap_or_default()
    }

    /// Passes the next record, and the observations after it.
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

    /// Passes records while `fits` returns true.
    pub fn advance_while(&self, fits: impl Fn(&Event) -> bool) {
        while self.peek().is_some_and(&fits) {
            self.advance();
        }
    }

    /// Interrupts the run.
    pub fn interrupt(&self) {
        self.interrupt.cancel();
    }

    /// Whether the run is interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_cancelled()
    }

    /// Whether the run ended by interrupt or timeout and no step follows: its running calls were interrupted.
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

    /// Advances the clock to the time of `record`.
    pub fn advance_clock_to(&self, record: &Record) {
        self.source.set(Duration::from_micros(record.mono_us));
    }

    /// Records that the run differs: it emits `now` where the journal has `recorded`, or where the journal ends.
    pub fn diverge(&self, recorded: Option<&Record>, now: Event) -> EmitError {
        if let Some(recorded) = recorded {
            let divergence = Divergence { recorded: recorded.clone(), actual: now };
            self.divergence.borrow_mut().get_or_insert(Box::new(divergence));
        }
        EmitError(io::Error::other("the run differs from its journal"))
    }

    /// Compares the event `now` of the loop, in this step, with the next record.
    fn compare_emitted(&self, now: &Event, step: u32) -> Result<(), EmitError> {
        match self.remaining().first() {
            Some(record) if record.step == step && is_equivalent(&record.event, now) => {
                self.advance();
                Ok(())
            }
            recorded => Err(self.diverge(recorded, now.clone())),
        }
    }

    /// Copies to `result` what was found in the files at the end of the recorded run; a replay does not inspect files.
    pub fn copy_file_findings(&self, result: &mut RunResult) {
        if let Some(Event::RunEnd { result: recorded }) = self.peek() {
            result.executables.clone_from(&recorded.executables);
            result.health.clone_from(&recorded.health);
            for (file, recorded) in result.files_modified.iter_mut().zip(&recorded.files_modified) {
                file.lines = recorded.lines;
            }
        }
    }

    /// Returns how the playback ended.
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

/// Returns the position after which an interrupted run contains only events of its end. The exact time of the interrupt does not matter: an
/// abandoned answer has an event of its own.
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

/// Event sink of the loop that compares its events with the playback.
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
