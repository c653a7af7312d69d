//! Sessions as lists show them.

use crate::core::price::Usd;
use crate::core::stop_reason::{Status, StopReason};
use crate::journal::session_store::SessionStore;
use crate::journal::summary::SessionSummary;
use crate::redactor::Redactor;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;

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
        })
    }
}
