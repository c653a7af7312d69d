//! Counters and lists of a session for its result: usage, cost, calls, changed files, refusals.

use agent_core::decision::Denial;
use agent_core::event::{BilledUsage, Event, Purpose};
use agent_core::file_change::{Change, ChangeAction, ObservedFile};
use agent_core::guardrail::TriggeredGuardrail;
use agent_core::image::Image;
use agent_core::price::Usd;
use agent_core::run_result::{
    CacheUse, Cost, InstructionFile, ModifiedFile, RunResult, SubagentUse, ToolUse,
};
use agent_core::usage::Usage;
use std::collections::BTreeMap;

/// Characters of the longest error line listed in the result.
const MAX_ERROR_CHARS: usize = 200;

/// Number of prefix changes listed in the result.
const MAX_PREFIX_CHANGES: usize = 100;

/// Number of triggered guardrails listed in the result.
const MAX_GUARDRAILS: usize = 100;

/// Counters and lists of a session; they only grow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Model calls that were steps of the work.
    pub steps: u32,
    /// Requests sent, including retries and the closing.
    pub requests: u32,
    /// Tool calls made by the model.
    pub tool_calls: u32,
    /// Tokens used.
    pub usage: Usage,
    /// Known costs in US dollars by source.
    pub costs: BTreeMap<String, Usd>,
    /// Number of answers whose cost is unknown.
    pub unpriced: u32,
    /// Whether a request failed without reported usage although the provider may bill it.
    pub unreported: bool,
    /// Number of answers taken from the answer cache.
    pub cached_answers: u32,
    /// Number of compactions.
    pub compactions: u32,
    /// Changes of the request prefix.
    pub prefix_changes: Vec<String>,
    /// Tool calls with their outcome.
    pub tools_used: Vec<ToolUse>,
    /// Changed files.
    pub files: Vec<ModifiedFile>,
    /// Hashes of the contents of changed files before the session, by path.
    pub contents_before: BTreeMap<String, String>,
    /// Instruction files in the conversation.
    pub instruction_files: Vec<InstructionFile>,
    /// Images added to the conversation.
    pub images: Vec<Image>,
    /// Calls refused in this run.
    pub denials: Vec<Denial>,
    /// Guardrails on the conversation that triggered in this run.
    pub guardrails: Vec<TriggeredGuardrail>,
    /// Subagents that were started.
    pub subagents: Vec<SubagentUse>,
}

/// Name of the subagents' costs in the result.
const SUBAGENT: &str = "subagent";

impl Tally {
    /// Adds the tokens and the cost of a request.
    pub fn add_request(&mut self, purpose: Purpose, usage: Usage, cost: Option<Usd>) {
        self.add_request_of(source(purpose), usage, cost);
    }

