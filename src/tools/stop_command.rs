//! The `stop_command` tool: ends a background command and all its processes.

use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::background::CommandEnd;
use crate::tools::command_output::status_text;
use crate::tools::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

/// The `stop_command` tool. Its access is `Read` because it only ends commands that the run itself started.
#[derive(Debug)]
pub struct StopCommand;

/// The arguments of `stop_command`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    id: String,
}

impl TypedTool for StopCommand {
    const NAME: &'static str = "stop_command";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Stop a background command and all its processes.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan { summary: one_line(&args.id, QUOTE_CHARS), ..Plan::default() }
    }

    fn run<'a>(&'a self, args: Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let command = match cx.background.get(&args.id) {
                Ok(command) => command,
                Err(text) => return ToolOutput::error(text),
            };
            if command.end().is_some() {
                command.mark_end_reported();
                return ToolOutput::ok(format!("It has ended already.\n{}", status_text(&command)));
            }
            command.mark_end_reported();
            command.stop().await;
            let seconds = command.age().as_secs();
            let stopped = format!("Stopped {} after {seconds} s: {}", command.id, command.text);
            match command.end().and_then(CommandEnd::warning) {
                Some(warning) => ToolOutput::error(format!("{stopped}\nCommand failed: {warning}")),
                None => ToolOutput::ok(stopped),
            }
        })
    }
}
