//! What is said about commands that run in the background: to the model, and to people.

use crate::core::language::Language;

/// Tells the model that a command has ended by itself.
pub fn background_ended(id: &str, command: &str, outcome: &str) -> String {
    format!(
        "[SYSTEM] The background command {id} (`{command}`) has ended: {outcome}\nIts latest output: `command_output` \
         with id \"{id}\"."
    )
}

/// Tells the model which commands ended with the earlier run of the session.
pub fn background_commands_lost(commands: &[(String, String)]) -> String {
    let list: Vec<String> = commands.iter().map(|(id, command)| format!("{id} (`{command}`)")).collect();
    format!(
        "[SYSTEM] The run was interrupted since. Background commands ended with it and are gone: {}. Start again what you \
         still need.",
        list.join(", ")
    )
}

/// Tells people what a background command did to protected files.
pub fn background_command_damage(id: &str, warning: &str) -> String {
    format!("the background command {id} went too far: {warning}")
}

/// Tells people that a command goes on.
pub fn background_start(id: &str, command: &str, language: Language) -> String {
    let runs = language.pick("runs in the background", "se ejecuta en segundo plano");
    format!("{id} {runs}: {command}")
}

/// Tells people how a background command ended; the first line of it says how.
pub fn background_end(id: &str, outcome: &str, with_run: bool, language: Language) -> String {
    let first = outcome.lines().next().unwrap_or_default();
    if with_run {
        format!("{id} {}", language.pick("was ended with the run", "se terminó con la ejecución"))
    } else {
        format!("{id} {}: {first}", language.pick("has ended", "ha terminado"))
    }
}
