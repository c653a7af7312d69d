//! What survives: the append-only journal of a session, its lock and its reader.

pub mod approvals;
pub mod history;
pub mod read;
pub mod seal;
pub mod store;
pub mod write;
