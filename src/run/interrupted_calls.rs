//! Gives results to the calls that a killed process left unfinished, and determines their changes to files.

use agent_core::event::{Event, NoticeLevel};
use agent_core::file_change::{Change, ChangeAction, FileState};
use agent_core::message::ToolCall;
use agent_engine::call_arguments::effective_call;
use agent_journal::interrupted_calls::{InterruptedCall, UnfinishedCalls};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_session::Agent;
use agent_session::session::unknown_outcome;
use agent_workspace::Workspace;
use agent_workspace::baseline::Baseline;
use std::path::{Path, PathBuf};

/// The unfinished calls of a session, and the directory with the file states before its last command.
pub struct InterruptedCalls {
    calls: Vec<InterruptedCall>,
    baseline: PathBuf,
}

impl InterruptedCalls {
    /// Creates the list from `unfinished` calls.
    pub fn new(unfinished: UnfinishedCalls, baseline: PathBuf) -> Self {
        Self { calls: unfinished.into_interrupted(), baseline }
    }

    /// Emits a result with unknown outcome for every call of `agent` without one, including its changes to files.
    ///
    /// # Errors
    /// Fails when the journal cannot be written.
    pub fn emit_results(&self, agent: &Agent) -> Result<(), EmitError> {
        let workspace = &agent.engine.workspace;
        let interrupted = agent.session.borrow().interrupted_calls();
        for call in interrupted {
            let started_call = self.calls.iter().find(|started_call| started_call.call.id == call.id);
            for text in
                started_call.map_or_else(Vec::new, |started_call| remove_leftovers(workspace, started_call))
            {
                agent.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text })?;
            }
            let changed = started_call
                .map_or_else(Vec::new, |started_call| changes_made(workspace, &self.baseline, started_call));
            if let Some(checkpoints) = &agent.engine.checkpoints {
                checkpoints.record_changes(&changed);
            }
            let summary = started_call.map(|started_call| started_call.summary.clone()).unwrap_or_default();
            agent.emitter.emit(unknown_outcome_event(call, summary, changed))?;
        }
        Ok(())
    }
}

/// Returns the changes to files made by an interrupted call; `baseline` contains the file states before a command.
pub fn changes_made(workspace: &Workspace, baseline: &Path, call: &InterruptedCall) -> Vec<Change> {
    if call.announced.is_empty() {
        let found = Baseline::load(workspace.clone(), baseline).and_then(|mut it| it.after_command());
        return found.map_or_else(Vec::new, |changes| changes.listed);
    }
    call.announced.iter().filter(|change| is_applied(workspace, change)).cloned().collect()
}

/// Checks whether the file differs from its state before the call. If someone else changed it, an undo reports that.
fn is_applied(workspace: &Workspace, change: &Change) -> bool {
    let now = workspace.path(&change.path).ok().and_then(|path| workspace.state_of(&path).ok());
    match change.before_state() {
        FileState::Unknown => now == Some(FileState::Absent),
        was => !now.is_some_and(|now| now.is_consistent_with(&was)),
    }
}

/// Removes the temporary files of an interrupted call; returns messages about those that had to stay.
pub fn remove_leftovers(workspace: &Workspace, call: &InterruptedCall) -> Vec<String> {
    let mut messages = Vec::new();
    for change in &call.announced {
        let Ok(path) = workspace.path(&change.path) else { continue };
        let kept = workspace.clear_leftovers(&path, change.before.as_deref()).kept;
        messages.extend(kept.iter().map(|path| messages::leftover_file(path.as_str())));
        if change.action == ChangeAction::Created && !is_applied(workspace, change) {
            workspace.remove_directories([(path, change.directories)]);
        }
    }
    messages
}

/// Creates the end event of a call of which only the changes to files are known.
pub fn unknown_outcome_event(call: ToolCall, summary: String, changed: Vec<Change>) -> Event {
    let name = effective_call(&call).name.clone();
    Event::tool_not_run(name, summary, unknown_outcome(call.id), changed)
}
