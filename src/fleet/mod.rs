//! The queue of tasks: submitted by anyone, done by workers, kept in an `SQLite` database.

pub mod boot_clock;
pub mod error;
pub mod location;
pub mod queue;
pub mod selection;
pub mod sqlite;
pub mod transitions;
