//! The `stop_command` tool: ends a background command and all its processes.

use crate::background::CommandEnd;
use crate::command_output::status_text;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::lines::{QUOTE_CHARS, one_line};
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

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let command = cx.background.get(&args.id)?;
        let has_ended = command.end().is_some();
        command.mark_end_reported();
        if has_ended {
            return Ok(ToolOutput::ok(format!("It has ended already.\n{}", status_text(&command))));
        }
        command.stop().await;
        let seconds = command.age().as_secs();
        let stopped = format!("Stopped {} after {seconds} s: {}", command.id, command.text);
        match command.end().and_then(CommandEnd::warning) {
            Some(warning) => Err(format!("{stopped}\nCommand failed: {warning}")),
            None => Ok(ToolOutput::ok(stopped)),
        }
    }
}
