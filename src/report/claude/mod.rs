//! The events of runs as the messages that `@anthropic-ai/claude-agent-sdk` reads.
//!
//! Source of the format: the types of `@anthropic-ai/claude-agent-sdk` 0.3.331 (`sdk.d.ts`). Each message also gets a `uuid` and the
//! `session_id` where it is sent.

mod pieces;
mod result;

use agent_config::claude_names::names;
use agent_core::event::{Event, FinishReason, NoticeLevel, Record};
use agent_core::failure::FailureKind;
use agent_core::message::{CallKey, Message, Part, ToolCall, ToolResult};
use agent_core::usage::Usage;
use agent_messages as messages;
use pieces::Pieces;
use result::{Totals, usage};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

/// What `system/init` reports besides the run.
#[derive(Debug, Clone, Default)]
pub struct InitInfo {
    /// The workspace.
    pub cwd: PathBuf,
    /// Name of the permission mode.
    pub permission_mode: String,
    /// Names of the MCP servers.
    pub servers: Vec<String>,
    /// Whether the key of Anthropic's variable is used.
    pub has_key: bool,
}

/// A tool call as the client sees it.
#[derive(Debug, Clone)]
pub struct ShownCall {
    /// Its id, which is unique in the session.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments.
    pub input: Value,
}

/// Translates the events of the runs of one session.
#[derive(Debug, Default)]
pub struct ClaudeEvents {
    init: InitInfo,
    /// Translates streamed pieces; absent if the client takes none.
    pieces: Option<Pieces>,
    model: String,
    /// The calls of the session and its subagents.
    calls: HashMap<CallKey, ShownCall>,
    ids: BTreeSet<String>,
    denials: Vec<Value>,
    finish: Option<&'static str>,
    /// Messages of the model in the session.
    answers: u64,
    window: Option<u64>,
    /// The models of subagents, by the calls that started them.
    subagent_models: HashMap<String, String>,
    totals: Totals,
}

impl ClaudeEvents {
    /// Creates the translation; with `partial` for a client that takes streamed pieces.
    pub fn new(partial: bool) -> Self {
        Self { pieces: partial.then(Pieces::default), ..Self::default() }
    }

    /// Prepares the translation of the next run.
    pub fn begin(&mut self, init: InitInfo) {
        self.init = init;
        (self.denials, self.finish) = (Vec::new(), None);
        self.totals.begin();
    }

    /// Returns a call as the client has seen it.
    pub fn call(&self, call: &CallKey) -> Option<&ShownCall> {
        self.calls.get(call)
    }

    /// Returns the messages for an event.
    pub fn messages(&mut self, record: &Record) -> Vec<Value> {
        self.count(&record.event, None);
        match &record.event {
            Event::RunStart { model, tools, bounds, .. } => {
                shown_model(model).clone_into(&mut self.model);
                let first = bounds.as_ref().and_then(|bounds| bounds.limits.models.first.window);
                self.window = first.map(|window| window.tokens);
                vec![self.init_message(model, tools)]
            }
            Event::TextDelta { text } => self.piece("text", text),
            Event::ThinkingDelta { text } => self.piece("thinking", text),
            Event::ModelResponse { purpose, message, finish, usage, latency_ms, .. }
                if !purpose.is_internal() =>
            {
                self.totals.answer(*latency_ms);
                self.finish = Some(stop_reason(finish));
                self.answer(message, finish, usage.unwrap_or_default(), None)
            }
            Event::ToolCallEnd { result, denial, .. } => {
                vec![self.call_ended(result, denial.is_some(), None)]
            }
            Event::Subagent { call_id, event, .. } => self.of_subagent(call_id, event),
            event => self.report(event),
        }
    }

