//! Texts of the commands that change a configuration file.

/// Error for a key that a command cannot place in the text of a file.
pub const CONFIG_PLACE_REFUSED: &str =
    "a command cannot change this place without touching more than the key: change it with an editor";

/// Error for a text that is no duration, and hint about the forms of one.
pub const DURATION_FORMS: &str = "a duration is a number of seconds, or has units, such as 90s, 5m or 1h30m";

/// Error for a duration out of its range in seconds.
pub fn duration_out_of_range(low: u64, high: u64) -> String {
    format!("must be {low} to {high} seconds ({DURATION_FORMS})")
}

/// Hint for a key that resembles none.
pub const CONFIG_KEYS_HINT: &str = "agent help config lists the keys";

/// Usage error for `--config` with a command that changes a file.
pub const CONFIG_FILE_NAMED: &str = "this command changes your configuration file, or with --project the project's: edit the file of --config with an editor";

/// Error for a key that has no effect in a project's file.
pub const CONFIG_NOT_FROM_PROJECT: &str = "is never taken from a project: set it without --project";

/// Error for a file that has changed since it was read.
pub const CONFIG_CHANGED_MEANWHILE: &str = "it has changed meanwhile";

/// Line about a key that was set; `place` is file and line.
pub fn config_set(place: &str, key: &str, value: &str, old: Option<&str>) -> String {
    let before = old.map_or_else(|| "was not set".to_owned(), |old| format!("was {old}"));
    format!("{place}: {key} = {value}  ({before})\n")
}

/// Line about a key that was removed.
pub fn config_unset(place: &str, key: &str, old: &str) -> String {
    format!("{place}: removed {key}  (was {old})\n")
}

/// Error for a key without a value.
pub fn config_not_set(key: &str, file: &str) -> String {
    format!("{key} is not set in {file}")
}

/// Warning that a value of a project has no effect yet.
pub fn config_needs_trust(key: &str) -> String {
    format!("{key} has no effect until you trust the project's configuration: agent trust")
}

/// Warning that a value has no effect here because `origin` sets it too.
pub fn config_overridden(key: &str, origin: &str) -> String {
    format!("{key} has no effect here: {origin} sets it too and has precedence")
}

/// Heading of the models that were found at the first start.
pub const FIRST_MODEL_FOUND: &str = "No model is configured. Found on this machine:";

/// Line about a model that was found by the key in `variable`, else on a local server.
pub fn first_model_line(number: usize, model: &str, variable: Option<&str>) -> String {
    let found = variable.map_or_else(|| "local server".to_owned(), |variable| format!("key in {variable}"));
    format!("  {number}  {model:<32} {found}")
}

/// Question which of the models to store.
pub fn first_model_question(count: usize) -> String {
    format!("Store which one? 1-{count} (Enter: 1, Esc: none) ")
}

/// Question for the name of a model.
pub fn first_model_name(provider: &str) -> String {
    format!("Name of the {provider} model: ")
}
