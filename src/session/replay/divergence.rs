//! Compares the events of a replayed run with the recorded ones.

use agent_core::compaction::CompactionEvent;
use agent_core::event::{Event, Record};
use serde_json::Value;

/// Characters shown of a value.
const VALUE_CHARS: usize = 200;

/// The first point at which a replayed run differs from its journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// The recorded event.
    pub recorded: Record,
    /// The event that the loop emits, or is about to cause, instead.
    pub actual: Event,
}

/// The first difference between two events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The path of the value, keys separated by dots; empty when the types of the events differ.
    pub place: String,
    /// The recorded value, as bounded JSON.
    pub recorded: String,
    /// The present value, as bounded JSON.
    pub actual: String,
}

/// Whether an event only reports an observation, on which no decision depends. A replay has no tools to offer and no provider cache, so it cannot
/// repeat these; the journal's are passed as they are.
pub fn is_observation(event: &Event) -> bool {
    matches!(event, Event::Notice { .. } | Event::RequestPrefix { .. })
}

/// Whether `now` equals `then`, except for values that cannot be the same:
///
/// - `latency_ms` of an answer: it is measured before the event gets its time, by a clock that is not recorded;
/// - `session_id` of a result: an imported or forked session has its own;
/// - `context` of a result, and the `tokens` of a compaction: estimates from the length of texts, which redaction changes;
/// - a `digest` that is missing in the journal: redaction removed it together with the texts (`sessions export --redact`).
pub fn is_equivalent(then: &Event, now: &Event) -> bool {
    then == now || *then == with_recorded_values(then, now)
}

fn with_recorded_values(then: &Event, now: &Event) -> Event {
    let mut now = now.clone();
    match (then, &mut now) {
        (Event::ModelResponse { latency_ms, .. }, Event::ModelResponse { latency_ms: measured, .. }) => {
            *measured = *latency_ms;
        }
        (Event::RunEnd { result }, Event::RunEnd { result: made }) => {
            made.session_id.clone_from(&result.session_id);
            made.context = result.context;
        }
        (Event::StepStart { digest: None, .. }, Event::StepStart { digest, .. }) => *digest = None,
        (
            Event::Compaction { part: CompactionEvent::Start { tokens, .. } },
            Event::Compaction { part: CompactionEvent::Start { tokens: estimated, .. } },
        )
        | (
            Event::Compaction { part: CompactionEvent::End { tokens, .. } },
            Event::Compaction { part: CompactionEvent::End { tokens: estimated, .. } },
        ) => *estimated = *tokens,
        _ => {}
    }
    now
}

impl Divergence {
    /// Returns the first difference between the two events.
    pub fn difference(&self) -> Difference {
        let json = |event: &Event| serde_json::to_value(event).unwrap_or_default();
        let then = &self.recorded.event;
        let (then, now) = (json(then), json(&with_recorded_values(then, &self.actual)));
        if then.get("type") != now.get("type") {
            return Difference { place: String::new(), recorded: shown(&then), actual: shown(&now) };
        }
        let (mut place, mut values) = (Vec::new(), (&then, &now));
        while let Some((key, one, other)) = first_difference(values.0, values.1) {
            place.push(key);
            values = (one, other);
        }
        Difference { place: place.join("."), recorded: shown(values.0), actual: shown(values.1) }
    }
}

/// Returns the path and the values of the first difference.
fn first_difference<'a>(one: &'a Value, other: &'a Value) -> Option<(String, &'a Value, &'a Value)> {
    const NOTHING: &Value = &Value::Null;
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys = one.keys().chain(other.keys());
            let key = keys.find(|key| one.get(*key) != other.get(*key))?;
            Some((key.clone(), one.get(key).unwrap_or(NOTHING), other.get(key).unwrap_or(NOTHING)))
        }
        (Value::Array(one), Value::Array(other)) => {
            let at = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at))?;
            Some((at.to_string(), one.get(at).unwrap_or(NOTHING), other.get(at).unwrap_or(NOTHING)))
        }
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let mut shown: String = text.chars().take(VALUE_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::{EVENT_SCHEMA_VERSION, MessageOrigin, Purpose};

    fn difference(then: Event, now: Event) -> Difference {
        let recorded = Record {
            v: EVENT_SCHEMA_VERSION,
            seq: 1,
            run: String::new(),
            step: 1,
            wall_ms: 0,
            mono_us: 0,
            event: then,
        };
        Divergence { recorded, actual: now }.difference()
    }

    fn asked(digest: Option<&str>) -> Event {
        Event::StepStart { purpose: Purpose::Step, messages: 2, digest: digest.map(str::to_owned) }
    }

    #[test]
    fn the_path_of_the_first_difference_is_returned() {
        let found = difference(asked(Some("a")), asked(Some("b")));
        let (place, recorded, now) = ("digest".into(), "\"a\"".into(), "\"b\"".into());
        assert_eq!(found, Difference { place, recorded, actual: now });
        let found = difference(asked(None), Event::StepEnd);
        assert_eq!((found.place.as_str(), found.actual.as_str()), ("", "{\"type\":\"step_end\"}"));
    }

    #[test]
    fn only_a_redacted_digest_may_differ() {
        assert!(is_equivalent(&asked(None), &asked(Some("b"))));
        assert!(!is_equivalent(&asked(Some("a")), &asked(Some("b"))));
        assert!(!is_equivalent(&asked(Some("a")), &asked(None)));
    }

    #[test]
    fn estimates_of_a_compaction_may_differ_but_not_its_result() {
        let end = |tokens, enough| Event::Compaction { part: CompactionEvent::End { tokens, enough } };
        let start = |tokens, window| Event::Compaction {
            part: CompactionEvent::Start { tokens, window, requested: false },
        };
        assert!(is_equivalent(&end(10_239, true), &end(10_233, true)));
        assert!(!is_equivalent(&end(10_239, true), &end(10_239, false)));
        assert!(is_equivalent(&start(10_239, 9_000), &start(10_233, 9_000)));
        assert!(!is_equivalent(&start(10_239, 9_000), &start(10_239, 8_000)));
    }

    #[test]
    fn a_long_value_is_cut() {
        let said = |text: String| Event::user_message(text, MessageOrigin::Prompt);
        let found = difference(said("a".repeat(1000)), said("b".repeat(1000)));
        assert_eq!(found.recorded.chars().count(), VALUE_CHARS + 1);
    }
}
