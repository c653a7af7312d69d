//! Slash commands of the user: `commands/NAME.md` in the configuration directory, and `.agent/commands/NAME.md` of a trusted
//! project. The text of the file is the message; `$1` to `$9` and `$ARGUMENTS` stand for what follows the name.

use crate::app::App;
use agent_config::agents::markdown_files;
use agent_config::error::ConfigError;
use agent_config::load::LoadedConfig;
use agent_config::project::MAX_COMMAND_BYTES;
use agent_config::text_file::read_own_text;
use agent_terminal::Style;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Directory below the user's configuration.
const DIRECTORY: &str = "commands";

/// The text of a command, or the user's file that contains it.
enum Source {
    Text(String),
    File(PathBuf),
}

/// The commands of the user and of the project, by name; the user's win.
pub struct UserCommands(BTreeMap<String, Source>);

impl UserCommands {
    /// Finds the commands. A directory that cannot be read is reported.
    pub fn find(app: &App, loaded: &LoadedConfig) -> Self {
        let mut found = BTreeMap::new();
        if loaded.trust.status.is_trusted() {
            let project = loaded.project.commands.iter();
            found.extend(project.map(|(name, command)| (name.clone(), Source::Text(command.text.clone()))));
        }
        match markdown_files(&loaded.settings.directories.config.join(DIRECTORY)) {
            Ok(files) => found.extend(files.into_iter().filter_map(|path| {
                let name = path.file_stem()?.to_str()?.to_owned();
                Some((name, Source::File(path)))
            })),
            Err(error) => app.notify(Style::Warning, &app.redact(&error.to_string())),
        }
        Self(found)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the message of the command `name` with `arguments`; `None` if there is no such command.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub fn message(&self, name: &str, arguments: &str) -> Option<Result<String, ConfigError>> {
        let text = match self.0.get(name)? {
            Source::Text(text) => Ok(text.clone()),
            Source::File(path) => read_own_text(path, MAX_COMMAND_BYTES)
                .and_then(|text| text.ok_or_else(|| ConfigError::new("no longer exists")))
                .map_err(|error| error.path(path)),
        };
        Some(text.map(|text| expand(text.trim(), arguments)))
    }
}

/// Replaces the placeholders of `template`; without any, the arguments follow the text.
fn expand(template: &str, arguments: &str) -> String {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut text = String::with_capacity(template.len());
    let (mut rest, mut replaced) = (template, false);
    while let Some(at) = rest.find('$') {
        let (before, placeholder) = rest.split_at(at);
        text.push_str(before);
        let digit = placeholder.as_bytes().get(1).filter(|byte| (b'1'..=b'9').contains(*byte));
        if let Some(after) = placeholder.strip_prefix("$ARGUMENTS") {
            text.push_str(arguments);
            (rest, replaced) = (after, true);
        } else if let Some(digit) = digit {
            text.push_str(words.get(usize::from(digit - b'1')).copied().unwrap_or_default());
            (rest, replaced) = (placeholder.get(2..).unwrap_or_default(), true);
        } else {
            text.push('$');
            rest = placeholder.get(1..).unwrap_or_default();
        }
    }
    text.push_str(rest);
    if !replaced && !arguments.is_empty() {
        text = format!("{text}\n\n{arguments}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_by_the_arguments() {
        for (template, arguments, message) in [
            ("Review $1 against $2.", "a.rs b.rs", "Review a.rs against b.rs."),
            ("Explain: $ARGUMENTS", "all of it", "Explain: all of it"),
            ("Fix $1$2 for 5$", "x", "Fix x for 5$"),
            ("Test everything.", "", "Test everything."),
            ("Test everything.", "twice", "Test everything.\n\ntwice"),
            ("$ARGUMENTS", "$1", "$1"),
        ] {
            assert_eq!(expand(template, arguments), message, "{template}");
        }
    }
}
