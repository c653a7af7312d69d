//! The figures of a session: what was used, changed and refused.

use crate::core::decision::Denial;
use crate::core::event::{BilledUsage, Event, Purpose};
use crate::core::file_change::{Change, ChangeAction, ObservedFile};
use crate::core::guardrail::TriggeredGuardrail;
use crate::core::message::ToolResult;
use crate::core::price::Usd;
use crate::core::run_result::{
    CacheUse, Cost, InstructionFile, ModifiedFile, RunResult, SubagentUse, ToolUse,
};
use crate::core::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest line of an error that the result lists, in characters.
const MAX_ERROR_CHARS: usize = 200;

/// Changes of a prefix that the result lists: a session in which it changes with every step shows it early.
const MAX_PREFIX_CHANGES: usize = 100;

/// Guardrails that the result lists: one that speaks often is known by then.
const MAX_GUARDRAILS: usize = 100;

/// Counters and lists that only grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Model calls that were part of the work.
    pub steps: u32,
    /// Requests sent, retries and closing included.
    pub requests: u32,
    /// Tool calls the model made.
    pub tool_calls: u32,
    /// Tokens.
    pub usage: Usage,
    /// US dollars by what they were spent for, as far as known.
    pub costs: BTreeMap<String, Usd>,
    /// Answers of which nobody knows what they cost.
    pub unpriced: u32,
    /// Whether a request gave no answer that a provider may nevertheless bill, and said nothing of it.
    pub unreported: bool,
    /// Answers that were kept from earlier requests.
    pub kept_answers: u32,
    /// How often the conversation was made shorter.
    pub compactions: u32,
    /// What requests began with and then no longer.
    pub prefix_changes: Vec<String>,
    /// Tool calls with their outcome.
    pub tools_used: Vec<ToolUse>,
    /// Files changed.
    pub files: Vec<ModifiedFile>,
    /// The project's instructions.
    pub instructions: Option<InstructionFile>,
    /// Calls refused in this run.
    pub denials: Vec<Denial>,
    /// Guardrails on the conversation that spoke in this run.
    pub guardrails: Vec<TriggeredGuardrail>,
    /// Subagents that were asked.
    pub subagents: Vec<SubagentUse>,
}

/// What the result calls the costs of subagents.
const SUBAGENT: &str = "subagent";

impl Tally {
    /// Notes what an answer cost.
    pub fn add_cost(&mut self, purpose: Purpose, cost: Option<Usd>) {
        self.cost_of(source(purpose), cost);
    }

