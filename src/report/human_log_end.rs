//! The end of the human-readable log: status and figures of the run, pending and refused calls.

use crate::human_log::{HumanLog, LINE_CHARS, NOTICE_CHARS};
use agent_config::verbosity::Verbosity;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::policy::{DECLINED_RULE, MODE_RULE_PREFIX};
use agent_messages::{self as messages, RunEndSummary};
use agent_terminal::{Style, first_line, one_line};
use std::io;
use std::time::Duration;

/// Number of refused or pending calls listed at the end; the JSON document lists all.
const LISTED_REFUSALS: usize = 10;

impl HumanLog {
    /// Logs the end of a run: status, figures, pending approvals, how to resume, and refused calls.
    pub(super) fn run_end(&mut self, result: &RunResult) -> io::Result<()> {
        let output = result.output.text();
        let answer = output.trim();
        self.answer_shown.set(!answer.is_empty() && self.shown_text.trim_end().ends_with(answer));
        let summary = RunEndSummary {
            status: result.status,
            reason: result.stop_reason,
            steps: result.steps,
            tool_calls: result.tool_calls,
            usage: result.usage,
            cost: result.cost.total_usd,
            duration: Duration::try_from_secs_f64(result.duration_seconds).unwrap_or_default(),
        };
        let (style, least) = match result.status {
            Status::Success => (Style::Success, Verbosity::Human),
            Status::Partial => (Style::Warning, Verbosity::Warn),
            Status::Failed => (Style::Error, Verbosity::Error),
        };
        self.log(least, style, &self.log_style.run_ended(&summary))?;
        if let Some(reason) = result.stop_reason {
            self.log(least, Style::Plain, &self.log_style.run_end_reason(reason, result.limit_reached()))?;
        }
        if let Some(error) = &result.error
            && self.reported_failure.as_ref() != Some(&error.message)
        {
            self.log(least, Style::Error, &self.log_style.error(&one_line(&error.message, NOTICE_CHARS)))?;
        }
        self.log(Verbosity::Human, Style::Dim, &self.log_style.figures(&summary))?;
        if let Some(text) = messages::executables(&result.executables, self.language()) {
            self.log(
                Verbosity::Human,
                Style::Plain,
                &self.log_style.indented(&one_line(&text, NOTICE_CHARS)),
            )?;
        }
        for line in result.health.iter().flat_map(|health| messages::code_health(health, self.language())) {
            self.log(Verbosity::Human, Style::Plain, &self.log_style.indented(&line))?;
        }
        // After `context_full` the same model would stop again; the answer describes how to continue.
        let can_resume =
            result.status != Status::Success && result.stop_reason != Some(StopReason::ContextFull);
        let least = if self.log_pending_approvals(result)? { Verbosity::Error } else { Verbosity::Human };
        let session = result.session_id.as_ref().filter(|session| !session.is_empty());
        if let (true, Some(session)) = (can_resume, session) {
            self.log(least, Style::Plain, &self.log_style.resume(&one_line(session, LINE_CHARS)))?;
        }
        self.log_denials(result)
    }

    /// Prints the pending approvals at every verbosity, because they need an answer. Returns whether there were any.
    fn log_pending_approvals(&self, result: &RunResult) -> io::Result<bool> {
        let all = &result.awaiting_approval;
        let Some(first) = all.first() else { return Ok(false) };
        self.terminal.eprintln(Style::Warning, &self.log_style.pending_calls(all.len()))?;
        for call in all.iter().take(LISTED_REFUSALS) {
            let [tool, summary] = [&call.tool, &call.summary].map(|text| one_line(text, LINE_CHARS));
            self.terminal.eprintln(Style::Plain, &self.log_style.pending_call(&call.id, &tool, &summary))?;
        }
        if let Some(more @ 1..) = all.len().checked_sub(LISTED_REFUSALS) {
            self.terminal.eprintln(Style::Plain, &self.log_style.more_refusals(more))?;
        }
        self.terminal.eprintln(Style::Plain, &self.log_style.how_to_answer(&first.id))?;
        Ok(true)
    }

    /// Prints the refused calls at every verbosity, because they explain missing results.
    fn log_denials(&self, result: &RunResult) -> io::Result<()> {
        let all = &result.permission_denials;
        if all.is_empty() {
            return Ok(());
        }
        self.terminal.eprintln(Style::Warning, &self.log_style.refusals(all.len()))?;
        for denial in all.iter().take(LISTED_REFUSALS) {
            let [tool, summary] = [&denial.tool, &denial.summary].map(|text| one_line(text, LINE_CHARS));
            let reason = first_line(&denial.reason, LINE_CHARS);
            self.terminal.eprintln(Style::Plain, &self.log_style.refusal(&tool, &summary, &reason))?;
        }
        if let Some(more @ 1..) = all.len().checked_sub(LISTED_REFUSALS) {
            self.terminal.eprintln(Style::Plain, &self.log_style.more_refusals(more))?;
        }
        let by = |rule: &dyn Fn(&str) -> bool| all.iter().any(|denial| rule(&denial.rule));
        if by(&|rule| rule.starts_with(MODE_RULE_PREFIX)) {
            self.terminal.eprintln(Style::Plain, self.log_style.remedies())
        } else if by(&|rule| rule != DECLINED_RULE) {
            self.terminal.eprintln(Style::Plain, self.log_style.about_rules())
        } else {
            Ok(())
        }
    }
}
