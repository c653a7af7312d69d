//! Process-wide services of a run: clock, random numbers and ids, signal handling, the emitter of events, private files.

pub mod clock;
pub mod emitter;
pub mod interrupt;
pub mod private_file;
