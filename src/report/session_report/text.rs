//! Texts and figures shared by the formats of a session report. They are untrusted; each format escapes them.

use super::{CallStatus, SessionReport, Step};
use crate::review_text::headline;
use agent_core::event::Purpose;
use agent_core::language::Language;
use agent_core::run_result::PendingApproval;
use agent_core::stop_reason::{LimitReached, Status};
use agent_messages as messages;
use agent_terminal::{first_line, one_line};
use std::time::Duration;

/// Minimum milliseconds of a time that is shown in minutes.
const MINUTES_FROM_MS: u64 = 120_000;
/// Characters of one line.
const LINE_CHARS: usize = 500;

/// Short status of the last run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "UPPERCASE")]
pub(super) enum StatusLabel {
    /// The work is done.
    Ok,
    /// The run ended early, or has no end.
    Warn,
    /// The run could not do its work.
    Fail,
}

agent_core::impl_name!(StatusLabel);

impl StatusLabel {
    /// Returns the label for a report.
    pub(super) fn of(report: &SessionReport) -> Self {
        match report.status {
            Some(Status::Success) => Self::Ok,
            Some(Status::Partial) | None => Self::Warn,
            Some(Status::Failed) => Self::Fail,
        }
    }
}

/// Returns the first prompt.
pub(super) fn task(report: &SessionReport) -> &str {
    match report.task.trim() {
        "" => "no task",
        task => task,
    }
}

/// Returns the status of the last run and why it ended.
pub(super) fn verdict(report: &SessionReport) -> String {
    match (report.status, report.stop_reason) {
        (None, _) => "no end: the run has not finished, or was killed".to_owned(),
        (Some(status), None) => format!("{}: no run began", status.name()),
        (Some(status), Some(reason)) => {
            format!(
                "{} ({reason}): {}",
                status.name(),
                messages::stop_reason_text(
                    reason,
                    report.limit.map(|limit| LimitReached { limit, value: report.limit_value }),
                    Language::En
                )
            )
        }
    }
}

/// Returns why the last run was not successful: its failure, else its verdict.
pub(super) fn failure_text(report: &SessionReport) -> String {
    let failure = report.error.as_ref().map(|error| format!("{}: {}", error.kind.name(), error.message));
    failure.unwrap_or_else(|| verdict(report))
}

/// Returns the figures with their names.
pub(super) fn figures(report: &SessionReport) -> Vec<(&'static str, String)> {
    let usage = report.usage;
    vec![
        ("Steps", messages::thousands(report.step_count.into())),
        ("Tool calls", messages::thousands(report.tool_call_count.into())),
        ("Tokens in", messages::thousands(usage.prompt_tokens())),
        ("From cache", messages::thousands(usage.cached_read)),
        ("Tokens out", messages::thousands(usage.output)),
        ("Cost", messages::money(report.cost.total_usd, Language::En)),
        ("Time", time(report.duration_ms)),
        ("Model time", time(report.model_time_ms)),
        ("Tool time", time(report.tool_time_ms)),
    ]
}

/// Returns the known facts about the environment of the session.
pub(super) fn setting(report: &SessionReport) -> Vec<(&'static str, String)> {
    let started = report.started_ms.map(|began| format!("{} UTC", messages::minute(began)));
    let runs = (report.runs.len() > 1).then(|| messages::thousands(report.runs.len() as u64));
    let known = [
        ("Model", report.model.clone()),
        ("Agent", report.agent.clone()),
        ("Mode", report.mode.clone()),
        ("Sandbox", report.sandbox.clone()),
        ("Started", started),
        ("Runs", runs),
        ("Session", report.session_id.clone()),
        ("Workspace", report.workspace.clone()),
    ];
    known.into_iter().filter_map(|(name, value)| Some((name, one_line(&value?, LINE_CHARS)))).collect()
}

/// Returns lists that need the user's attention, with their titles; without empty ones.
pub(super) fn attention(report: &SessionReport) -> Vec<(&'static str, Vec<String>)> {
    let error = report.error.iter().map(|error| format!("{}: {}", error.kind.name(), error.message));
    let guardrails = report.guardrails.iter().map(|one| messages::guardrail_triggered(one, Language::En));
    let waiting = report.awaiting_approval.iter();
    let refused = report.permission_denials.iter().map(|refused| (refused.step, &refused.denial));
    let executables = &report.executables;
    let more = (executables.more > 0).then(|| format!("{} more", messages::thousands(executables.more)));
    let health = report.health.iter();
    let findings = report.review.iter().flat_map(|review| &review.findings).map(headline);
    let lists = [
        ("What went wrong", error.collect()),
        ("Findings", findings.collect()),
        ("Pending approvals", waiting.map(approval_line).collect()),
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
            report
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
        ("Guardrails", guardrails.collect()),
        (
            "Warnings",
            report
                .warnings
                .iter()
                .map(|warning| format!("Step {}: {}", warning.step, warning.text))
                .collect(),
        ),
        ("Executables left behind", executables.files.iter().cloned().chain(more).collect()),
        ("Code health", health.flat_map(|health| messages::code_health(health, Language::En)).collect()),
    ];
    let lists = lists.into_iter().filter(|(_, lines): &(_, Vec<String>)| !lines.is_empty());
    lists
        .map(|(title, lines)| (title, lines.iter().map(|line| one_line(line, 2 * LINE_CHARS)).collect()))
        .collect()
}

fn approval_line(call: &PendingApproval) -> String {
    format!("{} {}: {} (agent approve {})", call.tool, call.summary, call.reason, call.id)
}

/// Returns notes about what the report omits.
pub(super) fn omissions(report: &SessionReport) -> Vec<String> {
    let damaged = report.damaged_records as u64;
    let left_out = report.left_out;
    let damaged = (damaged > 0)
        .then(|| format!("{} of the journal damaged and skipped", messages::count(damaged, "record")));
    let too_many = left_out.is_anything().then(|| {
        format!(
            "too much to list: {}, {} and {} are only counted",
            messages::count(left_out.steps, "step"),
            messages::count(left_out.calls, "tool call"),
            messages::count(left_out.others, "other item"),
        )
    });
    damaged.into_iter().chain(too_many).collect()
}

/// Returns the name of a step.
pub(super) fn step_name(step: &Step) -> String {
    match step.purpose {
        Purpose::Step => format!("Step {}", step.number),
        Purpose::Closing => "Closing summary".to_owned(),
        Purpose::Summary => "Summary of earlier steps".to_owned(),
        Purpose::Evaluation => "Evaluation of the answer".to_owned(),
    }
}

/// Returns the outcome of a call, as one word.
pub(super) fn outcome(outcome: CallStatus) -> &'static str {
    match outcome {
        CallStatus::Ok => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Refused => "refused",
        CallStatus::Simulated => "simulated",
        CallStatus::Waiting => "pending",
        CallStatus::Unfinished => "no result",
    }
}

/// Formats a time as `340 ms`, `12.3 s` or `12 min 5 s`.
pub(super) fn time(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..MINUTES_FROM_MS => messages::duration(Duration::from_millis(ms)),
        _ => format!("{} min {} s", messages::thousands(ms / 60_000), ms % 60_000 / 1_000),
    }
}