    fn cost_of(&mut self, source: &str, cost: Option<Usd>) {
        match cost {
            Some(cost) => *self.costs.entry(source.to_owned()).or_default() += cost,
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }

    /// What the session cost, as far as it was reported: nothing known when an answer of it has no price, or none came
    /// and there is no price either, as `priced` says, or something that may be billed went unreported.
    pub fn total(&self, priced: bool) -> Cost {
        let total = self.costs.values().fold(Usd::ZERO, |sum, cost| sum + *cost);
        let known = self.unpriced == 0 && (priced && !self.unreported || !self.costs.is_empty());
        Cost { total_usd: known.then_some(total), by_source: self.costs.clone() }
    }

    /// What caches did.
    pub fn cache(&self) -> CacheUse {
        CacheUse {
            read_tokens: self.usage.cached_read,
            write_tokens: self.usage.cached_write,
            answers: self.kept_answers,
            prefix_changes: self.prefix_changes.clone(),
        }
    }

    /// Notes what requests no longer begin with.
    pub fn add_prefix_changes(&mut self, changed: &[String]) {
        let room = MAX_PREFIX_CHANGES.saturating_sub(self.prefix_changes.len());
        self.prefix_changes.extend(changed.iter().take(room).cloned());
    }

    /// Notes a guardrail that spoke.
    pub fn add_guardrail(&mut self, triggered: &TriggeredGuardrail) {
        if self.guardrails.len() < MAX_GUARDRAILS {
            self.guardrails.push(triggered.clone());
        }
    }

    /// Notes the outcome of one tool call, as the use number `place` (from 0).
    pub fn add_tool_use(&mut self, place: usize, name: &str, path: Option<String>, result: &ToolResult) {
        let error = result.is_error.then(|| result.summary_line().chars().take(MAX_ERROR_CHARS).collect());
        let tool_use = ToolUse { name: name.to_owned(), success: !result.is_error, path, error };
        self.tools_used.insert(place.min(self.tools_used.len()), tool_use);
    }

    /// Notes what happened in the session of the subagent that `call_id` asked; how many tool calls that were.
    pub fn add_subagent_event(&mut self, call_id: &str, event: &Event) -> u32 {
        match event {
            Event::RunStart { agent, model, .. } => self.subagents.push(SubagentUse {
                call_id: call_id.to_owned(),
                agent: agent.clone(),
                model: model.clone(),
                ..SubagentUse::default()
            }),
            Event::RequestSent { .. } => self.requests = self.requests.saturating_add(1),
            Event::KeptAnswer => self.kept_answers = self.kept_answers.saturating_add(1),
            Event::Retry { billed: Some(BilledUsage { usage, cost_usd }), .. }
            | Event::ModelFailed { billed: Some(BilledUsage { usage, cost_usd }), .. } => {
                self.usage += *usage;
                self.cost_of(SUBAGENT, *cost_usd);
            }
            Event::ModelResponse { usage, cost_usd, message, finish, .. } => {
                self.usage += usage.unwrap_or_default();
                self.cost_of(SUBAGENT, *cost_usd);
                let calls = if finish.is_usable() { message.tool_calls().count() } else { 0 };
                let calls = u32::try_from(calls).unwrap_or(u32::MAX);
                self.tool_calls = self.tool_calls.saturating_add(calls);
                return calls;
            }
            Event::ToolCallEnd { name, result, changed, seen, denial, .. } => {
                self.add_tool_use(usize::MAX, name, listed_path(changed, seen), result);
                for change in changed {
                    self.add_change(change);
                }
                self.denials.extend(denial.clone());
            }
            Event::Guardrail { triggered } => self.add_guardrail(triggered),
            Event::RunEnd { result } => self.subagent_ended(call_id, result),
            _ => {}
        }
        0
    }

    fn subagent_ended(&mut self, call_id: &str, result: &RunResult) {
        if let Some(subagent) = self.subagents.iter_mut().rfind(|subagent| subagent.call_id == call_id) {
            subagent.status = Some(result.status);
            subagent.stop_reason = result.stop_reason;
            subagent.steps = result.steps;
            subagent.tool_calls = result.tool_calls;
            subagent.cost_usd = result.cost.total_usd;
        }
    }

    /// Notes a changed file; several changes of one file add up to what happened over all.
    pub fn add_change(&mut self, change: &Change) {
        let Some(at) = self.files.iter().position(|file| file.path == change.path) else {
            let (path, action, by) = (change.path.clone(), change.action, change.by);
            self.files.push(ModifiedFile { path, action, by });
            return;
        };
        let Some(file) = self.files.get_mut(at) else { return };
        match (file.action, change.action) {
            (ChangeAction::Created, ChangeAction::Deleted) => {
                self.files.remove(at);
            }
            (ChangeAction::Created, ChangeAction::Created | ChangeAction::Modified) => {}
            (ChangeAction::Deleted, ChangeAction::Created) => file.action = ChangeAction::Modified,
            (ChangeAction::Modified | ChangeAction::Deleted, action) => file.action = action,
        }
    }
}

/// The file that a call is listed with.
pub fn listed_path(changed: &[Change], seen: &[ObservedFile]) -> Option<String> {
    changed.first().map(|change| &change.path).or_else(|| seen.first().map(|seen| &seen.path)).cloned()
}

/// What the result calls the costs of a purpose.
fn source(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Step => "agent",
        Purpose::Closing => "closing",
        Purpose::Summary => "summary",
        Purpose::Evaluation => "evaluation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::file_change::{ChangedBy, FileState};

    fn after(actions: &[ChangeAction]) -> Vec<ChangeAction> {
        let mut tally = Tally::default();
        for action in actions {
            let (none, some) = (FileState::Absent, FileState::Unknown);
            let (was, became) = match action {
                ChangeAction::Created => (&none, &some),
                ChangeAction::Modified => (&some, &some),
                ChangeAction::Deleted => (&some, &none),
            };
            tally.add_change(&Change::between("a", ChangedBy::Tool, was, became));
        }
        tally.files.iter().map(|file| file.action).collect()
    }

    #[test]
    fn several_changes_of_a_file_add_up() {
        use ChangeAction::{Created, Deleted, Modified};
        assert_eq!(after(&[Created, Modified]), [Created]);
        assert_eq!(after(&[Created, Deleted]), []);
        assert_eq!(after(&[Modified, Deleted]), [Deleted]);
        assert_eq!(after(&[Deleted, Created]), [Modified]);
        assert_eq!(after(&[Modified, Modified]), [Modified]);
    }
}
