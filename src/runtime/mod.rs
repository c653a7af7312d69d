//! Process-wide services of a run: clock, random numbers and ids, signal handling, and the emitter of events.

pub mod clock;
pub mod emitter;
pub mod interrupt;
