//! The first start at a terminal without a model: proposes the models that were found, and stores the chosen one in the user's configuration.

use crate::commands::config;
use agent_config::overrides::Overrides;
use agent_core::failure::FailureKind;
use agent_llm::connect::non_empty_variable;
use agent_llm::discovery::{self, LocalServer};
use agent_llm::provider_table::{self, Provider};
use agent_messages as messages;
use agent_run::app::App;
use agent_run::config_file::ConfigFile;
use agent_run::error::{AppError, AppResult};
use agent_terminal::{Style, one_line};
use tokio_util::sync::CancellationToken;

/// Maximum number of proposals, so that one digit selects each, and of models of one server.
const MOST: usize = 9;
const MOST_OF_A_SERVER: usize = 3;
/// Wrong answers after which nothing is chosen.
const TRIES: usize = 3;
/// Characters of a model's name.
const NAME_CHARS: usize = 120;

/// The model that is proposed where the key of a provider is set. Of other providers the name is asked for.
const PROPOSED: [(&str, &str); 10] = [
    ("anthropic", "claude-sonnet-4-6"),
    ("cerebras", "gpt-oss-120b"),
    ("deepseek", "deepseek-v4-pro"),
    ("gemini", "gemini-3.8-flash"),
    ("groq", "openai/gpt-oss-120b"),
    ("mistral", "devstral-latest"),
    ("moonshot", "kimi-k3"),
    ("openai", "gpt-5.1"),
    ("xai", "grok-4.7"),
    ("zai", "glm-5.3"),
];

/// A model that can be used.
#[derive(Debug, PartialEq, Eq)]
struct Proposal {
    provider: String,
    /// Its name; absent: the user is asked for it.
    model: Option<String>,
    /// The variable with the key; absent for a server on this machine.
    variable: Option<String>,
}

/// Asks for a model and stores the answer, if there is a user at a terminal, no model is configured, and a key or a local server was found.
///
/// # Errors
/// Fails for wrong providers in the configuration, and when the user's configuration cannot be changed.
pub fn ask_if_missing(app: &App, overrides: &Overrides) -> AppResult<()> {
    if !app.terminal.can_ask() {
        return Ok(());
    }
    // The command reports a configuration that is wrong.
    let Ok(loaded) = app.load(overrides) else { return Ok(()) };
    let llm = &loaded.settings.llm;
    if llm.model.is_some() || llm.api_base.is_some() {
        return Ok(());
    }
    let table = provider_table::load(&llm.providers)
        .map_err(|error| AppError::new(FailureKind::Config, error.to_string()))?;
    let chosen = app.block_on(async {
        let servers = discovery::probe(&table, discovery::PROBE_TIME).await;
        Ok(ask(app, &proposals(&providers_with_keys(app, &table), &servers)).await)
    })?;
    let Some(model) = chosen else { return Ok(()) };
    let flags = Overrides { workspace: overrides.workspace.clone(), ..Overrides::default() };
    let file = ConfigFile::read(app, flags, false)?;
    let line = config::set(&file, app, "llm.model", &model)?;
    app.notify(Style::Plain, line.trim_end());
    Ok(())
}

/// Returns each provider that has a key, with the variable that holds it.
pub fn providers_with_keys<'a>(app: &App, table: &'a [Provider]) -> Vec<(&'a str, &'a str)> {
    let variable = |name: &str| app.environment.get(name).map(str::to_owned);
    let key_of = |provider: &'a Provider| {
        let set = provider.keys.iter().find(|name| non_empty_variable(&variable, name).is_some())?;
        Some((provider.name.as_str(), set.as_str()))
    };
    let mut found: Vec<(&str, &str)> = table.iter().filter_map(key_of).collect();
    found.dedup_by_key(|(_, variable)| *variable);
    found
}

/// Returns what was found: keys first, then the models of local servers.
fn proposals(keys: &[(&str, &str)], servers: &[LocalServer]) -> Vec<Proposal> {
    let of_key = |(provider, variable): &(&str, &str)| Proposal {
        provider: (*provider).to_owned(),
        model: PROPOSED.iter().find(|(name, _)| name == provider).map(|(_, model)| (*model).to_owned()),
        variable: Some((*variable).to_owned()),
    };
    let found = keys.iter().map(of_key).chain(servers.iter().flat_map(of_server));
    found.take(MOST).collect()
}

/// Returns the first models of a server.
fn of_server(server: &LocalServer) -> impl Iterator<Item = Proposal> {
    // A server chooses the names of its models.
    let models = server.models.iter().filter(|model| one_line(model, NAME_CHARS) == **model);
    models.take(MOST_OF_A_SERVER).map(|model| Proposal {
        provider: server.provider.name.clone(),
        model: Some(model.clone()),
        variable: None,
    })
}

/// Shows the proposals and returns the model that the user chooses, with its provider; `None` if there is none to choose, or for Esc.
async fn ask(app: &App, proposals: &[Proposal]) -> Option<String> {
    if proposals.is_empty() {
        return None;
    }
    app.notify(Style::Plain, messages::FIRST_MODEL_FOUND);
    for (number, it) in (1..).zip(proposals) {
        let model = format!("{}/{}", it.provider, it.model.as_deref().unwrap_or("…"));
        app.notify(Style::Plain, &messages::first_model_line(number, &model, it.variable.as_deref()));
    }
    let cancel = CancellationToken::new();
    let pressed = cancel.clone();
    // Without a handler, Ctrl+C would end the program while the terminal delivers single keys.
    drop(tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.cancel();
        }
    }));
    for _ in 0..TRIES {
        let answer = app.terminal.ask_text(&messages::first_model_question(proposals.len()), &cancel).await?;
        let number = if answer.trim().is_empty() { Ok(1) } else { answer.trim().parse::<usize>() };
        let Some(chosen) = number.ok().and_then(|number| proposals.get(number.checked_sub(1)?)) else {
            continue;
        };
        if let Some(model) = &chosen.model {
            return Some(format!("{}/{model}", chosen.provider));
        }
        let answer = app.terminal.ask_text(&messages::first_model_name(&chosen.provider), &cancel).await?;
        let name = answer.trim();
        let own = name.strip_prefix(&format!("{}/", chosen.provider)).unwrap_or(name);
        if !own.is_empty() {
            return Some(format!("{}/{own}", chosen.provider));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proposed_model_is_in_the_table() {
        for (provider, model) in PROPOSED {
            assert!(
                agent_llm::model_table::is_built_in(&format!("{provider}/{model}")),
                "{provider}/{model}"
            );
        }
    }

    #[test]
    fn u18_keys_are_proposed_before_servers_and_harmless_names_only() {
        let provider = Provider { name: "ollama".into(), ..Provider::default() };
        let models = ["a:1", "b\u{1b}[2J", "c", "d", "e"].map(str::to_owned).to_vec();
        let found = proposals(
            &[("openai", "OPENAI_API_KEY"), ("mine", "MY_KEY")],
            &[LocalServer { provider, models }],
        );
        let shown: Vec<_> = found.iter().map(|it| (it.provider.as_str(), it.model.as_deref())).collect();
        let servers = ["a:1", "c", "d"].map(|model| ("ollama", Some(model)));
        assert_eq!(shown, [&[("openai", Some("gpt-5.1")), ("mine", None)][..], &servers].concat());
    }
}
