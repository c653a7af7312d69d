//! Approval questions at the terminal.

use super::numbers::{bytes, thousands};
use crate::core::language::Language;

/// Last line of a question: the answers. `may_last`: whether `a` (until the run ends) is offered.
pub fn prompt_choices(may_last: bool, language: Language) -> &'static str {
    if may_last {
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

/// Number of paths through links beyond those shown.
pub fn more_links(count: usize, language: Language) -> String {
    match language {
        Language::En => format!("and {count} more paths lead through links"),
        Language::Es => format!("y {count} rutas más llevan por enlaces"),
    }
}
