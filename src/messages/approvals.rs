//! Messages of `agent approvals`, `agent approve` and `agent deny` about pending calls.

use super::numbers::count;
use agent_core::approval::ApprovalAnswer;
use std::path::Path;
use std::time::Duration;

/// Error for an unusable key file; the key signs approval answers.
pub fn answer_key_unusable(state: &Path, error: &std::io::Error) -> String {
    format!(
        "the key that signs approval answers, {}, cannot be used: {error}. Delete it to create a new one; earlier answers \
         then become invalid",
        state.join("answers.key").display()
    )
}

/// Returns the word for an answer.
pub fn answer_label(answer: &ApprovalAnswer) -> &'static str {
    match answer {
        ApprovalAnswer::Approve => "approved",
        ApprovalAnswer::Deny { .. } => "refused",
    }
}

/// Line about the user's answer in a list of events.
pub fn approval_answered(id: &str, answer: &ApprovalAnswer) -> String {
    let why = match answer {
        ApprovalAnswer::Deny { reason: Some(reason) } => format!(": {reason}"),
        ApprovalAnswer::Approve | ApprovalAnswer::Deny { reason: None } => String::new(),
    };
    format!("{}: {id}{why}", answer_label(answer))
}

/// Next command after an answer; `open` is the number of calls of the session without an answer.
pub fn resume_hint(session: &str, open: usize) -> String {
    match u64::try_from(open).unwrap_or(u64::MAX) {
        0 => format!("continue with: agent resume {session}"),
        open => {
            let verb = if open == 1 { "waits" } else { "wait" };
            format!(
                "{} of this session still {verb} for an answer: agent approvals list",
                count(open, "call")
            )
        }
    }
}

/// Error for an unknown approval id.
pub fn no_pending_call(id: &str) -> String {
    format!("no pending call has the id `{id}`: list pending calls with `agent approvals list`")
}

/// Output of `agent approvals list` without pending calls.
pub const NO_PENDING_CALLS: &str = "no call is waiting for an answer\n";

/// Age in the largest unit that fits.
pub fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", count(number, unit))
}

/// Details of a pending call in a list, below the line of the call.
pub fn pending_call_details(session: &str, ago: &str, state: &str, reason: &str) -> String {
    format!("   session {session}, asked {ago}, {state}\n   Asked because {reason}\n")
}

/// State of a pending call without an answer.
pub const NOT_ANSWERED: &str = "not answered";

/// Last line of a list of pending calls.
pub const HOW_TO_ANSWER: &str = "Answer with `agent approve ID` or `agent deny ID --reason \"…\"`, then continue with `agent resume SESSION`.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_formatted_in_its_largest_unit() {
        let of = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(of(1), "1 second ago");
        assert_eq!(of(59), "59 seconds ago");
        assert_eq!(of(60), "1 minute ago");
        assert_eq!(of(7_199), "1 hour ago");
        assert_eq!(of(200_000), "2 days ago");
    }

    #[test]
    fn resume_is_advised_when_all_calls_are_answered() {
        assert_eq!(resume_hint("S", 0), "continue with: agent resume S");
        assert!(resume_hint("S", 1).starts_with("1 call of this session still waits"));
        assert!(resume_hint("S", 2).starts_with("2 calls of this session still wait "));
    }
}
