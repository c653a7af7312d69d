//! Messages for the model about the sandbox: restored protected files, and hints after a refused write or missing network.

use agent_process::launch::{CommandOutcome, ExitReason, Launcher};
use agent_process::protected::{ChangeKind, ProtectedChange};
use agent_text::lines::list_first;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Maximum number of protected files listed.
const MAX_NAMED: usize = 10;

/// Bytes at the end of a stream that are scanned for error messages.
const SCANNED_BYTES: usize = 8 * 1024;

/// Bytes scanned when the command succeeded.
const SCANNED_BYTES_ON_SUCCESS: usize = 512;

/// Error messages about a missing network, in lower case: of the resolver and the C library, and of curl, git, pip, npm,
/// cargo, go, apt, wget and the Python and Node libraries.
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
    "failed to establish a new connection",
];

/// Error messages about a connection that failed, in lower case; the line names the host.
const NOT_CONNECTED: &[&str] =
    &["failed to connect to ", "couldn't connect to server", "connection failed: "];

/// Error messages of a write refused by a read-only mount, in lower case.
const REFUSED_WRITE: &[&str] = &["read-only file system", "erofs"];

/// Error messages of a write refused by kernel rules, in lower case; missing file permissions cause the same ones.
const REFUSED_BY_RULES: &[&str] = &["permission denied", "eacces"];

/// The exit code of a shell when a program is not found.
const NOT_FOUND: i32 = 127;

/// Puts a message about changed protected files, if any, before `how`, the text on how the command ended.
pub fn with_protected_files_text(protected_changes: &[ProtectedChange], how: String) -> String {
    let Some(damage) = protected_files_text(protected_changes) else { return how };
    format!(
        "Command failed: {damage}\nDo without such changes; if the task needs one, report it, so that the user can make \
        it.\n{how}"
    )
}

/// Describes which protected files were changed and whether they were restored; returns `None` when there are none.
pub fn protected_files_text(protected_changes: &[ProtectedChange]) -> Option<String> {
    if protected_changes.is_empty() {
        return None;
    }
    let (restored, failed): (Vec<_>, Vec<_>) =
        protected_changes.iter().partition(|one| one.restore_error.is_none());
    let failed = failed.iter().map(|one| {
        let why = one.restore_error.as_deref().unwrap_or_default();
        format!("{:?} ({}): {why}", one.path, was(one.kind))
    });
    let restored =
        restored.iter().map(|one| format!("{:?} ({}, now {})", one.path, was(one.kind), is_now(one.kind)));
    let directories: BTreeSet<_> =
        protected_changes.iter().filter_map(|one| one.moved_to.as_ref()?.parent()).collect();
    let who = if protected_changes.iter().any(|one| one.ran_concurrently) {
        "it, or a command that ran at the same time,"
    } else {
        "it"
    };
    let mut text = format!(
        "{who} changed protected files, which no command may: configuration of git, agents and editors can make programs \
        run later, and the user has protected others."
    );
    text.push_str(&list("These could NOT be put back, the user must check them", failed));
    text.push_str(&list("Put back", restored));
    for directory in directories {
        // Writing to a string does not fail.
        let _ = write!(text, "\nWhat the command made of them is stored in {}.", directory.display());
    }
    Some(text)
}

/// Returns [`protected_files_text`] on one line, for the user.
pub fn protected_files_line(protected_changes: &[ProtectedChange]) -> Option<String> {
    let text = protected_files_text(protected_changes)?;
    Some(text.lines().map(str::trim_start).collect::<Vec<_>>().join(" "))
}

