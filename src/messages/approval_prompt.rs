//! Approval questions at the terminal.

use super::numbers::{bytes, thousands};
use agent_core::language::Language;

/// Which keys approve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalKeys {
    /// `y`.
    Once,
    /// `y` and `a`.
    Always,
    /// `y`, `a` and `A`.
    ForGood,
}

/// Last line of a question: the keys of its answers. `is_cut`: whether the question omits something, which must be shown before it can be answered with yes.
pub fn prompt_choices(keys: ApprovalKeys, is_cut: bool, language: Language) -> &'static str {
    match (is_cut, keys) {
        (true, _) => language.pick(
            "Not all is shown: v = view all, n = no, w = no and why, Esc = stop the run: ",
            "No se muestra todo: v = verlo todo, n = no, w = no y por qué, Esc = detener la ejecución: ",
        ),
        (false, ApprovalKeys::ForGood) => language.pick(
            "y = yes, a = always, A = save, n = no, w = no and why, Esc = stop the run: ",
            "y = sí, a = siempre, A = guardar, n = no, w = no y por qué, Esc = detener la ejecución: ",
        ),
        (false, ApprovalKeys::Always) => language.pick(
            "y = yes, a = always, n = no, w = no and why, Esc = stop the run: ",
            "y = sí, a = siempre, n = no, w = no y por qué, Esc = detener la ejecución: ",
        ),
        (false, ApprovalKeys::Once) => language
            .pick("y = yes, n = no, Esc = stop the run: ", "y = sí, n = no, Esc = detener la ejecución: "),
    }
}

/// Asks for the reason of a refusal, which the model reads.
pub fn prompt_why(language: Language) -> &'static str {
    language.pick("Why not? (Esc = back) ", "¿Por qué no? (Esc = volver) ")
}

/// Line after too many keys that are no answer.
pub fn prompt_given_up(language: Language) -> &'static str {
    language
        .pick("   Too many keys were no answer: refused.", "   Demasiadas teclas sin respuesta: rechazado.")
}

/// Line after a key that is no answer.
pub fn prompt_no_such_key(language: Language) -> &'static str {
    language.pick(
        "   That is none of the keys; nothing was answered.",
        "   No es ninguna de las teclas; no se ha respondido nada.",
    )
}

/// Line after a yes to a question that omits something.
pub fn prompt_show_first(language: Language) -> &'static str {
    language.pick(
        "   Nothing was allowed: v shows all of it, then answer.",
        "   No se ha permitido nada: v lo muestra todo; responda después.",
    )
}

/// Line that explains what the answer `a` allows until the run ends.
pub fn prompt_always(what: &str, language: Language) -> String {
    let allows = language.pick("a allows from now on", "a permite de ahora en adelante");
    format!("   {allows}: {what}")
}

/// Line that explains what the answer `A` writes.
pub fn prompt_saves(what: &str, language: Language) -> String {
    format!("   {} {what}", language.pick("A saves in", "A guarda en"))
}

/// A rule of the policy, as the user reads it; `condition` is what commands begin with, or a host.
pub fn allow_rule(tool: &str, condition: &str, confined: bool) -> String {
    let limit = if confined { " if it can be undone and stays in the workspace" } else { "" };
    format!("allow {tool} \"{condition}\"{limit}")
}

/// What the answer `A` writes to `file`: a rule.
pub fn saved_rule(file: &str, rule: &str, language: Language) -> String {
    format!("{file}, {}: {rule}", language.pick("for every project and mode", "para todo proyecto y modo"))
}

/// Line after the answer `A`; `place` is file and line of the rule.
pub fn rule_saved(place: &str, rule: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Written to {place}: {rule}. To take it back, delete the rule there; this conversation allows it until it ends."
        ),
        Language::Es => format!(
            "Escrito en {place}: {rule}. Para retirarla, borre la regla allí; esta conversación lo permite hasta que acabe."
        ),
    }
}

