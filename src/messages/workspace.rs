//! What is said about the files of a workspace that act on people and agents: instructions and executables.

use super::numbers::thousands;
use crate::core::language::Language;
use crate::core::run_result::{Executables, InstructionFile};
use jiff::Timestamp;

/// Characters of a hash that tell two contents of one file apart.
const SHORT_HASH: usize = 8;
/// Executables that are named; the JSON document lists more.
const MAX_LISTED: usize = 5;

/// Which instructions a run is given, and how they differ from what the run before was given.
pub fn instructions(file: &InstructionFile, language: Language) -> String {
    let InstructionFile { path, hash, before } = file;
    let word = language.pick("project instructions", "instrucciones del proyecto");
    let now = short(hash);
    let Some(before) = before else {
        let new = language
            .pick("which no run has read here before", "que ninguna ejecución había leído aquí antes");
        return format!("{word}: {path} ({now}), {new}");
    };
    let (day, then) = (utc_minute(before.at_ms), short(&before.hash));
    match language {
        _ if before.hash == *hash => {
            format!("{word}: {path} ({now}), {} {day}", language.pick("as on", "como el"))
        }
        Language::En => {
            format!("{word}: {path} is not what the run of {day} was given ({then} then, {now} now)")
        }
        Language::Es => {
            format!(
                "{word}: {path} no es lo que recibió la ejecución del {day} ({then} entonces, {now} ahora)"
            )
        }
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
pub fn executables(found: &Executables, language: Language) -> Option<String> {
    let Executables { files, more, complete } = found;
    let named: Vec<String> = files.iter().take(MAX_LISTED).map(|file| format!("{file:?}")).collect();
    let beyond = more.saturating_add((files.len() - named.len()) as u64);
    let beyond = if beyond == 0 {
        String::new()
    } else {
        match language {
            Language::En => format!(" and {} more", thousands(beyond)),
            Language::Es => format!(" y {} más", thousands(beyond)),
        }
    };
    let what = language.pick("Executables made or changed", "Ejecutables creados o modificados");
    match (named.is_empty(), *complete) {
        (true, true) => None,
        (true, false) => Some(
            language
                .pick(
                    "Executables: not looked for everywhere, there is too much to look at",
                    "Ejecutables: no se buscaron en todas partes, hay demasiado que mirar",
                )
                .to_owned(),
        ),
        (false, true) => Some(format!("{what}: {}{beyond}", named.join(", "))),
        (false, false) => {
            let partly = language.pick("not looked for everywhere", "no se buscaron en todas partes");
            Some(format!("{what}: {}{beyond}; {partly}", named.join(", ")))
        }
    }
}

fn short(hash: &str) -> &str {
    hash.get(..SHORT_HASH).unwrap_or(hash)
}

/// Date and time, UTC, to the minute.
fn utc_minute(at_ms: u64) -> String {
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
        let said = |files, more, complete| executables(&Executables { files, more, complete }, Language::En);
        assert_eq!(said(files(0), 0, true), None);
        assert_eq!(said(files(1), 0, true).unwrap(), "Executables made or changed: \"f0\"");
        assert!(said(files(7), 1_000, true).unwrap().ends_with("\"f4\" and 1,002 more"));
        assert!(said(files(0), 0, false).unwrap().contains("not looked for everywhere"));
        assert!(said(files(1), 0, false).unwrap().contains("\"f0\"; not looked for everywhere"));
    }
}
