//! Approval questions at the terminal.

use super::numbers::{bytes, thousands};
use agent_core::language::Language;

/// Last line of a question: the answers. `may_last`: whether `a` (until the run ends) is offered; `is_cut`: whether the question
/// omits something, which must be shown before it can be answered with yes.
pub fn prompt_choices(may_last: bool, is_cut: bool, language: Language) -> &'static str {
    if is_cut {
        language.pick(
            "Not all of it is shown. v = view all of it, which comes before yes, n = no, n WHY = no and why, s = stop the run: ",
            "No se muestra todo. v = verlo todo, lo que va antes de un sí, n = no, n MOTIVO = no y por qué, s = detener la \
             ejecución: ",
        )
    } else if may_last {
        language.pick(
            "Allow it? y = yes, a = always until this run ends, n = no, n WHY = no and why, s = stop the run: ",
            "¿Permitirlo? y = sí, a = siempre hasta que termine esta ejecución, n = no, n MOTIVO = no y por qué, s = detener la \
             ejecución: ",
        )
    } else {
        language.pick(
            "Allow it? y = yes, n = no, s = stop the run: ",
            "¿Permitirlo? y = sí, n = no, s = detener la ejecución: ",
        )
    }
}

/// Line after a yes to a question that omits something.
pub fn prompt_show_first(language: Language) -> &'static str {
    language.pick(
        "   Nothing was allowed: type v to view all of it, then answer.",
        "   No se ha permitido nada: escriba v para verlo todo y responda después.",
    )
}

/// Line that explains what the answer `a` allows until the run ends.
pub fn prompt_always(what: &str, language: Language) -> String {
    let allows = language.pick("a allows until this run ends", "a permite hasta que termine esta ejecución");
    format!("   {allows}: {what}")
}

/// Scope of the answer `a`: every call of this tool on these files.
pub fn always_scope_files(tool: &str, files: &str, language: Language) -> String {
    match language {
        Language::En => format!("every call of {tool} on {files}"),
        Language::Es => format!("toda llamada a {tool} en {files}"),
    }
}

/// Scope of the answer `a`: every request of this tool to this host.
pub fn always_scope_host(tool: &str, host: &str, language: Language) -> String {
    format!("{tool} {} {host}", language.pick("with every request to", "en todas las peticiones a"))
}

/// Scope of the answer `a`: the same call with the same arguments.
pub fn always_scope_call(tool: &str, summary: &str, language: Language) -> String {
    format!(
        "{}: {tool} {summary}",
        language.pick("exactly this call again", "exactamente esta llamada otra vez")
    )
}

/// First line of a question.
pub fn prompt_title(call: &str, language: Language) -> String {
    language.pick(format!("May I run {call}?"), format!("¿Se puede ejecutar {call}?"))
}

/// Line with the reason of a question.
pub fn prompt_reason(reason: &str, language: Language) -> String {
    format!("   {} {reason}", language.pick("Asked because", "Se pregunta porque"))
}

/// Placeholder for omitted lines of a preview; `size` is the size of the whole preview in bytes.
pub fn preview_cut(left_out: usize, total: usize, size: usize) -> String {
    let number = |lines: usize| thousands(u64::try_from(lines).unwrap_or(u64::MAX));
    format!("… {} of {} lines not shown ({} in all) …", number(left_out), number(total), bytes(size))
}

/// Placeholder for the omitted middle of a long line.
pub fn line_cut(characters: usize) -> String {
    format!(" … {} characters not shown … ", thousands(u64::try_from(characters).unwrap_or(u64::MAX)))
}

/// Warning that symbolic links resolve `path` to `real`, or to a file outside the workspace (`None`).
pub fn link_target(path: &str, real: Option<&str>, language: Language) -> String {
    match (real, language) {
        (Some(real), Language::En) => format!("{path} leads through a link to {real}"),
        (None, Language::En) => format!("{path} leads through a link out of the workspace"),
        (Some(real), Language::Es) => format!("{path} lleva por un enlace a {real}"),
        (None, Language::Es) => format!("{path} lleva por un enlace fuera del espacio de trabajo"),
    }
}

/// Number of notes beyond those shown.
pub fn more_notes(count: usize, language: Language) -> String {
    match language {
        Language::En => format!("and {count} more notes, not shown"),
        Language::Es => format!("y {count} notas más, no mostradas"),
    }
}
