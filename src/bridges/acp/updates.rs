//! The events of a run as updates of a session.

use super::files::SessionFiles;
use crate::json_rpc::outbox::Outbox;
use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, CurrentModeUpdate, MessageId, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionNotification, SessionUpdate, TextContent, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
};
use agent_core::event::{Event, MessageOrigin, NoticeLevel, Record};
use agent_core::language::Language;
use agent_core::message::{CallKey, HistoryRole, Message, ToolCall as Call};
use agent_core::todo::{StepStatus, TodoList, TodoStep};
use agent_core::usage::Usage;
use agent_messages as messages;
use agent_terminal::one_line;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum characters of the title of a call.
const TITLE_CHARS: usize = 300;
/// Maximum number of diffs of one call.
const MAX_DIFFS: usize = 20;

/// Sends the events of a session to the client.
pub struct UpdateStream {
    session: String,
    outbox: Rc<Outbox>,
    files: Rc<SessionFiles>,
    language: Language,
    state: RefCell<State>,
}

/// What later updates depend on.
#[derive(Default)]
struct State {
    /// Id of the run and number of the message in it.
    message: (String, u32),
    /// Whether a piece of the present answer was sent.
    has_text: bool,
    has_thought: bool,
    /// The context window in tokens.
    window: Option<u64>,
    /// Tokens of the last request and its response.
    used: u64,
    /// The mode that the client was sent.
    mode: String,
    /// Number of calls of the run.
    calls: u32,
    /// Ids for the client of the calls of the run and its subagents.
    call_ids: HashMap<CallKey, String>,
}

impl UpdateStream {
    /// Creates the stream of a session whose client shows this `mode`.
    pub fn new(
        session: String,
        outbox: Rc<Outbox>,
        files: Rc<SessionFiles>,
        language: Language,
        mode: &str,
    ) -> Self {
        let state = RefCell::new(State { mode: mode.to_owned(), ..State::default() });
        Self { session, outbox, files, language, state }
    }

