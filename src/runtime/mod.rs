//! The process around a run: clock, random numbers and ids, the interrupt signal, and the emitter of events.

pub mod clock;
pub mod emitter;
pub mod interrupt;
