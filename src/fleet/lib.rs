//! The queue of tasks: submitted by anyone, done by workers, kept in an `SQLite` database or on a NATS server.

pub mod backoff;
pub mod boot_clock;
pub mod day_budget;
pub mod error;
pub mod leader;
pub mod location;
pub mod metrics;
pub mod nats;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test starts the server")]
#[path = "../../tests/nats_server.rs"]
mod nats_server;
pub mod objects;
pub mod queue;
#[cfg(test)]
#[path = "../../tests/it/support/random.rs"]
mod random;
mod retention;
pub mod selection;
pub mod shared_values;
#[cfg(test)]
mod simulation_tests;
pub mod sqlite;
pub mod unreadable;
