//! Process-wide services of a run: blocking work, clock, random numbers and ids, signal handling, the emitter of events, private files.

pub mod blocking;
pub mod clock;
pub mod emitter;
pub mod interrupt;
pub mod private_file;
