//! Makes the spans of one agent, of the run or a subagent, from its events.

use super::conventions as names;
use super::span::{AttributeValue, Span, SpanId, SpanKind};
use super::span_buffer::SpanBuffer;
use agent_core::event::{Event, MessageOrigin, Purpose};
use agent_core::finish_reason::FinishReason;
use agent_core::message::{Message, ToolCall};
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_core::usage::Usage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Class of the error of a span that has no end of its own.
const INTERRUPTED: &str = "interrupted";

/// The open spans of an agent; `None` stands for a span that was dropped.
pub(super) struct AgentSpans {
    root: Option<Span>,
    /// The model call in progress.
    chat: Option<Span>,
    /// Number of its requests.
    requests: u64,
    /// The tool calls in progress, by id.
    tools: BTreeMap<String, Option<Span>>,
    /// The running subagents, by the call that started them.
    subagents: BTreeMap<String, AgentSpans>,
    /// `provider/model` in use.
    model: String,
    step: u64,
}

impl AgentSpans {
    /// Starts the span of the agent `name` below `parent`.
    pub(super) fn start(
        buffer: &mut SpanBuffer,
        name: &str,
        model: &str,
        parent: Option<SpanId>,
        at: u64,
    ) -> Self {
        let mut root = buffer.start(names::INVOKE_AGENT, name, SpanKind::Internal, parent, at);
        if let Some(root) = &mut root {
            root.set(names::AGENT_NAME, buffer.text(name));
            set_model(buffer, root, model);
        }
        let (tools, subagents) = (BTreeMap::new(), BTreeMap::new());
        Self { root, chat: None, requests: 0, tools, subagents, model: model.to_owned(), step: 0 }
    }

    /// Updates the spans for an event at the time `at`, in nanoseconds since the Unix epoch.
    pub(super) fn apply(&mut self, buffer: &mut SpanBuffer, event: &Event, at: u64) {
        match event {
            Event::System { text } => self.add_input(buffer, names::SYSTEM_INSTRUCTIONS, text, text_part),
            Event::UserMessage { text, origin: MessageOrigin::Prompt, .. } => {
                self.add_input(buffer, names::INPUT_MESSAGES, text, |text| message("user", text));
            }
            Event::StepStart { purpose, .. } => self.start_chat(buffer, *purpose, at),
            Event::RequestSent { .. } => self.requests = self.requests.saturating_add(1),
            Event::CachedAnswer => {
                if let Some(chat) = &mut self.chat {
                    chat.set(names::CACHED_ANSWER, AttributeValue::Bool(true));
                }
            }
            Event::ModelResponse { .. } | Event::ModelFailed { .. } | Event::ModelAbandoned { .. } => {
                self.end_chat(buffer, event, at);
            }
            Event::ModelSwitched { to, .. } => {
                self.model.clone_from(to);
                // The step is repeated.
                self.step = self.step.saturating_sub(1);
            }
            Event::ToolCallStart { call, .. } => self.start_tool(buffer, call, at),
            Event::ToolCallEnd { .. } => self.end_tool(buffer, event, at),
            Event::ToolCallPending { call_id, .. } => {
                if let Some(Some(mut span)) = self.tools.remove(call_id) {
                    span.set(names::TOOL_OUTCOME, buffer.text("pending"));
                    buffer.end(span, at, None);
                }
            }
            Event::Subagent { call_id, event, .. } => self.apply_to_subagent(buffer, call_id, event, at),
            Event::RunEnd { result } => self.end(buffer, Some(result), at),
            _ => {}
        }
    }