/// Formats a heading and the first of `items` below it; returns an empty text when there are none.
fn list(heading: &str, items: impl Iterator<Item = String>) -> String {
    let named = list_first(items, MAX_NAMED, ",\n  ");
    named.map(|named| format!("\n{heading}:\n  {named}.")).unwrap_or_default()
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

/// Checks whether a line of `text` reports that curl or a similar program could not connect to a host other than this one. Commands
/// without a network have a loopback interface, where a refused connection has other causes.
fn names_unreachable_host(text: &str) -> bool {
    let is_local =
        |line: &str| ["127.0.0.1", "localhost", "[::1]", " ::1 "].iter().any(|host| line.contains(host));
    text.lines().any(|line| NOT_CONNECTED.iter().any(|message| line.contains(message)) && !is_local(line))
}

/// Returns a hint on what the user can allow when the sandbox probably made the command fail.
pub fn permission_hint(exit: &CommandOutcome, launcher: &Launcher) -> Option<String> {
    let tier = launcher.tier();
    if !tier.confines() || matches!(exit.reason, ExitReason::TimedOut | ExitReason::Cancelled) {
        return None;
    }
    // A pipe succeeds with its last command although an earlier one failed. Most successful output is not scanned, because
    // it may merely contain text about failures.
    let scanned = if exit.reason == ExitReason::Code(0) { SCANNED_BYTES_ON_SUCCESS } else { SCANNED_BYTES };
    let ends = [&exit.stderr, &exit.stdout].map(|stream| {
        let (first, second) = stream.tail.as_slices();
        let all = [stream.head.as_slice(), first, second].concat();
        let end = all.get(all.len().saturating_sub(scanned)..).unwrap_or_default();
        String::from_utf8_lossy(end).to_ascii_lowercase()
    });
    let contains_any =
        |messages: &[&str]| messages.iter().any(|message| ends.iter().any(|text| text.contains(message)));
    let is_unreachable = || ends.iter().any(|text| names_unreachable_host(text));
    let off = launcher.confinement().is_some_and(|it| !it.has_network())
        && (contains_any(NO_NETWORK) || is_unreachable());
    let refused = contains_any(REFUSED_WRITE) || !tier.has_own_view() && contains_any(REFUSED_BY_RULES);
    let refused = refused && exit.reason != ExitReason::Code(0);
    let not_found =
        tier.has_own_view() && exit.reason == ExitReason::Code(NOT_FOUND) && contains_any(&["/tmp/"]);
    match (off, refused) {
        (true, _) => Some(
            "[The network is off for commands: only the user can allow it, with --allow-net. Do what is possible \
            without it, and report what was not.]"
                .to_owned(),
        ),
        (false, true) if launcher.confinement().is_some_and(|it| !it.writes_workspace()) => Some(
            "[The workspace is read-only in this run, and commands can write to $TMPDIR only: report what you would \
            change.]"
                .to_owned(),
        ),
        (false, true) => Some(
            "[Commands can write to the workspace and $TMPDIR only, and not to protected files: only the user can \
            allow another directory, with --allow-write DIR.]"
                .to_owned(),
        ),
        (false, false) => not_found.then(|| {
            "[Commands have a /tmp of their own and do not see the machine's: only the user can make a program there \
            visible, by putting its directory into PATH.]"
                .to_owned()
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault B30
    #[test]
    fn a_failed_connection_to_another_host_is_one_without_a_network() {
        let curl = |host: &str| {
            names_unreachable_host(&format!(
                "curl: (7) failed to connect to {host} port 80 after 0 ms: couldn't connect to server"
            ))
        };
        assert!(curl("192.0.2.1") && curl("example.org"));
        assert!(!curl("127.0.0.1") && !curl("localhost"));
    }

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
            r#"it changed protected files, which no command may: configuration of git, agents and editors can make programs run later, and the user has protected others.
These could NOT be put back, the user must check them:
  "/ws/\u{1b}[2J\n" (created): it is large.
Put back:
  "/ws/.envrc" (created, now removed).
What the command made of them is stored in /state/quarantine/1."#
        );
        assert!(!protected_files_text(&both[1..]).unwrap().contains("Put back"), "nothing was");
        let line = protected_files_line(&both).unwrap();
        assert!(
            line.contains(r#"it is large. Put back: "/ws/.envrc" (created, now removed). What"#),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1);
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
