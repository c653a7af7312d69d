//! Refusals by guardrails on changes and commands, in every language.

use agent_core::language::Language;

/// Refusal of an edit that exceeds the limit of changed lines.
pub fn too_many_lines(lines: u64, used: u64, most: u64, language: Language) -> String {
    match language {
        Language::En => format!(
            "Change refused by guardrail: it adds and removes {lines} lines, and {used} of at most {most} are used in this \
             session.\nNothing was written: make a smaller change if that is enough, and say in your answer what else \
             should change."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: añade y quita {lines} líneas, y ya se usaron {used} de un máximo \
             de {most} en esta sesión.\nNo se escribió nada: hacer un cambio menor donde baste y decir en la respuesta qué \
             más debería cambiar."
        ),
    }
}

/// Refusal of an edit that exceeds the limit of changed files; `new`: files to change, `named`: the `used` files changed so far.
pub fn too_many_files(new: &str, used: usize, most: u64, named: &str, language: Language) -> String {
    let named = if named.is_empty() { String::new() } else { format!(" ({named})") };
    match language {
        Language::En => format!(
            "Change refused by guardrail: it would change {new}, and {used} of at most {most} files were already changed in this \
             session{named}.\nNothing was written: change only those, and say in your answer what else should change."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: cambiaría {new}, y en esta sesión ya se cambiaron {used} archivos \
             de un máximo de {most}{named}.\nNo se escribió nada: cambiar solo esos y decir en la respuesta qué más debería \
             cambiar."
        ),
    }
}

/// Refusal of a command that exceeds the limit of commands.
pub fn too_many_commands(used: u64, most: u64, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command refused by guardrail: {used} of at most {most} commands have run in this session.\nNo more commands run: continue \
             with the file tools, and say in your answer what the user should run."
        ),
        Language::Es => format!(
            "Comando rechazado por una regla de protección: en esta sesión se ejecutaron {used} comandos de un máximo de \
             {most}.\nYa no se ejecuta ninguno: continuar con las herramientas de archivos y decir en la respuesta qué \
             debería ejecutar el usuario."
        ),
    }
}

/// What a limit on changes by commands counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedChanges {
    /// Files.
    Files,
    /// Lines.
    Lines,
}

/// Refusal of a command that may write after commands have exceeded a limit on changes.
pub fn command_changes_over_limit(what: CountedChanges, used: u64, most: u64, language: Language) -> String {
    let what = match what {
        CountedChanges::Files => language.pick("files", "archivos cambiados"),
        CountedChanges::Lines => language.pick("lines", "líneas cambiadas"),
    };
    match language {
        Language::En => format!(
            "Command refused by guardrail: commands of this session have raised the number of changed {what} to {used}; at \
             most {most} are allowed.\nOnly read-only commands run now: say in your answer what is done and what the user \
             should check."
        ),
        Language::Es => format!(
            "Comando rechazado por una regla de protección: los comandos de esta sesión llevaron el número de {what} a \
             {used}; se permiten como máximo {most}.\nAhora solo se ejecutan comandos de solo lectura: decir en la respuesta qué \
             está hecho y qué debería revisar el usuario."
        ),
    }
}

/// Refusal of a change while no test has passed since `files` changed; `examples` are test commands.
pub fn tests_required(files: &str, examples: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Change refused by guardrail: no test has passed since {files} changed, and no other change is allowed until one has.\n\
             Run the tests with run_command ({examples}): in the foreground, alone or joined to other commands by `&&`, \
             not in a pipe and not before `;`. While they fail, the only allowed change restores a file to its \
             earlier content; then make the whole change in one call."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: no ha pasado ninguna prueba desde que cambió {files}, y no cambia \
             nada más hasta que pase una.\nEjecutar las pruebas con run_command ({examples}): en primer plano, solas o unidas \
             a otros comandos con `&&`, ni en una tubería ni antes de `;`. Mientras fallen, el único cambio permitido deja un \
             archivo como estaba; después, hacer todo el cambio en una sola llamada."
        ),
    }
}

/// Refusal of a change that violates a code rule.
pub fn code_rule_refusal(finding: &str, language: Language) -> String {
    match language {
        Language::En => {
            format!("Change blocked by a code rule: {finding}.\nNothing was written: write it differently.")
        }
        Language::Es => format!(
            "Cambio bloqueado por una regla de código: {finding}.\nNo se escribió nada: escribirlo de otra manera."
        ),
    }
}
