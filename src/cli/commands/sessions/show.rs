//! `agent sessions show`: what happened in a session, one line an event.

use super::{CommandContext, TASK_CHARS};
use crate::cli::compose::output::print;
use crate::cli::error::CliResult;
use crate::core::approval::ApprovalRequest;
use crate::core::event::{Event, MessageAuthor, MessageOrigin, Purpose, Record};
use crate::core::language::Language;
use crate::core::message::{HistoryMessage, HistoryRole};
use crate::core::run_result::RunResult;
use crate::journal::step_counter::StepCounter;
use crate::messages;
use crate::terminal::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How much of a tool's result `show` shows, in characters.
const RESULT_CHARS: usize = 200;

/// Prints what happened in session `id`, one line an event, without the secrets that are known now.
///
/// # Errors
/// When there is no such session, it cannot be read, or standard output cannot be written.
pub fn show(context: &CommandContext<'_>, id: &str) -> CliResult<()> {
    let path = context.store.journal_path(id)?;
    let mut reading = context.read(id)?;
    // Before they are cut: what is left of a secret is still a part of one.
    reading.records.iter_mut().for_each(|record| context.redactor.redact_event(&mut record.event));
    let (mut text, mut numbers) = (String::new(), StepNumbers::default());
    for line in reading.records.iter().filter_map(|record| describe(record, numbers.next(record))) {
        text.push_str(&line);
        text.push('\n');
    }
    for line in &reading.damaged {
        let _ = writeln!(text, "(line {line} of the journal is damaged and was skipped)");
    }
    let _ = writeln!(text, "\njournal: {}", path.display());
    print(context.terminal, &text)
}

/// The numbers of steps: those of the session, and of each subagent by the call that asked it.
#[derive(Default)]
struct StepNumbers {
    session_steps: StepCounter,
    subagent_steps: BTreeMap<String, u32>,
}

impl StepNumbers {
    /// The step in which the next `record` was written, by whoever made it.
    fn next(&mut self, record: &Record) -> u32 {
        let own = self.session_steps.next(record);
        let Event::Subagent { call_id, event, .. } = &record.event else { return own };
        let below = self.subagent_steps.entry(call_id.clone()).or_default();
        match **event {
            Event::RunStart { .. } => *below = 0,
            Event::StepStart { purpose: Purpose::Step, .. } => *below = below.saturating_add(1),
            _ => {}
        }
        *below
    }
}

/// The line about a record of this `step`.
fn describe(record: &Record, step: u32) -> Option<String> {
    Some(match &record.event {
        Event::SessionStart { session_id, workspace, program, .. } => {
            format!("session {session_id} in {workspace} ({program})")
        }
        Event::RunStart { agent, model, mode, resumed, .. } => {
            let word = if *resumed { "resumed" } else { "run" };
            format!("\n{word}: agent {agent}, model {model}, mode {mode}")
        }
        Event::Instructions { file } => messages::instructions(file, Language::En),
        Event::History { messages } => {
            messages.iter().map(describe_history_message).collect::<Vec<_>>().join("\n")
        }
        Event::UserMessage { text, origin } => {
            format!("{}: {}", author(*origin), one_line(text, RESULT_CHARS))
        }
        Event::BackgroundStart { id, command } => messages::background_start(id, command, Language::En),
        Event::BackgroundEnd { id, outcome, with_run, .. } => {
            messages::background_end(id, outcome, *with_run, Language::En)
        }
        Event::StepStart { purpose, messages, .. } => describe_request(*purpose, step, *messages),
        Event::ModelResponse { message, .. } => {
            let said = message.joined_text();
            let calls = number(message.tool_calls().count(), "call");
            format!("  model: {} [{calls}]", one_line(&said, RESULT_CHARS))
        }
        Event::ModelFailed { failure, .. } => {
            format!("  failed: {}", one_line(&failure.message, RESULT_CHARS))
        }
        Event::ModelAbandoned { reason, .. } => format!("  given up: {reason}"),
        Event::Retry { attempt, message, .. } => {
            format!("  retry after attempt {attempt}: {}", one_line(message, RESULT_CHARS))
        }
        event @ (Event::ToolCallEnd { .. } | Event::ToolCallPending { .. }) => {
            return describe_tool_call(event);
        }
        Event::Subagent { event, .. } => return describe_subagent_event(record, event, step),
        Event::ApprovalAnswered { id, answer, .. } => messages::approval_answered(id, answer),
        Event::HookEnd { hook, verdict, .. } => format!("  hook {}: {verdict:?}", one_line(hook, TASK_CHARS)),
        Event::Restored { way, changed, .. } => messages::restored(*way, changed),
        event @ (Event::Gates { .. } | Event::Evaluation { .. }) => return describe_checks(event),
        Event::Closing { reason } => format!("closing: {reason}"),
        Event::RunEnd { result } => describe_run_end(result),
        event => return describe_notice(event, Language::En),
    })
}

