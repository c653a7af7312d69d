//! Event sink that shows a spinner with the current activity, its duration, and the tokens so far.

use crate::core::event::{Event, Record};
use crate::core::event_sink::EventSink;
use crate::core::language::Language;
use crate::messages;
use crate::terminal::Terminal;
use std::io;
use std::sync::Arc;

/// Updates the status line of a terminal. It comes after the human log in the list of sinks, so that a log line is printed
/// before the status changes.
pub struct ProgressSpinner {
    terminal: Arc<Terminal>,
    language: Language,
    tokens: u64,
}

impl ProgressSpinner {
    /// Creates a spinner on `terminal`.
    pub fn new(terminal: Arc<Terminal>, language: Language) -> Self {
        Self { terminal, language, tokens: 0 }
    }
}

impl EventSink for ProgressSpinner {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::StepStart { .. } => {
                let status = messages::spinner_model(record.step, self.tokens, self.language);
                self.terminal.show_status(&status);
            }
            Event::ToolCallStart { call, summary } => {
                self.terminal.show_status(&messages::spinner_tool(&call.name, summary));
            }
            Event::ModelResponse { usage, .. } => {
                if let Some(usage) = usage {
                    self.tokens =
                        self.tokens.saturating_add(usage.prompt_tokens()).saturating_add(usage.output);
                }
                self.terminal.hide_status();
            }
            Event::StepEnd | Event::ModelFailed { .. } | Event::RunEnd { .. } => {
                self.terminal.hide_status();
            }
            _ => {}
        }
        Ok(())
    }
}
