//! Bare `agent`: a conversation at a terminal with a configured or chosen model, else five lines on what to do next on this machine.

use crate::commands::chat::args::ChatArgs;
use crate::commands::chat::chat;
use crate::commands::first_model::{ask_if_missing, providers_with_keys};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_llm::discovery::{self, LocalServer};
use agent_llm::provider_table;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_terminal::one_line;
use clap::error::{ContextKind, ContextValue};
use std::ffi::OsString;

/// Characters shown of the names of keys and of servers.
const NAME_CHARS: usize = 60;

/// Most characters of a message in a tip.
const TIP_CHARS: usize = 40;

/// Flags of the program itself.
const OWN_FLAGS: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Flags with which a program starts the agent as Claude Code, without a conversation at the terminal.
const CLIENT_FLAGS: [&str; 4] = ["-p", "--print", "--input-format", "--output-format"];

/// Returns the arguments of the program with the command `chat`, where they begin with a message or with flags: `agent "fix the bug"`, `agent -c`,
/// `agent --model NAME`.
pub fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let texts: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let is_client = texts.iter().any(|text| CLIENT_FLAGS.contains(&text.split('=').next().unwrap_or(text)));
    let is_message = |text: &str| text.trim().contains(char::is_whitespace);
    // `-c FILE` names a configuration file, as everywhere.
    let is_continued = texts.first() == Some(&"-c")
        && texts.get(1).is_none_or(|next| next.starts_with('-') || is_message(next));
    let is_chat = match texts.first() {
        Some(first) if first.starts_with('-') => !OWN_FLAGS.contains(first) && !is_client,
        // A word alone is a command, perhaps one with a mistake.
        Some(first) => is_message(first),
        None => false,
    };
    if is_chat {
        arguments.insert(1, "chat".into());
    }
    if is_chat
        && is_continued
        && let Some(flag) = arguments.get_mut(2)
    {
        *flag = "--continue".into();
    }
    arguments
}

/// Adds to the error about an unknown command how to begin with these words as a message, unless a command has a similar name.
pub fn with_tip(mut error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
    let is_first = matches!(
        error.get(ContextKind::InvalidSubcommand),
        Some(ContextValue::String(unknown)) if words.first() == Some(&unknown.as_str())
    );
    if is_first && error.get(ContextKind::SuggestedSubcommand).is_none() {
        let text = words.join(" ");
        let is_plain = |c: char| c.is_alphanumeric() || " .,:;/_-".contains(c);
        let is_shown = text.chars().all(is_plain) && text.chars().count() <= TIP_CHARS;
        let tip = messages::no_such_command(if is_shown { &text } else { "…" });
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Starts a conversation if there is a terminal and a model, which is asked for at the first start; else prints the first screen; returns the exit code.
///
/// # Errors
/// When the configuration is wrong, or standard output cannot be written.
pub fn start(app: &App) -> AppResult<u8> {
    ask_if_missing(app, &Overrides::default())?;
    let loaded = app.load(&Overrides::default())?;
    if app.terminal.can_ask() && loaded.settings.llm.model.is_some() {
        return chat(app, ChatArgs::default());
    }
    print_first_screen(app, &app.load_and_notify(&Overrides::default())?.settings)?;
    Ok(ExitCode::Success.code())
}

/// Prints which keys and local servers were found, and the commands to start with.
fn print_first_screen(app: &App, settings: &Settings) -> AppResult<()> {
    let table = provider_table::load(&settings.llm.providers)
        .map_err(|error| AppError::new(FailureKind::Config, error.to_string()))?;
    let servers = app.block_on(async { Ok(discovery::probe(&table, discovery::PROBE_TIME).await) })?;
    print(
        &app.terminal,
        &first_screen(&providers_with_keys(app, &table), &servers, settings.llm.model.as_deref()),
    )
}

fn first_screen(keys: &[(&str, &str)], servers: &[LocalServer], model: Option<&str>) -> String {
    let join = |names: Vec<String>| one_line(&names.join(", "), NAME_CHARS);
    let found_keys = match keys {
        [] => "none: export OPENAI_API_KEY, ANTHROPIC_API_KEY or another (agent help providers)".to_owned(),
        keys => join(keys.iter().map(|(provider, variable)| format!("{variable} ({provider})")).collect()),
    };
    let found_servers = match servers {
        [] => "none found".to_owned(),
        servers => join(servers.iter().map(|server| server.provider.name.clone()).collect()),
    };
    let task = "agent run \"explain this project\"";
    let next = match (model, keys, servers) {
        (Some(model), ..) => format!("{task}    with {model}"),
        (None, [(provider, _), ..], _) => {
            format!("{task} --model {provider}/NAME    (names: agent models {provider})")
        }
        (None, [], [server, ..]) => {
            let name = server.models.first().map_or("MODEL", String::as_str);
            format!("{task} --model {}/{name}", server.provider.name)
        }
        (None, [], []) => {
            "agent demo    fixes a bug in a small project; needs no key and no network".to_owned()
        }
    };
    format!(
        "agent {}, a terminal coding agent\nAPI keys:       {found_keys}\nLocal servers:  {found_servers}\nNext:           {next}\nMore:           agent --help, agent help TOPIC, agent doctor, agent demo\n",
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_llm::provider_table::Provider;

    fn server() -> LocalServer {
        let provider = Provider { name: "ollama".into(), ..Provider::default() };
        LocalServer { provider, models: vec!["qwen3".into()] }
    }

    #[test]
    fn the_first_screen_has_five_lines_and_names_the_next_command() {
        let key = [("openai", "OPENAI_API_KEY")];
        for (keys, servers, model, next) in [
            (&key[..], vec![], None, "agent run \"explain this project\" --model openai/NAME    (names"),
            (&[][..], vec![server()], None, "agent run \"explain this project\" --model ollama/qwen3\n"),
            (&[][..], vec![], Some("openai/m"), "agent run \"explain this project\"    with openai/m\n"),
            (&[][..], vec![], None, "agent demo    fixes a bug"),
        ] {
            let text = first_screen(keys, &servers, model);
            assert!(text.contains(&format!("Next:           {next}")), "{text}");
            assert_eq!(text.lines().count(), 5, "{text}");
        }
        assert!(first_screen(&key, &[], None).contains("API keys:       OPENAI_API_KEY (openai)\n"));
    }

    #[test]
    fn u15_a_message_or_flags_alone_begin_a_conversation() {
        for (given, meant) in [
            (&["fix the bug"][..], &["chat", "fix the bug"][..]),
            (&["-c"], &["chat", "--continue"]),
            (&["-c", "and now the tests"], &["chat", "--continue", "and now the tests"]),
            (&["-c", "other.yaml"], &["chat", "-c", "other.yaml"]),
            (&["--model", "openai/m"], &["chat", "--model", "openai/m"]),
            (&["--model", "m", "-p", "task"], &["--model", "m", "-p", "task"]),
            (&["--output-format=stream-json", "--verbose"], &["--output-format=stream-json", "--verbose"]),
            (&["rnu"], &["rnu"]),
            (&["run", "fix the bug"], &["run", "fix the bug"]),
            (&["--version"], &["--version"]),
            (&[], &[]),
        ] {
            let of = |words: &[&str]| {
                std::iter::once(&"agent").chain(words).map(OsString::from).collect::<Vec<_>>()
            };
            assert_eq!(with_command(of(given)), of(meant), "{given:?}");
        }
    }
}
