//! Questions to the person at the terminal.

use super::numbers::{bytes, thousands};
use crate::core::language::Language;

/// The end of every question.
pub fn prompt_choices(may_last: bool, language: Language) -> &'static str {
    if may_last {
        language.pick(
            "Allow it? y = yes, s = yes until this run ends, n = no, n WHY = no and why, a = abort the run: ",
            "¿Permitirlo? y = sí, s = sí hasta que termine esta ejecución, n = no, n MOTIVO = no y por qué, a = abortar la \
             ejecución: ",
        )
    } else {
        language.pick(
            "Allow it? y = yes, n = no, a = abort the run: ",
            "¿Permitirlo? y = sí, n = no, a = abortar la ejecución: ",
        )
    }
}

/// What may run unasked from then on, if the person says so.
pub fn prompt_always(what: &str, language: Language) -> String {
    let allows = language.pick("s allows until this run ends", "s permite hasta que termine esta ejecución");
    format!("   {allows}: {what}")
}

/// What is allowed until the run ends: every change of these files by this tool.
pub fn always_scope_files(tool: &str, files: &str, language: Language) -> String {
    match language {
        Language::En => format!("{tool} on {files}, whatever it does there"),
        Language::Es => format!("{tool} en {files}, haga lo que haga ahí"),
    }
}

/// What is allowed until the run ends: every request of this tool to this host.
pub fn always_scope_host(tool: &str, host: &str, language: Language) -> String {
    format!("{tool} {} {host}", language.pick("on every page of", "en todas las páginas de"))
}

/// What is allowed until the run ends: this very call.
pub fn always_scope_call(tool: &str, summary: &str, language: Language) -> String {
    format!(
        "{}: {tool} {summary}",
        language.pick("exactly this call again", "exactamente esta llamada otra vez")
    )
}

/// The first line of a question.
pub fn prompt_title(call: &str, language: Language) -> String {
    language.pick(format!("May I run {call}?"), format!("¿Se puede ejecutar {call}?"))
}

/// Why it is asked.
pub fn prompt_reason(reason: &str, language: Language) -> String {
    format!("   {} {reason}", language.pick("Asked because", "Se pregunta porque"))
}

/// Stands for the lines of a preview that are not shown.
pub fn preview_cut(left_out: usize, total: usize, size: usize) -> String {
    let number = |lines: usize| thousands(u64::try_from(lines).unwrap_or(u64::MAX));
    format!("… {} of {} lines not shown ({} in all) …", number(left_out), number(total), bytes(size))
}

/// Stands for the middle of a long line.
pub fn line_cut(characters: usize) -> String {
    format!(" … {} characters not shown … ", thousands(u64::try_from(characters).unwrap_or(u64::MAX)))
}

/// A path that is asked about is not where its name says, but at `real`, or nowhere inside of the workspace.
pub fn link_target(path: &str, real: Option<&str>, language: Language) -> String {
    match (real, language) {
        (Some(real), Language::En) => format!("{path} leads through a link to {real}"),
        (None, Language::En) => format!("{path} leads through a link out of the workspace"),
        (Some(real), Language::Es) => format!("{path} lleva por un enlace a {real}"),
        (None, Language::Es) => format!("{path} lleva por un enlace fuera del espacio de trabajo"),
    }
}

/// There are more such paths than are shown.
pub fn more_links(count: usize, language: Language) -> String {
    match language {
        Language::En => format!("and {count} more paths lead through links"),
        Language::Es => format!("y {count} rutas más llevan por enlaces"),
    }
}
