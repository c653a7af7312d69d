//! `agent sessions`: what happened in this workspace so far.

use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::event::{Event, Origin, Purpose, Record};
use crate::failure::ErrorKind;
use crate::journal::read;
use crate::journal::store::Store;
use crate::messages;
use crate::redactor::Redactor;
use crate::terminal::{Terminal, one_line};
use std::fmt::Write;
use std::path::Path;

/// How much of a task the list shows, in characters.
const TASK_CHARS: usize = 80;

/// How much of a tool's result `show` shows, in characters.
const RESULT_CHARS: usize = 200;

/// One line about a session.
#[derive(Debug, Default)]
struct Summary {
    status: String,
    steps: u32,
    task: String,
}

/// Prints the sessions, newest first. What is told is without the secrets that are known now, whatever was known then.
///
/// # Errors
/// When they cannot be read, or standard output cannot be written.
pub fn list(terminal: &Terminal, store: &Store, redactor: &Redactor) -> CliResult<()> {
    let ids = store.list()?;
    if ids.is_empty() {
        return print(terminal, "no session in this workspace yet; `agent run \"…\"` begins one\n");
    }
    let mut text = format!("{:<24} {:<26} {:>5}  TASK\n", "ID", "STATUS", "STEPS");
    for id in &ids {
        let summary = summarise(&store.journal_path(id)?, redactor)?;
        let _ = writeln!(text, "{id:<24} {:<26} {:>5}  {}", summary.status, summary.steps, summary.task);
    }
    print(terminal, &text)
}

fn summarise(journal: &Path, redactor: &Redactor) -> CliResult<Summary> {
    let mut summary = Summary { status: "unfinished".to_owned(), ..Summary::default() };
    read::visit(journal, |_, record| {
        match record.map(|record| record.event) {
            Some(Event::UserMessage { text, origin: Origin::Prompt }) if summary.task.is_empty() => {
                summary.task = one_line(&redactor.text(&text), TASK_CHARS);
            }
            Some(Event::StepStart { purpose: Purpose::Step, .. }) => {
                summary.steps = summary.steps.saturating_add(1);
            }
            Some(Event::RunStart { .. }) => "unfinished".clone_into(&mut summary.status),
            Some(Event::RunEnd { result }) => {
                let reason = result.stop_reason.map_or("", |reason| reason.name());
                summary.status = format!("{} ({reason})", result.status.name());
            }
            _ => {}
        }
        true
    })
    .map_err(|error| unreadable(journal, &error))?;
    Ok(summary)
}

/// Prints what happened in session `id`, one line an event, without the secrets that are known now.
///
/// # Errors
/// When there is no such session, it cannot be read, or standard output cannot be written.
pub fn show(terminal: &Terminal, store: &Store, redactor: &Redactor, id: &str) -> CliResult<()> {
    let path = store.journal_path(id)?;
    let mut reading = read::read(&path).map_err(|error| unreadable(&path, &error))?;
    // Before they are cut: what is left of a secret is still a part of one.
    reading.records.iter_mut().for_each(|record| redactor.event(&mut record.event));
    let mut text = String::new();
    for line in reading.records.iter().filter_map(describe) {
        text.push_str(&line);
        text.push('\n');
    }
    for line in &reading.damaged {
        let _ = writeln!(text, "(line {line} of the journal is damaged and was skipped)");
    }
    let _ = writeln!(text, "\njournal: {}", path.display());
    print(terminal, &text)
}

/// Who said what stands in the conversation as a user's message.
fn speaker(origin: Origin) -> &'static str {
    match origin {
        Origin::Prompt => "you",
        Origin::System | Origin::Background | Origin::Continuation | Origin::Repair => "loop",
        Origin::Hook => "hook",
    }
}

fn describe(record: &Record) -> Option<String> {
    Some(match &record.event {
        Event::SessionStart { session_id, workspace, program } => {
            format!("session {session_id} in {workspace} ({program})")
        }
        Event::RunStart { agent, model, mode, resumed, .. } => {
            let word = if *resumed { "resumed" } else { "run" };
            format!("\n{word}: agent {agent}, model {model}, mode {mode}")
        }
        Event::Instructions { file } => messages::instructions(file),
        Event::UserMessage { text, origin } => {
            format!("{}: {}", speaker(*origin), one_line(text, RESULT_CHARS))
        }
        Event::BackgroundStart { id, command } => messages::background_start(id, command),
        Event::BackgroundEnd { id, outcome, with_run, .. } => {
            messages::background_end(id, outcome, *with_run)
        }
        Event::StepStart { messages, .. } => format!("step {} ({messages} messages)", record.step),
        Event::ModelResponse { message, .. } => {
            let said = message.joined_text();
            let calls = message.tool_calls().count();
            format!("  model: {} [{calls} calls]", one_line(&said, RESULT_CHARS))
        }
        Event::ModelFailed { failure, .. } => {
            format!("  failed: {}", one_line(&failure.message, RESULT_CHARS))
        }
        Event::ModelSwitched { from, to, .. } => format!("  {}", messages::model_switched(from, to)),
        Event::ModelAbandoned { reason, .. } => format!("  given up: {reason}"),
        Event::Retry { attempt, message, .. } => {
            format!("  retry after attempt {attempt}: {}", one_line(message, RESULT_CHARS))
        }
        Event::ToolEnd { name, summary, result, .. } => {
            let mark = if result.is_error { "failed" } else { "ok" };
            let first = one_line(result.gist(), RESULT_CHARS);
            format!("  {name} {}: {mark}: {first}", one_line(summary, TASK_CHARS))
        }
        Event::HookEnd { hook, verdict, .. } => format!("  hook {}: {verdict:?}", one_line(hook, TASK_CHARS)),
        Event::Restored { way, changed, .. } => messages::restored(*way, changed),
        Event::Checkpoint { reference, left_out, .. } => messages::checkpoint(reference, left_out),
        Event::BudgetWarning { spent_usd, at_usd } => messages::budget_warning(*spent_usd, *at_usd),
        Event::Closing { reason } => format!("closing: {reason}"),
        Event::RunEnd { result } => {
            let reason = result.stop_reason.map_or("", |reason| reason.name());
            let cost = result.cost.total_usd.map_or_else(String::new, |cost| format!(", {cost}"));
            format!("end: {} ({reason}), {} steps{cost}", result.status.name(), result.steps)
        }
        Event::RequestPrefix { changed, .. } if !changed.is_empty() => messages::prefix_changed(changed),
        Event::KeptAnswer => messages::KEPT_ANSWER.to_owned(),
        Event::System { .. }
        | Event::RequestPrefix { .. }
        | Event::RequestSent { .. }
        | Event::TextDelta { .. }
        | Event::ThinkingDelta { .. }
        | Event::ToolStart { .. }
        | Event::Changing { .. }
        | Event::StepEnd
        | Event::Notice { .. } => return None,
    })
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(ErrorKind::Session, format!("cannot read {}: {error}", path.display()))
}
