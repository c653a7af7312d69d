//! The spinner: what is being waited for, for how long, and the tokens so far.

use crate::core::event::{Event, EventSink, Record};
use crate::core::language::Language;
use crate::messages;
use crate::terminal::Terminal;
use std::io;
use std::sync::Arc;

/// Keeps the status line of a terminal true. It is told after the human log, whose lines it must not precede.
pub struct ProgressSpinner {
    terminal: Arc<Terminal>,
    language: Language,
    tokens: u64,
}

impl ProgressSpinner {
    /// A spinner on `terminal`.
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
