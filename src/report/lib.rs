//! Output of a run: event sinks for the log, spinner, log file and JSON stream, and the result on standard output.

pub mod answer;
pub mod call_view;
pub mod chat_log;
pub mod claude;
pub mod codex_events;
pub mod costs;
pub mod dry_run;
pub mod human_log;
mod human_log_end;
pub mod json;
pub mod json_stream;
pub mod line_writer;
pub mod log_file;
pub mod pending_approvals;
pub mod progress;
mod ranking_page;
pub mod review_text;
mod rotating_file;
pub mod schema;
pub mod session_report;
pub mod stats;
pub mod stats_page;
mod subagent_log;
pub mod telemetry;
pub mod work_report;

use agent_config::verbosity::Verbosity;
use agent_core::event_sink::EventSink;
use agent_core::language::Language;
use agent_core::run_result::{Output, RunResult};
use agent_messages as messages;
use agent_terminal::{PrintOutcome, Style, Terminal};
use answer::AnswerShown;
use chat_log::{ChatLog, ChatMemory};
use costs::CostSummary;
use dry_run::DryRunPlan;
use human_log::HumanLog;
use json_stream::JsonStream;
use line_writer::LineWriterGuard;
use log_file::{LogFile, LogFileError};
use progress::ProgressSpinner;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use telemetry::Telemetry;

/// Format of standard output.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, strum::EnumString, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum OutputFormat {
    /// The answer.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// Every event as a JSON line.
    StreamJson,
}

/// Options for the output of a run.
#[derive(Debug, Clone)]
pub struct ReportOptions {
    /// Format of standard output.
    pub format: OutputFormat,
    /// Language of standard error.
    pub language: Language,
    /// Verbosity of standard error.
    pub detail: Verbosity,
    /// The least verbosity at which an answer is shown on standard error while it arrives.
    pub answer_detail: Verbosity,
    /// Whether the run works in the directory of the user, so that commands to type next can be named.
    pub names_commands: bool,
    /// Path of the log file (`--log-file`).
    pub log_file: Option<PathBuf>,
    /// Whether to list the simulated calls at the end (`--dry-run`).
    pub dry_run: bool,
    /// Whether to print the cost of the session, at every verbosity (`--show-costs`).
    pub show_costs: bool,
    /// In `agent chat`: the notices that the conversation has shown.
    pub chat: Option<ChatMemory>,
    /// The session of a resumed run; a new session emits its id.
    pub session_id: Option<String>,
    /// Receives the events to make spans of them (`telemetry.enabled`).
    pub telemetry: Option<Telemetry>,
}

/// The event sinks of one run, without the journal.
pub struct EventSinks {
    /// The sinks, in the order in which they receive events.
    pub sinks: Vec<Box<dyn EventSink>>,
    /// Whether the final answer was already shown where standard output would show it.
    pub answer_shown: AnswerShown,
    /// Guard to hold until the result is written: queued lines come before it.
    pub stream_end: Option<LineWriterGuard>,
}

/// Creates the sinks for `options`.
///
/// # Errors
/// When the log file cannot be opened.
pub fn build_sinks(terminal: &Arc<Terminal>, options: ReportOptions) -> Result<EventSinks, LogFileError> {
    let human = HumanLog::new(Arc::clone(terminal), options.detail, options.language, options.session_id)
        .show_answers_from(options.answer_detail)
        .name_commands(options.names_commands);
    let answer_shown = human.answer_shown();
    let mut sinks: Vec<Box<dyn EventSink>> = vec![match options.chat {
        Some(memory) => Box::new(ChatLog::new(Arc::clone(terminal), human, memory)),
        None => Box::new(human),
    }];
    if let Some(path) = options.log_file {
        sinks.push(Box::new(LogFile::open(path, options.detail <= Verbosity::Debug, Arc::clone(terminal))?));
    }
    if options.show_costs {
        sinks.push(Box::new(CostSummary::new(Arc::clone(terminal), options.language)));
    }
    if options.dry_run {
        sinks.push(Box::new(DryRunPlan::new(Arc::clone(terminal), options.language)));
    }
    if terminal.has_icons() && options.detail <= Verbosity::Human {
        sinks.push(Box::new(ProgressSpinner::new(Arc::clone(terminal), options.language)));
    }
    sinks.extend(options.telemetry.map(|telemetry| telemetry.sink()));
    let stream_end = (options.format == OutputFormat::StreamJson).then(|| {
        let (stream, end) = JsonStream::start(Arc::clone(terminal));
        sinks.push(Box::new(stream));
        end
    });
    Ok(EventSinks { sinks, answer_shown, stream_end })
}

/// Writes the result to standard output: the document, or the answer unless it was already shown there.
///
/// # Errors
/// When standard output cannot be written; the error is also printed on standard error. A closed pipe is not an error.
pub fn write_result(
    terminal: &Terminal,
    format: OutputFormat,
    result: &RunResult,
    answer_shown: &AnswerShown,
) -> io::Result<PrintOutcome> {
    let printed = match format {
        OutputFormat::Json => terminal.print(&json::line(result)?),
        OutputFormat::StreamJson => terminal.print(&json_stream::last_line(result)?),
        OutputFormat::Text => deliver_answer(terminal, result, answer_shown),
    };
    if let Err(error) = &printed {
        // A failure to report the error is ignored; the caller receives the error.
        drop(terminal.eprintln(Style::Error, &messages::answer_not_written(error)));
    }
    printed
}

/// Writes the answer in text mode: text unchanged, a structured answer as one line of JSON. A text that does not fit the
/// requested schema goes to standard error.
fn deliver_answer(
    terminal: &Terminal,
    result: &RunResult,
    answer_shown: &AnswerShown,
) -> io::Result<PrintOutcome> {
    match &result.output {
        _ if answer_shown.get() => Ok(PrintOutcome::Written),
        Output::Value(value) => terminal.print(&json::line(value)?),
        Output::Text(text) if text.is_empty() => Ok(PrintOutcome::Written),
        Output::Text(text) if result.output_valid == Some(false) => {
            terminal.eprintln(Style::Warning, messages::ANSWER_NOT_STRUCTURED)?;
            terminal.eprintln(Style::Plain, text)?;
            Ok(PrintOutcome::Written)
        }
        Output::Text(text) => terminal.print(text),
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod script;
