//! Turns of each script that a session has played, folded from its journal.

use agent_core::event::Event;
use agent_core::stop_reason::StopReason;
use std::collections::{BTreeMap, BTreeSet};

/// What the name of a scripted model begins with.
const SCRIPTED: &str = "scripted:";

/// State folded from a journal: the number of turns that each scripted model has played, answers and failures, for the session and its
/// subagents. A request that was interrupted before its answer has played none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlayedTurns {
    /// The turns by the name of the model.
    played: BTreeMap<String, usize>,
    /// The scripted model that a subagent uses, by the id of its call; the empty id stands for the session itself.
    models: BTreeMap<String, String>,
    /// Who waits for an answer, by these ids.
    waiting: BTreeSet<String>,
}

impl PlayedTurns {
    /// Returns the number of turns that `model` has played.
    pub fn of(&self, model: &str) -> usize {
        self.played.get(model).copied().unwrap_or_default()
    }

    /// Applies an event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Subagent { call_id, event, .. } => self.apply_of(call_id, event),
            Event::RunStart { .. } => {
                // The requests of a process that was killed got no answers.
                self.waiting.clear();
                self.models.clear();
                self.apply_of("", event);
            }
            _ => self.apply_of("", event),
        }
    }

    fn apply_of(&mut self, id: &str, event: &Event) {
        match event {
            Event::RunStart { model, .. } | Event::ModelSwitched { to: model, .. } => {
                self.models.remove(id);
                if model.starts_with(SCRIPTED) {
                    self.models.insert(id.to_owned(), model.clone());
                }
            }
            Event::RequestSent { .. } if self.models.contains_key(id) => {
                self.waiting.insert(id.to_owned());
            }
            Event::ModelAbandoned { reason: StopReason::UserInterrupt, .. } => {
                self.waiting.remove(id);
            }
            Event::Retry { .. }
            | Event::ModelResponse { .. }
            | Event::ModelFailed { .. }
            | Event::ModelAbandoned { .. } => {
                if let Some(model) = self.models.get(id).filter(|_| self.waiting.remove(id)) {
                    *self.played.entry(model.clone()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::{FinishReason, Purpose};
    use agent_core::failure::{Failure, FailureKind};
    use agent_core::message::{Message, Role};

    fn started(model: &str) -> Event {
        let json = serde_json::json!({"type": "run_start", "agent": "a", "model": model, "mode": "yolo", "tools": [],
            "max_steps": 1, "resumed": false, "sandbox": "none"});
        serde_json::from_value(json).unwrap()
    }

    fn answered() -> Event {
        Event::ModelResponse {
            purpose: Purpose::Step,
            message: Message::text(Role::Assistant, "a"),
            finish: FinishReason::Stop,
            usage: None,
            cost_usd: None,
            latency_ms: 1,
        }
    }

    fn sent() -> Event {
        Event::RequestSent { attempt: 1 }
    }

    fn abandoned(reason: StopReason) -> Event {
        Event::ModelAbandoned { purpose: Purpose::Step, reason }
    }

    fn of_subagent(event: Event) -> Event {
        Event::Subagent { call_id: "c".into(), event: Box::new(event), budget_share: None }
    }

    // Fault C1: the answers of a session, and its failed requests, are turns that were played.
    #[test]
    fn answers_and_failures_are_played_turns_and_interrupted_requests_are_not() {
        let failure = Failure { kind: FailureKind::Server, message: "no".into(), retryable: false };
        let switched = Event::ModelSwitched {
            from: "scripted:a".into(),
            to: "scripted:b".into(),
            failure: failure.clone(),
        };
        let events = [
            started("scripted:a"),
            sent(),
            answered(),
            sent(),
            abandoned(StopReason::UserInterrupt),
            sent(),
            abandoned(StopReason::Timeout),
            sent(),
            // Killed here.
            started("scripted:a"),
            // An answer of the cache.
            answered(),
            of_subagent(started("scripted:a")),
            sent(),
            of_subagent(sent()),
            of_subagent(answered()),
            Event::ModelFailed { purpose: Purpose::Step, failure, billed: None },
            switched,
            sent(),
            answered(),
            started("openai/x"),
            sent(),
            answered(),
        ];
        let mut turns = PlayedTurns::default();
        for event in &events {
            turns.apply(event);
        }
        let played = ["scripted:a", "scripted:b", "openai/x"].map(|model| turns.of(model));
        assert_eq!(played, [4, 1, 0]);
    }
}
