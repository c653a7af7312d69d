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

/// That protected files were changed, and what became of it; `None` when none was.
pub fn disturbance(disturbed: &[Disturbance]) -> Option<String> {
    let places: BTreeSet<_> = disturbed.iter().filter_map(|one| one.moved_to.as_ref()?.parent()).collect();
    let mut text = "it changed protected files, which no command may: configuration of git, agents and editors can make \
                    programs run later, and others the person has protected. They were put back:"
        .to_owned();
    for one in disturbed.iter().take(MAX_NAMED) {
        let act = match one.act {
            Act::Created => "created, now removed",
            Act::Changed => "changed, now restored",
            Act::Removed => "removed, now restored",
        };
        // Writing to a string does not fail.
        let _ = match &one.left {
            None => write!(text, "\n  {:?} ({act})", one.path),
            Some(why) => {
                write!(text, "\n  {:?} could NOT be put back, a person must look at it: {why}", one.path)
            }
        };
    }
    if let Some(more) = disturbed.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        let _ = write!(text, "\n  and {more} more");
    }
    for place in places {
        let _ = write!(text, "\nWhat the command made of them is kept in {}.", place.display());
    }
    text.push_str("\nDo without; if the task needs such a change, say so, so that the person can make it.");
    (!disturbed.is_empty()).then_some(text)
}

/// What to ask the person for, when a command failed at the walls.
pub fn hint(exit: &Exit, launcher: &Launcher) -> Option<String> {
    let tier = launcher.tier();
    if !tier.confines() || matches!(exit.ended, Ended::Code(0) | Ended::TimedOut | Ended::Cancelled) {
        return None;
    }
    let said = [&exit.stderr, &exit.stdout].map(|stream| {
        let (first, second) = stream.tail.as_slices();
        let all = [stream.head.as_slice(), first, second].concat();
        let end = all.get(all.len().saturating_sub(LOOKED_AT_BYTES)..).unwrap_or_default();
        String::from_utf8_lossy(end).to_ascii_lowercase()
    });
    let says = |words: &[&str]| words.iter().any(|word| said.iter().any(|text| text.contains(word)));
    let off = !launcher.has_network() && says(NO_NETWORK);
    let refused = says(REFUSED_WRITE) || !tier.has_own_view() && says(REFUSED_BY_RULES);
    match (off, refused) {
        (true, _) => Some(
            "[The network is off for commands: only the person can allow it, with --allow-net. Do what is possible \
             without, and say what was not.]"
                .to_owned(),
        ),
        (false, true) => Some(
            "[Commands can write to the workspace and /tmp only, and not to protected files: only the person can allow \
             another directory, with --allow-write DIR.]"
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
        };
        assert_eq!(disturbance(&[]), None);
        let text =
            disturbance(&[one("/ws/.envrc", None), one("/ws/\u{1b}[2J", Some("it is large"))]).unwrap();
        assert!(text.contains("\"/ws/.envrc\" (created, now removed)"), "{text}");
        assert!(
            text.contains(r#""/ws/\u{1b}[2J" could NOT be put back, a person must look at it: it is large"#),
            "{text}"
        );
        assert!(text.contains("/state/quarantine/1."), "{text}");
        let many: Vec<_> = (0..30).map(|number| one(&number.to_string(), None)).collect();
        assert!(disturbance(&many).unwrap().contains("and 20 more"));
    }
}
