//! What is said about the files of a workspace that act on people and agents: instructions and executables.

use super::figures::thousands;
use crate::result::{Executables, InstructionFile};
use jiff::Timestamp;

/// Characters of a hash that tell two contents of one file apart.
const SHORT_HASH: usize = 8;
/// Executables that are named; the JSON document lists more.
const NAMED: usize = 5;

/// Which instructions a run is given, and how they differ from what the run before was given.
pub fn instructions(file: &InstructionFile) -> String {
    let InstructionFile { path, hash, before } = file;
    let hash_now = short(hash);
    match before {
        None => format!("project instructions: {path} ({hash_now}), which no run has read here before"),
        Some(before) if before.hash == *hash => {
            format!("project instructions: {path} ({hash_now}), as on {}", day(before.at_ms))
        }
        Some(before) => format!(
            "project instructions: {path} is not what the run of {} was given ({} then, {hash_now} now)",
            day(before.at_ms),
            short(&before.hash)
        ),
    }
}

/// Instructions with characters that nobody sees.
pub fn instructions_invisible(path: &str, places: &str) -> String {
    format!(
        "{path} holds characters that people do not see ({places}): the model reads what they spell; look at them \
         before you go on"
    )
}

/// Instructions that cannot be compared with what an earlier run was given.
pub fn instructions_not_compared(path: &str, why: &str) -> String {
    format!("{path} cannot be compared with what earlier runs were given: {why}")
}

/// Which executables a run made or changed; nothing when there are none and everything was looked at.
pub fn executables(found: &Executables) -> Option<String> {
    let Executables { files, more, complete } = found;
    let named: Vec<String> = files.iter().take(NAMED).map(|file| format!("{file:?}")).collect();
    let beyond = more.saturating_add((files.len() - named.len()) as u64);
    let beyond = if beyond == 0 { String::new() } else { format!(" and {} more", thousands(beyond)) };
    match (named.is_empty(), *complete) {
        (true, true) => None,
        (true, false) => {
            Some("Executables: not looked for everywhere, there is too much to look at".to_owned())
        }
        (false, true) => Some(format!("Executables made or changed: {}{beyond}", named.join(", "))),
        (false, false) => Some(format!(
            "Executables made or changed: {}{beyond}; not looked for everywhere",
            named.join(", ")
        )),
    }
}

fn short(hash: &str) -> &str {
    hash.get(..SHORT_HASH).unwrap_or(hash)
}

/// Date and time, UTC, to the minute.
fn day(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    let zoned = at.unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(jiff::tz::TimeZone::UTC);
    zoned.strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let files = |number: usize| (0..number).map(|at| format!("f{at}")).collect();
        let said = |files, more, complete| executables(&Executables { files, more, complete });
        assert_eq!(said(files(0), 0, true), None);
        assert_eq!(said(files(1), 0, true).unwrap(), "Executables made or changed: \"f0\"");
        assert!(said(files(7), 1_000, true).unwrap().ends_with("\"f4\" and 1,002 more"));
        assert!(said(files(0), 0, false).unwrap().contains("not looked for everywhere"));
        assert!(said(files(1), 0, false).unwrap().contains("\"f0\"; not looked for everywhere"));
    }
}