    /// Sends what the client shows of an event while a run works.
    pub fn live(&self, record: &Record) {
        match &record.event {
            Event::UserMessage { .. } | Event::History { .. } => {}
            Event::RunStart { mode, .. } => {
                self.start(record);
                let mode = std::mem::replace(&mut self.state.borrow_mut().mode, mode.clone());
                if mode != self.state.borrow().mode {
                    let now = self.state.borrow().mode.clone();
                    self.send(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(now)));
                }
            }
            event => self.event(event),
        }
    }

    /// Sends what the client shows of an event of an earlier run.
    pub fn replay(&self, record: &Record) {
        match &record.event {
            Event::RunStart { .. } => self.start(record),
            Event::UserMessage { text, origin: MessageOrigin::Prompt | MessageOrigin::Queued, .. } => {
                self.user_message(text);
            }
            Event::History { messages } => {
                for message in messages {
                    match message.role {
                        HistoryRole::User => self.user_message(&message.content),
                        HistoryRole::Assistant => {
                            self.next_message();
                            self.send(SessionUpdate::AgentMessageChunk(self.chunk(&message.content)));
                        }
                    }
                }
            }
            event => self.event(event),
        }
    }

    /// Sends a message of this program.
    pub fn message(&self, text: &str) {
        self.next_message();
        self.send(SessionUpdate::AgentMessageChunk(self.chunk(text)));
    }

    fn start(&self, record: &Record) {
        let mut state = self.state.borrow_mut();
        *state = State {
            message: (record.run.clone(), 0),
            mode: std::mem::take(&mut state.mode),
            window: state.window,
            ..State::default()
        };
        if let Event::RunStart { bounds: Some(bounds), .. } = &record.event {
            state.window = bounds.limits.models.first.window.map(|window| window.tokens);
        }
    }

    fn event(&self, event: &Event) {
        match event {
            Event::StepStart { .. } | Event::RequestSent { .. } => self.next_message(),
            Event::TextDelta { text } => {
                self.state.borrow_mut().has_text = true;
                self.send(SessionUpdate::AgentMessageChunk(self.chunk(text)));
            }
            Event::ThinkingDelta { text } => {
                self.state.borrow_mut().has_thought = true;
                self.send(SessionUpdate::AgentThoughtChunk(self.chunk(text)));
            }
            Event::Retry { answer_discarded: true, .. } => {
                self.send(SessionUpdate::AgentMessageChunk(
                    self.chunk(messages::answer_requested_again(self.language)),
                ));
            }
            Event::ModelResponse { purpose, message, usage, .. } if !purpose.is_internal() => {
                self.response(message, *usage);
            }
            Event::Notice { level: NoticeLevel::Warn, text } => {
                self.next_message();
                self.send(SessionUpdate::AgentThoughtChunk(self.chunk(text)));
            }
            Event::RunEnd { result } => self.usage(result.cost.total_usd.map(f64::from)),
            Event::ToolCallStart { .. } | Event::ToolCallEnd { .. } => self.tool_call(event, None),
            Event::Subagent { call_id, event, .. } => self.tool_call(event, Some(call_id)),
            _ => {}
        }
    }

    /// Sends the parts of a response that were not streamed, and its usage.
    fn response(&self, message: &Message, usage: Option<Usage>) {
        let (has_text, has_thought) = {
            let state = self.state.borrow();
            (state.has_text, state.has_thought)
        };
        let (thought, text) = (message.joined_thinking(), message.joined_text());
        if !has_thought && !thought.is_empty() {
            self.send(SessionUpdate::AgentThoughtChunk(self.chunk(&thought)));
        }
        if !has_text && !text.is_empty() {
            self.send(SessionUpdate::AgentMessageChunk(self.chunk(&text)));
        }
        if let Some(usage) = usage {
            self.state.borrow_mut().used = usage.prompt_tokens().saturating_add(usage.output);
            self.usage(None);
        }
    }

    fn usage(&self, cost: Option<f64>) {
        let (used, window) = {
            let state = self.state.borrow();
            (state.used, state.window)
        };
        let Some(size) = window else { return };
        let cost = cost.map(|usd| Cost::new(usd, "USD"));
        self.send(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost)));
    }

    fn tool_call(&self, event: &Event, subagent: Option<&str>) {
        match event {
            Event::ToolCallStart { call, summary } => {
                self.send(SessionUpdate::ToolCall(self.started(call, summary, subagent)));
            }
            Event::ToolCallEnd { name, summary, result, changed, .. } => {
                let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
                let diffs = changed.iter().take(MAX_DIFFS).filter_map(|change| self.files.diff(change));
                let mut content: Vec<ToolCallContent> = diffs.map(ToolCallContent::from).collect();
                content.push(text_block(&result.text).into());
                let fields =
                    ToolCallUpdateFields::new().status(status).title(title(name, summary)).content(content);
                let update =
                    ToolCallUpdate::new(self.call_id(&CallKey::new(subagent, &result.call_id)), fields);
                self.send(SessionUpdate::ToolCallUpdate(update));
                if name == TodoList::TOOL && subagent.is_none() && !result.is_error {
                    self.send(SessionUpdate::Plan(Plan::new(plan_entries(&result.text))));
                }
            }
            _ => {}
        }
    }

    fn started(&self, call: &Call, summary: &str, subagent: Option<&str>) -> ToolCall {
        let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let path = arguments.as_ref().and_then(|arguments| arguments.get("path")?.as_str());
        let locations = path.map(|path| ToolCallLocation::new(self.files.absolute(path)));
        let mut started =
            ToolCall::new(self.new_call_id(CallKey::new(subagent, &call.id)), title(&call.name, summary))
                .kind(kind(&call.name))
                .status(ToolCallStatus::InProgress)
                .locations(locations.into_iter().collect());
        started.raw_input = arguments;
        started
    }

    /// Returns the id of a call for the client.
    pub fn call_id(&self, call: &CallKey) -> String {
        self.state.borrow().call_ids.get(call).unwrap_or(&call.id).clone()
    }

    fn new_call_id(&self, call: CallKey) -> String {
        let mut state = self.state.borrow_mut();
        state.calls = state.calls.saturating_add(1);
        let id = format!("{}-call-{}", state.message.0, state.calls);
        state.call_ids.insert(call, id.clone());
        id
    }

    fn user_message(&self, text: &str) {
        self.next_message();
        self.send(SessionUpdate::UserMessageChunk(self.chunk(text)));
    }

    fn next_message(&self) {
        let mut state = self.state.borrow_mut();
        state.message.1 = state.message.1.saturating_add(1);
        (state.has_text, state.has_thought) = (false, false);
    }

    fn chunk(&self, text: &str) -> ContentChunk {
        let (run, number) = &self.state.borrow().message;
        ContentChunk::new(text_block(text)).message_id(MessageId::new(format!("{run}-{number}")))
    }

    fn send(&self, update: SessionUpdate) {
        send_update(&self.outbox, &self.session, update);
    }
}

/// Sends an update of a session.
pub fn send_update(outbox: &Outbox, session: &str, update: SessionUpdate) {
    let params = SessionNotification::new(session.to_owned(), update);
    outbox.notify(&json!({"method": "session/update", "params": params}));
}

/// Returns the entries of a plan for the list of steps in a result of the tool `todo`.
fn plan_entries(result: &str) -> Vec<PlanEntry> {
    let entry = |step: TodoStep| {
        let status = match step.status {
            StepStatus::Pending => PlanEntryStatus::Pending,
            StepStatus::InProgress => PlanEntryStatus::InProgress,
            StepStatus::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(step.text, PlanEntryPriority::Medium, status)
    };
    TodoList::parse(result).steps.into_iter().map(entry).collect()
}

/// Returns the title of a call: one line, with invisible characters as escapes.
pub fn title(tool: &str, summary: &str) -> String {
    one_line(&format!("{tool} {summary}"), TITLE_CHARS)
}

/// Returns a block of text.
pub fn text_block(text: &str) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// Returns the kind of effect of a tool, which selects its icon.
pub fn kind(tool: &str) -> ToolKind {
    match tool {
        "read_file" | "list_files" => ToolKind::Read,
        "grep" | "search_code" | "find_files" => ToolKind::Search,
        "edit_file" | "write_file" | "apply_patch" => ToolKind::Edit,
        "delete_file" => ToolKind::Delete,
        "run_command" | "stop_command" | "command_output" => ToolKind::Execute,
        "web_fetch" | "web_search" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}
