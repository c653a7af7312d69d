//! Performs a scripted task in the current directory, and prints its events and its outcome.
#![expect(clippy::print_stdout, reason = "the output of this program")]

use agent_run::{Event, EventSink, Overrides, Record, Run, RunRequest, Task, program};
use std::process::ExitCode;

/// Prints the session and each call of a tool.
struct Printer;

impl EventSink for Printer {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        match &record.event {
            Event::SessionStart { session_id, .. } => println!("session {session_id}"),
            Event::ToolCallStart { call, summary, .. } => println!("{} {summary}", call.name),
            Event::ToolCallEnd { result, .. } => println!("{} bytes", result.text.len()),
            _ => {}
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    program::main(|app| {
        let model = Some("scripted:script.yaml".to_owned());
        let request = RunRequest {
            task: Task::new("add a greeting"),
            overrides: Overrides { model, ..Overrides::default() },
            ..RunRequest::default()
        };
        let outcome = app.block_on(async {
            let mut run = Run::prepare(app, &request).await?;
            run.add_sink(Box::new(Printer));
            run.perform().await
        })?;
        println!("{}: {}", outcome.result.status.name(), outcome.result.output.text());
        Ok(outcome.exit_code())
    })
}
