//! The model that a client of another agent names.

use crate::llm::provider_table::Provider;

/// Returns `name` with its provider: one without a provider belongs to `default`.
pub fn model_name(name: &str, default: &str, table: &[Provider]) -> String {
    let provider = name.split_once('/').map(|(provider, _)| provider);
    let is_known = |provider: &str| provider == "local" || table.iter().any(|known| known.name == provider);
    let is_own = name.starts_with("scripted:") || provider.is_some_and(is_known);
    if is_own { name.to_owned() } else { format!("{default}/{name}") }
}

/// Checks whether a model belongs to one of the `providers`.
pub fn is_of(model: Option<&str>, providers: &[&str]) -> bool {
    let provider = model.and_then(|model| Some(model.split_once('/')?.0));
    provider.is_some_and(|provider| providers.contains(&provider))
}
