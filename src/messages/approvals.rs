//! Calls that wait for an answer: what is said by `agent approvals`, `agent approve` and `agent deny`.

use super::numbers::count;
use crate::core::approval::ApprovalAnswer;
use std::path::Path;
use std::time::Duration;

/// The key with which answers are sealed cannot be used.
pub fn answer_key_unusable(state: &Path, error: &std::io::Error) -> String {
    format!(
        "the key of the answers, {}, cannot be used: {error}. Remove it to have a new one made; answers given so far no longer \
         count then",
        state.join("answers.key").display()
    )
}

/// How an answer begins its line.
pub fn answer_label(answer: &ApprovalAnswer) -> &'static str {
    match answer {
        ApprovalAnswer::Approve => "approved",
        ApprovalAnswer::Deny { .. } => "denied",
    }
}

/// The person's answer, in a list of what happened.
pub fn approval_answered(id: &str, answer: &ApprovalAnswer) -> String {
    let why = match answer {
        ApprovalAnswer::Deny { reason: Some(reason) } => format!(": {reason}"),
        ApprovalAnswer::Approve | ApprovalAnswer::Deny { reason: None } => String::new(),
    };
    format!("{}: {id}{why}", answer_label(answer))
}

/// Where `agent resume` follows an answer.
pub fn resume_hint(session: &str, open: usize) -> String {
    match u64::try_from(open).unwrap_or(u64::MAX) {
        0 => format!("go on with: agent resume {session}"),
        open => {
            let verb = if open == 1 { "waits" } else { "wait" };
            format!(
                "{} of this session still {verb} for an answer: agent approvals list",
                count(open, "call")
            )
        }
    }
}

/// There is no such question.
pub fn no_pending_call(id: &str) -> String {
    format!("no call waits under `{id}`; `agent approvals list` shows those that do")
}

/// Nothing waits at all.
pub const NO_PENDING_CALLS: &str = "no call waits for an answer\n";

/// How long ago, in the largest unit that fits.
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

/// A question in a list: its call is the line before.
pub fn pending_call_details(session: &str, ago: &str, state: &str, reason: &str) -> String {
    format!("   session {session}, asked {ago}, {state}\n   Asked because {reason}\n")
}

/// The state of a question that nobody has answered.
pub const NOT_ANSWERED: &str = "not answered";

/// The end of a list of questions.
pub const HOW_TO_ANSWER: &str = "Answer with `agent approve ID` or `agent deny ID --reason \"…\"`, then go on with `agent resume SESSION`.\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let of = |seconds| ago(Duration::from_secs(seconds));
        assert_eq!(of(1), "1 second ago");
        assert_eq!(of(59), "59 seconds ago");
        assert_eq!(of(60), "1 minute ago");
        assert_eq!(of(7_199), "1 hour ago");
        assert_eq!(of(200_000), "2 days ago");
    }

    #[test]
    fn going_on_is_advised_once_everything_is_answered() {
        assert_eq!(resume_hint("S", 0), "go on with: agent resume S");
        assert!(resume_hint("S", 1).starts_with("1 call of this session still waits"));
        assert!(resume_hint("S", 2).starts_with("2 calls of this session still wait "));
    }
}