    /// Ends all open spans; with `result`, the agent has ended in order.
    pub(super) fn end(&mut self, buffer: &mut SpanBuffer, result: Option<&RunResult>, at: u64) {
        for subagent in std::mem::take(&mut self.subagents).values_mut() {
            subagent.end(buffer, None, at);
        }
        let open = std::mem::take(&mut self.tools).into_values().flatten().chain(self.chat.take());
        for span in open {
            buffer.end(span, at, Some(INTERRUPTED));
        }
        let Some(mut root) = self.root.take() else { return };
        let Some(result) = result else { return buffer.end(root, at, Some(INTERRUPTED)) };
        set_spent(&mut root, Some(result.usage), result.cost.total_usd);
        root.set(names::STATUS, buffer.text(result.status.name()));
        if let Some(reason) = result.stop_reason {
            root.set(names::STOP_REASON, buffer.text(reason.name()));
        }
        root.set(names::STEPS, AttributeValue::Integer(result.steps.into()));
        root.set(names::REQUESTS, AttributeValue::Integer(result.requests.into()));
        root.set(names::TOOL_CALLS, AttributeValue::Integer(result.tool_calls.into()));
        let answer = result.output.text();
        buffer.add_content(&mut root, names::OUTPUT_MESSAGES, &answer, |text| message("assistant", text));
        let kind = result.error.as_ref().map(|error| error.kind.name());
        let reason = result.stop_reason.map_or(INTERRUPTED, |reason| reason.name());
        let error = (result.status == Status::Failed).then_some(kind.unwrap_or(reason));
        buffer.end(root, at, error);
    }

    /// Adds an input of the agent to its span.
    fn add_input(
        &mut self,
        buffer: &mut SpanBuffer,
        name: &'static str,
        text: &str,
        value: impl FnOnce(&str) -> String,
    ) {
        if let Some(root) = &mut self.root
            && root.get(name).is_none()
        {
            buffer.add_content(root, name, text, value);
        }
    }

    fn parent(&self) -> Option<SpanId> {
        self.root.as_ref().map(|root| root.id)
    }

    fn start_chat(&mut self, buffer: &mut SpanBuffer, purpose: Purpose, at: u64) {
        if let Some(chat) = self.chat.take() {
            buffer.end(chat, at, Some(INTERRUPTED));
        }
        self.requests = 0;
        if purpose == Purpose::Step {
            self.step = self.step.saturating_add(1);
        }
        let (_, model) = names::provider_and_model(&self.model);
        self.chat = buffer.start(names::CHAT, model, SpanKind::Client, self.parent(), at);
        if let Some(chat) = &mut self.chat {
            set_model(buffer, chat, &self.model);
            chat.set(names::STEP, AttributeValue::Integer(self.step));
            chat.set(names::PURPOSE, buffer.text(purpose_name(purpose)));
        }
    }

    /// Ends the span of a model call with the values of `event`: the cost, the response if there is one, and the class of the failure.
    fn end_chat(&mut self, buffer: &mut SpanBuffer, event: &Event, at: u64) {
        let Some(mut chat) = self.chat.take() else { return };
        chat.set(names::REQUESTS, AttributeValue::Integer(self.requests));
        let error = match event {
            Event::ModelResponse { message: answer, finish, usage, cost_usd, .. } => {
                set_spent(&mut chat, *usage, *cost_usd);
                let finish = finish_name(finish);
                chat.set(names::FINISH_REASONS, AttributeValue::Texts(vec![finish.to_owned()]));
                buffer.add_content(&mut chat, names::OUTPUT_MESSAGES, &answer.joined_text(), |text| {
                    answer_message(answer, text, finish)
                });
                None
            }
            Event::ModelFailed { failure, billed, .. } => {
                if let Some(billed) = billed {
                    set_spent(&mut chat, Some(billed.usage), billed.cost_usd);
                }
                Some(failure.kind.name())
            }
            Event::ModelAbandoned { reason, .. } => Some(reason.name()),
            _ => None,
        };
        buffer.end(chat, at, error);
    }

    fn start_tool(&mut self, buffer: &mut SpanBuffer, call: &ToolCall, at: u64) {
        let mut span = start_tool(buffer, &call.name, &call.id, self.parent(), at);
        if let Some(span) = &mut span {
            buffer.add_content(span, names::TOOL_ARGUMENTS, &call.arguments, str::to_owned);
        }
        self.tools.insert(call.id.clone(), span);
    }

