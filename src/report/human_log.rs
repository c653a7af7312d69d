//! The human-readable log of a run: lines on standard error, with icons on a terminal and plain text otherwise.

use crate::answer::{AnswerShown, AnswerText};
use crate::call_view::CallView;
use crate::subagent_log::SubagentLog;
use agent_config::verbosity::Verbosity;
use agent_core::approval::ApprovalRequest;
use agent_core::event::{Event, FinishReason, HookVerdict, MessageOrigin, NoticeLevel, Purpose, Record};
use agent_core::event_sink::EventSink;
use agent_core::failure::Failure;
use agent_core::image::Image;
use agent_core::language::Language;
use agent_core::message::{Message, ToolCall, ToolResult};
use agent_core::run_result::InstructionFile;
use agent_core::stop_reason::{LimitReached, StopReason};
use agent_engine::call_arguments::effective_call;
use agent_mcp::definition::server_and_tool;
use agent_messages::{self as messages, LogStyle, RetryLine, SessionHeader};
use agent_terminal::{Style, Terminal, first_line, one_line};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Characters shown of a name, a summary, an error: two rows of a usual terminal.
pub(super) const LINE_CHARS: usize = 160;
/// Characters shown of a notice or a failure, which describe what to do.
pub(super) const NOTICE_CHARS: usize = 1_000;
/// Lines shown of a hook's output; the model reads all of it.
const HOOK_LINES: usize = 5;

/// Event sink of the human-readable log.
pub struct HumanLog {
    pub(super) terminal: Arc<Terminal>,
    pub(super) log_style: LogStyle,
    detail: Verbosity,
    session_id: Option<String>,
    /// Location of the session, until it is printed after the first line.
    location: Option<String>,
    pub(super) max_steps: u32,
    /// The calls that have begun and not ended.
    calls: HashMap<String, ToolCall>,
    /// The call named in the last line of the log.
    named_call: Option<String>,
    /// The least verbosity at which an answer is shown while it arrives.
    answer_detail: Verbosity,
    /// The least verbosity at which thoughts of the model are shown.
    thought_detail: Verbosity,
    /// The text of the model.
    pub(super) answer: AnswerText,
    /// Whether the current reasoning was streamed.
    thought_shown: bool,
    /// Running subagents.
    subagents: SubagentLog,
    /// The last failure that was printed; the end of the log does not repeat it.
    pub(super) reported_failure: Option<String>,
    /// Whether the end names commands to type next.
    pub(super) names_commands: bool,
}

impl HumanLog {
    /// Creates a log on `terminal`; `session_id` is set if a session is resumed.
    pub fn new(
        terminal: Arc<Terminal>,
        detail: Verbosity,
        language: Language,
        session_id: Option<String>,
    ) -> Self {
        Self {
            log_style: if terminal.has_icons() {
                LogStyle::Icons(language)
            } else {
                LogStyle::Plain(language)
            },
            answer: AnswerText::new(Arc::clone(&terminal)),
            terminal,
            detail,
            session_id,
            location: None,
            max_steps: 0,
            answer_detail: Verbosity::Human,
            thought_detail: Verbosity::Info,
            calls: HashMap::new(),
            named_call: None,
            thought_shown: false,
            subagents: SubagentLog::default(),
            reported_failure: None,
            names_commands: false,
        }
    }

    /// Shows answers while they arrive only at this verbosity or a higher one.
    #[must_use]
    pub fn show_answers_from(mut self, detail: Verbosity) -> Self {
        self.answer_detail = detail;
        self
    }

    /// Names commands to type next at the end, for a run in the directory where they would be typed.
    #[must_use]
    pub fn name_commands(self, names_commands: bool) -> Self {
        Self { names_commands, ..self }
    }

    /// Shows the thoughts of the model at this verbosity and higher ones.
    pub(super) fn show_thoughts_from(&mut self, detail: Verbosity) {
        self.thought_detail = detail;
    }

    pub(super) fn language(&self) -> Language {
        self.log_style.language()
    }

    /// Returns a flag that shows, after the run, whether the answer was already printed.
    pub fn answer_shown(&self) -> AnswerShown {
        self.answer.outcome()
    }

