//! Answers the questions of a run: changes of files are approved, everything else is refused. The run is interrupted when it has lasted a minute.
#![expect(clippy::print_stdout, reason = "the output of this program")]

use agent_run::{
    App, AppResult, ApproverAnswer, CancellationToken, ClientQuestion, Mode, Overrides, Run, RunClient,
    RunOutcome, RunRequest, Task, program,
};
use std::process::ExitCode;
use std::time::Duration;

/// How long the run may last.
const LIMIT: Duration = Duration::from_mins(1);

/// Answers a question.
fn answer(ClientQuestion { question, reply }: ClientQuestion) {
    let answer = match question.tool.as_str() {
        "write_file" | "edit_file" => ApproverAnswer::Yes,
        tool => ApproverAnswer::No(Some(format!("this program permits no {tool}"))),
    };
    println!("{} {}? {}", question.tool, question.summary, question.reason);
    // The run may have ended meanwhile.
    let _ended = reply.send(answer);
}

/// Performs the run, and answers its questions while it works.
async fn perform(app: &App) -> AppResult<RunOutcome> {
    let interrupt = CancellationToken::new();
    let (client, mut questions) = RunClient::new(interrupt.clone());
    let (model, mode) = (Some("scripted:script.yaml".to_owned()), Some(Mode::ConfirmSensitive));
    let request = RunRequest {
        task: Task::new("note the weather, and remove the old notes"),
        overrides: Overrides { model, mode, ..Overrides::default() },
        client: Some(client),
        ..RunRequest::default()
    };
    let mut work = Run::prepare(app, &request).await?.perform();
    let end = tokio::time::sleep(LIMIT);
    tokio::pin!(end);
    loop {
        tokio::select! {
            outcome = &mut work => return outcome,
            Some(question) = questions.recv() => answer(question),
            () = &mut end, if !interrupt.is_cancelled() => interrupt.cancel(),
        }
    }
}

fn main() -> ExitCode {
    program::main(|app| {
        let outcome = app.block_on(perform(app))?;
        for denial in &outcome.result.permission_denials {
            println!("refused: {} {}", denial.tool, denial.summary);
        }
        println!("{}", outcome.result.output.text());
        Ok(outcome.exit_code())
    })
}
