//! `agent sessions search`: where a text occurs in what people, models and tools said.

use super::{Archive, unreadable};
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::event::{Event, Origin};
use crate::failure::ErrorKind;
use crate::journal::read;
use crate::journal::steps::Steps;
use crate::terminal::one_line;
use regex::{Regex, RegexBuilder};

/// Characters shown before and after the place.
const AROUND: usize = 60;

/// Prints at most `limit` places, the newest sessions first.
///
/// # Errors
/// When a session cannot be read, or standard output cannot be written.
pub fn search(archive: &Archive<'_>, wanted: &str, limit: usize) -> CliResult<()> {
    let pattern = RegexBuilder::new(&regex::escape(wanted)).case_insensitive(true).build();
    let pattern = pattern.map_err(|error| CliError { kind: ErrorKind::Usage, cause: error.into() })?;
    let mut found = Vec::new();
    for id in archive.store.list()? {
        let path = archive.store.journal_path(&id)?;
        let mut steps = Steps::default();
        let visited = read::visit(&path, |_, record| {
            let step = record.as_ref().map(|record| steps.next(record));
            let said = step.zip(record.as_ref().and_then(|record| said(&record.event)));
            if let Some((step, (who, text))) = said
                && let Some(place) = place(archive, &pattern, &text)
            {
                found.push(format!("{id}  step {step:<3}  {who}: {place}"));
            }
            found.len() <= limit
        });
        visited.map_err(|error| unreadable(&path, &error))?;
        if found.len() > limit {
            break;
        }
    }
    if found.is_empty() {
        return print(archive.terminal, "found in no session of this workspace\n");
    }
    if found.len() > limit {
        found.truncate(limit);
        found.push("there are more places: --limit N".to_owned());
    }
    print(archive.terminal, &found.join("\n"))
}

/// Who says what in a record.
fn said(event: &Event) -> Option<(String, String)> {
    match event {
        Event::UserMessage { text, origin } => {
            let who = if *origin == Origin::Prompt { "you" } else { "loop" };
            Some((who.to_owned(), text.clone()))
        }
        Event::History { messages } => {
            let said: Vec<&str> = messages.iter().map(|said| said.content.as_str()).collect();
            Some(("earlier".to_owned(), said.join("\n")))
        }
        Event::ModelResponse { message, .. } => Some(("model".to_owned(), message.joined_text())),
        Event::ToolEnd { name, summary, result, .. } => {
            Some((one_line(name, AROUND), format!("{summary}\n{}", result.text)))
        }
        Event::Subagent { event, .. } => said(event),
        _ => None,
    }
}

/// The first place in `text`, with what is around it, without secrets: in them nothing is found.
fn place(archive: &Archive<'_>, pattern: &Regex, text: &str) -> Option<String> {
    if !pattern.is_match(text) {
        return None;
    }
    let text = archive.redactor.text(text);
    let found = pattern.find(&text)?;
    let before: Vec<char> = text.get(..found.start())?.chars().rev().take(AROUND).collect();
    let around = before.into_iter().rev().chain(text.get(found.start()..)?.chars());
    let width = AROUND.saturating_mul(2).saturating_add(found.as_str().chars().count());
    Some(one_line(&around.take(width).collect::<String>(), usize::MAX))
}
