//! What a record shows was met with in a world.

use super::context::SimulationContext;
use crate::core::compaction::CompactionEvent;
use crate::core::event::{Event, FinishReason, MessageOrigin, Purpose};
use crate::messages;

/// Counts what `event` shows.
pub fn count(shared: &SimulationContext, event: &Event) {
    match event {
        Event::Compaction { part } => {
            if let Some(what) = compaction(part) {
                shared.count("compaction", what);
            }
        }
        Event::ModelResponse { purpose, finish, .. } => {
            answer(shared, *purpose, if *finish == FinishReason::Length { "cut" } else { "came" });
        }
        Event::ModelFailed { purpose, .. } => answer(shared, *purpose, "failed"),
        Event::ModelAbandoned { purpose, .. } => answer(shared, *purpose, "given up"),
        Event::UserMessage { origin: MessageOrigin::Breaker, text, .. } => breaker(shared, text),
        Event::ToolCallEnd { result, .. } => breaker(shared, &result.text),
        Event::UserMessage { origin: MessageOrigin::Remaining, .. } => {
            shared.count("words", "that little is left");
        }
        Event::Evaluation { result } => {
            shared.count("evaluation", if result.passed { "passed" } else { "found wanting" });
        }
        Event::Gates { results } => {
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

/// What each breaker finds, and how it says so.
pub const PATTERNS: [(&str, &str); 7] = [
    ("a call", "times in a row with the same arguments"),
    ("a cycle", "are made round after round"),
    ("errors", "calls in a row failed"),
    ("an error", "with the same kind of error"),
    ("a result", "gave the same result in"),
    ("a content", "to a content that it had before"),
    ("an announcement", messages::ANNOUNCED_ACTION),
];

/// Counts the breaker that has made the run say `text`.
fn breaker(shared: &SimulationContext, text: &str) {
    for (name, words) in PATTERNS {
        if text.contains(words) {
            shared.count("breaker", name);
        }
    }
}

/// What became of a request beside the steps.
fn answer(shared: &SimulationContext, purpose: Purpose, how: &str) {
    match purpose {
        Purpose::Step => {}
        Purpose::Closing => shared.count("closing", how),
        Purpose::Summary => shared.count("summary", how),
        Purpose::Evaluation => shared.count("evaluation", how),
    }
}

fn compaction(part: &CompactionEvent) -> Option<&'static str> {
    match part {
        CompactionEvent::Start { .. } => Some("begun"),
        CompactionEvent::Outputs { call_ids } => (!call_ids.is_empty()).then_some("outputs shortened"),
        CompactionEvent::Summary { upto: 0, .. } | CompactionEvent::LeftOut { upto: 0 } => None,
        CompactionEvent::Summary { by_model, .. } => {
            Some(if *by_model { "summed up by the model" } else { "summed up without it" })
        }
        CompactionEvent::LeftOut { .. } => Some("left out"),
        CompactionEvent::End { enough, .. } => Some(if *enough { "enough" } else { "too little" }),
    }
}
