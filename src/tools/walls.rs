//! What the model reads when a command met the walls around it: protected files that were put back, and hints what to ask
//! the person for where the network is off or a write was refused.

use crate::process::launch::{Ended, Exit, Launcher};
use crate::process::protected::{Act, Disturbance};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The most protected files that are named.
const MAX_NAMED: usize = 10;

/// The end of a stream that is looked at for messages, in bytes: programs say last why they gave up.
const LOOKED_AT_BYTES: usize = 8 * 1024;

/// The same of a command that succeeded.
const LOOKED_AT_BYTES_OF_SUCCESS: usize = 512;

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

/// What the model reads about how a command ended: what it did to protected files before `how`.
pub fn ending(disturbed: &[Disturbance], how: String) -> String {
    let Some(disturbance) = disturbance(disturbed) else { return how };
    format!(
        "Command failed: {disturbance}\nDo without; if the task needs such a change, say so, so that the person can make \
         it.\n{how}"
    )
}

/// That protected files were changed, and what became of them; `None` when none was.
pub fn disturbance(disturbed: &[Disturbance]) -> Option<String> {
    if disturbed.is_empty() {
        return None;
    }
    let (back, left): (Vec<_>, Vec<_>) = disturbed.iter().partition(|one| one.left.is_none());
    let left = left.iter().map(|one| {
        let why = one.left.as_deref().unwrap_or_default();
        format!("{:?} ({}): {why}", one.path, was(one.act))
    });
    let back = back.iter().map(|one| format!("{:?} ({}, now {})", one.path, was(one.act), is_now(one.act)));
    let places: BTreeSet<_> = disturbed.iter().filter_map(|one| one.moved_to.as_ref()?.parent()).collect();
    let who = if disturbed.iter().any(|one| one.shared) {
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
pub fn disturbance_in_one_line(disturbed: &[Disturbance]) -> Option<String> {
    let text = disturbance(disturbed)?;
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

fn was(act: Act) -> &'static str {
    match act {
        Act::Created => "created",
        Act::Changed => "changed",
        Act::Removed => "removed",
    }
}

fn is_now(act: Act) -> &'static str {
    match act {
        Act::Created => "removed",
        Act::Changed | Act::Removed => "restored",
    }
}

/// What to ask the person for, when a command failed at the walls.
pub fn hint(exit: &Exit, launcher: &Launcher) -> Option<String> {
    let tier = launcher.tier();
    if !tier.confines() || matches!(exit.ended, Ended::TimedOut | Ended::Cancelled) {
        return None;
    }
    // The last of a pipe can succeed where the first has failed, and text about failures is no failure.
    let looked_at = if exit.ended == Ended::Code(0) { LOOKED_AT_BYTES_OF_SUCCESS } else { LOOKED_AT_BYTES };
    let said = [&exit.stderr, &exit.stdout].map(|stream| {
        let (first, second) = stream.tail.as_slices();
        let all = [stream.head.as_slice(), first, second].concat();
        let end = all.get(all.len().saturating_sub(looked_at)..).unwrap_or_default();
        String::from_utf8_lossy(end).to_ascii_lowercase()
    });
    let says = |words: &[&str]| words.iter().any(|word| said.iter().any(|text| text.contains(word)));
    let off = !launcher.has_network() && says(NO_NETWORK);
    let refused = says(REFUSED_WRITE) || !tier.has_own_view() && says(REFUSED_BY_RULES);
    let refused = refused && exit.ended != Ended::Code(0);
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
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protected_file_is_named_with_what_became_of_it() {
        let one = |path: &str, left: Option<&str>| Disturbance {
            path: path.to_owned(),
            act: Act::Created,
            left: left.map(str::to_owned),
            moved_to: Some("/state/quarantine/1/000-x".into()),
            shared: false,
        };
        assert_eq!(disturbance(&[]), None);
        let both = [one("/ws/.envrc", None), one("/ws/\u{1b}[2J\n", Some("it is large"))];
        assert_eq!(
            disturbance(&both).unwrap(),
            r#"it changed protected files, which no command may: configuration of git, agents and editors can make programs run later, and others the person has protected.
These could NOT be put back, a person must look at them:
  "/ws/\u{1b}[2J\n" (created): it is large.
Put back:
  "/ws/.envrc" (created, now removed).
What the command made of them is kept in /state/quarantine/1."#
        );
        assert!(!disturbance(&both[1..]).unwrap().contains("Put back"), "nothing was");
        let told = disturbance_in_one_line(&both).unwrap();
        assert!(
            told.contains(r#"it is large. Put back: "/ws/.envrc" (created, now removed). What"#),
            "{told}"
        );
        assert_eq!(told.lines().count(), 1);
        let shared = both.map(|one| Disturbance { shared: true, ..one });
        assert!(
            disturbance(&shared).unwrap().starts_with("it, or a command that ran at the same time, changed")
        );
        let many: Vec<_> = (0..30).map(|number| one(&number.to_string(), None)).collect();
        assert!(disturbance(&many).unwrap().contains(",\n  and 20 more."));
    }
}
