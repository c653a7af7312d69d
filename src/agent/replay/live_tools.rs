//! The calls of a journal done again (`--live-tools`): in a copy of the workspace, by the engine that a run would have now.
//!
//! Nothing that a journal says makes a call run: the present policy decides, and where it would ask, nobody is there. A call
//! that did not run then does not run now.

use super::replayed_files::ReplayedFiles;
use super::workspace_paths::WorkspacePaths;
use crate::agent::volatile::strip_volatile;
use crate::core::event::{Event, EventSink, Record};
use crate::core::message::{ToolCall, ToolResult};
use crate::engine::Engine;
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::tools::TypedTool;
use crate::tools::command_output::CommandOutput;
use crate::tools::outputs::{MAX_OUTPUT_BYTES, Outputs};
use crate::tools::run_command::RunCommand;
use crate::tools::stop_command::StopCommand;
use crate::tools::toolbox::DISPATCH_SUBAGENT;
use crate::tools::web_fetch::WebFetch;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// The end of the last call, as the engine tells it; a clone is the same.
#[derive(Debug, Clone, Default)]
pub struct LastToolEnd(Rc<RefCell<Option<Event>>>);

impl EventSink for LastToolEnd {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if matches!(record.event, Event::ToolCallEnd { .. }) {
            self.0.replace(Some(record.event.clone()));
        }
        Ok(())
    }
}

/// What calls are done again with.
pub struct LiveTools {
    /// The engine, which works in the copy.
    pub engine: Engine,
    /// What the engine tells.
    pub ends: LastToolEnd,
    /// The files of the copy.
    pub files: ReplayedFiles,
    /// The names of the workspace.
    pub paths: WorkspacePaths,
    /// The long outputs of the session.
    pub outputs: Outputs,
    /// Fires when the person asks to stop.
    pub interrupt: CancellationToken,
    /// What became of the calls.
    pub calls: RerunCounts,
}

/// What became of the calls of a journal.
#[derive(Debug, Default)]
pub struct RerunCounts {
    /// How many were made again.
    pub rerun: Cell<usize>,
    /// How many were taken from the journal, by the reason.
    pub from_journal: RefCell<BTreeMap<&'static str, usize>>,
    /// The tools that the run at work was offered.
    offered: RefCell<Vec<String>>,
}

impl LiveTools {
    /// Begins with the run whose records are `own`.
    pub(super) fn start_run(&self, before: &[Record], own: &[Record]) {
        self.files.start_run(before, own);
        self.engine.is_stopped_by_hook.set(false);
        let offered = own.iter().find_map(|record| match &record.event {
            Event::RunStart { tools, .. } => Some(tools.clone()),
            _ => None,
        });
        self.calls.offered.replace(offered.unwrap_or_default());
    }

    /// Does `call` again, which ended as `then` says; how it ends now, where that is another end.
    pub(super) async fn call(
        &self,
        call: &ToolCall,
        then: &Event,
        is_cut_short: bool,
    ) -> Result<Option<Event>, EmitError> {
        if let Some(why) = self.reason_not_rerun(&call.name, then, is_cut_short) {
            *self.calls.from_journal.borrow_mut().entry(why).or_default() += 1;
            self.take(then);
            return Ok(None);
        }
        self.ends.0.take();
        let there = ToolCall { arguments: self.paths.to_copy(&call.arguments), ..call.clone() };
        self.engine.run_batch(&[there], &self.interrupt, None).await?;
        self.engine.report_background()?;
        if self.interrupt.is_cancelled() {
            return Err(EmitError(io::ErrorKind::Interrupted.into()));
        }
        self.calls.rerun.set(self.calls.rerun.get().saturating_add(1));
        let end = self.ends.0.take().unwrap_or(Event::StepEnd);
        Ok(self.difference(&call.name, then, end))
    }

    /// The run is over.
    pub(super) async fn end(&self) -> Result<(), EmitError> {
        self.engine.end_background().await
    }

    /// Why a call of `tool` is not done again that ended as `then` says. Of which tool the end says that it is does not count.
    fn reason_not_rerun(&self, tool: &str, then: &Event, is_cut_short: bool) -> Option<&'static str> {
        let is_offered = self.calls.offered.borrow().iter().any(|offered| offered == tool);
        let did_run = matches!(then, Event::ToolCallEnd { denial: None, simulated: false, .. });
        let is_held = self.engine.launcher.tier().has_own_view();
        match tool {
            _ if !is_offered || !did_run => Some(messages::DID_NOT_RUN),
            _ if is_cut_short => Some(messages::IN_INTERRUPTED_STEP),
            WebFetch::NAME => Some(messages::WEB_CALL),
            DISPATCH_SUBAGENT => Some(messages::SUBAGENT_CALL),
            RunCommand::NAME | CommandOutput::NAME | StopCommand::NAME if !is_held => {
                Some(messages::UNSANDBOXED_COMMAND)
            }
            CommandOutput::NAME => Some(messages::BACKGROUND_OUTPUT_CALL),
            _ => None,
        }
    }

    /// Takes over what a call did then: to files, to what the model has seen, to limits, and its long output.
    fn take(&self, then: &Event) {
        let Event::ToolCallEnd { result, changed, seen, .. } = then else { return };
        self.files.apply_recorded(changed);
        self.engine.guardrails.note(then);
        for seen in seen {
            self.engine.observed_files.record(&seen.path, &seen.hash);
        }
        let mut bytes = Vec::new();
        let kept = self.outputs.open(&Outputs::name(&result.call_id));
        if kept.and_then(|file| file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)).is_ok() {
            // A call that reads it says that it is not there.
            let _ = self.engine.outputs.store(&result.call_id, &bytes);
        }
    }

    /// `now`, where the model would read something else than what it read `then`.
    fn difference(&self, tool: &str, then: &Event, now: Event) -> Option<Event> {
        let Event::ToolCallEnd { result: ToolResult { text, is_error, .. }, denial, .. } = now else {
            return Some(now);
        };
        let mut end = then.clone();
        let Event::ToolCallEnd { result, denial: refused, .. } = &mut end else { return None };
        let text = self.paths.to_recorded(&text);
        // What was read then may name the workspace as it is here, too.
        let was = self.paths.to_recorded(&result.text);
        let is_same = match tool {
            RunCommand::NAME | StopCommand::NAME => strip_volatile(&was) == strip_volatile(&text),
            _ => was == text,
        };
        if is_same && result.is_error == is_error {
            return None;
        }
        (result.text, result.is_error, *refused) = (text, is_error, denial);
        Some(end)
    }
}
