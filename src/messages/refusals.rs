//! Reasons why a call does not run and what to do instead, in every language, for the model and for users.

use agent_core::language::Language;

/// Refusal of a tool that is not among the agent's tools.
pub fn tool_not_allowed(agent: &str, tool: &str, allowed: &str, language: Language) -> String {
    match language {
        Language::En => format!("The agent `{agent}` may not use `{tool}`. It may use: {allowed}."),
        Language::Es => format!("El agente `{agent}` no puede usar `{tool}`. Puede usar: {allowed}."),
    }
}

/// Refusal of a command that matches a guardrail pattern.
pub fn command_blocked(pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command blocked by guardrail (pattern: {pattern}).\nIt never runs, in any mode or wording: reach \
             the goal in another way, or say in your answer what the user should run."
        ),
        Language::Es => format!(
            "Comando bloqueado por una regla de protección (patrón: {pattern}).\nNo se ejecuta nunca, en ningún modo ni con \
             otras palabras: llegar al objetivo de otra manera, o decir en la respuesta qué debería ejecutar el usuario."
        ),
    }
}

/// Refusal of a command that is too dangerous in every mode.
pub fn command_never_runs(pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command blocked by security policy: '{pattern}'.\nIt never runs, in any mode: reach the goal in another way, or \
             say in your answer what the user should run."
        ),
        Language::Es => format!(
            "Comando bloqueado por la política de seguridad: '{pattern}'.\nNo se ejecuta nunca, en ningún modo: llegar al \
             objetivo de otra manera, o decir en la respuesta qué debería ejecutar el usuario."
        ),
    }
}

/// Refusal of a command outside the known ones under `commands.allowed_only`.
pub fn command_not_known(language: Language) -> &'static str {
    language.pick(
        "Command refused: `commands.allowed_only` permits only commands that are known to be safe and development \
         commands.\nUse plain forms of those, in lists and pipes but without variables and redirections, or the file \
         tools.",
        "Comando rechazado: `commands.allowed_only` solo permite comandos que se sabe que son seguros y comandos de \
         desarrollo.\nUsar comandos simples de esos, en listas y tuberías pero sin variables ni redirecciones, o las \
         herramientas de archivos.",
    )
}

/// Refusal of a file that may be neither read nor changed.
pub fn sensitive_file(path: &str, pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Sensitive file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be neither read nor changed: continue \
             without it, and say in your answer if the task needs it."
        ),
        Language::Es => format!(
            "Archivo sensible bloqueado por una regla de protección: {path} (patrón: {pattern}).\nNo se puede leer ni \
             cambiar: continuar sin él y decir en la respuesta si la tarea lo necesita."
        ),
    }
}

/// Refusal to change a file that may only be read.
pub fn protected_file(path: &str, pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Protected file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be read but not changed: continue \
             without changing it, and say in your answer what the user should change there."
        ),
        Language::Es => format!(
            "Archivo protegido bloqueado por una regla de protección: {path} (patrón: {pattern}).\nSe puede leer pero no \
             cambiar: continuar sin cambiarlo y decir en la respuesta qué debería cambiar ahí el usuario."
        ),
    }
}

/// Refusal by a rule of the user; `words` is the message of the rule.
pub fn refused_by_rule(rule: &str, words: Option<&str>, language: Language) -> String {
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    match language {
        Language::En => format!(
            "Refused by a rule of the user ({rule}){words}.\nIt does not run in any form: continue without it, and say in your \
             answer if the task needs it."
        ),
        Language::Es => format!(
            "Denegado por una regla del usuario ({rule}){words}.\nNo se ejecuta de ninguna forma: continuar sin ello y \
             decir en la respuesta si la tarea lo necesita."
        ),
    }
}

/// Reason for a question that a rule of the user requires; `words` is the message of the rule.
pub fn asked_by_rule(rule: &str, words: Option<&str>, language: Language) -> String {
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    format!(
        "{} ({rule}){words}",
        language.pick("a rule requires a confirmation", "una regla exige confirmación")
    )
}

/// Refusal of a call that needs a confirmation without a terminal; `by_mode`: the mode requires it, not a rule.
pub fn no_approver(tool: &str, rule: &str, by_mode: bool, language: Language) -> String {
    let remedy = match (by_mode, language) {
        (true, Language::En) => {
            "The user can allow it with `--mode yolo`, preview it with `--dry-run`, or set `mode: yolo` for this agent."
        }
        (false, Language::En) => "The user can allow it at a terminal, or with a rule before this one.",
        (true, Language::Es) => {
            "El usuario puede permitirlo con `--mode yolo`, previsualizarlo con `--dry-run` o poner `mode: yolo` para este agente."
        }
        (false, Language::Es) => {
            "El usuario puede permitirlo en una terminal, o con una regla anterior a esta."
        }
    };
    match language {
        Language::En => format!(
            "`{tool}` needs a confirmation, and this run has no prompts ({rule}).\nIt did not run. {remedy} Continue with what \
             needs no confirmation, and say in your answer what was left undone."
        ),
        Language::Es => format!(
            "`{tool}` necesita una confirmación, y esta ejecución no admite preguntas ({rule}).\nNo se ejecutó. {remedy} \
             Continuar con lo que no necesita confirmación y decir en la respuesta qué quedó sin hacer."
        ),
    }
}

/// Adds to a refusal that the call cannot be stored as pending, because it contains a secret.
pub fn cannot_be_pending(reason: &str, language: Language) -> String {
    let why = language.pick(
        "It cannot wait for an answer either: it contains a secret, which is never stored.",
        "Tampoco puede esperar una respuesta: contiene un secreto, que nunca se guarda.",
    );
    format!("{reason}\n{why}")
}

const DECLINED: &str = "The user declined this action";
const DECLINED_ES: &str = "El usuario rechazó esta acción";