/// The line about what stands beside the steps, where there is one.
fn describe_notice(event: &Event, language: Language) -> Option<String> {
    Some(match event {
        Event::ModelSwitched { from, to, .. } => {
            format!("  {}", messages::model_switched(from, to, language))
        }
        Event::Guardrail { triggered } => format!("  {}", messages::guardrail_triggered(triggered, language)),
        Event::Checkpoint { reference, left_out, .. } => messages::checkpoint(reference, left_out, language),
        Event::BudgetWarning { spent_usd, at_usd } => messages::budget_warning(*spent_usd, *at_usd, language),
        Event::Compaction { part } => messages::compaction(part, language),
        Event::RequestPrefix { changed, .. } if !changed.is_empty() => {
            messages::prefix_changed(changed, language)
        }
        Event::KeptAnswer => messages::cached_answer(language).to_owned(),
        _ => return None,
    })
}

/// How a run ended.
fn describe_run_end(result: &RunResult) -> String {
    let reason = result.stop_reason.map_or("", |reason| reason.name());
    let cost = result.cost.total_usd.map_or_else(String::new, |cost| format!(", {cost}"));
    let steps = messages::count(result.steps, "step");
    format!("end: {} ({reason}), {steps}{cost}", result.status.name())
}

/// What happened in the session of a subagent.
fn describe_subagent_event(record: &Record, event: &Event, step: u32) -> Option<String> {
    let nested = Record { event: event.clone(), ..record.clone() };
    Some(format!("    | {}", describe(&nested, step)?.trim_start()))
}

/// A call of the model, which is sent so many messages.
fn describe_request(purpose: Purpose, step: u32, messages: usize) -> String {
    let what = match purpose {
        Purpose::Step => format!("step {step}"),
        Purpose::Closing => "closing call".to_owned(),
        Purpose::Summary => "call for a summary of earlier steps".to_owned(),
        Purpose::Evaluation => "call for a verdict on the answer".to_owned(),
    };
    format!("{what} ({})", number(messages, "message"))
}

fn number(number: usize, noun: &str) -> String {
    messages::count(u64::try_from(number).unwrap_or(u64::MAX), noun)
}

/// A message of an earlier conversation.
fn describe_history_message(said: &HistoryMessage) -> String {
    let who = match said.role {
        HistoryRole::User => "you",
        HistoryRole::Assistant => "model",
    };
    format!("earlier, {who}: {}", one_line(&said.content, RESULT_CHARS))
}

/// What became of a tool call; one that waits its turn is told of when it has come.
fn describe_tool_call(event: &Event) -> Option<String> {
    match event {
        Event::ToolCallEnd { name, summary, result, .. } => {
            let mark = if result.is_error { "failed" } else { "ok" };
            let first = one_line(result.summary_line(), RESULT_CHARS);
            Some(format!("  {name} {}: {mark}: {first}", one_line(summary, TASK_CHARS)))
        }
        Event::ToolCallPending { approval, .. } => {
            let ApprovalRequest { id, tool, summary, .. } = approval.as_ref()?;
            Some(format!("  {tool} {}: waits for an answer ({id})", one_line(summary, TASK_CHARS)))
        }
        _ => None,
    }
}

/// What became of checks, or of an evaluation.
fn describe_checks(event: &Event) -> Option<String> {
    match event {
        Event::Gates { results } => {
            let lines = results.iter().map(|result| messages::gate(result, Language::En));
            Some(lines.collect::<Vec<_>>().join("; "))
        }
        Event::Evaluation { result } => {
            Some(one_line(&messages::evaluation(result, Language::En), RESULT_CHARS))
        }
        _ => None,
    }
}

/// Who said what stands in the conversation as a user's message.
fn author(origin: MessageOrigin) -> &'static str {
    match origin.author() {
        MessageAuthor::Person => "you",
        MessageAuthor::Loop => "loop",
        MessageAuthor::Hook => "hook",
    }
}
