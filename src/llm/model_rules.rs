//! Looks up the rule for a model in a table of rules by the start of the model's name.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Returns the rule in `table` (JSON) with the longest name that is a prefix of the name of `model`, ignoring the vendor prefix.
///
/// # Errors
/// When the embedded table is malformed, which a test rules out.
pub fn find<T: DeserializeOwned>(table: &str, model: &str) -> serde_json::Result<Option<T>> {
    #[derive(Deserialize)]
    struct Table<T> {
        models: BTreeMap<String, T>,
    }
    let table: Table<T> = serde_json::from_str(table)?;
    let name = model.rsplit('/').next().unwrap_or(model);
    let fitting = table.models.into_iter().filter(|(beginning, _)| name.starts_with(beginning.as_str()));
    Ok(fitting.max_by_key(|(beginning, _)| beginning.len()).map(|(_, rule)| rule))
}
