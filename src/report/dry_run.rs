//! Event sink that lists the simulated calls at the end of a dry run (`--dry-run`).

use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::language::Language;
use agent_messages as messages;
use agent_terminal::preview::{MAX_ROWS, Preview};
use agent_terminal::{Style, Terminal, one_line};
use std::io;
use std::sync::Arc;

/// Maximum number of listed actions; the number of others is printed.
const LISTED_ACTIONS: usize = 100;
/// Characters of the name and the summary of an action: two rows of a usual terminal.
const LINE_CHARS: usize = 160;

/// Collects the simulated calls and prints them when the run ends, at every verbosity: they are the purpose of the run.
pub struct DryRunPlan {
    terminal: Arc<Terminal>,
    language: Language,
    actions: Vec<Action>,
    unlisted: usize,
}

/// A simulated call.
struct Action {
    call: String,
    /// The diff it would make, or the remaining lines of a command, shortened.
    preview: Option<Preview>,
}

impl DryRunPlan {
    /// Creates a sink that writes to `terminal`.
    pub fn new(terminal: Arc<Terminal>, language: Language) -> Self {
        Self { terminal, language, actions: Vec::new(), unlisted: 0 }
    }

    fn note(&mut self, tool: &str, summary: &str, answer: &str) {
        if self.actions.len() == LISTED_ACTIONS {
            self.unlisted += 1;
            return;
        }
        let shown = answer.split_once("\n\n").map_or("", |(_, preview)| preview);
        let [tool, line] = [tool, summary].map(|text| one_line(text, LINE_CHARS));
        let is_new = !shown.is_empty() && shown != summary;
        let preview = is_new.then(|| Preview::fitting(shown, MAX_ROWS, usize::from(self.terminal.width())));
        self.actions.push(Action { call: format!("{tool} {line}"), preview });
    }

    fn simulated(&mut self, event: &Event) {
        if let Event::ToolCallEnd { name, summary, result, simulated: true, .. } = event {
            self.note(name, summary, &result.text);
        }
    }

    fn print(&self) -> io::Result<()> {
        self.terminal.eprintln(Style::Bold, messages::dry_run_plan(self.language))?;
        if self.actions.is_empty() {
            return self.terminal.eprintln(Style::Plain, messages::nothing_planned(self.language));
        }
        for (number, action) in (1..).zip(&self.actions) {
            self.terminal.eprintln(Style::Plain, &format!("{number}. {}", action.call))?;
            if let Some(preview) = &action.preview {
                self.terminal.eprint_rows(&preview.rows)?;
            }
        }
        match self.unlisted {
            0 => Ok(()),
            more => self.terminal.eprintln(Style::Plain, &messages::more_planned(more, self.language)),
        }
    }
}

impl EventSink for DryRunPlan {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::RunEnd { .. } => return self.print(),
            Event::Subagent { event, .. } => self.simulated(event),
            event => self.simulated(event),
        }
        Ok(())
    }
}