    pub(super) fn log(&mut self, least: Verbosity, style: Style, line: &str) -> io::Result<()> {
        if self.detail > least { Ok(()) } else { self.log_always(style, line) }
    }

    /// Prints a line at every verbosity.
    pub(super) fn log_always(&mut self, style: Style, line: &str) -> io::Result<()> {
        self.answer.end()?;
        self.terminal.eprintln(style, line)
    }

    fn run_start(&mut self, event: &Event) -> io::Result<()> {
        let Event::RunStart { agent, model, mode, tools, max_steps, resumed, sandbox, .. } = event else {
            return Ok(());
        };
        self.max_steps = *max_steps;
        let short = |text: &str| one_line(text, LINE_CHARS);
        let line = self.log_style.session(SessionHeader {
            id: &short(self.session_id.as_deref().unwrap_or_default()),
            model: &short(model),
            agent: &short(agent),
            mode: &short(mode),
            sandbox: &short(sandbox),
            resumed: *resumed,
        });
        self.log(Verbosity::Human, Style::Bold, &line)?;
        if let Some(location) = self.location.take() {
            self.notice(NoticeLevel::Info, &location)?;
        }
        self.notice(NoticeLevel::Info, &messages::run_limits(*max_steps, tools, self.language()))
    }

    fn piece(&mut self, least: Verbosity, text: &str) -> io::Result<()> {
        if self.detail > least { Ok(()) } else { self.answer.piece(Style::Dim, text) }
    }

    fn retry(&mut self, event: &Event, delay_ms: u64, message: &str) -> io::Result<()> {
        let shown = std::mem::take(&mut self.thought_shown) | self.answer.abandon();
        let message = first_line(message, LINE_CHARS);
        let Some(retry) = RetryLine::of(event, &message, shown) else { return Ok(()) };
        let line = self.log_style.retry(retry, Duration::from_millis(delay_ms));
        self.log(Verbosity::Warn, Style::Warning, &line)
    }

    /// Prints the thoughts of an answer, unless they were printed while they arrived.
    pub(super) fn thoughts(&mut self, message: &Message) -> io::Result<()> {
        let thoughts = message.joined_thinking();
        if std::mem::take(&mut self.thought_shown) || thoughts.trim().is_empty() {
            return Ok(());
        }
        self.piece(self.thought_detail, thoughts.trim_end())
    }

    fn response(&mut self, message: &Message, finish: &FinishReason) -> io::Result<()> {
        let calls = message.tool_calls().count();
        let text = message.joined_text();
        self.thoughts(message)?;
        let least = if calls > 0 { Verbosity::Human } else { self.answer_detail };
        if (calls > 0 || self.answer.is_on_output()) && self.detail <= least {
            self.answer.push_whole(&text)?;
        }
        self.answer.end_answer();
        self.log(Verbosity::Human, Style::Dim, &self.log_style.responded(calls, finish))
    }

    fn model_response(&mut self, event: &Event) -> io::Result<()> {
        let Event::ModelResponse { purpose, message, finish, usage, cost_usd, latency_ms } = event else {
            return Ok(());
        };
        if !purpose.is_internal() {
            self.response(message, finish)?;
        }
        let line = self.log_style.usage(*usage, *cost_usd, Duration::from_millis(*latency_ms));
        self.log(Verbosity::Info, Style::Dim, &line)
    }

