//! Builds a session report from the records of a journal, in bounded memory.

use super::{
    Call, CallStatus, FileChange, Hook, REPORT_SCHEMA_VERSION, ReportedDenial, ReportedError,
    ReportedMessage, Run, SessionReport, Step, Warning,
};
use agent_core::event::{
    BilledUsage, Event, FinishReason, HookVerdict, MessageOrigin, NoticeLevel, Purpose, Record,
};
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::message::Message;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::RunResult;
use agent_messages::{self as messages, LogStyle, RetryLine};
use agent_session::tally::Tally;
use agent_text::excerpt;
use agent_text::lines::one_line;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum characters of one text: some pages, more than a user reads of one result.
pub(super) const TEXT_CHARS: usize = 12_000;
/// Minimum characters of each text, however many texts there are.
const LEAST_TEXT_CHARS: usize = 400;
/// Maximum bytes of all texts: a page of this size still opens at once.
const ALL_TEXT_BYTES: usize = 8 << 20;
/// Characters of a line: a summary, an error, a warning.
const LINE_CHARS: usize = 500;
/// Maximum number of listed steps.
const MAX_STEPS: usize = 5_000;
/// Maximum number of listed tool calls.
const MAX_CALLS: usize = 10_000;
/// Maximum number of entries in every other list.
const MAX_OTHERS: usize = 1_000;

/// A session report under construction.
#[derive(Debug, Default)]
pub struct SessionReportBuilder {
    report: SessionReport,
    tally: Tally,
    /// Step index and call index of the calls without a result.
    open: BTreeMap<String, (usize, usize)>,
    /// Messages sent to the model since the last step started.
    messages_before_step: Vec<ReportedMessage>,
    /// The current model.
    model: String,
    /// Id of the current run.
    run: String,
    /// Steps of earlier runs, and the last step of this run.
    earlier: u32,
    last: u32,
    /// Number of listed calls, hooks and messages.
    calls: usize,
    hooks: usize,
    messages: usize,
    /// Bytes of all texts, and how often the maximum of one text was halved.
    bytes: usize,
    halvings: u32,
}

impl SessionReportBuilder {
    /// Adds a redacted record.
    pub fn add(&mut self, record: &Record) {
        self.update_run(record);
        match &record.event {
            Event::SessionStart { session_id, workspace, .. } => {
                self.report.session_id = Some(session_id.clone());
                self.report.workspace = Some(workspace.clone());
            }
            Event::UserMessage { text, origin, images } => {
                self.user_message(&messages::with_image_labels(text, images, Language::En), *origin);
            }
            Event::StepStart { purpose, .. } => self.step_start(*purpose, record),
            Event::RequestSent { .. } => {
                self.report.request_count = self.report.request_count.saturating_add(1);
                self.step(|step| step.requests = step.requests.saturating_add(1));
            }
            event @ (Event::Retry { .. }
            | Event::ModelFailed { .. }
            | Event::ModelAbandoned { .. }
            | Event::ModelSwitched { .. }) => self.no_answer(event),
            event @ Event::ModelResponse { .. } => self.response(event),
            Event::ToolCallStart { call, summary } => {
                self.call(&call.id, |call| call.summary = one_line(summary, LINE_CHARS));
            }
            Event::ToolCallPending { call_id, .. } => {
                self.call(call_id, |call| call.outcome = CallStatus::Waiting);
            }
            event @ Event::ToolCallEnd { .. } => self.tool_end(event),
            Event::Subagent { call_id, event, .. } => self.subagent(call_id, event),
            event @ Event::HookEnd { .. } => self.hook(event),
            Event::Guardrail { triggered } => self.tally.add_guardrail(triggered),
            Event::BudgetWarning { spent_usd, threshold_usd } => {
                self.warn(
                    NoticeLevel::Warn,
                    &messages::budget_warning(*spent_usd, *threshold_usd, Language::En),
                );
            }
            event @ (Event::QualityGates { .. } | Event::Evaluation { .. } | Event::ChangeReview { .. }) => {
                self.checks(event);
            }
            Event::Compaction { part } => {
                self.warn(NoticeLevel::Info, &messages::compaction(part, Language::En));
            }
            Event::Notice { level: level @ (NoticeLevel::Warn | NoticeLevel::Error), text } => {
                self.warn(*level, text);
            }
            Event::Restored { direction, changed, .. } => {
                self.tally.add_changes(changed);
                self.warn(NoticeLevel::Info, &messages::restored(*direction, changed));
            }
            Event::RunEnd { result } => self.run_end(result),
            _ => {}
        }
        self.limit_total_text();
    }

