//! Ends the calls that a killed process left: finds out what they did to files, so that it is told and can be undone.

use crate::agent::Agent;
use crate::agent::session::unknown_outcome;
use crate::core::event::{Event, NoticeLevel};
use crate::core::file_change::{Change, ChangeAction, FileState};
use crate::core::guardrail::CallCounts;
use crate::core::message::ToolCall;
use crate::journal::interrupted_calls::{InterruptedCall, UnfinishedCalls};
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::workspace::Workspace;
use crate::workspace::baseline::Baseline;
use std::path::{Path, PathBuf};

/// The calls of a session that a killed process left, and where the files were written as they were before its last command.
pub struct InterruptedCalls {
    calls: Vec<InterruptedCall>,
    baseline: PathBuf,
}

impl InterruptedCalls {
    /// Those that are `unfinished`.
    pub fn new(unfinished: UnfinishedCalls, baseline: PathBuf) -> Self {
        Self { calls: unfinished.into_interrupted(), baseline }
    }

    /// Gives every call of `agent` a result that has none, and tells what it did to files.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn emit_results(&self, agent: &Agent) -> Result<(), EmitError> {
        let workspace = &agent.engine.workspace;
        let cut_off = agent.session.borrow().interrupted_calls();
        for call in cut_off {
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

/// What became of files through a call that was cut off; `baseline` is where the files before a program were written.
pub fn changes_made(workspace: &Workspace, baseline: &Path, call: &InterruptedCall) -> Vec<Change> {
    if call.announced.is_empty() {
        let found = Baseline::load(workspace.clone(), baseline).and_then(|mut it| it.after_command());
        return found.map_or_else(Vec::new, |changes| changes.listed);
    }
    call.announced.iter().filter(|change| is_applied(workspace, change)).cloned().collect()
}

/// Whether the file is no longer what it was. Then somebody else may have changed it, and an undo will say so.
fn is_applied(workspace: &Workspace, change: &Change) -> bool {
    let now = workspace.path(&change.path).ok().and_then(|path| workspace.state_of(&path).ok());
    match change.before_state() {
        FileState::Unknown => now == Some(FileState::Absent),
        was => !now.is_some_and(|now| now.is_consistent_with(&was)),
    }
}

/// Removes what a call that was cut off has left beside its files; says what had to be kept.
pub fn remove_leftovers(workspace: &Workspace, call: &InterruptedCall) -> Vec<String> {
    let mut said = Vec::new();
    for change in &call.announced {
        let Ok(path) = workspace.path(&change.path) else { continue };
        let kept = workspace.clear_leftovers(&path, change.before.as_deref()).kept;
        said.extend(kept.iter().map(|path| messages::leftover_file(path.as_str())));
        if change.action == ChangeAction::Created && !is_applied(workspace, change) {
            workspace.remove_directories([(path, change.directories)]);
        }
    }
    said
}

/// The end of a call of which nobody knows more than what it did to files.
pub fn unknown_outcome_event(call: ToolCall, summary: String, changed: Vec<Change>) -> Event {
    Event::ToolCallEnd {
        name: call.name,
        summary,
        result: unknown_outcome(call.id),
        changed,
        seen: Vec::new(),
        denial: None,
        simulated: false,
        counted: CallCounts::default(),
        duration_ms: 0,
    }
}