    fn log_info_event(&mut self, event: &Event) -> io::Result<()> {
        let language = self.language();
        match event {
            Event::System { text } => {
                self.notice(NoticeLevel::Debug, &messages::system_message(text.len(), language))
            }
            Event::History { messages } => {
                self.notice(NoticeLevel::Info, &messages::history_added(messages.len(), language))
            }
            Event::RequestSent { attempt } => {
                self.notice(NoticeLevel::Debug, &messages::request_sent(*attempt, language))
            }
            Event::RequestPrefix { changed, .. } => self.prefix(changed),
            Event::CachedAnswer => self.log(
                Verbosity::Human,
                Style::Dim,
                &self.log_style.detail(messages::cached_answer(language)),
            ),
            Event::Checkpoint { reference, omitted_files, .. } => self.checkpoint(reference, omitted_files),
            Event::Notice { level, text } => self.notice(*level, text),
            Event::Guardrail { triggered } => {
                self.notice(NoticeLevel::Warn, &messages::guardrail_triggered(triggered, self.language()))
            }
            Event::BudgetWarning { spent_usd, threshold_usd } => self.notice(
                NoticeLevel::Warn,
                &messages::budget_warning(*spent_usd, *threshold_usd, self.language()),
            ),
            Event::QualityGates { results } => results.iter().try_for_each(|gate| {
                self.log_check(gate.passed, &messages::gate(gate, self.language()), &gate.output)
            }),
            Event::Evaluation { result } => {
                self.log_check(result.passed, &messages::evaluation(result, self.language()), "")
            }
            Event::ChangeReview { result } => self.log_check(
                result.has_passed(),
                &messages::change_review(result, self.language()),
                &messages::change_findings(result),
            ),
            Event::Compaction { part } => {
                self.notice(messages::compaction_level(part), &messages::compaction(part, self.language()))
            }
            _ => Ok(()),
        }
    }

    fn log_check(&mut self, passed: bool, line: &str, more: &str) -> io::Result<()> {
        let style = if passed { Style::Success } else { Style::Warning };
        self.log(Verbosity::Human, style, &self.log_style.indented(&one_line(line, LINE_CHARS)))?;
        if passed { Ok(()) } else { self.piece(Verbosity::Info, more) }
    }

    /// Records that a call has begun.
    pub(super) fn begin_call(&mut self, call: &ToolCall) {
        self.answer.begin_call();
        self.calls.insert(call.id.clone(), call.clone());
    }

    /// Returns the view of the end of a call that has begun.
    pub(super) fn view_of_end(&mut self, event: &Event) -> Option<CallView> {
        let Event::ToolCallEnd { result, .. } = event else { return None };
        let call = self.calls.remove(&result.call_id);
        CallView::of(event, call.as_ref(), self.language())
    }

    fn tool_start(&mut self, call: &ToolCall, summary: &str) -> io::Result<()> {
        self.begin_call(call);
        self.named_call = Some(call.id.clone());
        let called = effective_call(call);
        let (server, tool) = match server_and_tool(&called.name) {
            Some((server, tool)) => (Some(server), tool),
            None => (None, called.name.as_str()),
        };
        let (tool, summary) = (one_line(tool, LINE_CHARS), one_line(summary, LINE_CHARS));
        let line = self.log_style.tool(&tool, &summary, server.map(|server| one_line(server, LINE_CHARS)));
        self.log(Verbosity::Human, Style::Plain, &line)
    }

    fn checkpoint(&mut self, reference: &str, omitted_files: &[String]) -> io::Result<()> {
        let level = if omitted_files.is_empty() { NoticeLevel::Info } else { NoticeLevel::Warn };
        self.notice(level, &messages::checkpoint(reference, omitted_files, self.language()))
    }

