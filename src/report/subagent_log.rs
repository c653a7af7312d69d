//! Lines of the human-readable log about subagents.

use agent_config::verbosity::Verbosity;
use agent_core::event::{Event, HookVerdict, NoticeLevel};
use agent_messages::{self as messages, LogStyle, RetryLine};
use agent_terminal::{Style, first_line, one_line};
use std::collections::BTreeMap;

/// Characters shown of a name, a summary, an error.
const LINE_CHARS: usize = 160;

/// Names of running subagents, by the call that started them.
#[derive(Debug, Default)]
pub struct SubagentLog(BTreeMap<String, String>);

/// A line of the log.
pub struct LogLine {
    /// The lowest verbosity at which the line is printed.
    pub min_verbosity: Verbosity,
    /// Style of the line.
    pub style: Style,
    /// Text of the line.
    pub line: String,
}

impl SubagentLog {
    /// Returns the line for an event in the session of the subagent that `call_id` started; `None` if the event is not
    /// logged.
    pub fn line(&mut self, log_style: LogStyle, call_id: &str, event: &Event) -> Option<LogLine> {
        if let Event::RunStart { agent, .. } = event {
            self.0.insert(call_id.to_owned(), one_line(agent, LINE_CHARS));
        }
        let agent = self.0.get(call_id).cloned().unwrap_or_default();
        let (min_verbosity, style, text) = log_line(log_style, event)?;
        if matches!(event, Event::RunEnd { .. }) {
            self.0.remove(call_id);
        }
        Some(LogLine { min_verbosity, style, line: log_style.nested(&agent, &text) })
    }
}

fn log_line(log_style: LogStyle, event: &Event) -> Option<(Verbosity, Style, String)> {
    let short = |text: &str| one_line(text, LINE_CHARS);
    Some(match event {
        Event::RunStart { model, .. } => {
            (Verbosity::Human, Style::Dim, messages::subagent_started(&short(model), log_style.language()))
        }
        Event::ToolCallStart { call, summary } => {
            (Verbosity::Human, Style::Dim, log_style.named_tool(&short(&call.name), &short(summary)))
        }
        Event::ToolCallEnd { name, denial: Some(denial), .. } => {
            let reason = first_line(&denial.reason, LINE_CHARS);
            (Verbosity::Human, Style::Warning, log_style.subagent_refused(&short(name), &reason))
        }
        Event::ToolCallEnd { name, result, .. } if result.is_error => (
            Verbosity::Human,
            Style::Error,
            log_style.subagent_error(&short(name), &short(result.summary_line())),
        ),
        Event::Retry { message, .. } => {
            let message = first_line(message, LINE_CHARS);
            // The streamed text of a subagent is not shown, so a retry discards none.
            let retry = RetryLine::of(event, &message, false);
            let text = retry.map_or_else(String::new, |retry| retry.text(None, log_style.language()));
            (Verbosity::Warn, Style::Warning, text)
        }
        Event::ModelFailed { failure, .. } => (Verbosity::Warn, Style::Error, short(&failure.message)),
        Event::ModelSwitched { from, to, .. } => (
            Verbosity::Warn,
            Style::Warning,
            short(&messages::model_switched(from, to, log_style.language())),
        ),
        Event::HookEnd { hook, verdict, .. } if *verdict != HookVerdict::Allow => {
            (Verbosity::Human, Style::Warning, short(&log_style.subagent_hook(hook)))
        }
        Event::Guardrail { triggered } => (
            Verbosity::Warn,
            Style::Warning,
            short(&messages::guardrail_triggered(triggered, log_style.language())),
        ),
        Event::Notice { level: NoticeLevel::Warn | NoticeLevel::Error, text } => {
            (Verbosity::Warn, Style::Warning, short(text))
        }
        Event::RunEnd { result } => {
            (Verbosity::Human, Style::Dim, messages::subagent_ended(result, log_style.language()))
        }
        _ => return None,
    })
}
