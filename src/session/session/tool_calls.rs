//! Selects the calls of a turn that run, and adds their results to the conversation.

use super::{Moment, NextAction, Session};
use agent_core::event::Event;
use agent_core::message::{Message, Part, ToolCall, ToolResult};
use agent_core::todo::TodoList;
use agent_llm::call_assembler::CALLS_CAP;
use agent_messages as messages;

impl Session {
    /// Returns the calls of the last turn without a result, in order.
    pub fn open_calls(&self) -> Vec<ToolCall> {
        self.pending.iter().filter(|call| !self.results.contains_key(&call.id)).cloned().collect()
    }

    /// Returns the texts of all results that are, or will be, in the conversation.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        let in_conversation =
            self.messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
                Part::ToolResult(result) => Some(result),
                Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
            });
        in_conversation.chain(self.results.values()).map(|result| result.text.as_str())
    }

    /// Returns the action for the calls of the turn: run the ready ones, pause for approval, then refuse those beyond the cap.
    pub(super) fn tools_step(&self, moment: Moment) -> NextAction {
        if let Some(refusal) = self.refuse_repeated_calls() {
            return refusal;
        }
        let affordable = self.run.spending.runnable(&self.limits.caps, self.pending.len());
        let (run, beyond) = self.pending.split_at(affordable.min(CALLS_CAP).min(self.pending.len()));
        let open = |calls: &[ToolCall]| -> Vec<ToolCall> {
            calls.iter().filter(|call| !self.results.contains_key(&call.id)).cloned().collect()
        };
        let run = open(run);
        let ready = run.iter().take_while(|call| !self.pending_approvals.is_open(&call.id));
        match ready.count() {
            _ if run.is_empty() => {}
            0 => return self.pause(moment),
            _ if self.should_pause(moment) => return self.pause(moment),
            ready => return NextAction::RunTools(run.into_iter().take(ready).collect()),
        }
        let message = if affordable > CALLS_CAP {
            messages::too_many_calls(CALLS_CAP)
        } else {
            messages::TOOL_CALLS_EXHAUSTED.to_owned()
        };
        NextAction::RefuseCalls(open(beyond), message)
    }

    pub(super) fn record_tool_end(&mut self, event: &Event) {
        let Event::ToolCallEnd { name, result, .. } = event else { return };
        if name == TodoList::TOOL && !result.is_error {
            self.todo = Some(result.text.clone());
        }
        self.tally.add_tool_end(self.tool_use_index(&result.call_id), event);
        if self.pending.iter().any(|call| call.id == result.call_id) {
            self.results.insert(result.call_id.clone(), result.clone());
        }
        if self.pending.iter().all(|call| self.results.contains_key(&call.id)) {
            self.push_results();
        }
    }

    /// Returns the position of a call in the list of tool uses: the order of the model's calls, before the calls of subagents.
    fn tool_use_index(&self, call_id: &str) -> usize {
        let earlier = self.pending.iter().take_while(|call| call.id != call_id);
        let done = earlier.filter(|call| self.results.contains_key(&call.id)).count();
        self.uses_before.saturating_add(done)
    }

    /// Adds the results of the last turn to the conversation, between the delimiters of the session. A missing result (its record was damaged) is
    /// replaced, because providers reject a call without a result.
    pub(super) fn push_results(&mut self) {
        let mut results = std::mem::take(&mut self.results);
        let delimiter = &self.delimiter;
        let mut marked = |call: ToolCall| {
            let result = results.remove(&call.id).unwrap_or_else(|| unknown_outcome(call.id));
            ToolResult { text: delimiter.wrap(&result.text), ..result }
        };
        let ordered: Vec<ToolResult> = self.pending.drain(..).map(&mut marked).collect();
        if !ordered.is_empty() {
            self.push(Message::tool_results(ordered));
            self.release_held_messages();
        }
    }
}

/// Creates the result of a call whose outcome is unknown.
pub fn unknown_outcome(call_id: String) -> ToolResult {
    ToolResult { call_id, text: messages::OUTCOME_UNKNOWN.to_owned(), is_error: true, images: Vec::new() }
}