/// Warning after the answer `A`: the rule is in the file and does not allow the call because of `problem`.
pub fn rule_saved_without_effect(place: &str, rule: &str, problem: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Written to {place}: {rule}. It has no effect on this call: {problem}. Allowed in this conversation only."
        ),
        Language::Es => format!(
            "Escrito en {place}: {rule}. No afecta a esta llamada: {problem}. Permitido solo en esta conversación."
        ),
    }
}

/// Why a rule has no effect on a call: `other` decides on it.
pub fn other_decides(other: &str, language: Language) -> String {
    format!("{other} {}", language.pick("decides on it", "decide sobre ella"))
}

/// Warning after the answer `A`, which has written nothing.
pub fn rule_not_saved(why: &str, language: Language) -> String {
    match language {
        Language::En => format!("Nothing was written: {why}. Allowed in this conversation only."),
        Language::Es => format!("No se ha escrito nada: {why}. Permitido solo en esta conversación."),
    }
}

/// Scope of the answer `a`: all edits that only the mode asks about.
pub fn always_scope_edits(language: Language) -> &'static str {
    language.pick(
        "all file edits that only the mode asks about",
        "todas las ediciones por las que solo pregunta el modo",
    )
}

/// Scope of the answer `a`: simple commands that begin with `prefix`.
pub fn always_scope_prefix(prefix: &str, language: Language) -> String {
    format!(
        "{} `{prefix}`",
        language.pick("simple commands that begin with", "órdenes simples que empiezan por")
    )
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
pub fn always_scope_call(language: Language) -> &'static str {
    language.pick("exactly this call again", "exactamente esta llamada otra vez")
}

/// Line with the reason of a question.
pub fn prompt_reason(reason: &str, language: Language) -> String {
    format!("   {} {reason}", language.pick("Asked because", "Se pregunta porque"))
}

/// Why a command needs approval: it cannot be parsed.
pub fn risk_unclear(language: Language) -> &'static str {
    language.pick("it cannot be parsed as shell code", "no se entiende como código de shell")
}

/// Why a command needs approval: invisible characters.
pub fn risk_hidden(language: Language) -> &'static str {
    language.pick(
        "it has characters that a terminal does not show",
        "tiene caracteres que un terminal no muestra",
    )
}

/// Why a command needs approval: code that is not in its text.
pub fn risk_unknown_code(language: Language) -> &'static str {
    language.pick(
        "it runs a program or code that its text does not show",
        "ejecuta un programa o código que su texto no muestra",
    )
}

/// Why a command needs approval: it reads what the file tools refuse.
pub fn risk_protected(language: Language) -> &'static str {
    language.pick(
        "it can show files that the file tools refuse",
        "puede mostrar archivos que las herramientas rechazan",
    )
}

/// Why a command needs approval: a file that can be outside the workspace.
pub fn risk_perhaps_outside(path: &str, language: Language) -> String {
    match language {
        Language::En => format!("after `cd`, `{path}` can be outside the workspace"),
        Language::Es => format!("tras `cd`, `{path}` puede estar fuera del espacio de trabajo"),
    }
}

/// Why a command needs approval: a file outside the workspace.
pub fn risk_outside(path: &str, language: Language) -> String {
    format!("`{path}` {}", language.pick("is outside the workspace", "está fuera del espacio de trabajo"))
}

/// Why a command needs approval: a program that reaches other machines or services.
pub fn risk_connects(program: &str, language: Language) -> String {
    format!(
        "`{program}` {}",
        language.pick("reaches other machines or services", "llega a otras máquinas o servicios")
    )
}

/// Why a command needs approval: what cannot be undone.
pub fn risk_irreversible(program: &str, language: Language) -> String {
    format!("`{program}` {}", language.pick("cannot be undone", "no se puede deshacer"))
}

/// Placeholder for omitted lines of a preview; `size` is the size of the whole preview in bytes.
pub fn preview_cut(left_out: usize, size: usize) -> String {
    let left_out = thousands(u64::try_from(left_out).unwrap_or(u64::MAX));
    format!("… {left_out} lines not shown ({} in all) …", bytes(size))
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
