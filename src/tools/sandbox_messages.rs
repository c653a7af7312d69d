//! What the model reads when a command met the walls around it: protected files that were put back, and hints what to ask
//! the person for where the network is off or a write was refused.

use crate::process::launch::{CommandOutcome, ExitReason, Launcher};
use crate::process::protected::{ChangeKind, ProtectedChange};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The most protected files that are named.
const MAX_NAMED: usize = 10;

/// The end of a stream that is looked at for messages, in bytes: programs say last why they gave up.
const SCANNED_BYTES: usize = 8 * 1024;

/// The same of a command that succeeded.
const SCANNED_BYTES_ON_SUCCESS: usize = 512;

/// What programs say when they find no network: the resolver and the C library's words for errors, and what curl, git, pip,
/// npm, cargo, go, apt, wget and Python's and Node's own libraries make of them.
const NO_NETWORK: &[&str] = &[
    "could not resolve host",
    "couldn't resolve host",
    "could not resolve hostname",
    "unable to resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "nodename nor servname",
    "no address associated with hostname",
    "network is unreachable",
    "network unreachable",
    "enotfound",
    "eai_again",
    "enetunreach",
    "dial tcp: lookup",
    "failed to lookup address information",
    "name resolution failed",
    "bad address '",
    "socket: operation not permitted",
    "socket: permission denied",
    "could not connect to server",
    "failed to establish a new connection",
];

/// What programs say when a write is refused by the walls.
const REFUSED_WRITE: &[&str] = &["read-only file system", "erofs"];

/// The same where rules refuse it, which is also what the rights of other users say.
const REFUSED_BY_RULES: &[&str] = &["permission denied", "eacces"];

/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// What the model reads about how a command ended: what it did to protected files before `how`.
pub fn with_protected_files_text(protected_changes: &[ProtectedChange], how: String) -> String {
    let Some(disturbance) = protected_files_text(protected_changes) else { return how };
    format!(
        "Command failed: {disturbance}\nDo without; if the task needs such a change, say so, so that the person can make \
         it.\n{how}"
    )
}

/// That protected files were changed, and what became of them; `None` when none was.
pub fn protected_files_text(protected_changes: &[ProtectedChange]) -> Option<String> {
    if protected_changes.is_empty() {
        return None;
    }
    let (back, left): (Vec<_>, Vec<_>) =
        protected_changes.iter().partition(|one| one.restore_error.is_none());
    let left = left.iter().map(|one| {
        let why = one.restore_error.as_deref().unwrap_or_default();
        format!("{:?} ({}): {why}", one.path, was(one.kind))
    });
    let back = back.iter().map(|one| format!("{:?} ({}, now {})", one.path, was(one.kind), is_now(one.kind)));
    let places: BTreeSet<_> =
        protected_changes.iter().filter_map(|one| one.moved_to.as_ref()?.parent()).collect();
    let who = if protected_changes.iter().any(|one| one.ran_concurrently) {
        "it, or a command that ran at the same time,"
    } else {
        "it"
    };
    let mut text = format!(
        "{who} changed protected files, which no command may: configuration of git, agents and editors can make programs \
         run later, and others the person has protected."
    );
    text.push_str(&list("These could NOT be put back, a person must look at them", left));
    text.push_str(&list("Put back", back));
    for place in places {
        // Writing to a string does not fail.
        let _ = write!(text, "\nWhat the command made of them is kept in {}.", place.display());
    }
    Some(text)
}

/// The same as one line, for people.
pub fn protected_files_line(protected_changes: &[ProtectedChange]) -> Option<String> {
    let text = protected_files_text(protected_changes)?;
    Some(text.lines().map(str::trim_start).collect::<Vec<_>>().join(" "))
}

/// A heading and the first of `items` below it; nothing when there are none.
fn list(heading: &str, items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MAX_NAMED);
    let mut named: Vec<String> = items.take(MAX_NAMED).collect();
    if named.is_empty() {
        return String::new();
    }
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    format!("\n{heading}:\n  {}.", named.join(",\n  "))
}

