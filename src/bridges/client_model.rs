//! What a client of another agent names: the model, and directories that commands may change.

use agent_llm::provider_table::Provider;
use agent_messages as messages;
use std::path::PathBuf;

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

/// Returns the directories of `--add-dir` that commands may change, with a warning if there are any. Where the configuration sets
/// `sandbox.writable`, it `is_configured`, and there are none.
pub fn added_directories(requested: &[PathBuf], is_configured: bool) -> (Vec<PathBuf>, Option<&'static str>) {
    match (requested, is_configured) {
        ([], _) => (Vec::new(), None),
        (_, true) => (Vec::new(), Some(messages::ADD_DIR_CONFIGURED)),
        (directories, false) => (directories.to_vec(), Some(messages::ADD_DIR)),
    }
}
