//! The end of the human-readable log: status and figures of the run, pending and refused calls.

use crate::human_log::{HumanLog, LINE_CHARS, NOTICE_CHARS};
use agent_config::verbosity::Verbosity;
use agent_core::run_result::{ModifiedFile, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::policy::{DECLINED_RULE, MODE_RULE_PREFIX};
use agent_messages::{self as messages, RunEndSummary};
use agent_terminal::{Style, first_line, one_line};
use std::io;
use std::time::Duration;

/// Number of changed files, and of refused or pending calls, listed at the end; the JSON document lists all.
const LISTED: usize = 10;

impl HumanLog {
    /// Logs the end of a run: status, figures, pending approvals, how to resume, and refused calls.
    pub(super) fn run_end(&mut self, result: &RunResult) -> io::Result<()> {
        self.answer.finish(&result.output.text());
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
        self.log_changed_files(&result.files_modified)?;
        if let Some(checks) = self.log_style.checks(&result.quality_gates) {
            self.log(Verbosity::Human, Style::Plain, &one_line(&checks, NOTICE_CHARS))?;
        }
        self.log(Verbosity::Human, Style::Dim, &self.log_style.figures(&summary))?;
        if let Some(text) = messages::executables(&result.executables, self.language()) {
            self.log(
                Verbosity::Human,
                Style::Plain,
                &self.log_style.indented(&one_line(&text, NOTICE_CHARS)),
            )?;
        }
        let language = self.language();
        for line in result.health.iter().flat_map(|health| messages::code_health(health, language)) {
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
        if let Some(next) = session.filter(|_| self.names_commands).and_then(|_| self.log_style.next(result))
        {
            self.log(Verbosity::Human, Style::Dim, &next)?;
        }
        self.log_denials(result)
    }

    /// Prints why the work on a message of a conversation stopped, unless that was printed: the line after the message has its figures.
    pub(super) fn end_of_message(&mut self, result: &RunResult) -> io::Result<()> {
        let style = if result.status == Status::Failed { Style::Error } else { Style::Warning };
        let error = result.error.as_ref();
        if error.is_none_or(|error| self.reported_failure.as_ref() != Some(&error.message)) {
            if let Some(reason) = result.stop_reason {
                let line = self.log_style.run_end_reason(reason, result.limit_reached());
                self.log(Verbosity::Error, style.clone(), line.trim_start())?;
            }
            if let Some(error) = error {
                let line = self.log_style.error(&one_line(&error.message, NOTICE_CHARS));
                self.log(Verbosity::Error, style, &line)?;
            }
        }
        self.log_pending_approvals(result)?;
        self.log_denials(result)
    }

    /// Prints the changed files with the number of changed lines.
    fn log_changed_files(&mut self, files: &[ModifiedFile]) -> io::Result<()> {
        if files.is_empty() {
            return Ok(());
        }
        self.log(Verbosity::Human, Style::Plain, &self.log_style.changed_files(files))?;
        for file in files.iter().take(LISTED) {
            let path = one_line(&file.path, LINE_CHARS);
            self.log(Verbosity::Human, Style::Plain, &self.log_style.changed_file(&path, file))?;
        }
        match files.len().checked_sub(LISTED) {
            Some(more @ 1..) => self.log(Verbosity::Human, Style::Plain, &self.log_style.more(more)),
            _ => Ok(()),
        }
    }

    /// Prints the pending approvals at every verbosity, because they need an answer. Returns whether there were any.
    fn log_pending_approvals(&mut self, result: &RunResult) -> io::Result<bool> {
        let all = &result.awaiting_approval;
        let Some(first) = all.first() else { return Ok(false) };
        self.log_always(Style::Warning, &self.log_style.pending_calls(all.len()))?;
        for call in all.iter().take(LISTED) {
            let [tool, summary] = [&call.tool, &call.summary].map(|text| one_line(text, LINE_CHARS));
            self.log_always(Style::Plain, &self.log_style.pending_call(&call.id, &tool, &summary))?;
        }
        if let Some(more @ 1..) = all.len().checked_sub(LISTED) {
            self.log_always(Style::Plain, &self.log_style.more(more))?;
        }
        self.log_always(Style::Plain, &self.log_style.how_to_answer(&first.id))?;
        Ok(true)
    }

    /// Prints the refused calls at every verbosity, because they explain missing results.
    fn log_denials(&mut self, result: &RunResult) -> io::Result<()> {
        let all = &result.permission_denials;
        if all.is_empty() {
            return Ok(());
        }
        self.log_always(Style::Warning, &self.log_style.refusals(all.len()))?;
        for denial in all.iter().take(LISTED) {
            let [tool, summary] = [&denial.tool, &denial.summary].map(|text| one_line(text, LINE_CHARS));
            let reason = first_line(&denial.reason, LINE_CHARS);
            self.log_always(Style::Plain, &self.log_style.refusal(&tool, &summary, &reason))?;
        }
        if let Some(more @ 1..) = all.len().checked_sub(LISTED) {
            self.log_always(Style::Plain, &self.log_style.more(more))?;
        }
        let by = |rule: &dyn Fn(&str) -> bool| all.iter().any(|denial| rule(&denial.rule));
        if by(&|rule| rule.starts_with(MODE_RULE_PREFIX)) {
            self.log_always(Style::Plain, self.log_style.remedies())
        } else if by(&|rule| rule != DECLINED_RULE) {
            self.log_always(Style::Plain, self.log_style.about_rules())
        } else {
            Ok(())
        }
    }
}
