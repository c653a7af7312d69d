//! Messages about background commands, for the model and for users.

use agent_core::language::Language;

/// Message to the model that a background command has ended by itself.
pub fn background_ended(id: &str, command: &str, outcome: &str) -> String {
    format!(
        "[SYSTEM] The background command {id} (`{command}`) has ended: {outcome}\nIts latest output: `command_output` \
         with id \"{id}\"."
    )
}

/// Message to the model that lists the background commands lost with the previous run.
pub fn background_commands_lost(commands: &[(String, String)]) -> String {
    let list: Vec<String> = commands.iter().map(|(id, command)| format!("{id} (`{command}`)")).collect();
    format!(
        "[SYSTEM] The run was interrupted. These background commands ended with it: {}. Start those that you still \
         need again.",
        list.join(", ")
    )
}

/// Warning that a background command changed protected files.
pub fn background_command_damage(id: &str, warning: &str) -> String {
    format!("the background command {id} broke a rule: {warning}")
}

/// Log line about a command that now runs in the background.
pub fn background_start(id: &str, command: &str, language: Language) -> String {
    let runs = language.pick("runs in the background", "se ejecuta en segundo plano");
    format!("{id} {runs}: {command}")
}

/// Log line about the end of a background command; the first line of `outcome` describes it.
pub fn background_end(id: &str, outcome: &str, ended_by_run_end: bool, language: Language) -> String {
    let first = outcome.lines().next().unwrap_or_default();
    if ended_by_run_end {
        format!("{id} {}", language.pick("was ended with the run", "se terminó con la ejecución"))
    } else {
        format!("{id} {}: {first}", language.pick("has ended", "ha terminado"))
    }
}