    /// Adds the results of checks, of an evaluation, or of a review.
    fn checks(&mut self, event: &Event) {
        match event {
            Event::QualityGates { results } => self.gates(results),
            Event::Evaluation { result } if !result.passed => {
                let findings = messages::evaluation_findings(result);
                self.warn(
                    NoticeLevel::Warn,
                    &format!("{}\n{findings}", messages::evaluation(result, Language::En)),
                );
            }
            Event::ChangeReview { result } => {
                let level = if result.has_passed() { NoticeLevel::Info } else { NoticeLevel::Warn };
                self.warn(level, &messages::change_review(result, Language::En));
                for finding in &result.findings {
                    self.warn(level, &messages::change_finding(finding));
                }
            }
            _ => {}
        }
    }

    /// Counts a damaged record.
    pub fn damaged(&mut self) {
        self.report.damaged_records = self.report.damaged_records.saturating_add(1);
    }

    /// Returns the report; without the diffs of files, which records do not contain.
    pub fn finish(mut self) -> SessionReport {
        if self.report.status.is_none() {
            self.report.cost = self.tally.total(false);
        }
        self.report.schema_version = REPORT_SCHEMA_VERSION;
        self.report.usage = self.tally.usage;
        for file in std::mem::take(&mut self.tally.files) {
            self.list(|report| &mut report.files_modified, FileChange { file, diff: None });
        }
        self.report.guardrails = self.tally.guardrails;
        self.report
    }

    /// Updates the run and the times from a record.
    fn update_run(&mut self, record: &Record) {
        self.report.completed_ms = Some(record.wall_ms);
        if let Event::RunStart { agent, model, mode, sandbox, .. } = &record.event {
            self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
            self.model.clone_from(model);
            self.run.clone_from(&record.run);
            let report = &mut self.report;
            report.started_ms.get_or_insert(record.wall_ms);
            (report.status, report.stop_reason, report.error) = (None, None, None);
            (report.limit, report.limit_value) = (None, None);
            (report.output, report.executables, report.health) = Default::default();
            (report.evaluation, report.change_review, report.review) = Default::default();
            report.quality_gates.clear();
            report.awaiting_approval.clear();
            [&mut report.agent, &mut report.model, &mut report.mode, &mut report.sandbox]
                .into_iter()
                .zip([agent, model, mode, sandbox])
                .for_each(|(last, this)| *last = Some(this.clone()));
            report.runs.push(Run {
                agent: agent.clone(),
                model: model.clone(),
                mode: mode.clone(),
                sandbox: sandbox.clone(),
                started_ms: record.wall_ms,
                ..Run::default()
            });
        }
        // Time between runs is not counted.
        if let Some(run) = self.report.runs.last_mut().filter(|_| record.run == self.run) {
            let so_far = record.wall_ms.saturating_sub(run.started_ms).max(run.duration_ms);
            let more = so_far - std::mem::replace(&mut run.duration_ms, so_far);
            self.report.duration_ms = self.report.duration_ms.saturating_add(more);
            self.last = self.last.max(record.step);
        }
    }

    fn number(&self) -> u32 {
        self.earlier.saturating_add(self.last)
    }

    fn user_message(&mut self, text: &str, origin: MessageOrigin) {
        if origin == MessageOrigin::Prompt && self.report.task.is_empty() {
            self.report.task = self.cut(text);
        }
        if self.messages == MAX_OTHERS {
            return self.left_out();
        }
        self.messages += 1;
        let text = self.cut(text);
        self.messages_before_step.push(ReportedMessage { origin, text });
    }

    fn step_start(&mut self, purpose: Purpose, record: &Record) {
        let (number, run, model) = (self.number(), self.report.runs.len(), self.model.clone());
        // A switch to another model restarts the step.
        let again = |step: &&mut Step| {
            (step.number, step.run, step.purpose) == (number, run, purpose) && step.finish_reason.is_none()
        };
        if let Some(step) = self.report.steps.last_mut().filter(again) {
            step.model = model;
            return;
        }
        if purpose == Purpose::Step {
            self.report.step_count = self.report.step_count.saturating_add(1);
        }
        if self.report.steps.len() == MAX_STEPS {
            self.report.left_out.steps = self.report.left_out.steps.saturating_add(1);
            return;
        }
        self.report.steps.push(Step {
            number,
            run,
            purpose,
            model,
            started_ms: record.wall_ms,
            added_messages: std::mem::take(&mut self.messages_before_step),
            ..Step::default()
        });
    }

    /// Changes the current step, if it is listed.
    fn step(&mut self, change: impl FnOnce(&mut Step)) {
        if self.report.left_out.steps == 0
            && let Some(step) = self.report.steps.last_mut()
        {
            change(step);
        }
    }

    /// Changes a call without a result, if it is listed.
    fn call(&mut self, id: &str, change: impl FnOnce(&mut Call)) {
        let Some(&(step, index)) = self.open.get(id) else { return };
        if let Some(call) = self.report.steps.get_mut(step).and_then(|step| step.calls.get_mut(index)) {
            change(call);
        }
    }

