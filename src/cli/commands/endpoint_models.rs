//! The models that the server of the configured model lists, stored for the menu of `/model`.

use crate::commands::model_readiness;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::{create_new, open};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Name of the file in the state directory of the workspace, and of its next version.
const FILE: &str = "endpoint-models.json";
const NEXT: &str = "endpoint-models.json.new";

/// Maximum bytes of the file: 1,000 names.
const MAX_BYTES: u64 = 1 << 20;

/// Asks the server for its models, and stores them.
///
/// # Errors
/// When no server is configured or it does not list models, and when they cannot be stored.
pub fn refresh(app: &App, settings: &Settings) -> AppResult<Vec<String>> {
    let models = app.block_on(model_readiness::listed_models(app, settings))?;
    directories::prepare(settings)?;
    store(&settings.state, &models).map_err(|error| {
        AppError::new(FailureKind::Config, format!("cannot store the models in {FILE}: {error}"))
    })?;
    Ok(models)
}

/// Returns the stored models; none if there are none that can be read, because nothing but the menu depends on them.
pub fn stored(settings: &Settings) -> Vec<String> {
    let read = || -> Option<Vec<String>> {
        let (file, _) = open(&settings.state.join(FILE)).ok()?;
        let mut json = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut json).ok()?;
        serde_json::from_slice(&json).ok()
    };
    read().unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "this module owns the file")]
fn store(state: &Path, models: &[String]) -> io::Result<()> {
    let next = state.join(NEXT);
    match std::fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create_new(&next, true)?.write_all(&serde_json::to_vec(models)?)?;
    std::fs::rename(&next, state.join(FILE))
}