    fn background(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::BackgroundStart { id, command } => {
                self.notice(NoticeLevel::Debug, &messages::background_start(id, command, self.language()))
            }
            Event::BackgroundEnd { id, outcome, ended_by_run_end, .. } => self.notice(
                NoticeLevel::Info,
                &messages::background_end(id, outcome, *ended_by_run_end, self.language()),
            ),
            _ => Ok(()),
        }
    }

    fn tool_end(&mut self, event: &Event) -> io::Result<()> {
        let Event::ToolCallEnd { name, summary, result, denial, simulated, .. } = event else {
            return Ok(());
        };
        let ToolResult { call_id, is_error, .. } = result;
        let (name, summary) = (one_line(name, LINE_CHARS), one_line(summary, LINE_CHARS));
        let call =
            (self.named_call.take().as_ref() != Some(call_id)).then_some((name.as_str(), summary.as_str()));
        let view =
            self.view_of_end(event).filter(|_| self.terminal.has_icons() && self.detail <= Verbosity::Human);
        let note = view.as_ref().map_or("", |view| &view.note);
        let (style, line) = match denial {
            Some(denial) => {
                (Style::Warning, self.log_style.tool_refused(call, &first_line(&denial.reason, LINE_CHARS)))
            }
            None if *is_error => {
                (Style::Error, self.log_style.tool_error(call, &one_line(result.summary_line(), LINE_CHARS)))
            }
            None => (Style::Success, self.log_style.tool_ok(call, *simulated, note)),
        };
        self.log(Verbosity::Human, style, &line)?;
        view.map_or(Ok(()), |view| view.print_rows(&self.terminal, "      ", None, self.language()))
    }

    /// Prints an event of a subagent below the line of the call that started it. The end of that call then names the call
    /// again.
    fn subagent(&mut self, call_id: &str, event: &Event) -> io::Result<()> {
        let Some(entry) = self.subagents.line(self.log_style, call_id, event) else { return Ok(()) };
        self.named_call = None;
        self.log(entry.min_verbosity, entry.style, &entry.line)
    }

    fn tool_call_waits(&mut self, approval: Option<&ApprovalRequest>) -> io::Result<()> {
        let line = match approval {
            Some(request) => {
                self.log_style.tool_call_waits(&request.id, &one_line(&request.reason, LINE_CHARS))
            }
            None => self.log_style.tool_waits_its_turn(),
        };
        self.log(Verbosity::Human, Style::Warning, &line)
    }

    fn hook_end(&mut self, hook: &str, verdict: HookVerdict, output: &str) -> io::Result<()> {
        let (style, least) = match verdict {
            HookVerdict::Allow => (Style::Dim, Verbosity::Human),
            HookVerdict::Block | HookVerdict::Stop => (Style::Warning, Verbosity::Human),
            HookVerdict::Warn => (Style::Warning, Verbosity::Warn),
        };
        self.log(least, style, &self.log_style.hook(&one_line(hook, LINE_CHARS), verdict))?;
        if verdict == HookVerdict::Allow {
            return Ok(());
        }
        for line in output.lines().filter(|line| !line.trim().is_empty()).take(HOOK_LINES) {
            self.log(least, Style::Plain, &self.log_style.detail(&one_line(line, LINE_CHARS)))?;
        }
        Ok(())
    }

    fn user_message(&mut self, text: &str, origin: MessageOrigin, images: &[Image]) -> io::Result<()> {
        let language = self.language();
        for image in images {
            self.log(Verbosity::Human, Style::Dim, &self.log_style.image(image))?;
        }
        let (level, line) = match origin {
            MessageOrigin::Repair => (NoticeLevel::Warn, messages::schema_repair_notice(text, language)),
            MessageOrigin::Breaker => (NoticeLevel::Warn, messages::no_progress_notice(text, language)),
            origin => {
                (NoticeLevel::Debug, messages::user_message(origin, &one_line(text, LINE_CHARS), language))
            }
        };
        self.notice(level, &line)
    }

    fn notice(&mut self, level: NoticeLevel, text: &str) -> io::Result<()> {
        let (least, style) = match level {
            NoticeLevel::Debug => (Verbosity::Debug, Style::Dim),
            NoticeLevel::Info => (Verbosity::Info, Style::Dim),
            NoticeLevel::Warn => (Verbosity::Warn, Style::Warning),
            NoticeLevel::Error => (Verbosity::Error, Style::Error),
        };
        self.log(least, style, &self.log_style.notice(level, &one_line(text, NOTICE_CHARS)))
    }

    /// Unchanged instructions are printed only with `-v`.
    fn instructions(&mut self, file: &InstructionFile) -> io::Result<()> {
        let (least, style, level) = match &file.before {
            Some(before) if before.hash == file.hash => (Verbosity::Info, Style::Dim, NoticeLevel::Info),
            Some(_) => (Verbosity::Warn, Style::Warning, NoticeLevel::Warn),
            None => (Verbosity::Human, Style::Dim, NoticeLevel::Info),
        };
        self.log(least, style, &self.log_style.notice(level, &messages::instructions(file, self.language())))
    }

    fn model_failed(&mut self, failure: &Failure) -> io::Result<()> {
        self.reported_failure = Some(failure.message.clone());
        self.answer.abandon();
        let message = one_line(&failure.message, NOTICE_CHARS);
        self.log(Verbosity::Error, Style::Error, &self.log_style.model_failed(failure.kind, &message))
    }

    /// Text streamed by the failed model is not part of the answer.
    fn model_switched(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.answer.abandon();
        self.notice(NoticeLevel::Warn, &messages::model_switched(from, to, self.language()))
    }

    fn prefix(&mut self, changed: &[String]) -> io::Result<()> {
        if changed.is_empty() {
            return Ok(());
        }
        self.notice(NoticeLevel::Info, &messages::prefix_changed(changed, self.language()))
    }

    fn closing(&mut self, reason: StopReason, limit: Option<LimitReached>, steps: u32) -> io::Result<()> {
        let warning = self.log_style.watchdog(reason, limit, steps, self.max_steps);
        self.log(Verbosity::Warn, Style::Warning, &warning)?;
        self.log(Verbosity::Human, Style::Plain, &self.log_style.closing(reason, steps))
    }
}