    fn response(&mut self, event: &Event) {
        let Event::ModelResponse { purpose, message, finish, usage, cost_usd, latency_ms } = event else {
            return;
        };
        self.tally.add_request(*purpose, usage.unwrap_or_default(), *cost_usd);
        self.report.model_time_ms = self.report.model_time_ms.saturating_add(*latency_ms);
        let (text, thinking) = (self.cut(&message.joined_text()), self.cut(&message.joined_thinking()));
        self.step(|step| {
            (step.text, step.thinking) = (text, thinking);
            (step.usage, step.cost_usd) = (*usage, *cost_usd);
            step.latency_ms = step.latency_ms.saturating_add(*latency_ms);
            step.finish_reason = Some(finish.clone());
        });
        self.calls(message, finish);
    }

    fn subagent(&mut self, call_id: &str, event: &Event) {
        let calls = self.tally.add_subagent_event(call_id, event);
        self.report.tool_call_count = self.report.tool_call_count.saturating_add(calls);
        self.report.request_count =
            self.report.request_count.saturating_add(u32::from(matches!(event, Event::RequestSent { .. })));
        match event {
            Event::RunEnd { result } => {
                let asked = self.tally.subagents.iter().rfind(|subagent| subagent.call_id == call_id);
                let agent = asked.map(|subagent| subagent.agent.clone()).unwrap_or_default();
                self.warn(NoticeLevel::Info, &messages::subagent_in_report(&agent, result));
            }
            Event::Notice { level: level @ (NoticeLevel::Warn | NoticeLevel::Error), text } => {
                self.warn(*level, text);
            }
            _ => {}
        }
    }

    /// Adds the tool calls of a usable response.
    fn calls(&mut self, message: &Message, finish: &FinishReason) {
        for call in message.tool_calls().filter(|_| finish.is_usable()) {
            self.report.tool_call_count = self.report.tool_call_count.saturating_add(1);
            if self.calls == MAX_CALLS || self.report.left_out.steps > 0 {
                self.report.left_out.calls = self.report.left_out.calls.saturating_add(1);
                continue;
            }
            self.calls += 1;
            let arguments = self.cut(&call.arguments);
            let at = self.report.steps.len().saturating_sub(1);
            let Some(step) = self.report.steps.last_mut() else { continue };
            self.open.insert(call.id.clone(), (at, step.calls.len()));
            let tool = one_line(&call.name, LINE_CHARS);
            step.calls.push(Call { call_id: call.id.clone(), tool, arguments, ..Call::default() });
        }
    }

    fn tool_end(&mut self, event: &Event) {
        let Event::ToolCallEnd { name, summary, result, changed, denial, simulated, duration_ms, .. } = event
        else {
            return;
        };
        self.tally.add_changes(changed);
        self.report.tool_time_ms = self.report.tool_time_ms.saturating_add(*duration_ms);
        let outcome = match (denial, simulated) {
            (Some(_), _) => CallStatus::Refused,
            (None, true) => CallStatus::Simulated,
            (None, false) if result.is_error => CallStatus::Failed,
            (None, false) => CallStatus::Ok,
        };
        let step = self.number();
        let error = result.is_error.then(|| one_line(result.summary_line(), LINE_CHARS));
        if let Some(denial) = denial {
            let refused = ReportedDenial { step, denial: denial.clone() };
            self.list(|report| &mut report.permission_denials, refused);
        } else if let Some(message) = error.clone() {
            let tool = Some(one_line(name, LINE_CHARS));
            self.list(|report| &mut report.errors, ReportedError { step, tool, message });
        }
        let text = self.cut(&result.text);
        let index = self.open.get(&result.call_id).map(|(step, _)| *step);
        self.call(&result.call_id, |call| {
            call.summary = one_line(summary, LINE_CHARS);
            (call.outcome, call.error) = (outcome, error);
            call.skipped = matches!(outcome, CallStatus::Refused | CallStatus::Simulated);
            (call.result, call.result_bytes) = (text, result.text.len());
            call.latency_ms = *duration_ms;
            call.changed = changed.iter().take(MAX_OTHERS).map(Into::into).collect();
        });
        self.open.remove(&result.call_id);
        if let Some(step) = index.and_then(|index| self.report.steps.get_mut(index)) {
            step.tool_time_ms = step.tool_time_ms.saturating_add(*duration_ms);
        }
    }

