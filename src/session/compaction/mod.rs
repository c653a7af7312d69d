//! Selects and replaces the parts of a conversation that compaction removes. Exchanges stay whole, so that each result keeps its call.

pub mod summary;

use crate::conversation_images::{remove_from_result, remove_images, with_lines};
use agent_core::message::{Message, Part, Role, ToolResult};
use agent_messages as messages;
use agent_text::delimiter::Delimiter;
use agent_text::excerpt;
use agent_tools::outputs::Outputs;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Characters that remain of a shortened output.
const OUTPUT_CHARS: usize = 400;

/// Length in characters above which an output is shortened; below it, the notice about the removed part would outweigh the gain.
const LONG_OUTPUT_CHARS: usize = 1200;

/// Positions of the user prompts, which compaction never removes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptPositions {
    /// The task: the first user message.
    task: Option<usize>,
    /// The last user message.
    last: Option<usize>,
}

impl PromptPositions {
    /// Records a user message at `position`.
    pub fn record(&mut self, position: usize) {
        self.task = self.task.or(Some(position));
        self.last = Some(position);
    }

    /// Checks whether the message at `position` is one of the prompts.
    fn contains(self, position: usize) -> bool {
        Some(position) == self.task || Some(position) == self.last
    }

    /// Returns the task among `messages`.
    pub fn task(self, messages: &[Arc<Message>]) -> Option<&Message> {
        self.task.and_then(|position| messages.get(position)).map(AsRef::as_ref)
    }

    /// Returns the first user message in `messages`, and the last one if it differs.
    pub fn first_and_last(self, messages: &[Arc<Message>]) -> Vec<String> {
        let last = self.last.filter(|_| self.last != self.task);
        let positions = [self.task, last].into_iter().flatten();
        positions.filter_map(|position| messages.get(position)).map(|message| message.joined_text()).collect()
    }

    /// Shifts the positions after a message was inserted in front of all others.
    pub fn shift_by_one(&mut self) {
        for position in [&mut self.task, &mut self.last].into_iter().flatten() {
            *position = position.saturating_add(1);
        }
    }
}

/// Returns the positions at which exchanges start: the assistant messages, each followed by the results of its calls.
fn exchanges(messages: &[Arc<Message>]) -> Vec<usize> {
    let assistant = messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
    assistant.map(|(at, _)| at).collect()
}

/// Returns the range of removable messages before the last `keep` exchanges; `None` when it is empty.
pub fn before_recent(messages: &[Arc<Message>], keep: usize) -> Option<Range<usize>> {
    let begins = exchanges(messages);
    let end = *begins.get(begins.len().checked_sub(keep.max(1))?)?;
    let start = usize::from(messages.first().is_some_and(|first| first.role == Role::System));
    (start < end).then_some(start..end)
}

/// Whether replacing `range` removes anything: it contains more than the prompts that stay and a single summary.
pub fn removes_anything(messages: &[Arc<Message>], range: &Range<usize>, prompts: PromptPositions) -> bool {
    let mut removed = range.clone().filter(|at| !prompts.contains(*at)).filter_map(|at| messages.get(at));
    removed.any(|message| !summary::is_summary(message))
}

/// Returns the calls in `messages` whose outputs are long enough to shorten or, if `with_images`, have images, with the texts of
/// these outputs.
pub fn long_outputs<'a>(
    messages: &'a [Arc<Message>],
    delimiter: &Delimiter,
    with_images: bool,
) -> Vec<(&'a str, &'a str)> {
    let results = messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolResult(result) => Some((result, delimiter.strip(&result.text))),
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    });
    let long = results.filter(|(result, text)| is_long(text) || (with_images && !result.images.is_empty()));
    long.map(|(result, text)| (result.call_id.as_str(), text)).collect()
}

fn is_long(text: &str) -> bool {
    text.len() > LONG_OUTPUT_CHARS
}

/// Shortens the outputs of the calls `ids`. If `with_images`, only a line remains of each of their images.
pub fn shorten_outputs(
    messages: &mut [Arc<Message>],
    ids: &[String],
    delimiter: &Delimiter,
    with_images: bool,
) {
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let concerned = |message: &Message| {
        let mut parts = message.parts.iter();
        parts.any(|part| matches!(part, Part::ToolResult(result) if ids.contains(result.call_id.as_str())))
    };
    for message in messages.iter_mut().filter(|message| concerned(message)) {
        for part in &mut Arc::make_mut(message).parts {
            match part {
                Part::ToolResult(result) if ids.contains(result.call_id.as_str()) => {
                    shorten(result, delimiter);
                    if with_images {
                        remove_from_result(result, usize::MAX, delimiter);
                    }
                }
                _ => {}
            }
        }
    }
}

fn shorten(result: &mut ToolResult, delimiter: &Delimiter) {
    let whole = delimiter.strip(&result.text);
    if is_long(whole) {
        let cut = excerpt::by_chars(whole, OUTPUT_CHARS);
        let text = messages::output_shortened(&cut, &Outputs::name(&result.call_id));
        result.text = delimiter.wrap(&text);
    }
}

/// Replaces the messages before `message_count` with `note`, except for the system message and the prompts that stay. A line remains
/// of each of their images, in the prompts or in the note.
pub fn replace(
    messages: &mut Vec<Arc<Message>>,
    prompts: &mut PromptPositions,
    message_count: usize,
    note: Arc<Message>,
    delimiter: &Delimiter,
) {
    let rest = messages.split_off(message_count.min(messages.len()));
    let mut taken = std::mem::take(messages);
    let gone = taken.iter().enumerate().filter(|(at, _)| !prompts.contains(*at));
    let note = with_lines(note, gone.flat_map(|(_, message)| message.images()));
    remove_images(&mut taken, usize::MAX, delimiter);
    let at = |position: Option<usize>| position.and_then(|position| taken.get(position)).cloned();
    let (task, last) = (at(prompts.task), at(prompts.last));
    let moved =
        |position: usize, offset: usize| position.saturating_sub(message_count).saturating_add(offset);
    messages.extend(taken.first().filter(|first| first.role == Role::System).cloned());
    let task_position = task.is_some().then_some(messages.len());
    messages.extend(task);
    messages.push(note);
    let is_other = prompts.last != prompts.task;
    let last_position =
        last.is_some().then_some(if is_other { Some(messages.len()) } else { task_position }).flatten();
    messages.extend(last.filter(|_| is_other));
    let offset = messages.len();
    *prompts = PromptPositions {
        task: task_position.or_else(|| prompts.task.map(|position| moved(position, offset))),
        last: last_position.or_else(|| prompts.last.map(|position| moved(position, offset))),
    };
    messages.extend(rest);
}
