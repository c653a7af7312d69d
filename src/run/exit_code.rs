//! The exit codes, and the mapping from the result of a run to its code.

use agent_core::failure::FailureKind;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use std::fmt::Write;
use strum::VariantArray;

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub enum ExitCode {
    /// The model finished.
    Success,
    /// The provider was unusable, or there is a bug.
    Failed,
    /// The run ended early; its changes remain.
    Partial,
    /// Configuration, usage or session error before the run started.
    Config,
    /// The API key is missing or was refused.
    Auth,
    /// A time limit was reached.
    Timeout,
    /// SIGINT or SIGTERM ended the run.
    Interrupted,
}

impl ExitCode {
    /// Returns the number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failed => 1,
            Self::Partial => 2,
            Self::Config => 3,
            Self::Auth => 4,
            Self::Timeout => 5,
            Self::Interrupted => 130,
        }
    }

    /// Returns the code of a run that ended for `reason`.
    pub fn for_stop_reason(reason: StopReason) -> Self {
        match reason {
            StopReason::LlmDone => Self::Success,
            StopReason::MaxSteps
            | StopReason::BudgetExceeded
            | StopReason::ContextFull
            | StopReason::RepeatedCall
            | StopReason::ConsecutiveErrors
            | StopReason::NoProgress
            | StopReason::Guardrail
            | StopReason::ContentFilter
            | StopReason::Truncated
            | StopReason::AwaitingApproval => Self::Partial,
            StopReason::Timeout => Self::Timeout,
            StopReason::UserInterrupt => Self::Interrupted,
            StopReason::LlmError | StopReason::InternalError => Self::Failed,
            StopReason::AuthError => Self::Auth,
        }
    }

    /// Returns the code of a run that ended for `reason` with `status`: a finished run may have failed its checks.
    pub fn for_result(reason: StopReason, status: Status) -> Self {
        match (Self::for_stop_reason(reason), status) {
            (Self::Success, Status::Partial) => Self::Partial,
            (code, _) => code,
        }
    }

    /// Returns the code of an error before the run started.
    pub fn for_error(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Auth => Self::Auth,
            FailureKind::Config | FailureKind::Usage | FailureKind::Session => Self::Config,
            FailureKind::RateLimit
            | FailureKind::Overloaded
            | FailureKind::Server
            | FailureKind::Network
            | FailureKind::Timeout
            | FailureKind::Quota
            | FailureKind::ContextOverflow
            | FailureKind::Refusal
            | FailureKind::Malformed
            | FailureKind::EmptyAnswer
            | FailureKind::ToolUseFailed
            | FailureKind::CutStream
            | FailureKind::Request
            | FailureKind::OutputSchema
            | FailureKind::Internal => Self::Failed,
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Success => "the model finished",
            Self::Failed => "the provider was unusable after the retries, or a bug",
            Self::Partial => {
                "the run ended early; what was done stands (`--exit-code-on-partial N` replaces it)"
            }
            Self::Config => "configuration, usage or session error; no run began",
            Self::Auth => "no key, or one that is not accepted; never retried",
            Self::Timeout => "a time limit was reached",
            Self::Interrupted => "Ctrl+C, SIGTERM, or Esc at a question",
        }
    }
}

/// Generates the table of exit codes in the README.
pub fn table() -> String {
    let mut table = String::from("| exit | when | `status` | `stop_reason` |\n|---|---|---|---|\n");
    for code in ExitCode::VARIANTS.iter().copied() {
        let reasons: Vec<StopReason> = StopReason::VARIANTS
            .iter()
            .copied()
            .filter(|reason| ExitCode::for_stop_reason(*reason) == code)
            .collect();
        let status = reasons.first().map_or(Status::Failed, |reason| reason.status()).name();
        let mut names: Vec<String> = reasons.iter().map(|reason| format!("`{reason}`")).collect();
        if names.is_empty() {
            names.push("null".to_owned());
        }
        let _ = writeln!(table, "| {} | {} | {status} | {} |", code.code(), code.meaning(), names.join(", "));
    }
    table
}

/// Returns the exit code for a result; `on_partial` replaces that of a partial one.
pub fn exit_code(result: &RunResult, on_partial: Option<u8>) -> u8 {
    let code =
        result.stop_reason.map_or(ExitCode::Failed, |reason| ExitCode::for_result(reason, result.status));
    match (code, on_partial) {
        (ExitCode::Partial, Some(other)) if result.status == Status::Partial => other,
        (code, _) => code.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_the_code_of_the_contract() {
        let codes: Vec<u8> =
            StopReason::VARIANTS.iter().map(|reason| ExitCode::for_stop_reason(*reason).code()).collect();
        assert_eq!(codes, [0, 2, 2, 2, 5, 2, 2, 2, 2, 2, 2, 2, 130, 1, 4, 1]);
    }

    #[test]
    fn partial_is_exactly_what_exits_2_5_or_130() {
        for reason in StopReason::VARIANTS.iter().copied() {
            let partial = reason.status() == Status::Partial;
            assert_eq!(partial, matches!(ExitCode::for_stop_reason(reason).code(), 2 | 5 | 130), "{reason}");
        }
    }
}