    fn hook(&mut self, event: &Event) {
        let Event::HookEnd { hook, on, verdict, output, duration_ms } = event else { return };
        let name = one_line(hook, LINE_CHARS);
        if *verdict != HookVerdict::Allow {
            let line = LogStyle::Plain(Language::En).hook(&name, *verdict);
            self.warn(NoticeLevel::Warn, &format!("{} ({on}): {}", line.trim(), output.trim()));
        }
        if self.hooks == MAX_OTHERS {
            return self.left_out();
        }
        self.hooks += 1;
        let output = self.cut(output);
        let hook = Hook { hook: name, on: on.clone(), verdict: *verdict, output, duration_ms: *duration_ms };
        self.step(|step| step.hooks.push(hook));
    }

    /// Adds a request without a response.
    fn no_answer(&mut self, event: &Event) {
        match event {
            Event::Retry { delay_ms, kind, message, billed, .. } => {
                let purpose = self.report.steps.last().map_or(Purpose::Step, |step| step.purpose);
                self.billed(purpose, *kind, *billed);
                if let Some(retry) = RetryLine::of(event, message, false) {
                    let line = LogStyle::Plain(Language::En).retry(retry, Duration::from_millis(*delay_ms));
                    self.warn(NoticeLevel::Warn, line.trim());
                }
            }
            Event::ModelFailed { purpose, failure, billed } => {
                self.billed(*purpose, failure.kind, *billed);
                let message = one_line(&failure.message, LINE_CHARS);
                let step = self.number();
                self.list(|report| &mut report.errors, ReportedError { step, tool: None, message });
            }
            Event::ModelAbandoned { reason, .. } => {
                self.tally.unreported = true;
                self.warn(NoticeLevel::Warn, &messages::model_call_abandoned(*reason));
            }
            Event::ModelSwitched { from, to, .. } => {
                self.model.clone_from(to);
                self.report.model = Some(to.clone());
                self.warn(NoticeLevel::Warn, &messages::model_switched(from, to, Language::En));
            }
            _ => {}
        }
    }

    fn billed(&mut self, purpose: Purpose, kind: FailureKind, billed: Option<BilledUsage>) {
        match billed {
            Some(BilledUsage { usage, cost_usd }) => self.tally.add_request(purpose, usage, cost_usd),
            None => self.tally.unreported |= kind.may_be_billed(),
        }
    }

    fn gates(&mut self, results: &[GateResult]) {
        self.report.quality_gates = results.to_vec();
        for result in results.iter().filter(|result| !result.passed) {
            self.warn(
                NoticeLevel::Warn,
                &format!("{}\n{}", messages::gate(result, Language::En), result.output),
            );
        }
    }

    fn run_end(&mut self, result: &RunResult) {
        self.report.set_result(result);
        if let Some(run) = self.report.runs.last_mut() {
            (run.status, run.stop_reason) = (Some(result.status), result.stop_reason);
        }
    }

    fn warn(&mut self, level: NoticeLevel, text: &str) {
        let warning = Warning { step: self.number(), level, text: one_line(text, LINE_CHARS) };
        self.list(|report| &mut report.warnings, warning);
    }

    fn list<T>(&mut self, which: impl FnOnce(&mut SessionReport) -> &mut Vec<T>, entry: T) {
        let entries = which(&mut self.report);
        if entries.len() < MAX_OTHERS {
            return entries.push(entry);
        }
        self.left_out();
    }

    fn left_out(&mut self) {
        self.report.left_out.others = self.report.left_out.others.saturating_add(1);
    }

    /// Shortens a text to the current maximum.
    fn cut(&mut self, text: &str) -> String {
        let text = truncate_text(text, self.text_chars());
        self.bytes = self.bytes.saturating_add(text.len());
        text
    }

    /// Returns the current maximum of one text in characters.
    fn text_chars(&self) -> usize {
        (TEXT_CHARS >> self.halvings).max(LEAST_TEXT_CHARS)
    }

    /// Halves the maximum length of all texts, including earlier ones, while they are too long together.
    fn limit_total_text(&mut self) {
        while self.bytes > ALL_TEXT_BYTES && self.text_chars() > LEAST_TEXT_CHARS {
            self.halvings += 1;
            self.bytes = 0;
            let chars = self.text_chars();
            for text in self.report.steps.iter_mut().flat_map(Step::texts) {
                *text = truncate_text(text, chars);
                self.bytes = self.bytes.saturating_add(text.len());
            }
        }
    }
}

impl Step {
    /// Iterates over the texts that may be long.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let added = self.added_messages.iter_mut().map(|message| &mut message.text);
        let calls = self.calls.iter_mut().flat_map(|call| [&mut call.arguments, &mut call.result]);
        let hooks = self.hooks.iter_mut().map(|hook| &mut hook.output);
        [&mut self.text, &mut self.thinking].into_iter().chain(added).chain(calls).chain(hooks)
    }
}

/// Shortens `text` to about this many characters.
pub(super) fn truncate_text(text: &str, chars: usize) -> String {
    excerpt::fit(text, chars).into_owned()
}
