//! The `command_output` tool: returns new output and the status of a background command.

use crate::background::{BackgroundCommand, CommandEnd};
use crate::outputs::Outputs;
use crate::run_command::end_text;
use crate::sandbox_messages;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_process::capture::StoredOutput;
use agent_text::lines::{QUOTE_CHARS, one_line};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Maximum bytes of output in one result.
const MAX_PART_BYTES: usize = 16 * 1024;

/// Maximum wait for more output, in seconds.
const MAX_WAIT_SECONDS: u64 = 120;

/// The `command_output` tool.
#[derive(Debug)]
pub struct CommandOutput;

/// The arguments of `command_output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Omit to list all.
    id: Option<String>,
    /// Byte offset. Default: end of the last result.
    from: Option<u64>,
    /// Seconds to wait for output or exit, at most 120. Default: 0.
    wait: Option<u64>,
}

impl TypedTool for CommandOutput {
    const NAME: &'static str = "command_output";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "New output and status of a background command.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(args.id.as_deref().unwrap_or("all"), QUOTE_CHARS), ..Plan::default() }
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let Some(id) = &args.id else { return Ok(ToolOutput::ok(list(&cx.background.list()))) };
        let command = cx.background.get(id)?;
        Ok(ToolOutput::ok(read_output(&command, &args, cx).await))
    }
}

/// Lists the commands, one status each.
fn list(commands: &[std::rc::Rc<BackgroundCommand>]) -> String {
    if commands.is_empty() {
        return "There are no background commands.".to_owned();
    }
    commands.iter().map(|command| status_text(command)).collect::<Vec<_>>().join("\n")
}

/// Describes the command and its status: one line, followed by the reason if it has ended.
pub(super) fn status_text(command: &BackgroundCommand) -> String {
    let BackgroundCommand { id, text, .. } = command;
    let seconds = command.age().as_secs();
    match command.end() {
        None => format!("{id} has been running for {seconds} s: {text}"),
        Some(end) => format!("{id} ended after {seconds} s: {text}\n{}", background_end_text(command, end)),
    }
}

/// Describes for the model how the command ended, changed protected files first.
pub fn background_end_text(command: &BackgroundCommand, end: &CommandEnd) -> String {
    let how = match &end.result {
        Ok(ended) => end_text(*ended, command.limit.unwrap_or_default()),
        Err(error) => format!("{error}."),
    };
    sandbox_messages::with_protected_files_text(&end.protected_changes, how)
}

async fn read_output(command: &BackgroundCommand, args: &Args, cx: &ToolContext) -> String {
    let from = args.from.unwrap_or_else(|| command.read.get());
    let wait = Duration::from_secs(args.wait.unwrap_or(0).min(MAX_WAIT_SECONDS));
    if !wait.is_zero() {
        tokio::select! {
            () = command.recent.wait_for_more(from) => {}
            () = tokio::time::sleep(wait) => {}
            () = cx.cancel.cancelled() => {}
        }
    }
    let mut part = match args.from {
        Some(from) => command.recent.read_from(from, MAX_PART_BYTES),
        None => command.recent.tail_from(from, MAX_PART_BYTES),
    };
    if command.end().is_none() {
        // A secret that is cut in two would pass the redactor in halves.
        let partial = cx.outputs.redactor.partial_secret_len(&part.bytes);
        part.bytes.truncate(part.bytes.len() - partial);
    }
    let total = command.recent.total();
    command.read.set(part.next());
    let mut text = status_text(command);
    if part.first > from {
        let _infallible = write!(text, "\n[{} bytes of earlier output omitted", part.first - from);
        let is_stored = command
            .end()
            .is_none_or(|end| !matches!(end.stored, StoredOutput::NoFile | StoredOutput::Failed(_)));
        let name = Outputs::name(&command.call_id);
        if is_stored && cx.outputs.open(&name).is_ok() {
            let _infallible = write!(text, "; read_file or grep with path \"{name}\" shows them");
        } else {
            let _infallible = write!(text, "; `from: {from}` shows them");
        }
        text.push(']');
    }
    if part.bytes.is_empty() {
        text.push_str("\nNo new output.");
    } else {
        let _infallible = write!(text, "\noutput:\n{}", String::from_utf8_lossy(&part.bytes));
    }
    if part.next() < total {
        let _infallible = write!(text, "\n[{} more bytes: call again]", total - part.next());
    }
    if command.end().is_some() {
        command.mark_end_reported();
    }
    text
}