    fn end_tool(&mut self, buffer: &mut SpanBuffer, event: &Event, at: u64) {
        let Event::ToolCallEnd { name, result, denial, simulated, .. } = event else { return };
        // A call that did not run has no start.
        let parent = self.parent();
        let open = self.tools.remove(&result.call_id);
        let span = open.unwrap_or_else(|| start_tool(buffer, name, &result.call_id, parent, at));
        let Some(mut span) = span else { return };
        let outcome = match (denial, simulated, result.is_error) {
            (Some(_), ..) => "denied",
            (None, true, _) => "simulated",
            (None, false, true) => "error",
            (None, false, false) => "ok",
        };
        span.set(names::TOOL_IS_ERROR, AttributeValue::Bool(result.is_error));
        span.set(names::TOOL_OUTCOME, buffer.text(outcome));
        buffer.add_content(&mut span, names::TOOL_RESULT, &result.text, str::to_owned);
        let error = if denial.is_some() { "denied" } else { "tool_error" };
        buffer.end(span, at, result.is_error.then_some(error));
    }

    fn apply_to_subagent(&mut self, buffer: &mut SpanBuffer, call_id: &str, event: &Event, at: u64) {
        if let Event::RunStart { agent, model, .. } = event {
            let call = self.tools.get(call_id).and_then(Option::as_ref).map(|span| span.id);
            let parent = call.or_else(|| self.parent());
            let started = Self::start(buffer, agent, model, parent, at);
            self.subagents.insert(call_id.to_owned(), started);
        } else if let Some(subagent) = self.subagents.get_mut(call_id) {
            subagent.apply(buffer, event, at);
            if matches!(event, Event::RunEnd { .. }) {
                self.subagents.remove(call_id);
            }
        }
    }
}

fn start_tool(
    buffer: &mut SpanBuffer,
    name: &str,
    id: &str,
    parent: Option<SpanId>,
    at: u64,
) -> Option<Span> {
    let mut span = buffer.start(names::EXECUTE_TOOL, name, SpanKind::Internal, parent, at)?;
    span.set(names::TOOL_NAME, buffer.text(name));
    span.set(names::TOOL_TYPE, buffer.text("function"));
    span.set(names::TOOL_CALL_ID, buffer.text(id));
    Some(span)
}

fn set_model(buffer: &SpanBuffer, span: &mut Span, model: &str) {
    let (provider, model) = names::provider_and_model(model);
    span.set(names::PROVIDER_NAME, buffer.text(provider));
    span.set(names::REQUEST_MODEL, buffer.text(model));
}

fn set_spent(span: &mut Span, usage: Option<Usage>, cost: Option<Usd>) {
    if let Some(usage) = usage {
        for (name, tokens) in [
            (names::INPUT_TOKENS, usage.prompt_tokens()),
            (names::OUTPUT_TOKENS, usage.output),
            (names::CACHE_READ_TOKENS, usage.cached_read),
            (names::CACHE_CREATION_TOKENS, usage.cached_write),
            (names::REASONING_TOKENS, usage.reasoning),
        ] {
            span.set(name, AttributeValue::Integer(tokens));
        }
    }
    if let Some(cost) = cost {
        span.set(names::COST_USD, AttributeValue::Number(cost.into()));
    }
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Step => "step",
        Purpose::Closing => "closing",
        Purpose::Summary => "summary",
        Purpose::Evaluation => "evaluation",
    }
}

fn finish_name(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::ContentFilter | FinishReason::Filtered(_) => "content_filter",
        FinishReason::Refusal => "refusal",
        FinishReason::WindowFull => "window_full",
        FinishReason::Paused => "paused",
        FinishReason::Other(_) => "other",
    }
}

/// Returns a text in the form of the conventions for system instructions.
fn text_part(text: &str) -> String {
    json!([{"type": "text", "content": text}]).to_string()
}

/// Returns a message in the form of the conventions for inputs and outputs.
fn message(role: &str, text: &str) -> String {
    json!([{"role": role, "parts": [{"type": "text", "content": text}]}]).to_string()
}

/// Returns an answer in the form of the conventions; the arguments of its calls are in the spans of the calls.
fn answer_message(answer: &Message, text: &str, finish: &str) -> String {
    let text = (!text.is_empty()).then(|| json!({"type": "text", "content": text}));
    let calls =
        answer.tool_calls().map(|call| json!({"type": "tool_call", "id": call.id, "name": call.name}));
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    json!([{"role": "assistant", "parts": parts, "finish_reason": finish}]).to_string()
}
