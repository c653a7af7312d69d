//! The keys and tokens that this process knows: the given one, and every variable that is called like one.

use crate::cli::app::App;
use crate::config::settings::Settings;
use crate::llm::catalog::key_variables;
use crate::redactor::{MIN_BYTES, NamedSecret};
use crate::secret::Secret;

/// How the names of variables end whose values are secrets; compared in upper case.
const ENDINGS: &[&str] = &[
    "KEY",
    "_KEY_ID",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIALS",
    "_PAT",
    "_AUTH",
];

/// What the keys of `--api-key` is called.
const GIVEN: &str = "API key";

/// The secrets with their names, those of long enough values.
pub fn known(app: &App, settings: &Settings) -> impl Iterator<Item = NamedSecret> {
    let named = app.environment.variables().iter();
    let named = named.filter(|(name, value)| is_secret(name) && value.len() >= MIN_BYTES);
    let named = named.map(|(name, value)| secret(name, value));
    let chosen = key_variables(&settings.llm.providers).chain(settings.llm.api_key_env.as_deref());
    let chosen = chosen.filter_map(|name| Some(secret(name, app.environment.get(name)?)));
    let given = settings.api_key.iter().map(|key| secret(GIVEN, key.expose()));
    named.chain(chosen).chain(given).collect::<Vec<_>>().into_iter()
}

fn secret(name: &str, value: &str) -> NamedSecret {
    NamedSecret { name: name.to_owned(), value: Secret::new(value) }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_secret_by_the_end_of_their_name() {
        for name in ["OPENAI_API_KEY", "github_token", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN", "PGPASSWORD"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "KEYBOARD", "TOKENIZERS_PARALLELISM", "HOME"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
