//! Why a call does not run, in every language: what the model reads and people see, and what to do instead.

use crate::core::language::Language;

/// The agent's own tools do not hold this one.
pub fn tool_not_allowed(agent: &str, tool: &str, allowed: &str, language: Language) -> String {
    match language {
        Language::En => format!("The agent `{agent}` may not use `{tool}`. It may use: {allowed}."),
        Language::Es => format!("El agente `{agent}` no puede usar `{tool}`. Puede usar: {allowed}."),
    }
}

/// A command that the guardrails block.
pub fn command_blocked(pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command blocked by guardrail (pattern: {pattern}).\nIt never runs, in no mode and in no other words: reach \
             the goal in another way, or say in your answer what a person should run."
        ),
        Language::Es => format!(
            "Comando bloqueado por una regla de protección (patrón: {pattern}).\nNo se ejecuta nunca, en ningún modo ni con \
             otras palabras: llegar al objetivo de otra manera, o decir en la respuesta qué debería ejecutar una persona."
        ),
    }
}

/// A command that is too dangerous in every mode.
pub fn command_never_runs(pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command blocked by security policy: '{pattern}'.\nIt never runs, in no mode: reach the goal in another way, or \
             say in your answer what a person should run."
        ),
        Language::Es => format!(
            "Comando bloqueado por la política de seguridad: '{pattern}'.\nNo se ejecuta nunca, en ningún modo: llegar al \
             objetivo de otra manera, o decir en la respuesta qué debería ejecutar una persona."
        ),
    }
}

/// A command that is not among those that are known.
pub fn command_not_known(language: Language) -> &'static str {
    language.pick(
        "Command refused: `commands.allowed_only` permits only commands that are known to be safe and development \
         commands.\nUse plain commands of those, in lists and pipes but without variables and redirections, or the file \
         tools.",
        "Comando rechazado: `commands.allowed_only` solo permite comandos que se sabe que son seguros y comandos de \
         desarrollo.\nUsar comandos simples de esos, en listas y tuberías pero sin variables ni redirecciones, o las \
         herramientas de archivos.",
    )
}

/// A file that may be neither read nor changed.
pub fn sensitive_file(path: &str, pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Sensitive file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be neither read nor changed: go on \
             without it, and say in your answer if the task needs it."
        ),
        Language::Es => format!(
            "Archivo sensible bloqueado por una regla de protección: {path} (patrón: {pattern}).\nNo se puede leer ni \
             cambiar: continuar sin él y decir en la respuesta si la tarea lo necesita."
        ),
    }
}

/// A file that may not be changed.
pub fn protected_file(path: &str, pattern: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Protected file blocked by guardrail: {path} (pattern: {pattern}).\nIt may be read but not changed: go on \
             without changing it, and say in your answer what a person should change there."
        ),
        Language::Es => format!(
            "Archivo protegido bloqueado por una regla de protección: {path} (patrón: {pattern}).\nSe puede leer pero no \
             cambiar: continuar sin cambiarlo y decir en la respuesta qué debería cambiar ahí una persona."
        ),
    }
}

/// A rule of the person forbids it; `words` are theirs.
pub fn denied_by_rule(rule: &str, words: Option<&str>, language: Language) -> String {
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    match language {
        Language::En => format!(
            "Denied by a rule of the person ({rule}){words}.\nIt does not run in any form: go on without it, and say in your \
             answer if the task needs it."
        ),
        Language::Es => format!(
            "Denegado por una regla de la persona ({rule}){words}.\nNo se ejecuta de ninguna forma: continuar sin ello y \
             decir en la respuesta si la tarea lo necesita."
        ),
    }
}

/// Why a call is asked: a rule of the person says so, in these `words`.
pub fn asked_by_rule(rule: &str, words: Option<&str>, language: Language) -> String {
    let words = words.map_or_else(String::new, |words| format!(": {words}"));
    format!("{} ({rule}){words}", language.pick("a rule asks about it", "una regla pregunta por ello"))
}

/// A question that nobody is there to answer; `by_mode` where the mode asks it, and not a rule.
pub fn no_approver(tool: &str, rule: &str, by_mode: bool, language: Language) -> String {
    let remedy = match (by_mode, language) {
        (true, Language::En) => {
            "A person can allow it with `--mode yolo`, look at it with `--dry-run`, or set `mode: yolo` for this agent."
        }
        (false, Language::En) => {
            "A person can allow it at a terminal, or with a rule that stands before this one."
        }
        (true, Language::Es) => {
            "Una persona puede permitirlo con `--mode yolo`, mirarlo con `--dry-run` o poner `mode: yolo` para este agente."
        }
        (false, Language::Es) => {
            "Una persona puede permitirlo en una terminal, o con una regla que esté antes que esta."
        }
    };
    match language {
        Language::En => format!(
            "`{tool}` needs a confirmation and there is nobody to ask ({rule}).\nIt did not run. {remedy} Go on with what \
             needs no confirmation, and say in your answer what was left undone."
        ),
        Language::Es => format!(
            "`{tool}` necesita una confirmación y no hay nadie a quien preguntar ({rule}).\nNo se ejecutó. {remedy} \
             Continuar con lo que no necesita confirmación y decir en la respuesta qué quedó sin hacer."
        ),
    }
}

