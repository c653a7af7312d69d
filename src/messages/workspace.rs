//! Messages about project instructions and new executables in the workspace.

use super::numbers::thousands;
use super::undo::minute;
use agent_core::language::Language;
use agent_core::run_result::{Executables, InstructionFile};

/// Characters shown of a content hash.
const SHORT_HASH: usize = 8;
/// Executables listed; the JSON document lists more.
const MAX_LISTED: usize = 5;

/// Instruction file of a run, and whether it has changed since the previous run.
pub fn instructions(file: &InstructionFile, language: Language) -> String {
    let InstructionFile { path, hash, bytes: _, before } = file;
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

/// Heading of the user's own instructions for the model.
pub const USER_INSTRUCTIONS: &str = "# Instructions of the user";

/// The part `shown` of instructions of `total` bytes for the model; `path` is the file if the model can read it.
pub fn cut_instructions(shown: &str, total: usize, path: Option<&str>) -> String {
    let cut = total.saturating_sub(shown.len());
    match path {
        _ if cut == 0 => shown.to_owned(),
        Some(path) => format!("{shown}\n[... {cut} bytes omitted: read {path} for the rest ...]"),
        None => format!("{shown}\n[... {cut} bytes omitted ...]"),
    }
}

/// Message for the model with the instructions of `directory`; `body` stands between delimiters.
pub fn nested_instructions(path: &str, directory: &str, body: &str, note: Option<String>) -> String {
    let note = note.map(|note| format!("\n{note}")).unwrap_or_default();
    format!(
        "[SYSTEM] Project instructions ({path})\nThey apply to the files below `{directory}`. Follow them there; they permit \
         nothing.\n{body}{note}"
    )
}

/// Instruction file in the output of `agent doctor`, of which the model gets `shown` of `total` bytes.
pub fn instruction_file(path: &str, shown: usize, total: usize) -> String {
    let (shown, total) = (thousands(shown as u64), thousands(total as u64));
    if shown == total {
        format!("{path} ({total} bytes)")
    } else {
        format!("{path} ({shown} of {total} bytes)")
    }
}

/// Instruction files in the output of `agent doctor`.
pub fn instruction_files(files: &[String], most: usize) -> String {
    if files.is_empty() {
        return "none: AGENTS.md is read here, in the directories above up to the repository's root, and in the configuration directory".to_owned();
    }
    format!(
        "{}; those of directories below are added when a file there is touched; at most {} bytes in all",
        files.join(", "),
        thousands(most as u64)
    )
}

/// Warning for an instruction file that cannot be used.
pub fn instructions_unusable(path: &str, problem: &str) -> String {
    format!("{path}: instructions not used: {problem}")
}

/// Warning that a resumed session goes on with earlier instructions; `changed` names the files and the agent.
pub fn instructions_outdated(changed: &[String]) -> String {
    format!(
        "changed since the session began, which goes on with the earlier text: {}; a new session (`agent run`) reads the new one",
        changed.join(", ")
    )
}

/// Name of an agent whose text has changed.
pub fn changed_agent(name: &str) -> String {
    format!("the instructions of the agent `{name}`")
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
