//! Errors of the command line: what went wrong before or outside a run, and what to do.

use crate::cli::exit_code::ExitCode;
use crate::core::failure::{Failure, FailureKind};
use crate::journal::session_store::SessionError;
use crate::messages;
use crate::process::launch::Tier;

/// An error that ends the program without a run.
#[derive(Debug)]
pub struct CliError {
    /// Its class; decides the exit code.
    pub kind: FailureKind,
    /// The cause, its chain included when printed.
    pub cause: anyhow::Error,
}

/// A run requires more of what confines its commands than there is.
#[derive(Debug, thiserror::Error)]
#[error("{}", messages::sandbox_required(found.name(), found.meaning()))]
pub struct InsufficientSandbox {
    /// What there is.
    pub found: Tier,
}

/// What a command gives back.
pub type CliResult<T> = Result<T, CliError>;

impl CliError {
    /// An error of class `kind` with a message that says what to do.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, cause: anyhow::anyhow!(message.into()) }
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::for_error(self.kind)
    }

    /// The confinement that was found too little.
    pub fn sandbox(&self) -> Option<&'static str> {
        self.cause.downcast_ref::<InsufficientSandbox>().map(|too_little| too_little.found.name())
    }

    /// The error as the result document reports it.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind, message: self.to_string(), retryable: false }
    }
}

impl std::fmt::Display for CliError {
    /// The error and its causes, each said once: many an error's own text already holds its cause.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut said = String::new();
        for cause in self.cause.chain().map(ToString::to_string) {
            if said.ends_with(&cause) {
                continue;
            }
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&cause);
        }
        f.write_str(&said)
    }
}

impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        Self { kind: FailureKind::Session, cause: error.into() }
    }
}
