//! Repeats the tool calls of a journal (`--live-tools`) in a copy of the workspace, with a current engine.
//!
//! A journal cannot make a call run: the present policy decides, and a request for approval is denied. A call that did not run in the recording
//! does not run now.

use super::replayed_files::ReplayedFiles;
use super::workspace_paths::WorkspacePaths;
use crate::volatile::strip_volatile;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::message::{MCP_PREFIX, ToolCall, ToolResult};
use agent_engine::Engine;
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_tools::TypedTool;
use agent_tools::ask_user::AskUser;
use agent_tools::command_output::CommandOutput;
use agent_tools::outputs::{MAX_OUTPUT_BYTES, Outputs};
use agent_tools::run_command::RunCommand;
use agent_tools::stop_command::StopCommand;
use agent_tools::toolbox::{CALL_TOOL, DISPATCH_SUBAGENT, TOOL_SEARCH};
use agent_tools::web_fetch::WebFetch;
use agent_tools::web_search::WebSearch;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Event sink that stores the end of the last call; clones share it.
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

/// Everything that is needed to repeat calls.
pub struct LiveTools {
    /// The engine, which works in the copy.
    pub engine: Engine,
    /// The events of the engine.
    pub ends: LastToolEnd,
    /// The files of the copy.
    pub files: ReplayedFiles,
    /// The paths of the workspace.
    pub paths: WorkspacePaths,
    /// The long outputs of the session.
    pub outputs: Outputs,
    /// Fires when the user interrupts the replay.
    pub interrupt: CancellationToken,
    /// Counts of the calls.
    pub calls: RerunCounts,
}

/// Counts of the calls of a journal.
#[derive(Debug, Default)]
pub struct RerunCounts {
    /// Number of calls repeated.
    pub rerun: Cell<usize>,
    /// Number of calls taken from the journal, by reason.
    pub from_journal: RefCell<BTreeMap<&'static str, usize>>,
    /// The tools offered in the current run.
    offered: RefCell<Vec<String>>,
}

impl LiveTools {
    /// Prepares the run whose records are `own`.
    pub(super) fn start_run(&self, before: &[Record], own: &[Record]) {
        self.files.start_run(before, own);
        self.engine.is_stopped_by_hook.set(false);
        let offered = own.iter().find_map(|record| match &record.event {
            Event::RunStart { tools, .. } => Some(tools.clone()),
            _ => None,
        });
        self.calls.offered.replace(offered.unwrap_or_default());
    }

    /// Repeats `call`, whose recorded end is `then`. Returns its new end if it differs.
    pub(super) async fn call(
        &self,
        call: &ToolCall,
        then: &Event,
        is_cut_short: bool,
    ) -> Result<Option<Event>, EmitError> {
        if let Some(reason) = self.reason_not_rerun(&call.name, then, is_cut_short) {
            *self.calls.from_journal.borrow_mut().entry(reason).or_default() += 1;
            self.apply_recorded(then);
            return Ok(None);
        }
        self.ends.0.take();
        let there = ToolCall::new(&call.id, &call.name, self.paths.to_copy(&call.arguments))
            .with_opaque(call.opaque.clone());
        self.engine.run_calls(&[there], &self.interrupt, None).await?;
        self.engine.report_background()?;
        if self.interrupt.is_cancelled() {
            return Err(EmitError(io::ErrorKind::Interrupted.into()));
        }
        self.calls.rerun.set(self.calls.rerun.get().saturating_add(1));
        let end = self.ends.0.take().unwrap_or(Event::StepEnd);
        Ok(self.difference(&call.name, then, end))
    }

    /// Ends the run.
    pub(super) async fn end(&self) -> Result<(), EmitError> {
        self.engine.stop_background().await
    }

    /// Returns why a call of `tool` with the recorded end `then` is not repeated. The name of the tool in `then` is not trusted.
    fn reason_not_rerun(&self, tool: &str, then: &Event, is_cut_short: bool) -> Option<&'static str> {
        let is_offered = self.calls.offered.borrow().iter().any(|offered| offered == tool);
        let did_run = matches!(then, Event::ToolCallEnd { denial: None, simulated: false, .. });
        let is_held = self.engine.launcher.tier().has_own_view();
        match tool {
            _ if !did_run => Some(messages::DID_NOT_RUN),
            name if name == CALL_TOOL || name == TOOL_SEARCH || name.starts_with(MCP_PREFIX) => {
                Some(messages::MCP_CALL)
            }
            _ if !is_offered => Some(messages::DID_NOT_RUN),
            _ if is_cut_short => Some(messages::IN_INTERRUPTED_STEP),
            WebFetch::NAME | WebSearch::NAME => Some(messages::WEB_CALL),
            DISPATCH_SUBAGENT => Some(messages::SUBAGENT_CALL),
            AskUser::NAME => Some(messages::QUESTION_CALL),
            RunCommand::NAME | CommandOutput::NAME | StopCommand::NAME if !is_held => {
                Some(messages::UNSANDBOXED_COMMAND)
            }
            CommandOutput::NAME => Some(messages::BACKGROUND_OUTPUT_CALL),
            _ => None,
        }
    }

    /// Applies the recorded effects of a call: on files, on the files that were read, on limits, and its long output.
    fn apply_recorded(&self, then: &Event) {
        let Event::ToolCallEnd { result, changed, seen, .. } = then else { return };
        self.files.apply_recorded(changed);
        self.engine.guardrails.note(then);
        for seen in seen {
            self.engine.observed_files.record(&seen.path, &seen.hash);
        }
        let mut bytes = Vec::new();
        let stored = self.outputs.open(&Outputs::name(&result.call_id));
        if stored.and_then(|file| file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)).is_ok() {
            // If it could not be stored, a call that reads it reports that.
            let _ = self.engine.outputs.store(&result.call_id, &bytes);
        }
    }

    /// Returns `now` if the model would read another result than the recorded one.
    fn difference(&self, tool: &str, then: &Event, now: Event) -> Option<Event> {
        let Event::ToolCallEnd { result: ToolResult { text, is_error, .. }, denial, .. } = now else {
            return Some(now);
        };
        let mut end = then.clone();
        let Event::ToolCallEnd { result, denial: refused, .. } = &mut end else { return None };
        let text = self.paths.to_recorded(&text);
        // The recorded text may contain the present path of the workspace, too.
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
