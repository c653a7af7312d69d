//! `command_output`: what a background command has written since the last look, and whether it still runs.

use crate::process::capture::StoredOutput;
use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::background::{BackgroundCommand, CommandEnd};
use crate::tools::outputs::Outputs;
use crate::tools::run_command::end_text;
use crate::tools::sandbox_messages;
use crate::tools::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Bytes of output in one answer: some hundred lines.
const MAX_PART_BYTES: usize = 16 * 1024;

/// The longest wait for more output, in seconds: as long as a command may take that names no time.
const MAX_WAIT_SECONDS: u64 = 120;

/// The tool.
#[derive(Debug)]
pub struct CommandOutput;

/// The arguments of `command_output`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Which command. Without it all are listed.
    id: Option<String>,
    /// Byte of the output to begin at. Default: where the last answer ended.
    from: Option<u64>,
    /// Seconds to wait for output or the end, at most 120. Default: 0.
    wait: Option<u64>,
}

impl TypedTool for CommandOutput {
    const NAME: &'static str = "command_output";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "New output of a background command, and whether it still runs.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(args.id.as_deref().unwrap_or("all"), QUOTE_CHARS), ..Plan::default() }
    }

    fn run<'a>(&'a self, args: Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match args.id {
                None => ToolOutput::ok(list(&cx.background.list())),
                Some(ref id) => match cx.background.get(id) {
                    Ok(command) => ToolOutput::ok(read_output(&command, &args, cx).await),
                    Err(text) => ToolOutput::error(text),
                },
            }
        })
    }
}

/// One line about each.
fn list(commands: &[std::rc::Rc<BackgroundCommand>]) -> String {
    if commands.is_empty() {
        return "There are no background commands.".to_owned();
    }
    commands.iter().map(|command| status_text(command)).collect::<Vec<_>>().join("\n")
}

/// What the command is, and how it is with it: one line, more where its end needs an explanation.
pub(super) fn status_text(command: &BackgroundCommand) -> String {
    let BackgroundCommand { id, text, .. } = command;
    let seconds = command.age().as_secs();
    match command.end() {
        None => format!("{id} runs since {seconds} s: {text}"),
        Some(end) => format!("{id} ended after {seconds} s: {text}\n{}", background_end_text(command, end)),
    }
}

/// How it ended, in words; what it did to protected files comes first.
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
        // The halves of a secret would be told one after the other.
        let begun = cx.outputs.redactor.partial_secret_len(&part.bytes);
        part.bytes.truncate(part.bytes.len() - begun);
    }
    let total = command.recent.total();
    command.read.set(part.next());
    let mut text = status_text(command);
    if part.first > from {
        let _infallible = write!(text, "\n[{} bytes of output before this left out", part.first - from);
        let kept = command
            .end()
            .is_none_or(|end| !matches!(end.stored, StoredOutput::NoFile | StoredOutput::Failed(_)));
        let name = Outputs::name(&command.call_id);
        if kept && cx.outputs.open(&name).is_ok() {
            let _infallible = write!(text, "; read_file or grep with path \"{name}\" has them");
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
        let _infallible = write!(text, "\n[{} more bytes: ask again]", total - part.next());
    }
    if command.end().is_some() {
        command.mark_end_reported();
    }
    text
}
