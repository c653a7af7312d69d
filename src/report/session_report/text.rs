//! Words and figures that the forms of an account share. What they are made of is hostile: whoever shows them escapes them.

use super::{CallStatus, SessionReport, Step};
use crate::core::event::Purpose;
use crate::core::guardrail::TriggeredGuardrail;
use crate::core::language::Language;
use crate::core::stop_reason::Status;
use crate::messages;
use crate::terminal::{first_line, one_line};
use std::time::Duration;

/// Milliseconds from which a time is told in minutes.
const MINUTES_FROM_MS: u64 = 120_000;
/// Characters of one line.
const LINE_CHARS: usize = 500;

/// How it ended, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusLabel {
    /// The work is done.
    Ok,
    /// It ended early, or has no end.
    Warn,
    /// It could not do its work.
    Fail,
}

impl StatusLabel {
    /// That of an account.
    pub(super) fn of(account: &SessionReport) -> Self {
        match account.status {
            Some(Status::Success) => Self::Ok,
            Some(Status::Partial) | None => Self::Warn,
            Some(Status::Failed) => Self::Fail,
        }
    }

    /// In capitals, as logs and tables have it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// What was asked for first.
pub(super) fn task(account: &SessionReport) -> &str {
    match account.task.trim() {
        "" => "no task",
        task => task,
    }
}

fn guardrail(triggered: &TriggeredGuardrail) -> String {
    messages::guardrail_triggered(triggered, Language::En)
}

/// How the last run ended, and why.
pub(super) fn verdict(account: &SessionReport) -> String {
    match (account.status, account.stop_reason) {
        (None, _) => "no end: the run is still at work, or was killed".to_owned(),
        (Some(status), None) => format!("{}: no run began", status.name()),
        (Some(status), Some(reason)) => {
            format!("{} ({reason}): {}", status.name(), messages::stop_reason_text(reason, Language::En))
        }
    }
}

/// The figures, each with its name.
pub(super) fn figures(account: &SessionReport) -> Vec<(&'static str, String)> {
    let usage = account.usage;
    vec![
        ("Steps", messages::thousands(account.step_count.into())),
        ("Tool calls", messages::thousands(account.tool_call_count.into())),
        ("Tokens in", messages::thousands(usage.prompt_tokens())),
        ("From cache", messages::thousands(usage.cached_read)),
        ("Tokens out", messages::thousands(usage.output)),
        ("Cost", messages::money(account.cost.total_usd, Language::En)),
        ("Time", time(account.duration_ms)),
        ("Model time", time(account.model_time_ms)),
        ("Tool time", time(account.tool_time_ms)),
    ]
}

/// Where and with what it was done, as far as that is known.
pub(super) fn setting(account: &SessionReport) -> Vec<(&'static str, String)> {
    let began = account.started_ms.map(|began| format!("{} UTC", messages::minute(began)));
    let runs = (account.runs.len() > 1).then(|| messages::thousands(account.runs.len() as u64));
    let known = [
        ("Model", account.model.clone()),
        ("Agent", account.agent.clone()),
        ("Mode", account.mode.clone()),
        ("Sandbox", account.sandbox.clone()),
        ("Began", began),
        ("Runs", runs),
        ("Session", account.session_id.clone()),
        ("Workspace", account.workspace.clone()),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, one_line(&value?, LINE_CHARS)))).collect()
}

/// What somebody should look at: lists under their titles, empty ones left out.
pub(super) fn attention(account: &SessionReport) -> Vec<(&'static str, Vec<String>)> {
    let error = account.error.iter().map(|error| format!("{}: {}", error.kind.name(), error.message));
    let waiting = account.awaiting_approval.iter();
    let refused = account.permission_denials.iter().map(|refused| (refused.step, &refused.denial));
    let executables = &account.executables;
    let more = (executables.more > 0).then(|| format!("{} more", messages::thousands(executables.more)));
    let lists = [
        ("What went wrong", error.collect()),
        (
            "Waiting for an answer",
            waiting
                .map(|call| {
                    format!("{} {}: {} (agent approve {})", call.tool, call.summary, call.reason, call.id)
                })
                .collect(),
        ),
        (
            "Refused",
            refused
                .map(|(step, denial)| {
                    format!(
                        "Step {step}: {} {}: {} ({})",
                        denial.tool,
                        denial.summary,
                        first_line(&denial.reason, LINE_CHARS),
                        denial.rule
                    )
                })
                .collect(),
        ),
        (
            "Errors",
            account
                .errors
                .iter()
                .map(|error| {
                    format!(
                        "Step {}, {}: {}",
                        error.step,
                        error.tool.as_deref().unwrap_or("model"),
                        error.message
                    )
                })
                .collect(),
        ),
        ("Guardrails", account.guardrails.iter().map(guardrail).collect()),
        (
            "Warnings",
            account
                .warnings
                .iter()
                .map(|warning| format!("Step {}: {}", warning.step, warning.text))
                .collect(),
        ),
        ("Executables left behind", executables.files.iter().cloned().chain(more).collect()),
    ];
    let lists = lists.into_iter().filter(|(_, lines): &(_, Vec<String>)| !lines.is_empty());
    lists
        .map(|(title, lines)| (title, lines.iter().map(|line| one_line(line, 2 * LINE_CHARS)).collect()))
        .collect()
}

/// What the account does not tell.
pub(super) fn omissions(account: &SessionReport) -> Vec<String> {
    let damaged = account.damaged_records as u64;
    let left_out = account.left_out;
    let damaged = (damaged > 0)
        .then(|| format!("{} of the journal damaged and left out", messages::count(damaged, "record")));
    let too_many = left_out.is_anything().then(|| {
        format!(
            "too much to list: {}, {} and {} are only counted",
            messages::count(left_out.steps, "step"),
            messages::count(left_out.calls, "tool call"),
            messages::count(left_out.others, "other thing"),
        )
    });
    damaged.into_iter().chain(too_many).collect()
}

/// What a step is called.
pub(super) fn step_name(step: &Step) -> String {
    match step.purpose {
        Purpose::Step => format!("Step {}", step.number),
        Purpose::Closing => "Closing summary".to_owned(),
        Purpose::Summary => "Summary of earlier steps".to_owned(),
        Purpose::Evaluation => "Evaluation of the answer".to_owned(),
    }
}

/// What became of a call, in a word.
pub(super) fn outcome(outcome: CallStatus) -> &'static str {
    match outcome {
        CallStatus::Ok => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Refused => "refused",
        CallStatus::Simulated => "simulated",
        CallStatus::Waiting => "waits",
        CallStatus::Unfinished => "no result",
    }
}

/// `340 ms`, `12.3 s`, `12 min 5 s`.
pub(super) fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..MINUTES_FROM_MS => messages::duration(Duration::from_millis(ms)),
        _ => format!("{} min {} s", messages::thousands(ms / 60_000), ms % 60_000 / 1_000),
    }
}