fn was(act: ChangeKind) -> &'static str {
    match act {
        ChangeKind::Created => "created",
        ChangeKind::Changed => "changed",
        ChangeKind::Removed => "removed",
    }
}

fn is_now(act: ChangeKind) -> &'static str {
    match act {
        ChangeKind::Created => "removed",
        ChangeKind::Changed | ChangeKind::Removed => "restored",
    }
}

/// What to ask the person for, when a command failed at the walls.
pub fn permission_hint(exit: &CommandOutcome, launcher: &Launcher) -> Option<String> {
    let tier = launcher.tier();
    if !tier.confines() || matches!(exit.reason, ExitReason::TimedOut | ExitReason::Cancelled) {
        return None;
    }
    // The last of a pipe can succeed where the first has failed, and text about failures is no failure.
    let looked_at = if exit.reason == ExitReason::Code(0) { SCANNED_BYTES_ON_SUCCESS } else { SCANNED_BYTES };
    let said = [&exit.stderr, &exit.stdout].map(|stream| {
        let (first, second) = stream.tail.as_slices();
        let all = [stream.head.as_slice(), first, second].concat();
        let end = all.get(all.len().saturating_sub(looked_at)..).unwrap_or_default();
        String::from_utf8_lossy(end).to_ascii_lowercase()
    });
    let says = |words: &[&str]| words.iter().any(|word| said.iter().any(|text| text.contains(word)));
    let off = !launcher.has_network() && says(NO_NETWORK);
    let refused = says(REFUSED_WRITE) || !tier.has_own_view() && says(REFUSED_BY_RULES);
    let refused = refused && exit.reason != ExitReason::Code(0);
    let not_found = tier.has_own_view() && exit.reason == ExitReason::Code(NOT_FOUND) && says(&["/tmp/"]);
    match (off, refused) {
        (true, _) => Some(
            "[The network is off for commands: only the person can allow it, with --allow-net. Do what is possible \
             without, and say what was not.]"
                .to_owned(),
        ),
        (false, true) => Some(
            "[Commands can write to the workspace and $TMPDIR only, and not to protected files: only the person can \
             allow another directory, with --allow-write DIR.]"
                .to_owned(),
        ),
        (false, false) => not_found.then(|| {
            "[Commands have a /tmp of their own and do not see the machine's: only the person can show them a program \
             there, with its directory in PATH.]"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protected_file_is_named_with_what_became_of_it() {
        let one = |path: &str, left: Option<&str>| ProtectedChange {
            path: path.to_owned(),
            kind: ChangeKind::Created,
            restore_error: left.map(str::to_owned),
            moved_to: Some("/state/quarantine/1/000-x".into()),
            ran_concurrently: false,
        };
        assert_eq!(protected_files_text(&[]), None);
        let both = [one("/ws/.envrc", None), one("/ws/\u{1b}[2J\n", Some("it is large"))];
        assert_eq!(
            protected_files_text(&both).unwrap(),
            r#"it changed protected files, which no command may: configuration of git, agents and editors can make programs run later, and others the person has protected.
These could NOT be put back, a person must look at them:
  "/ws/\u{1b}[2J\n" (created): it is large.
Put back:
  "/ws/.envrc" (created, now removed).
What the command made of them is kept in /state/quarantine/1."#
        );
        assert!(!protected_files_text(&both[1..]).unwrap().contains("Put back"), "nothing was");
        let told = protected_files_line(&both).unwrap();
        assert!(
            told.contains(r#"it is large. Put back: "/ws/.envrc" (created, now removed). What"#),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1);
        let shared = both.map(|one| ProtectedChange { ran_concurrently: true, ..one });
        assert!(
            protected_files_text(&shared)
                .unwrap()
                .starts_with("it, or a command that ran at the same time, changed")
        );
        let many: Vec<_> = (0..30).map(|number| one(&number.to_string(), None)).collect();
        assert!(protected_files_text(&many).unwrap().contains(",\n  and 20 more."));
    }
}
