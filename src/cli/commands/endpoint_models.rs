//! The models that the server of the configured model lists, stored for the menu of `/model`.

use crate::commands::model_readiness;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::{read_bounded, replace};
use std::io;

/// Name of the file in the state directory of the workspace.
const FILE: &str = "endpoint-models.json";

/// Maximum bytes of the file: 1,000 names.
const MAX_BYTES: u64 = 1 << 20;

/// Asks the server for its models, and stores them.
///
/// # Errors
/// When no server is configured or it does not list models, and when they cannot be stored.
pub fn refresh(app: &App, settings: &Settings) -> AppResult<Vec<String>> {
    let models = app.block_on(model_readiness::listed_models(app, settings))?;
    directories::prepare(settings)?;
    let stored = serde_json::to_vec(&models)
        .map_err(io::Error::from)
        .and_then(|json| replace(&settings.state.join(FILE), &json));
    stored.map_err(|error| {
        AppError::new(FailureKind::Config, format!("cannot store the models in {FILE}: {error}"))
    })?;
    Ok(models)
}

/// Returns the stored models; none if there are none that can be read, because nothing but the menu depends on them.
pub fn stored(settings: &Settings) -> Vec<String> {
    let json = read_bounded(&settings.state.join(FILE), MAX_BYTES).ok().flatten();
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}
