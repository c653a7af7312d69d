//! Sessions as lists show them.

use crate::session::SESSIONS;
use agent_config::environment::WORKTREES;
use agent_config::settings::Settings;
use agent_core::price::Usd;
use agent_core::stop_reason::{Status, StopReason};
use agent_journal::labels::SessionLabels;
use agent_journal::session_store::SessionStore;
use agent_journal::summary::SessionSummary;
use agent_redactor::Redactor;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::path::Path;

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedSession {
    /// Its id.
    pub id: String,
    /// Status of the last run; null while it works, or if it was killed.
    pub status: Option<Status>,
    /// Why the last run stopped.
    pub stop_reason: Option<StopReason>,
    /// Model calls that were part of the work.
    pub steps: u32,
    /// US dollars of the last run; null if the price of a model is unknown.
    pub cost_usd: Option<Usd>,
    /// `provider/model` of the last run.
    pub model: Option<String>,
    /// Time of the first event, in milliseconds since the Unix epoch.
    pub began_ms: u64,
    /// Time of the last event, in milliseconds since the Unix epoch.
    pub last_ms: u64,
    /// The first prompt.
    pub task: String,
    /// The title that the user gave (`/name`); absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The branch of the repository when the last run began; absent outside repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The workspace in which it began, if no directory is there any more; absent for the sessions of this workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
}

impl ListedSession {
    /// Reads session `id`, without the secrets known now.
    ///
    /// # Errors
    /// When its journal cannot be read.
    pub fn read(store: &SessionStore, redactor: &Redactor, id: String) -> io::Result<Self> {
        let path = store.journal_path(&id).map_err(io::Error::other)?;
        let summary = SessionSummary::read(&path)?;
        let end = summary.end.as_ref();
        let SessionLabels { title, branch } = store.labels(&id);
        Ok(Self {
            id,
            status: end.map(|end| end.status),
            stop_reason: end.and_then(|end| end.stop_reason),
            steps: summary.steps,
            cost_usd: end.and_then(|end| end.cost.total_usd),
            model: summary.model.map(|model| redactor.text(&model).into_owned()),
            began_ms: summary.started_ms,
            last_ms: summary.last_ms,
            task: redactor.text(&summary.task).into_owned(),
            title: title.map(|title| redactor.text(&title).into_owned()),
            branch,
            workspace: None,
        })
    }

    /// Returns the title that the user gave, or the first prompt.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.task)
    }
}

/// Returns the sessions whose workspace is no longer at its path, because it was renamed or removed: by workspace, newest first.
/// Sessions that cannot be read are left out.
pub fn sessions_of_gone_workspaces(settings: &Settings, redactor: &Redactor) -> Vec<ListedSession> {
    let states = settings.directories.workspace_states().into_iter().filter(|state| *state != settings.state);
    let mut found = Vec::new();
    for state in states {
        let store = SessionStore::new(state.join(SESSIONS));
        for id in store.list().into_iter().flatten() {
            let summary = store.journal_path(&id).ok().and_then(|path| SessionSummary::read(&path).ok());
            let workspace = summary.and_then(|summary| summary.workspace);
            let Some(workspace) =
                workspace.filter(|path| !Path::new(path).starts_with(state.join(WORKTREES)))
            else {
                continue;
            };
            if Path::new(&workspace).exists() {
                // All others are there too, but for those in worktrees.
                break;
            }
            let listed = ListedSession::read(&store, redactor, id);
            found.extend(listed.ok().map(|listed| ListedSession { workspace: Some(workspace), ..listed }));
        }
    }
    found
}