    /// Counts what an event has used; `parent` is the call of the subagent that it belongs to.
    fn count(&mut self, event: &Event, parent: Option<&str>) {
        let (usage, cost) = match event {
            Event::ModelResponse { usage, cost_usd, .. } => (*usage, *cost_usd),
            Event::Retry { billed: Some(billed), .. } | Event::ModelFailed { billed: Some(billed), .. } => {
                (Some(billed.usage), billed.cost_usd)
            }
            Event::Subagent { call_id, event, .. } => return self.count(event, Some(call_id)),
            Event::RunStart { model, .. } => {
                let model = shown_model(model).to_owned();
                if let Some(call) = parent {
                    self.subagent_models.insert(call.to_owned(), model);
                }
                return;
            }
            _ => return,
        };
        match parent {
            None => {
                self.totals.add_to_turn(usage);
                self.totals.add(&self.model, usage, cost, self.window);
            }
            Some(call) => {
                let model = self.subagent_models.get(call).unwrap_or(&self.model);
                self.totals.add(model, usage, cost, None);
            }
        }
    }

    /// Returns the message for an event that is no part of the conversation.
    fn report(&mut self, event: &Event) -> Vec<Value> {
        match event {
            Event::Retry { retry, max_retries, delay_ms, kind, message, .. } => {
                let mut lines = self.pieces.as_mut().map(Pieces::discard).unwrap_or_default();
                lines.push(json!({"type": "system", "subtype": "api_retry", "attempt": retry, "max_retries": max_retries,
                    "retry_delay_ms": delay_ms, "error_status": null, "error": error_name(*kind)}));
                lines.push(informational(message));
                lines
            }
            Event::ModelFailed { .. } | Event::ModelAbandoned { .. } => {
                self.pieces.as_mut().map(Pieces::discard).unwrap_or_default()
            }
            Event::ModelSwitched { from, to, failure } => {
                shown_model(to).clone_into(&mut self.model);
                vec![informational(&messages::claude_model_switched(from, to, &failure.message))]
            }
            Event::Notice { level: NoticeLevel::Warn | NoticeLevel::Error, text } => {
                vec![informational(text)]
            }
            _ => Vec::new(),
        }
    }

    fn init_message(&self, model: &str, tools: &[String]) -> Value {
        let shown: BTreeSet<&str> = tools.iter().map(|tool| names().theirs(tool)).collect();
        let status = |name: &String| {
            let prefix = agent_mcp::definition::name_prefix(name);
            let is_listed = tools.iter().any(|tool| tool.starts_with(&prefix));
            json!({"name": name, "status": if is_listed { "connected" } else { "pending" }})
        };
        let key = if self.init.has_key && shown_model(model) != model { "ANTHROPIC_API_KEY" } else { "none" };
        json!({"type": "system", "subtype": "init", "cwd": self.init.cwd, "tools": shown,
            "mcp_servers": self.init.servers.iter().map(status).collect::<Vec<_>>(), "model": self.model,
            "permissionMode": self.init.permission_mode, "apiKeySource": key, "slash_commands": [], "skills": [],
            "plugins": [], "agents": [], "output_style": "default", "claude_code_version": env!("CARGO_PKG_VERSION")})
    }

    fn piece(&mut self, kind: &'static str, text: &str) -> Vec<Value> {
        let (id, model) = (self.answer_id(), self.model.clone());
        self.pieces.as_mut().map(|pieces| pieces.add(kind, text, &id, &model)).unwrap_or_default()
    }

    /// Returns the id of the answer that comes next.
    fn answer_id(&self) -> String {
        format!("msg_{}", self.answers)
    }

    fn answer(
        &mut self,
        message: &Message,
        finish: &FinishReason,
        tokens: Usage,
        subagent: Option<&str>,
    ) -> Vec<Value> {
        let (id, model) = (self.answer_id(), self.model.clone());
        self.answers = self.answers.saturating_add(1);
        let content: Vec<Value> =
            message.parts.iter().filter_map(|part| self.block(part, subagent)).collect();
        let reason = stop_reason(finish);
        let mut lines = match self.pieces.as_mut().filter(|_| subagent.is_none()) {
            Some(pieces) => pieces.end(&content, reason, &usage(tokens), &id, &model),
            None => Vec::new(),
        };
        if !content.is_empty() {
            let message = json!({"id": id, "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": reason, "stop_sequence": null, "usage": usage(tokens)});
            let parent = self.parent(subagent);
            lines.push(json!({"type": "assistant", "message": message, "parent_tool_use_id": parent}));
        }
        lines
    }

