//! The summary that replaces removed exchanges: requested from the model, or built from the calls.

use agent_core::message::{Message, Part, Role};
use agent_core::todo::TodoList;
use agent_messages::{self as messages, STEPS_HEADING, SUMMARY_HEADING};
use agent_text::delimiter::Delimiter;
use agent_text::excerpt;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of an output shown in the request for a summary.
const OUTPUT_CHARS: usize = 300;

/// Characters of the arguments of a call shown in the request.
const ARGUMENTS_CHARS: usize = 300;

/// Characters of a message shown in the request.
const MESSAGE_CHARS: usize = 2000;

/// Characters of an earlier summary that a summary built without the model includes.
const EARLIER_CHARS: usize = 4000;

/// Lines of calls in a summary built without the model.
const MAX_LINES: usize = 60;

/// Whether `message` is a summary.
pub fn is_summary(message: &Message) -> bool {
    message.role == Role::User
        && matches!(message.parts.first(), Some(Part::Text { text }) if text.starts_with(SUMMARY_HEADING))
}

/// Creates the message that contains the summary `text`, and `todo`, the list of steps that the model has set.
pub fn message(text: &str, todo: Option<&str>) -> Arc<Message> {
    let todo = todo.map(|list| format!("\n\n{STEPS_HEADING}\n{list}")).unwrap_or_default();
    Arc::new(Message::text(Role::User, format!("{SUMMARY_HEADING}\n{text}{todo}")))
}

/// Returns the text of a summary, without the list of steps; `None` if `message` is no summary.
pub fn text_of(message: &Message) -> Option<String> {
    let whole = message.joined_text();
    let text = whole.strip_prefix(SUMMARY_HEADING).filter(|_| is_summary(message))?.trim_start();
    // Only a list that ends the text is cut: a summary by the model may quote the heading.
    let cut = text.rsplit_once(STEPS_HEADING).filter(|(_, list)| {
        let list = list.trim_start();
        TodoList::parse(list).to_string() == list
    });
    Some(cut.map_or(text, |(text, _)| text.trim_end()).to_owned())
}

/// Builds the request for a summary of `removed`, the messages to remove, in about `max_chars` characters at most; `task` is the user's task.
pub fn request(
    task: Option<&Message>,
    removed: &[Arc<Message>],
    delimiter: &Delimiter,
    max_chars: usize,
) -> Vec<Arc<Message>> {
    let task = task.map(Message::joined_text).unwrap_or_default();
    let record: String = removed.iter().map(|message| render(message, delimiter)).collect();
    let record = excerpt::by_chars(&record, max_chars);
    let text = messages::summary_request(&excerpt::by_chars(&task, MESSAGE_CHARS), &delimiter.wrap(&record));
    vec![
        Arc::new(Message::text(Role::System, messages::SUMMARY_INSTRUCTIONS)),
        Arc::new(Message::text(Role::User, text)),
    ]
}

/// Renders a message for the request.
fn render(message: &Message, delimiter: &Delimiter) -> String {
    let whole = is_summary(message);
    let part = |part: &Part| match part {
        Part::Text { text } if whole => format!("{text}\n"),
        Part::Text { text } => {
            let who = if message.role == Role::Assistant { "ASSISTANT" } else { "USER" };
            format!("{who}: {}\n", excerpt::by_chars(text, MESSAGE_CHARS))
        }
        // The text before an image describes it.
        Part::Image(_) | Part::Thinking { .. } => String::new(),
        Part::ToolCall(call) => {
            format!("CALL {} {}\n", call.name, excerpt::by_chars(&call.arguments, ARGUMENTS_CHARS))
        }
        Part::ToolResult(result) => {
            let how = if result.is_error { "FAILED" } else { "RESULT" };
            format!("{how} {}\n", excerpt::by_chars(delimiter.strip(&result.text), OUTPUT_CHARS))
        }
    };
    message.parts.iter().map(part).collect()
}

/// Builds a summary of `removed` without the model: the calls, how often each was made, and whether they failed.
pub fn without_model(removed: &[Arc<Message>]) -> String {
    let failed: BTreeMap<&str, bool> = removed
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::ToolResult(result) => Some((result.call_id.as_str(), result.is_error)),
            _ => None,
        })
        .collect();
    let mut lines: Vec<(String, u32, u32)> = Vec::new();
    for call in removed.iter().flat_map(|message| message.tool_calls()) {
        let arguments = excerpt::by_chars(&call.arguments, ARGUMENTS_CHARS / 2);
        let line = format!("{} {}", call.name, arguments.replace('\n', " "));
        let at = lines.iter().position(|(known, ..)| *known == line).unwrap_or_else(|| {
            lines.push((line, 0, 0));
            lines.len() - 1
        });
        if let Some((_, times, failures)) = lines.get_mut(at) {
            *times = times.saturating_add(1);
            let has_failed = failed.get(call.id.as_str()).copied().unwrap_or_default();
            *failures = failures.saturating_add(u32::from(has_failed));
        }
    }
    let earlier = removed.iter().find_map(|message| text_of(message));
    let earlier = earlier.map(|text| excerpt::by_chars(&text, EARLIER_CHARS).into_owned());
    messages::mechanical_summary(earlier.as_deref(), &lines, MAX_LINES)
}
