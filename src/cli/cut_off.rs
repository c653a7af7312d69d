//! Ends the calls that a killed process left: finds out what they did to files, so that it is told and can be undone.

use crate::agent::Agent;
use crate::agent::session::unknown_outcome;
use crate::change::{Change, ChangeAction, FileState};
use crate::emit::EmitError;
use crate::event::{Event, Level};
use crate::guardrail::Counted;
use crate::journal::cut_off::{CutOff, Unfinished};
use crate::message::ToolCall;
use crate::messages;
use crate::workspace::Workspace;
use crate::workspace::baseline::Baseline;
use std::path::{Path, PathBuf};

/// The calls of a session that a killed process left, and where the files were written as they were before its last command.
pub struct CutOffs {
    calls: Vec<CutOff>,
    baseline: PathBuf,
}

impl CutOffs {
    /// Those that are `unfinished`.
    pub fn of(unfinished: Unfinished, baseline: PathBuf) -> Self {
        Self { calls: unfinished.cut_off(), baseline }
    }

    /// Gives every call of `agent` a result that has none, and tells what it did to files.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn end(&self, agent: &Agent) -> Result<(), EmitError> {
        let workspace = &agent.engine.workspace;
        let cut_off = agent.session.borrow().cut_off();
        for call in cut_off {
            let begun = self.calls.iter().find(|begun| begun.call.id == call.id);
            for text in begun.map_or_else(Vec::new, |begun| clear(workspace, begun)) {
                agent.emitter.emit(Event::Notice { level: Level::Warn, text })?;
            }
            let changed = begun.map_or_else(Vec::new, |begun| made(workspace, &self.baseline, begun));
            if let Some(checkpoints) = &agent.engine.checkpoints {
                checkpoints.note(&changed);
            }
            let summary = begun.map(|begun| begun.summary.clone()).unwrap_or_default();
            agent.emitter.emit(ended(call, summary, changed))?;
        }
        Ok(())
    }
}

/// What became of files through a call that was cut off; `baseline` is where the files before a program were written.
pub fn made(workspace: &Workspace, baseline: &Path, call: &CutOff) -> Vec<Change> {
    if call.announced.is_empty() {
        let found = Baseline::of_the_dead(workspace.clone(), baseline).and_then(|mut it| it.changes());
        return found.map_or_else(Vec::new, |changes| changes.listed);
    }
    call.announced.iter().filter(|change| has_happened(workspace, change)).cloned().collect()
}

/// Whether the file is no longer what it was. Then somebody else may have changed it, and an undo will say so.
fn has_happened(workspace: &Workspace, change: &Change) -> bool {
    let now = workspace.path(&change.path).ok().and_then(|path| workspace.state_of(&path).ok());
    match change.was() {
        FileState::Unknown => now == Some(FileState::Absent),
        was => !now.is_some_and(|now| now.agrees(&was)),
    }
}

/// Removes what a call that was cut off has left beside its files; says what had to be kept.
pub fn clear(workspace: &Workspace, call: &CutOff) -> Vec<String> {
    let mut said = Vec::new();
    for change in &call.announced {
        let Ok(path) = workspace.path(&change.path) else { continue };
        let kept = workspace.clear_leftovers(&path, change.before.as_deref()).kept;
        said.extend(kept.iter().map(|path| messages::leftover_kept(path.as_str())));
        if change.action == ChangeAction::Created && !has_happened(workspace, change) {
            workspace.remove_directories([(path, change.directories)]);
        }
    }
    said
}

/// The end of a call of which nobody knows more than what it did to files.
pub fn ended(call: ToolCall, summary: String, changed: Vec<Change>) -> Event {
    Event::ToolEnd {
        name: call.name,
        summary,
        result: unknown_outcome(call.id),
        changed,
        seen: Vec::new(),
        denial: None,
        simulated: false,
        counted: Counted::default(),
        duration_ms: 0,
    }
}