/// The same where the call cannot wait for an answer either.
pub fn cannot_be_pending(reason: &str, language: Language) -> String {
    let why = language.pick(
        "It cannot wait for an answer either: it holds a secret, which is kept nowhere.",
        "Tampoco puede esperar una respuesta: contiene un secreto, que no se guarda en ninguna parte.",
    );
    format!("{reason}\n{why}")
}

/// The person refused it, for this reason if one was given.
pub fn declined(reason: Option<&str>, language: Language) -> String {
    let said = reason.map_or_else(|| ".".to_owned(), |reason| format!(": {reason}"));
    match language {
        Language::En => format!(
            "The person said no to this action{said}\nIt did not run. Go on without it, or ask in your answer what to do \
             instead."
        ),
        Language::Es => format!(
            "La persona dijo que no a esta acción{said}\nNo se ejecutó. Continuar sin ella, o preguntar en la respuesta qué \
             hacer en su lugar."
        ),
    }
}

/// It was approved, and `what` has changed since.
pub fn approved_call_changed(what: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Approved, but not this: {what}.\nIt did not run. Look at how things are now and make the call again if it is \
             still needed; the person will be asked about it."
        ),
        Language::Es => format!(
            "Aprobado, pero no esto: {what}.\nNo se ejecutó. Mirar cómo están las cosas ahora y repetir la llamada si aún hace \
             falta; se preguntará por ella a la persona."
        ),
    }
}

/// What is other than what was approved: the answer is of another session or workspace, or to another question.
pub fn answer_mismatch(language: Language) -> &'static str {
    language
        .pick("the answer was not given here to this question", "la respuesta no se dio aquí a esta pregunta")
}

/// The same: it is a call of another tool.
pub fn tool_changed(language: Language) -> &'static str {
    language.pick("it is another tool", "es otra herramienta")
}

/// The same: it has other arguments.
pub fn approved_arguments_changed(language: Language) -> &'static str {
    language
        .pick("its arguments are not those that were approved", "sus argumentos no son los que se aprobaron")
}

/// The same: links lead its paths elsewhere.
pub fn paths_changed(language: Language) -> &'static str {
    language.pick("its paths lead elsewhere than they did", "sus rutas llevan a otro lugar que antes")
}

/// The same: a file that it changes is another.
pub fn file_changed(path: &str, language: Language) -> String {
    format!("{path} {}", language.pick("is not what it was", "no es lo que era"))
}

/// A link was made or changed while the person was asked.
pub fn links_changed(language: Language) -> &'static str {
    language.pick(
        "not executed: while the person was asked, a link on the way to a file was changed, so the answer was about another \
         file. Look where the path leads now.",
        "no se ejecutó: mientras se preguntaba a la persona cambió un enlace en el camino a un archivo, así que la respuesta \
         era sobre otro archivo. Mirar adónde lleva la ruta ahora.",
    )
}

/// A hook blocked it.
pub fn hook_blocked(reason: &str, language: Language) -> String {
    format!("{}: {reason}", language.pick("Hook blocked the action", "Un hook bloqueó la acción"))
}

/// It comes after a hook has ended the run.
pub fn stopped_by_hook(language: Language) -> &'static str {
    language
        .pick("not executed: a hook has ended the run", "no se ejecutó: un hook ha terminado la ejecución")
}

/// The run was interrupted before it, or its time was up.
pub fn not_executed(interrupted: bool, language: Language) -> &'static str {
    if interrupted {
        language.pick("not executed: the run was interrupted", "no se ejecutó: la ejecución fue interrumpida")
    } else {
        language
            .pick("not executed: the run's time was up", "no se ejecutó: se agotó el tiempo de la ejecución")
    }
}

/// What a dry run says in place of a result.
pub fn would_execute(tool: &str, summary: &str, language: Language) -> String {
    format!("[DRY-RUN] {} {tool}: {summary}", language.pick("Would execute", "Se ejecutaría"))
}

/// The same where the call would not work.
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
        let said = |language| {
            [
                tool_not_allowed("FACT", "FACT", "FACT", language),
                command_blocked("FACT", language),
                command_never_runs("FACT", language),
                sensitive_file("FACT", "FACT", language),
                protected_file("FACT", "FACT", language),
                denied_by_rule("FACT", Some("FACT"), language),
                asked_by_rule("FACT", Some("FACT"), language),
                no_approver("FACT", "FACT", true, language),
                no_approver("FACT", "FACT", false, language),
                cannot_be_pending("FACT", language),
                declined(Some("FACT"), language),
                approved_call_changed("FACT", language),
                file_changed("FACT", language),
                hook_blocked("FACT", language),
                would_execute("FACT", "FACT", language),
                would_fail("FACT", language),
            ]
        };
        for (english, spanish) in said(En).into_iter().zip(said(Es)) {
            let facts = |text: &str| text.matches("FACT").count();
            assert_eq!(facts(&english), facts(&spanish), "{spanish}");
            assert_ne!(english, spanish);
            assert_eq!(english.lines().count(), spanish.lines().count(), "{spanish}");
        }
    }
}
