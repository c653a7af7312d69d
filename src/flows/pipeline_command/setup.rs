//! The pipeline of a request: its file, variables, first step and trust, checked before anything runs.

use crate::pipeline_command::PipelineRequest;
use crate::pipeline_command::source::{parse_pipeline, read_pipeline};
use crate::work::record::{RecordedWork, work_store};
use agent_config::error::ConfigError;
use agent_config::load::LoadedConfig;
use agent_config::overrides::Overrides;
use agent_config::pipeline::Pipeline;
use agent_config::pipeline::variables::{Variables, check_name};
use agent_config::settings::Settings;
use agent_config::trust::TrustFlag;
use agent_config::trust::pipelines::{WorkspacePipeline, fact_cache};
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The pipeline of a command, as it was when the command began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PipelineStart {
    /// Text of the file.
    pub text: String,
    /// Hash of the project's configuration that `--trust-workspace=HASH` trusted, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project_hash: Option<String>,
}

/// A pipeline that can start or be resumed.
pub struct PipelineSetup {
    /// What the command was requested with.
    pub command: PipelineRequest,
    /// What the record keeps of it.
    pub start: PipelineStart,
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The variables before the first step.
    pub variables: Variables,
    /// Index of the first step that runs.
    pub first: usize,
    /// The request of each run.
    pub request: RunRequest,
    /// The settings.
    pub settings: Settings,
}

impl PipelineSetup {
    /// Checks request and file. Only a pipeline that is trusted, or that will not run, is returned.
    ///
    /// # Errors
    /// Fails for a wrong variable or step, a file that is no pipeline, that has changed since it began, or that is not trusted.
    pub fn prepare(app: &App, command: PipelineRequest) -> AppResult<Self> {
        let mut request = command.work.run.clone();
        request.prompt_is_data = true;
        let flags = request.effective_overrides();
        let flag = flags.trust.clone();
        let loaded = app.load(&Overrides { trust: TrustFlag::Stored, ..flags })?;
        let (text, pipeline) = read_pipeline(&loaded.settings, Path::new(&command.file))?;
        // The record keeps no secrets.
        let kept = app.redactor(&loaded.settings).text(&text).into_owned();
        let trust = match &command.work.record {
            Some(id) => Some(recorded_trust(&loaded.settings, id, &command.file, &kept, flag)?),
            None if request.dry_run => None,
            None => Some(trust(&loaded, &command.file, &text, &pipeline, &flag)?),
        };
        let project_hash = match &trust {
            Some(TrustFlag::WithHash(hash)) => Some(hash.clone()),
            Some(TrustFlag::Stored | TrustFlag::ThisRun) | None => None,
        };
        request.overrides.trust = trust.unwrap_or(TrustFlag::Stored);
        let mut variables = pipeline.variables.clone();
        variables.extend(command.variables.iter().map(|text| variable(text)).collect::<AppResult<Vec<_>>>()?);
        let first = command.from_step.as_ref().map_or(Ok(0), |name| first_step(&pipeline, name))?;
        let settings = app.load_and_notify(&request.effective_overrides())?.settings;
        let start = PipelineStart { text: kept, project_hash };
        Ok(Self { command, start, pipeline, variables, first, request, settings })
    }
}

/// Returns the trust option of a pipeline that begins.
fn trust(
    loaded: &LoadedConfig,
    file: &str,
    text: &str,
    pipeline: &Pipeline,
    flag: &TrustFlag,
) -> AppResult<TrustFlag> {
    let settings = &loaded.settings;
    let wrong = |error: ConfigError| AppError { kind: FailureKind::Config, cause: error.into() };
    let own = WorkspacePipeline::new(&settings.workspace, Path::new(file), text, pipeline).map_err(wrong)?;
    // A file outside of the workspace and its repository is the user's own.
    let Some(own) = own else { return Ok(flag.clone()) };
    let cache = fact_cache(&settings.state, &settings.workspace);
    own.decide(flag, &loaded.project, cache)
        .map_err(wrong)?
        .ok_or_else(|| AppError::new(FailureKind::Config, messages::pipeline_untrusted(file)))
}

/// Returns the trust option of a pipeline that is resumed: it was trusted when it began, and has not changed since. The files that
/// its commands name may have, because steps change files.
fn recorded_trust(
    settings: &Settings,
    id: &str,
    file: &str,
    text: &str,
    flag: TrustFlag,
) -> AppResult<TrustFlag> {
    let (work, _) = RecordedWork::read(&work_store(settings), id)?;
    let start = serde_json::from_str::<PipelineStart>(&work.start.data.unwrap_or_default());
    let start = start.map_err(|_| {
        AppError::new(FailureKind::Session, messages::work_unreadable(id, "its pipeline is missing"))
    })?;
    let before = parse_pipeline(settings, file, &start.text)?;
    let changed = parse_pipeline(settings, file, text)?.changes_since(&before);
    if !changed.is_empty() {
        return Err(AppError::new(FailureKind::Config, messages::pipeline_changed(file, &changed)));
    }
    Ok(start.project_hash.map_or(flag, TrustFlag::WithHash))
}

/// Parses a value of `--var`.
fn variable(text: &str) -> AppResult<(String, String)> {
    let wrong = |why: &str| AppError::new(FailureKind::Usage, messages::not_a_variable(text, why));
    let (name, value) = text.split_once('=').ok_or_else(|| wrong("write NAME=VALUE"))?;
    check_name(name).map_err(|why| wrong(&why))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn first_step(pipeline: &Pipeline, name: &str) -> AppResult<usize> {
    pipeline.steps.iter().position(|step| step.name == name).ok_or_else(|| {
        let names: Vec<&str> = pipeline.steps.iter().map(|step| step.name.as_str()).collect();
        AppError::new(FailureKind::Usage, messages::unknown_step(name, &names))
    })
}
