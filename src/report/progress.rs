//! Event sink that shows a spinner with the current activity, its duration, and how far the run is.

use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_messages::{self as messages, ModelActivity, RunProgress};
use agent_terminal::{Terminal, one_line};
use std::io;
use std::sync::Arc;

/// Maximum characters of the model's name.
const MODEL_CHARS: usize = 40;

/// Updates the status line of a terminal. It comes after the human log in the list of sinks, so that a log line is printed
/// before the status changes.
pub struct ProgressSpinner {
    terminal: Arc<Terminal>,
    language: Language,
    run: RunProgress,
}

impl ProgressSpinner {
    /// Creates a spinner on `terminal`.
    pub fn new(terminal: Arc<Terminal>, language: Language) -> Self {
        Self { terminal, language, run: RunProgress::default() }
    }

    fn note(&mut self, activity: ModelActivity) {
        if self.run.activity != activity {
            self.run.activity = activity;
            self.terminal.show_status(&messages::spinner_model(&self.run, self.language));
        }
    }
}

impl EventSink for ProgressSpinner {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::RunStart { model, max_steps, bounds, .. } => {
                self.run = RunProgress {
                    model: one_line(model, MODEL_CHARS),
                    steps_left: *max_steps,
                    budget: bounds.as_ref().and_then(|bounds| bounds.limits.caps.usd),
                    ..RunProgress::default()
                };
            }
            Event::StepStart { .. } => {
                self.run.step = record.step;
                self.run.steps_left = self.run.steps_left.saturating_sub(1);
                self.run.activity = ModelActivity::Awaited;
                self.terminal.show_status(&messages::spinner_model(&self.run, self.language));
            }
            Event::ThinkingDelta { .. } => self.note(ModelActivity::Thinks),
            Event::TextDelta { .. } => self.note(ModelActivity::Writes),
            Event::ToolCallStart { call, summary } => {
                self.terminal.show_status(&messages::spinner_tool(&call.name, summary));
            }
            Event::ModelSwitched { to, .. } => self.run.model = one_line(to, MODEL_CHARS),
            Event::ModelResponse { usage, cost_usd, .. } => {
                if let Some(usage) = usage {
                    let tokens = usage.prompt_tokens().saturating_add(usage.output);
                    self.run.tokens = self.run.tokens.saturating_add(tokens);
                }
                self.run.cost += cost_usd.unwrap_or(Usd::ZERO);
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