impl EventSink for HumanLog {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        let step = record.step;
        match &record.event {
            Event::SessionStart { session_id, workspace, program, .. } => {
                self.session_id = Some(session_id.clone());
                self.location = Some(messages::session_place(workspace, program, self.language()));
                Ok(())
            }
            event @ Event::RunStart { .. } => self.run_start(event),
            Event::Instructions { file } => self.instructions(file),
            Event::UserMessage { text, origin, images } => self.user_message(text, *origin, images),
            event @ (Event::BackgroundStart { .. } | Event::BackgroundEnd { .. }) => self.background(event),
            Event::StepStart { purpose: Purpose::Step, messages, .. } => {
                self.log(Verbosity::Human, Style::Bold, &self.log_style.step(step, *messages))
            }
            // The commands that act between runs print their own output.
            Event::StepStart { .. }
            | Event::FileChangesPlanned { .. }
            | Event::StepEnd
            | Event::ModelAbandoned { .. }
            | Event::BudgetCap(_)
            | Event::ApprovalAnswered { .. }
            | Event::Restored { .. }
            | Event::Imported
            | Event::Work { .. } => Ok(()),
            event @ Event::Retry { delay_ms, message, .. } => self.retry(event, *delay_ms, message),
            Event::TextDelta { text } if self.detail > self.answer_detail => Ok(()),
            Event::TextDelta { text } => self.answer.push(text),
            Event::ThinkingDelta { text } => {
                self.thought_shown = true;
                self.piece(self.thought_detail, text)
            }
            event @ Event::ModelResponse { .. } => self.model_response(event),
            Event::ModelFailed { failure, .. } => self.model_failed(failure),
            Event::ModelSwitched { from, to, .. } => self.model_switched(from, to),
            Event::ToolCallStart { call, summary } => self.tool_start(call, summary),
            event @ Event::ToolCallEnd { .. } => self.tool_end(event),
            Event::Subagent { call_id, event, .. } => self.subagent(call_id, event),
            Event::ToolCallPending { approval, .. } => self.tool_call_waits(approval.as_ref()),
            Event::HookEnd { hook, verdict, output, .. } => self.hook_end(hook, *verdict, output),
            event @ (Event::Checkpoint { .. }
            | Event::QualityGates { .. }
            | Event::Evaluation { .. }
            | Event::ChangeReview { .. }
            | Event::CachedAnswer
            | Event::RequestPrefix { .. }
            | Event::Notice { .. }
            | Event::Guardrail { .. }
            | Event::BudgetWarning { .. }
            | Event::System { .. }
            | Event::History { .. }
            | Event::RequestSent { .. }
            | Event::Compaction { .. }) => self.log_info_event(event),
            Event::Closing { reason, limit } => self.closing(*reason, *limit, step),
            Event::RunEnd { result } => self.run_end(result),
        }
    }
}

#[cfg(test)]
#[path = "human_log_tests.rs"]
mod tests;
