//! `agent sessions show`: prints the events of a session, one line each.

use super::{CommandContext, TASK_CHARS};
use agent_core::approval::ApprovalRequest;
use agent_core::event::{Event, MessageAuthor, MessageOrigin, Purpose, Record};
use agent_core::language::Language;
use agent_core::message::{HistoryMessage, HistoryRole};
use agent_core::run_result::RunResult;
use agent_journal::step_counter::StepCounter;
use agent_messages as messages;
use agent_run::error::AppResult;
use agent_run::output::print;
use agent_terminal::one_line;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Maximum length of a displayed tool result in characters.
const RESULT_CHARS: usize = 200;

/// Prints the events of session `id`, one line each, with secrets redacted.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when standard output cannot be written.
pub fn show(context: &CommandContext<'_>, id: &str) -> AppResult<()> {
    let path = context.store.journal_path(id)?;
    let mut reading = context.read(id)?;
    // Redacted before truncation: a part of a secret would not be recognised.
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

/// Step numbers of the session, and of each subagent by its call.
#[derive(Default)]
struct StepNumbers {
    session_steps: StepCounter,
    subagent_steps: BTreeMap<String, u32>,
}

impl StepNumbers {
    /// Returns the step number of the next `record`, counted for the session or for its subagent.
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

/// Describes a record in this `step`.
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
        Event::UserMessage { text, origin, images } => {
            let text = messages::with_image_labels(text, images, Language::En);
            format!("{}: {}", author(*origin), one_line(&text, RESULT_CHARS))
        }
        Event::BackgroundStart { id, command } => messages::background_start(id, command, Language::En),
        Event::BackgroundEnd { id, outcome, ended_by_run_end, .. } => {
            messages::background_end(id, outcome, *ended_by_run_end, Language::En)
        }
        Event::StepStart { purpose, messages, .. } => describe_request(*purpose, step, *messages),
        Event::ModelResponse { message, .. } => {
            let text = message.joined_text();
            let calls = number(message.tool_calls().count(), "call");
            format!("  model: {} [{calls}]", one_line(&text, RESULT_CHARS))
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
        Event::Restored { direction, changed, .. } => messages::restored(*direction, changed),
        event @ (Event::QualityGates { .. } | Event::Evaluation { .. } | Event::ChangeReview { .. }) => {
            return describe_checks(event);
        }
        Event::Imported => "imported: the events before come from a file".to_owned(),
        Event::Closing { reason, .. } => format!("closing: {reason}"),
        Event::RunEnd { result } => describe_run_end(result),
        event => return describe_notice(event, Language::En),
    })
}

/// Describes an event outside of steps.
fn describe_notice(event: &Event, language: Language) -> Option<String> {
    Some(match event {
        Event::ModelSwitched { from, to, .. } => {
            format!("  {}", messages::model_switched(from, to, language))
        }
        Event::Guardrail { triggered } => format!("  {}", messages::guardrail_triggered(triggered, language)),
        Event::Checkpoint { reference, omitted_files, .. } => {
            messages::checkpoint(reference, omitted_files, language)
        }
        Event::BudgetWarning { spent_usd, threshold_usd } => {
            messages::budget_warning(*spent_usd, *threshold_usd, language)
        }
        Event::Compaction { part } => messages::compaction(part, language),
        Event::RequestPrefix { changed, .. } if !changed.is_empty() => {
            messages::prefix_changed(changed, language)
        }
        Event::CachedAnswer => messages::cached_answer(language).to_owned(),
        _ => return None,
    })
}

/// Describes how a run ended.
fn describe_run_end(result: &RunResult) -> String {
    let reason = result.stop_reason.map_or("", |reason| reason.name());
    let cost = result.cost.total_usd.map_or_else(String::new, |cost| format!(", {cost}"));
    let steps = messages::count(result.steps, "step");
    format!("end: {} ({reason}), {steps}{cost}", result.status.name())
}

/// Describes an event in the session of a subagent.
fn describe_subagent_event(record: &Record, event: &Event, step: u32) -> Option<String> {
    let nested = Record { event: event.clone(), ..record.clone() };
    Some(format!("    | {}", describe(&nested, step)?.trim_start()))
}

/// Describes a model call with the number of messages sent.
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

/// Describes a message of an earlier conversation.
fn describe_history_message(message: &HistoryMessage) -> String {
    let who = match message.role {
        HistoryRole::User => "you",
        HistoryRole::Assistant => "model",
    };
    format!("earlier, {who}: {}", one_line(&message.content, RESULT_CHARS))
}

/// Describes the result of a tool call; a pending call is reported when it is decided.
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

/// Describes the results of checks, of an evaluation, or of a review.
fn describe_checks(event: &Event) -> Option<String> {
    match event {
        Event::QualityGates { results } => {
            let lines = results.iter().map(|result| messages::gate(result, Language::En));
            Some(lines.collect::<Vec<_>>().join("; "))
        }
        Event::Evaluation { result } => {
            Some(one_line(&messages::evaluation(result, Language::En), RESULT_CHARS))
        }
        Event::ChangeReview { result } => {
            Some(one_line(&messages::change_review(result, Language::En), RESULT_CHARS))
        }
        _ => None,
    }
}

/// Returns the author of a user message in the conversation.
fn author(origin: MessageOrigin) -> &'static str {
    match origin.author() {
        MessageAuthor::Person => "you",
        MessageAuthor::Loop => "loop",
        MessageAuthor::Hook => "hook",
    }
}
