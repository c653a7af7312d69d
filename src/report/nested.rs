//! The lines of the human log about what subagents do.

use super::detail::Detail;
use crate::event::{Event, HookVerdict, Level};
use crate::messages::{self, Form, Retry};
use crate::terminal::{Style, first_line, one_line};
use std::collections::BTreeMap;

/// Characters shown of a name, a summary, an error.
const LINE_CHARS: usize = 160;

/// Subagents at work: their names, by the call that asked them.
#[derive(Debug, Default)]
pub struct Subagents(BTreeMap<String, String>);

/// A line, and who reads it.
pub struct Told {
    /// The least that must be told for it.
    pub least: Detail,
    /// How it looks.
    pub style: Style,
    /// The line.
    pub line: String,
}

impl Subagents {
    /// The line about what happened in the session of the subagent that `call_id` asked, where there is one.
    pub fn line(&mut self, form: Form, call_id: &str, event: &Event) -> Option<Told> {
        if let Event::RunStart { agent, .. } = event {
            self.0.insert(call_id.to_owned(), one_line(agent, LINE_CHARS));
        }
        let agent = self.0.get(call_id).cloned().unwrap_or_default();
        let (least, style, text) = told(form, event)?;
        if matches!(event, Event::RunEnd { .. }) {
            self.0.remove(call_id);
        }
        Some(Told { least, style, line: form.nested(&agent, &text) })
    }
}

fn told(form: Form, event: &Event) -> Option<(Detail, Style, String)> {
    let short = |text: &str| one_line(text, LINE_CHARS);
    Some(match event {
        Event::RunStart { model, .. } => {
            (Detail::Human, Style::Dim, messages::subagent_begins(&short(model), form.language()))
        }
        Event::ToolStart { call, summary } => {
            (Detail::Human, Style::Dim, form.named_tool(&short(&call.name), &short(summary)))
        }
        Event::ToolEnd { name, denial: Some(denial), .. } => {
            let reason = first_line(&denial.reason, LINE_CHARS);
            (Detail::Human, Style::Caution, form.subagent_refused(&short(name), &reason))
        }
        Event::ToolEnd { name, result, .. } if result.is_error => {
            (Detail::Human, Style::Bad, form.subagent_error(&short(name), &short(result.gist())))
        }
        Event::Retry { message, .. } => {
            let message = first_line(message, LINE_CHARS);
            // Pieces of a subagent's answer are not shown, so none are discarded.
            let retry = Retry::of(event, &message, false);
            let text = retry.map_or_else(String::new, |retry| retry.text(None, form.language()));
            (Detail::Warn, Style::Caution, text)
        }
        Event::ModelFailed { failure, .. } => (Detail::Warn, Style::Bad, short(&failure.message)),
        Event::ModelSwitched { from, to, .. } => {
            (Detail::Warn, Style::Caution, short(&messages::model_switched(from, to, form.language())))
        }
        Event::HookEnd { hook, verdict, .. } if *verdict != HookVerdict::Allow => {
            (Detail::Human, Style::Caution, short(&form.subagent_hook(hook)))
        }
        Event::Guardrail { triggered } => {
            (Detail::Warn, Style::Caution, short(&messages::guardrail(triggered, form.language())))
        }
        Event::Notice { level: Level::Warn | Level::Error, text } => {
            (Detail::Warn, Style::Caution, short(text))
        }
        Event::RunEnd { result } => {
            (Detail::Human, Style::Dim, messages::subagent_ended(result, form.language()))
        }
        _ => return None,
    })
}
