//! Counts the situations that a simulation covers, from the events of its records.

use super::context::SimulationContext;
use agent_core::compaction::CompactionEvent;
use agent_core::event::{Event, FinishReason, MessageOrigin, Purpose};
use agent_messages as messages;

/// Counts the situation that `event` shows.
pub fn count(shared: &SimulationContext, event: &Event) {
    match event {
        Event::Compaction { part } => {
            if let Some(name) = compaction(part) {
                shared.count("compaction", name);
            }
        }
        Event::ModelResponse { purpose, finish, .. } => {
            answer(shared, *purpose, if *finish == FinishReason::Length { "cut" } else { "answered" });
        }
        Event::ModelFailed { purpose, .. } => answer(shared, *purpose, "failed"),
        Event::ModelAbandoned { purpose, .. } => answer(shared, *purpose, "abandoned"),
        Event::UserMessage { origin: MessageOrigin::Breaker, text, .. } => breaker(shared, text),
        Event::ToolCallEnd { result, .. } => breaker(shared, &result.text),
        Event::UserMessage { origin: MessageOrigin::Remaining, .. } => {
            shared.count("message", "little budget left");
        }
        Event::Evaluation { result } => {
            shared.count("evaluation", if result.passed { "passed" } else { "rejected" });
        }
        Event::ChangeReview { result } => {
            shared.count("review", if result.has_passed() { "passed" } else { "rejected" });
        }
        Event::QualityGates { results } => {
            let passed = results.iter().all(|result| result.passed);
            shared.count("gates", if passed { "passed" } else { "failed" });
        }
        Event::RunEnd { result } => {
            if let Some(limit) = result.limit {
                shared.count("limit", &format!("{limit:?}"));
            }
        }
        _ => {}
    }
}

/// Name of each breaker, and a distinctive part of its message.
pub const PATTERNS: [(&str, &str); 7] = [
    ("same call", "times in a row with the same arguments"),
    ("cycle", "are made round after round"),
    ("consecutive errors", "calls in a row failed"),
    ("same error", "with the same kind of error"),
    ("same result", "gave the same result in"),
    ("reverted edit", "times to an earlier content"),
    ("announcement", messages::ANNOUNCED_ACTION),
];

/// Counts the breaker whose message is in `text`.
fn breaker(shared: &SimulationContext, text: &str) {
    for (name, pattern) in PATTERNS {
        if text.contains(pattern) {
            shared.count("breaker", name);
        }
    }
}

/// Counts the result of a request other than a step.
fn answer(shared: &SimulationContext, purpose: Purpose, result: &str) {
    match purpose {
        Purpose::Step => {}
        Purpose::Closing => shared.count("closing", result),
        Purpose::Summary => shared.count("summary", result),
        Purpose::Evaluation => shared.count("evaluation", result),
    }
}

fn compaction(part: &CompactionEvent) -> Option<&'static str> {
    match part {
        CompactionEvent::Start { .. } => Some("started"),
        CompactionEvent::OutputsShortened { call_ids } => {
            (!call_ids.is_empty()).then_some("outputs shortened")
        }
        CompactionEvent::Summary { message_count: 0, .. }
        | CompactionEvent::MessagesDropped { message_count: 0 } => None,
        CompactionEvent::Summary { by_model, .. } => {
            Some(if *by_model { "summarized by the model" } else { "summarized without the model" })
        }
        CompactionEvent::MessagesDropped { .. } => Some("messages dropped"),
        CompactionEvent::End { enough, .. } => Some(if *enough { "enough" } else { "too little" }),
    }
}
