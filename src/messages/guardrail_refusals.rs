//! Why a guardrail that counts or looks at changes lets a call not run, in every language.

use crate::core::language::Language;

/// An edit of too many lines.
pub fn too_many_lines(lines: u64, used: u64, most: u64, language: Language) -> String {
    match language {
        Language::En => format!(
            "Change refused by guardrail: it adds and removes {lines} lines, and {used} of at most {most} are used in this \
             session.\nNothing was written: make a smaller change where that is enough, and say in your answer what else \
             should change."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: añade y quita {lines} líneas, y ya se usaron {used} de un máximo \
             de {most} en esta sesión.\nNo se escribió nada: hacer un cambio menor donde baste y decir en la respuesta qué \
             más debería cambiar."
        ),
    }
}

/// An edit of too many files: the `new` ones, when `used` were changed so far, which are `named`.
pub fn too_many_files(new: &str, used: usize, most: u64, named: &str, language: Language) -> String {
    let named = if named.is_empty() { String::new() } else { format!(" ({named})") };
    match language {
        Language::En => format!(
            "Change refused by guardrail: {new} would be changed, and {used} of at most {most} files have been in this \
             session{named}.\nNothing was written: change only those, and say in your answer what else should change."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: cambiaría {new}, y en esta sesión ya se cambiaron {used} archivos \
             de un máximo de {most}{named}.\nNo se escribió nada: cambiar solo esos y decir en la respuesta qué más debería \
             cambiar."
        ),
    }
}

/// One command too many.
pub fn too_many_commands(used: u64, most: u64, language: Language) -> String {
    match language {
        Language::En => format!(
            "Command refused by guardrail: {used} of at most {most} commands have run in this session.\nNo more run: go on \
             with the file tools, and say in your answer what a person should run."
        ),
        Language::Es => format!(
            "Comando rechazado por una regla de protección: en esta sesión se ejecutaron {used} comandos de un máximo de \
             {most}.\nYa no se ejecuta ninguno: continuar con las herramientas de archivos y decir en la respuesta qué \
             debería ejecutar una persona."
        ),
    }
}

/// What commands have changed too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedChanges {
    /// Files.
    Files,
    /// Lines.
    Lines,
}

/// A command that does not only read, when commands have changed too much.
pub fn command_changes_over_limit(what: CountedChanges, used: u64, most: u64, language: Language) -> String {
    let what = match what {
        CountedChanges::Files => language.pick("files", "archivos cambiados"),
        CountedChanges::Lines => language.pick("lines", "líneas cambiadas"),
    };
    match language {
        Language::En => format!(
            "Command refused by guardrail: commands of this session have brought the number of changed {what} to {used}, at \
             most {most} are allowed.\nOnly commands that read run now: say in your answer what is done and what a person \
             should look at."
        ),
        Language::Es => format!(
            "Comando rechazado por una regla de protección: los comandos de esta sesión llevaron el número de {what} a \
             {used}; se permiten como máximo {most}.\nAhora solo se ejecutan comandos que leen: decir en la respuesta qué está \
             hecho y qué debería mirar una persona."
        ),
    }
}

/// A change before a test has passed since these `files` changed; the tests are like these `examples`.
pub fn tests_required(files: &str, examples: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Change refused by guardrail: no test has passed since {files} changed, and nothing else changes until one has.\n\
             Run the tests with run_command ({examples}): in the foreground, alone or joined to other commands by `&&`, \
             neither in a pipe nor before `;`. While they fail, the only change that is allowed puts a file back as it was \
             before; then make the whole change in one call."
        ),
        Language::Es => format!(
            "Cambio rechazado por una regla de protección: no ha pasado ninguna prueba desde que cambió {files}, y no cambia \
             nada más hasta que pase una.\nEjecutar las pruebas con run_command ({examples}): en primer plano, solas o unidas \
             a otros comandos con `&&`, ni en una tubería ni antes de `;`. Mientras fallen, el único cambio permitido deja un \
             archivo como estaba; después, hacer todo el cambio en una sola llamada."
        ),
    }
}

/// A change that a rule about code forbids.
pub fn code_rule_refusal(finding: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "Change blocked by a code rule: {finding}.\nNothing was written: write it in another way."
        ),
        Language::Es => format!(
            "Cambio bloqueado por una regla de código: {finding}.\nNo se escribió nada: escribirlo de otra manera."
        ),
    }
}
