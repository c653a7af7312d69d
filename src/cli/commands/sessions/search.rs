//! `agent sessions search`: searches for a text in the messages of users, models and tools.

use super::{CommandContext, unreadable};
use agent_core::event::{Event, MessageOrigin};
use agent_core::failure::FailureKind;
use agent_journal::read;
use agent_journal::step_counter::StepCounter;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::one_line;
use regex::{Regex, RegexBuilder};

/// Number of characters shown before and after a match.
const CONTEXT_CHARS: usize = 60;

/// Prints at most `limit` matches, newest sessions first.
///
/// # Errors
/// Fails for an unreadable session, and when standard output cannot be written.
pub fn search(context: &CommandContext<'_>, wanted: &str, limit: usize) -> AppResult<()> {
    let pattern = RegexBuilder::new(&regex::escape(wanted)).case_insensitive(true).build();
    let pattern = pattern.map_err(|error| AppError { kind: FailureKind::Usage, cause: error.into() })?;
    let mut found = Vec::new();
    for id in context.store.list()? {
        let path = context.store.journal_path(&id)?;
        let mut steps = StepCounter::default();
        let visited = read::for_each_record(&path, |_, record| {
            let step = record.as_ref().map(|record| steps.next(record));
            let message = step.zip(record.as_ref().and_then(|record| author_and_text(&record.event)));
            if let Some((step, (who, text))) = message
                && let Some(excerpt) = matching_excerpt(context, &pattern, &text)
            {
                found.push(format!("{id}  step {step:<3}  {who}: {excerpt}"));
            }
            found.len() <= limit
        });
        visited.map_err(|error| unreadable(&path, &error))?;
        if found.len() > limit {
            break;
        }
    }
    if found.is_empty() {
        return print(context.terminal, "not found in any session of this workspace\n");
    }
    if found.len() > limit {
        found.truncate(limit);
        found.push("there are more matches: --limit N".to_owned());
    }
    print(context.terminal, &found.join("\n"))
}

/// Returns author and text of a record's message.
fn author_and_text(event: &Event) -> Option<(String, String)> {
    match event {
        Event::UserMessage { text, origin, .. } => {
            let who = if *origin == MessageOrigin::Prompt { "you" } else { "loop" };
            Some((who.to_owned(), text.clone()))
        }
        Event::History { messages } => {
            let texts: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
            Some(("earlier".to_owned(), texts.join("\n")))
        }
        Event::ModelResponse { message, .. } => Some(("model".to_owned(), message.joined_text())),
        Event::ToolCallEnd { name, summary, result, .. } => {
            Some((one_line(name, CONTEXT_CHARS), format!("{summary}\n{}", result.text)))
        }
        Event::Subagent { event, .. } => author_and_text(event),
        _ => None,
    }
}

/// Returns the first match in `text` with its context. Secrets are redacted before the search.
fn matching_excerpt(context: &CommandContext<'_>, pattern: &Regex, text: &str) -> Option<String> {
    if !pattern.is_match(text) {
        return None;
    }
    let text = context.redactor.text(text);
    let found = pattern.find(&text)?;
    let before: Vec<char> = text.get(..found.start())?.chars().rev().take(CONTEXT_CHARS).collect();
    let around = before.into_iter().rev().chain(text.get(found.start()..)?.chars());
    let width = CONTEXT_CHARS.saturating_mul(2).saturating_add(found.as_str().chars().count());
    Some(one_line(&around.take(width).collect::<String>(), usize::MAX))
}
