//! Errors outside a run, with the exit code they cause.

use crate::exit_code::ExitCode;
use agent_core::failure::{Classified, Failure, FailureKind};
use agent_messages as messages;
use agent_process::launch::Tier;

/// An error that ends the program without a run.
#[derive(Debug)]
pub struct AppError {
    /// Its class, which determines the exit code.
    pub kind: FailureKind,
    /// The cause; the printed message includes its chain.
    pub cause: anyhow::Error,
}

/// The error for a run that requires more confinement than is available.
#[derive(Debug, thiserror::Error)]
#[error("{}", messages::sandbox_required(found.name(), found.meaning()))]
pub struct InsufficientSandbox {
    /// The available confinement.
    pub found: Tier,
}

/// The result of a command.
pub type AppResult<T> = Result<T, AppError>;

impl AppError {
    /// Creates an error of class `kind`; the message should contain what to do.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, cause: anyhow::anyhow!(message.into()) }
    }

    /// Creates an error of the class `internal` from an error of another type.
    pub fn other(cause: impl Into<anyhow::Error>) -> Self {
        Self { kind: FailureKind::Internal, cause: cause.into() }
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::for_error(self.kind)
    }

    /// Returns the name of the insufficient confinement, if that is the error.
    pub fn sandbox(&self) -> Option<&'static str> {
        self.cause.downcast_ref::<InsufficientSandbox>().map(|too_little| too_little.found.name())
    }

    /// Returns the error in the form of the result document.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, message: self.to_string(), retryable: false }
    }
}

impl std::fmt::Display for AppError {
    /// Writes the error and its causes, each once: the text of an error often contains its cause already.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for cause in self.cause.chain().map(ToString::to_string) {
            if text.ends_with(&cause) {
                continue;
            }
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
        f.write_str(&text)
    }
}

impl<E: Classified> From<E> for AppError {
    fn from(error: E) -> Self {
        Self { kind: error.kind(), cause: error.into() }
    }
}