    fn add_request_of(&mut self, source: &str, usage: Usage, cost: Option<Usd>) {
        self.usage += usage;
        match cost {
            Some(cost) => *self.costs.entry(source.to_owned()).or_default() += cost,
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }

    /// Returns the total cost. It is unknown when an answer has no price, when there was no answer and `priced` is false, or when a billable
    /// request was not reported.
    pub fn total(&self, priced: bool) -> Cost {
        let total = self.costs.values().fold(Usd::ZERO, |sum, cost| sum + *cost);
        let known = self.unpriced == 0 && (priced && !self.unreported || !self.costs.is_empty());
        Cost { total_usd: known.then_some(total), by_source: self.costs.clone() }
    }

    /// Returns the use of the provider's prompt cache and of the answer cache.
    pub fn cache(&self) -> CacheUse {
        CacheUse {
            read_tokens: self.usage.cached_read,
            write_tokens: self.usage.cached_write,
            answers: self.cached_answers,
            prefix_changes: self.prefix_changes.clone(),
        }
    }

    /// Adds an instruction file, or replaces its earlier version.
    pub fn add_instructions(&mut self, file: &InstructionFile) {
        self.instruction_files.retain(|known| known.path != file.path);
        self.instruction_files.push(file.clone());
    }

    /// Returns the innermost instruction file of the project that the system message contains.
    pub fn project_instructions(&self) -> Option<&InstructionFile> {
        self.instruction_files.iter().rfind(|file| !file.is_nested() && !file.is_of_user())
    }

    /// Adds changes of the request prefix.
    pub fn add_prefix_changes(&mut self, changed: &[String]) {
        let room = MAX_PREFIX_CHANGES.saturating_sub(self.prefix_changes.len());
        self.prefix_changes.extend(changed.iter().take(room).cloned());
    }

    /// Adds a triggered guardrail.
    pub fn add_guardrail(&mut self, triggered: &TriggeredGuardrail) {
        if self.guardrails.len() < MAX_GUARDRAILS {
            self.guardrails.push(triggered.clone());
        }
    }

    /// Adds the end of a tool call, whose outcome is inserted at `position` (from 0).
    pub fn add_tool_end(&mut self, position: usize, event: &Event) {
        let Event::ToolCallEnd { name, result, changed, seen, denial, .. } = event else { return };
        let error = result.is_error.then(|| result.summary_line().chars().take(MAX_ERROR_CHARS).collect());
        let path = listed_path(changed, seen);
        let tool_use = ToolUse { name: name.clone(), success: !result.is_error, path, error };
        self.tools_used.insert(position.min(self.tools_used.len()), tool_use);
        self.add_changes(changed);
        self.denials.extend(denial.clone());
    }

    /// Adds an event of the subagent that `call_id` started, and returns the number of tool calls in it.
    pub fn add_subagent_event(&mut self, call_id: &str, event: &Event) -> u32 {
        match event {
            Event::RunStart { agent, model, .. } => self.subagents.push(SubagentUse {
                call_id: call_id.to_owned(),
                agent: agent.clone(),
                model: model.clone(),
                ..SubagentUse::default()
            }),
            Event::RequestSent { .. } => self.requests = self.requests.saturating_add(1),
            Event::CachedAnswer => self.cached_answers = self.cached_answers.saturating_add(1),
            Event::Retry { billed: Some(BilledUsage { usage, cost_usd }), .. }
            | Event::ModelFailed { billed: Some(BilledUsage { usage, cost_usd }), .. } => {
                self.add_request_of(SUBAGENT, *usage, *cost_usd);
            }
            Event::ModelResponse { usage, cost_usd, message, finish, .. } => {
                self.add_request_of(SUBAGENT, usage.unwrap_or_default(), *cost_usd);
                let calls = if finish.is_usable() { message.tool_calls().count() } else { 0 };
                let calls = u32::try_from(calls).unwrap_or(u32::MAX);
                self.tool_calls = self.tool_calls.saturating_add(calls);
                return calls;
            }
            Event::ToolCallEnd { .. } => self.add_tool_end(usize::MAX, event),
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

    /// Adds changed files.
    pub fn add_changes(&mut self, changes: &[Change]) {
        for change in changes {
            self.add_change(change);
        }
    }

    /// Adds a changed file; several changes of one file are merged.
    pub fn add_change(&mut self, change: &Change) {
        let Some(at) = self.files.iter().position(|file| file.path == change.path) else {
            let (path, action, by) = (change.path.clone(), change.action, change.by);
            self.files.push(ModifiedFile { path, action, by, lines: None });
            self.contents_before.extend(change.before.clone().map(|hash| (change.path.clone(), hash)));
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

/// Returns the path that is listed with a call.
fn listed_path(changed: &[Change], seen: &[ObservedFile]) -> Option<String> {
    changed.first().map(|change| &change.path).or_else(|| seen.first().map(|seen| &seen.path)).cloned()
}

/// Returns the name of a purpose's costs in the result.
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
    use agent_core::file_change::{ChangedBy, FileState};

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
