//! Texts about the manual.

/// The end of `agent --help`.
pub const MORE_HELP: &str = "`agent help commands` lists all commands, `agent COMMAND --help` their options,\n`agent help` the topics of the manual. First steps: `agent help start`.";

/// The beginning of `agent help commands`.
pub const COMMANDS_PAGE: &str =
    "`agent COMMAND --help` describes the options of a command, and `-h` the usual ones.";

/// The end of the list of topics.
pub const TOPICS_END: &str =
    "`agent help commands` lists the commands, `agent COMMAND --help` their options.\n";

/// Suggestion for a topic that is the name of a command.
pub fn help_of_command(command: &str) -> String {
    format!("`agent {command} --help` describes this command")
}

/// Error for a topic without a page; `suggestion` says what could help.
pub fn unknown_topic(topic: &str, suggestion: Option<&str>) -> String {
    let suggestion = suggestion.map_or_else(String::new, |text| format!("; {text}"));
    format!("there is no help on `{topic}`{suggestion} (`agent help` lists the topics)")
}
