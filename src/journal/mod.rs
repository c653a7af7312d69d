//! What survives: the append-only journal of a session, its lock and its reader.

pub mod approvals;
pub mod beside;
pub mod copy;
pub mod cut_off;
pub mod glance;
pub mod history;
pub mod offered;
pub mod read;
pub mod retention;
pub mod seal;
pub mod store;
pub mod write;
