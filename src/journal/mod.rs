//! What survives: the append-only journal of a session, its lock and its reader.

pub mod cut_off;
pub mod history;
pub mod read;
pub mod store;
pub mod write;