/// Says after a title that the user has refused the call, in the words for the user; `None` for the reason of another refusal.
pub fn call_declined(reason: &str, language: Language) -> Option<String> {
    let first = reason.lines().next()?;
    let why = first.strip_prefix(DECLINED).or_else(|| first.strip_prefix(DECLINED_ES))?;
    Some(format!("✗ {}{}", language.pick("refused by you", "rechazado por usted"), why.trim_end_matches('.')))
}

/// Refusal by the user, with an optional reason.
pub fn declined(reason: Option<&str>, language: Language) -> String {
    let reason = reason.map_or_else(|| ".".to_owned(), |reason| format!(": {reason}"));
    match language {
        Language::En => format!(
            "{DECLINED}{reason}\nIt did not run. Continue without it, or ask in your answer what to do \
             instead."
        ),
        Language::Es => format!(
            "{DECLINED_ES}{reason}\nNo se ejecutó. Continuar sin ella, o preguntar en la respuesta qué \
             hacer en su lugar."
        ),
    }
}

/// Refusal of an approved call because of a change since the approval.
pub fn approved_call_changed(what: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "The approval does not apply: {what}.\nIt did not run. Check the current state and make the call again if it is \
             still needed; the user will be asked about it."
        ),
        Language::Es => format!(
            "La aprobación no es válida: {what}.\nNo se ejecutó. Comprobar el estado actual y repetir la llamada si aún hace \
             falta; se preguntará por ella al usuario."
        ),
    }
}

/// Change since the approval: the answer belongs to another session, workspace or call.
pub fn answer_mismatch(language: Language) -> &'static str {
    language.pick("the answer belongs to another session or call", "la respuesta es de otra sesión o llamada")
}

/// Change since the approval: the tool.
pub fn tool_changed(language: Language) -> &'static str {
    language.pick("it is another tool", "es otra herramienta")
}

/// Change since the approval: the arguments.
pub fn approved_arguments_changed(language: Language) -> &'static str {
    language
        .pick("its arguments are not those that were approved", "sus argumentos no son los que se aprobaron")
}

/// Change since the approval: links resolve its paths differently.
pub fn paths_changed(language: Language) -> &'static str {
    language.pick("its paths resolve to other files than before", "sus rutas llevan ahora a otros archivos")
}

/// Change since the approval: the content of a file that it changes.
pub fn file_changed(path: &str, language: Language) -> String {
    format!("{path} {}", language.pick("has changed", "ha cambiado"))
}

/// Refusal because a link on the path changed while the user was asked.
pub fn links_changed(language: Language) -> &'static str {
    language.pick(
        "not executed: a link in the path of a file changed while the user was asked, so the answer was about another \
         file. Check where the path leads now.",
        "no se ejecutó: mientras se preguntaba al usuario cambió un enlace en la ruta de un archivo, así que la respuesta \
         era sobre otro archivo. Comprobar adónde lleva la ruta ahora.",
    )
}

/// Refusal by a hook.
pub fn hook_blocked(reason: &str, language: Language) -> String {
    format!("{}: {reason}", language.pick("Hook blocked the action", "Un hook bloqueó la acción"))
}

/// Reason of an approval that a hook asks for.
pub fn hook_asks(reason: &str, language: Language) -> String {
    format!("{}: {reason}", language.pick("a hook asks for approval", "un hook pide aprobación"))
}

/// Refusal because a hook has ended the run.
pub fn stopped_by_hook(language: Language) -> &'static str {
    language
        .pick("not executed: a hook has ended the run", "no se ejecutó: un hook ha terminado la ejecución")
}

/// Refusal because the run was interrupted or ran out of time.
pub fn not_executed(interrupted: bool, language: Language) -> &'static str {
    if interrupted {
        language.pick("not executed: the run was interrupted", "no se ejecutó: la ejecución fue interrumpida")
    } else {
        language
            .pick("not executed: the run's time was up", "no se ejecutó: se agotó el tiempo de la ejecución")
    }
}

/// Result of a call in a dry run.
pub fn would_execute(tool: &str, summary: &str, language: Language) -> String {
    format!("[DRY-RUN] {} {tool}: {summary}", language.pick("Would execute", "Se ejecutaría"))
}

/// Result of a call in a dry run that would fail.
pub fn would_fail(problem: &str, language: Language) -> String {
    let would =
        language.pick("As the files are now it would fail", "Con los archivos como están ahora, fallaría");
    format!("{would}: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::{En, Es};

    #[test]
    fn o23_every_refusal_keeps_its_facts_and_is_said_in_its_own_words() {
        let messages = |language| {
            [
                tool_not_allowed("FACT", "FACT", "FACT", language),
                command_blocked("FACT", language),
                command_never_runs("FACT", language),
                sensitive_file("FACT", "FACT", language),
                protected_file("FACT", "FACT", language),
                refused_by_rule("FACT", Some("FACT"), language),
                asked_by_rule("FACT", Some("FACT"), language),
                no_approver("FACT", "FACT", true, language),
                no_approver("FACT", "FACT", false, language),
                cannot_be_pending("FACT", language),
                declined(Some("FACT"), language),
                approved_call_changed("FACT", language),
                file_changed("FACT", language),
                hook_blocked("FACT", language),
                hook_asks("FACT", language),
                would_execute("FACT", "FACT", language),
                would_fail("FACT", language),
            ]
        };
        for (english, spanish) in messages(En).into_iter().zip(messages(Es)) {
            let facts = |text: &str| text.matches("FACT").count();
            assert_eq!(facts(&english), facts(&spanish), "{spanish}");
            assert_ne!(english, spanish);
            assert_eq!(english.lines().count(), spanish.lines().count(), "{spanish}");
        }
    }
}
