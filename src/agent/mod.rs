//! The agent: the session as a state machine and the loop that does what it says.

pub mod prompt;
