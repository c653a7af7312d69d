//! The keys and tokens that this process knows: the given one, those of the configured variables, and every variable that is
//! called like one.

use crate::config::environment::Environment;
use crate::config::settings::Settings;
use crate::core::secret::Secret;
use crate::llm::provider_table::key_variables;
use crate::redactor::{NamedSecret, environment_secrets};

/// What the key of `--api-key` is called.
const API_KEY_NAME: &str = "API key";

/// The secrets with their names.
pub fn known(environment: &Environment, settings: &Settings) -> Vec<NamedSecret> {
    let chosen = key_variables(&settings.llm.providers).chain(settings.llm.api_key_env.as_deref());
    let chosen = chosen.filter_map(|name| Some(secret(name, environment.get(name)?)));
    let given = settings.api_key.iter().map(|key| secret(API_KEY_NAME, key.expose()));
    let named =
        chosen.chain(given).filter(|known| !environment_secrets::is_placeholder(known.value.expose()));
    in_environment(environment).chain(named).collect()
}

/// Those that are known before any setting is.
pub fn in_environment(environment: &Environment) -> impl Iterator<Item = NamedSecret> {
    let variables = environment.variables().iter();
    variables.flat_map(|(name, value)| {
        environment_secrets::secrets_in(name, value).map(|found| secret(name, &found))
    })
}

/// Whether all of the variable is the secret. The password in an address is a part of one: a user who gives the address to
/// commands wants them to have it.
pub fn is_whole_variable(environment: &Environment, known: &NamedSecret) -> bool {
    environment.get(&known.name).is_none_or(|value| value == known.value.expose())
}

fn secret(name: &str, value: &str) -> NamedSecret {
    NamedSecret { name: name.to_owned(), value: Secret::new(value) }
}
