//! Messages about project instructions and new executables in the workspace.

use super::numbers::thousands;
use super::undo::minute;
use crate::core::language::Language;
use crate::core::run_result::{Executables, InstructionFile};

/// Characters shown of a content hash.
const SHORT_HASH: usize = 8;
/// Executables listed; the JSON document lists more.
const MAX_LISTED: usize = 5;

/// Instruction file of a run, and whether it has changed since the previous run.
pub fn instructions(file: &InstructionFile, language: Language) -> String {
    let InstructionFile { path, hash, before } = file;
    let word = language.pick("project instructions", "instrucciones del proyecto");
    let now = short(hash);
    let Some(before) = before else {
        let new = language.pick("new in this workspace", "nuevas en este espacio de trabajo");
        return format!("{word}: {path} ({now}), {new}");
    };
    let (day, then) = (minute(before.at_ms), short(&before.hash));
    match language {
        _ if before.hash == *hash => {
            format!(
                "{word}: {path} ({now}), {} {day}",
                language.pick("unchanged since", "sin cambios desde el")
            )
        }
        Language::En => {
            format!("{word}: {path} has changed since the run of {day} ({then} then, {now} now)")
        }
        Language::Es => {
            format!("{word}: {path} ha cambiado desde la ejecución del {day} ({then} entonces, {now} ahora)")
        }
    }
}

/// Warning about invisible characters in instructions; `places` lists them.
pub fn instructions_invisible(path: &str, places: &str) -> String {
    format!(
        "{path} contains invisible characters ({places}), which the model reads: check them \
         before you continue"
    )
}

/// Warning that instructions cannot be compared with those of earlier runs.
pub fn instructions_not_compared(path: &str, why: &str) -> String {
    format!("{path} cannot be compared with the instructions of earlier runs: {why}")
}

/// Executables that a run created or changed; `None` if a complete scan found none.
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
    let what = language.pick("Executables created or changed", "Ejecutables creados o modificados");
    match (named.is_empty(), *complete) {
        (true, true) => None,
        (true, false) => Some(
            language
                .pick(
                    "Executables: not searched for everywhere, because the workspace is too large",
                    "Ejecutables: no se buscaron en todas partes, porque el espacio de trabajo es demasiado grande",
                )
                .to_owned(),
        ),
        (false, true) => Some(format!("{what}: {}{beyond}", named.join(", "))),
        (false, false) => {
            let partly = language.pick("not searched for everywhere", "no se buscaron en todas partes");
            Some(format!("{what}: {}{beyond}; {partly}", named.join(", ")))
        }
    }
}

pub(super) fn short(hash: &str) -> &str {
    hash.get(..SHORT_HASH).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_executables_are_counted() {
        let files = |number: usize| (0..number).map(|at| format!("f{at}")).collect();
        let text = |files, more, complete| executables(&Executables { files, more, complete }, Language::En);
        assert_eq!(text(files(0), 0, true), None);
        assert_eq!(text(files(1), 0, true).unwrap(), "Executables created or changed: \"f0\"");
        assert!(text(files(7), 1_000, true).unwrap().ends_with("\"f4\" and 1,002 more"));
        assert!(text(files(0), 0, false).unwrap().contains("not searched for everywhere"));
        assert!(text(files(1), 0, false).unwrap().contains("\"f0\"; not searched for everywhere"));
    }
}
