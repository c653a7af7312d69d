//! Makes a conversation shorter: what can go, and what it becomes. Exchanges stay whole, so that no result loses its call.

pub mod summary;

use crate::core::message::{Message, Part, Role, ToolResult};
use crate::messages;
use crate::text::delimiter::Delimiter;
use crate::text::excerpt;
use crate::tools::outputs::Outputs;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Characters that stay of an output that is shortened.
const OUTPUT_CHARS: usize = 400;

/// Characters of an output from which on it is worth shortening: what is said about the rest takes room too.
const LONG_OUTPUT_CHARS: usize = 1200;

/// The messages that stay whatever is left out: where they stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPositions {
    /// The task: what the person said first.
    task: Option<usize>,
    /// What the person said last.
    last: Option<usize>,
}

impl PromptPositions {
    /// The person has said what stands at `place`.
    pub fn record(&mut self, place: usize) {
        self.task = self.task.or(Some(place));
        self.last = Some(place);
    }

    /// The task among `messages`.
    pub fn task(self, messages: &[Arc<Message>]) -> Option<&Message> {
        self.task.and_then(|place| messages.get(place)).map(AsRef::as_ref)
    }

    /// What the person said in `messages` first, and last where that is something else.
    pub fn first_and_last(self, messages: &[Arc<Message>]) -> Vec<String> {
        let last = self.last.filter(|_| self.last != self.task);
        let places = [self.task, last].into_iter().flatten();
        places.filter_map(|place| messages.get(place)).map(|message| message.joined_text()).collect()
    }

    /// A message was put in front of all others.
    pub fn shift_by_one(&mut self) {
        for place in [&mut self.task, &mut self.last].into_iter().flatten() {
            *place = place.saturating_add(1);
        }
    }
}

/// Where the exchanges of a conversation begin: its answers with calls, each of which goes on with their results.
fn exchanges(messages: &[Arc<Message>]) -> Vec<usize> {
    let calls = |message: &Message| message.role == Role::Assistant && message.tool_calls().next().is_some();
    messages.iter().enumerate().filter(|(_, message)| calls(message)).map(|(at, _)| at).collect()
}

/// The messages before the last `keep` exchanges, from the first that may go; none when nothing comes before them.
pub fn before_recent(messages: &[Arc<Message>], keep: usize) -> Option<Range<usize>> {
    let begins = exchanges(messages);
    let end = *begins.get(begins.len().checked_sub(keep.max(1))?)?;
    let start = usize::from(messages.first().is_some_and(|first| first.role == Role::System));
    (start < end).then_some(start..end)
}

/// Whether something of `range` goes when it is replaced: more than the prompts that stay, and a summary alone.
pub fn removes_anything(messages: &[Arc<Message>], range: &Range<usize>, prompts: PromptPositions) -> bool {
    let stays = |at: usize| Some(at) == prompts.task || Some(at) == prompts.last;
    let mut going = range.clone().filter(|at| !stays(*at)).filter_map(|at| messages.get(at));
    going.any(|message| !summary::is_summary(message))
}

/// The calls in `messages` whose outputs are worth shortening, with these outputs.
pub fn long_outputs<'a>(messages: &'a [Arc<Message>], mark: &Delimiter) -> Vec<(&'a str, &'a str)> {
    let results = messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolResult(result) => Some((result.call_id.as_str(), mark.strip(&result.text))),
        Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    });
    results.filter(|(_, text)| text.len() > LONG_OUTPUT_CHARS).collect()
}

/// Shortens the outputs of the calls `ids`.
pub fn shorten_outputs(messages: &mut [Arc<Message>], ids: &[String], mark: &Delimiter) {
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let concerned = |message: &Message| {
        let mut parts = message.parts.iter();
        parts.any(|part| matches!(part, Part::ToolResult(result) if ids.contains(result.call_id.as_str())))
    };
    for message in messages.iter_mut().filter(|message| concerned(message)) {
        for part in &mut Arc::make_mut(message).parts {
            match part {
                Part::ToolResult(result) if ids.contains(result.call_id.as_str()) => shorten(result, mark),
                _ => {}
            }
        }
    }
}

fn shorten(result: &mut ToolResult, mark: &Delimiter) {
    let whole = mark.strip(&result.text);
    let cut = excerpt::by_chars(whole, OUTPUT_CHARS);
    let text = messages::output_shortened(&cut, whole.chars().count(), &Outputs::name(&result.call_id));
    result.text = mark.wrap(&text);
}

/// Puts `notes` in the place of the messages before `upto`, but for the instructions and the prompts that stay.
pub fn replace(
    messages: &mut Vec<Arc<Message>>,
    prompts: &mut PromptPositions,
    upto: usize,
    notes: Vec<Arc<Message>>,
) {
    let rest = messages.split_off(upto.min(messages.len()));
    let taken = std::mem::take(messages);
    let at = |place: Option<usize>| place.and_then(|place| taken.get(place)).cloned();
    let (task, last) = (at(prompts.task), at(prompts.last));
    let moved = |place: usize, kept: usize| place.saturating_sub(upto).saturating_add(kept);
    messages.extend(taken.first().filter(|first| first.role == Role::System).cloned());
    let task_place = task.is_some().then_some(messages.len());
    messages.extend(task);
    messages.extend(notes);
    let is_other = prompts.last != prompts.task;
    let last_place =
        last.is_some().then_some(if is_other { Some(messages.len()) } else { task_place }).flatten();
    messages.extend(last.filter(|_| is_other));
    let kept = messages.len();
    *prompts = PromptPositions {
        task: task_place.or_else(|| prompts.task.map(|place| moved(place, kept))),
        last: last_place.or_else(|| prompts.last.map(|place| moved(place, kept))),
    };
    messages.extend(rest);
}

/// The summary among `messages`, where there is one.
pub fn earlier_summary(messages: &[Arc<Message>]) -> Option<Arc<Message>> {
    messages.iter().find(|message| summary::is_summary(message)).cloned()
}
