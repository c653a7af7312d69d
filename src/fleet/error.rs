//! Why the queue refuses something.

use agent_core::failure::{Classified, FailureKind};
use agent_core::task_transitions::StateRefusal;
use rusqlite::ErrorCode;
use std::fmt::{self, Display};

/// Why the queue refuses something.
#[derive(Debug, PartialEq, Eq)]
pub enum QueueError {
    /// There is no task with this id.
    Unknown(String),
    /// A task with this id exists, and something else is to be done in it.
    Different(String),
    /// The task is in a state in which this is not possible.
    State(String),
    /// The task is longer than this many bytes.
    TooLong(String, usize),
    /// The queue holds as many tasks as it may.
    Full(u64),
    /// The record of a task cannot be read.
    Unreadable(String, String),
    /// The database cannot be used, or the server refuses it.
    Storage(String),
    /// The server refuses the credentials.
    Auth(String),
    /// The server does not answer, or the queue cannot do what it is asked for now.
    Away(String),
}

impl From<StateRefusal> for QueueError {
    fn from(StateRefusal(why): StateRefusal) -> Self {
        Self::State(why)
    }
}

impl QueueError {
    /// Adds to the error of a submission that it has stored nothing.
    #[must_use]
    pub fn none_stored(self) -> Self {
        self.with_stored("this command stored no task")
    }

    /// Adds to the error of a submission what it has stored.
    #[must_use]
    pub fn with_stored(self, what: impl Display) -> Self {
        match self {
            Self::Away(why) => Self::Away(format!("{why}; {what}; run it again")),
            other => other,
        }
    }
}

impl Display for QueueError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(formatter, "there is no task {id}; `agent tasks list` shows them"),
            Self::Different(id) => {
                write!(formatter, "a task {id} with another prompt or other options exists; take another id")
            }
            Self::State(why) => formatter.write_str(why),
            Self::TooLong(id, most) => {
                write!(formatter, "the task {id} has more than {} KiB", most >> 10)
            }
            Self::Full(most) => {
                write!(formatter, "the queue holds {most} tasks; `agent tasks rm` removes ended ones")
            }
            Self::Unreadable(id, why) => write!(
                formatter,
                "the task {id} cannot be read, a newer version of this program may have written it: {why}"
            ),
            Self::Storage(why) | Self::Auth(why) => write!(formatter, "the queue cannot be used: {why}"),
            Self::Away(why) => write!(formatter, "the queue cannot be used now: {why}"),
        }
    }
}

impl std::error::Error for QueueError {}

impl From<rusqlite::Error> for QueueError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            // Another process holds a lock for long, or the disk is full.
            Some(ErrorCode::DatabaseBusy | ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                Self::Away(error.to_string())
            }
            _ => Self::Storage(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for QueueError {
    fn from(error: serde_json::Error) -> Self {
        Self::Storage(error.to_string())
    }
}

impl Classified for QueueError {
    fn kind(&self) -> FailureKind {
        match self {
            Self::Storage(_) | Self::Unreadable(..) => FailureKind::Session,
            Self::Auth(_) => FailureKind::Auth,
            Self::Away(_) => FailureKind::Network,
            Self::Unknown(_) | Self::Different(_) | Self::State(_) | Self::TooLong(..) | Self::Full(_) => {
                FailureKind::Usage
            }
        }
    }
}
