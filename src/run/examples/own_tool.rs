//! Adds a tool of this program to a run. The model calls the tool to learn the temperature of a room.
#![expect(clippy::print_stdout, reason = "the output of this program")]

use agent_run::{
    Access, Overrides, OwnTools, Plan, Run, RunRequest, Task, ToolContext, ToolOutput, TypedTool, program,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::process::ExitCode;

/// The tool.
struct Thermometer;

/// Its arguments; the model reads the comments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Room {
    /// Name of the room.
    room: String,
}

impl TypedTool for Thermometer {
    const NAME: &'static str = "temperature";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Tells the temperature of a room in degrees Celsius.";
    type Args = Room;

    fn plan(&self, args: &Room) -> Plan {
        Plan { summary: args.room.clone(), ..Plan::default() }
    }

    async fn run(&self, args: Room, _context: &ToolContext) -> Result<ToolOutput, String> {
        match args.room.as_str() {
            "kitchen" => Ok(ToolOutput::ok("21")),
            other => Err(format!("There is no thermometer in '{other}'; there is one in the kitchen.")),
        }
    }
}

fn main() -> ExitCode {
    program::main(|app| {
        let model = Some("scripted:script.yaml".to_owned());
        let request = RunRequest {
            task: Task::new("how warm is the kitchen?"),
            overrides: Overrides { model, ..Overrides::default() },
            tools: OwnTools::new(|| vec![Box::new(Thermometer)]),
            ..RunRequest::default()
        };
        let outcome = app.block_on(async { Run::prepare(app, &request).await?.perform().await })?;
        println!("{}", outcome.result.output.text());
        Ok(outcome.exit_code())
    })
}