    fn block(&mut self, part: &Part, subagent: Option<&str>) -> Option<Value> {
        match part {
            Part::Text { text } if !text.is_empty() => Some(json!({"type": "text", "text": text})),
            Part::Thinking { text, .. } if !text.is_empty() => {
                Some(json!({"type": "thinking", "thinking": text, "signature": ""}))
            }
            Part::ToolCall(call) => {
                let ShownCall { id, name, input } = self.show_call(call, subagent);
                Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
            }
            Part::Text { .. } | Part::Thinking { .. } | Part::Image(_) | Part::ToolResult(_) => None,
        }
    }

    /// Gives a call its id for the client.
    fn show_call(&mut self, call: &ToolCall, subagent: Option<&str>) -> ShownCall {
        // What the model wrote may be no JSON; the result of the call says so.
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        let (name, input) = names().call_there(&call.name, &arguments, &self.init.cwd);
        let mut id = call.id.clone();
        while !self.ids.insert(id.clone()) {
            id = format!("{}-{}", call.id, self.ids.len());
        }
        let shown = ShownCall { id, name, input };
        self.calls.insert(CallKey::new(subagent, &call.id), shown.clone());
        shown
    }

    fn shown_id(&self, call: &CallKey) -> String {
        self.calls.get(call).map_or(&call.id, |call| &call.id).to_owned()
    }

    /// Returns the id of the call that started a subagent, for the client; null for the run itself.
    fn parent(&self, subagent: Option<&str>) -> Value {
        subagent.map(|call_id| self.shown_id(&CallKey::new(None, call_id))).into()
    }

    /// Notes a refused call, and returns the message with the result of a call.
    fn call_ended(&mut self, result: &ToolResult, is_refused: bool, subagent: Option<&str>) -> Value {
        let call = CallKey::new(subagent, &result.call_id);
        if let Some(ShownCall { id, name, input }) = self.calls.get(&call).filter(|_| is_refused) {
            self.denials.push(json!({"tool_name": name, "tool_use_id": id, "tool_input": input}));
        }
        let block = json!({"type": "tool_result", "tool_use_id": self.shown_id(&call), "content": result.text,
            "is_error": result.is_error});
        json!({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": self.parent(subagent)})
    }

    /// Returns the messages of a subagent: its calls and their results, not its texts.
    fn of_subagent(&mut self, call_id: &str, event: &Event) -> Vec<Value> {
        match event {
            Event::ModelResponse { purpose, message, finish, usage, .. } if !purpose.is_internal() => {
                let parts = message.tool_calls().cloned().map(Part::ToolCall).collect();
                let calls = Message { role: message.role, parts };
                self.answer(&calls, finish, usage.unwrap_or_default(), Some(call_id))
            }
            Event::ToolCallEnd { result, denial, .. } => {
                vec![self.call_ended(result, denial.is_some(), Some(call_id))]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns a message about something that did not end the run.
pub fn informational(text: &str) -> Value {
    json!({"type": "system", "subtype": "informational", "level": "warning", "content": text})
}

/// Returns the name of a model as a client of Claude Code expects it.
fn shown_model(model: &str) -> &str {
    model.strip_prefix("anthropic/").unwrap_or(model)
}

fn stop_reason(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop | FinishReason::Other(_) => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::ContentFilter | FinishReason::Filtered(_) | FinishReason::Refusal => "refusal",
        FinishReason::WindowFull => "model_context_window_exceeded",
        FinishReason::Paused => "pause_turn",
    }
}

fn error_name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Auth => "authentication_failed",
        FailureKind::RateLimit => "rate_limit",
        FailureKind::Overloaded => "overloaded",
        FailureKind::Server => "server_error",
        FailureKind::Quota => "billing_error",
        FailureKind::Request | FailureKind::ContextOverflow => "invalid_request",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests;
