//! The events of a run as those of `codex exec --json`, which `@openai/codex-sdk` reads.
//!
//! Source of the format: the types of `@openai/codex-sdk` 0.163.0 (`dist/index.d.ts`).

use agent_core::event::{Event, NoticeLevel};
use agent_core::file_change::{Change, ChangeAction};
use agent_core::language::Language;
use agent_core::message::{CallKey, Message, ToolCall, ToolResult};
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_mcp::definition::server_and_tool;
use agent_messages as messages;
use agent_tools::TypedTool;
use agent_tools::delete_file::DeleteFile;
use agent_tools::run_command::{RunCommand, exit_code_in};
use agent_tools::toolbox::{CALL_TOOL, EDIT_TOOLS};
use agent_tools::web_search::WebSearch;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Name under which this program's own tools appear as tools of a server: Codex has no items for them.
const OWN_SERVER: &str = "agent";

/// A line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum ThreadEvent {
    /// The session exists.
    #[serde(rename = "thread.started")]
    ThreadStarted {
        /// Id of the session.
        thread_id: String,
    },
    /// The run starts.
    #[serde(rename = "turn.started")]
    TurnStarted {},
    /// The run succeeded.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// Its tokens.
        usage: TurnUsage,
    },
    /// The run ended in any other way.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// Why.
        error: ErrorMessage,
    },
    /// A call starts.
    #[serde(rename = "item.started")]
    ItemStarted {
        /// The call.
        item: Item,
    },
    /// A call has ended, or there is a message.
    #[serde(rename = "item.completed")]
    ItemCompleted {
        /// The call, or the message.
        item: Item,
    },
    /// The run failed or was interrupted.
    #[serde(rename = "error")]
    Error(ErrorMessage),
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorMessage {
    /// What happened.
    pub message: String,
}

/// Tokens of a run.
#[expect(clippy::struct_field_names, reason = "the names of the format")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TurnUsage {
    /// All prompt tokens.
    input_tokens: u64,
    /// Those that were read from the provider's cache.
    cached_input_tokens: u64,
    /// Those that were written to it.
    cache_write_input_tokens: u64,
    /// Generated tokens, including reasoning.
    output_tokens: u64,
    /// Reasoning tokens.
    reasoning_output_tokens: u64,
}

/// An item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its id, which is unique in the run.
    pub id: String,
    /// Its type and its fields.
    #[serde(flatten)]
    pub details: ItemDetails,
}

/// The fields of an item, by type.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemDetails {
    /// A text of the model.
    AgentMessage {
        /// The text.
        text: String,
    },
    /// Reasoning of the model.
    Reasoning {
        /// The visible reasoning.
        text: String,
    },
    /// A call of `run_command`.
    CommandExecution {
        /// The command.
        command: String,
        /// The result that the model received.
        aggregated_output: String,
        /// The exit code, if the command has ended with one.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The status.
        status: ItemStatus,
    },
    /// A call of a tool that changes files.
    FileChange {
        /// The changed files; of a failed call, those that it would have changed.
        changes: Vec<FileUpdate>,
        /// The status.
        status: ItemStatus,
    },
    /// A call of a tool of an MCP server, or of any other tool of this program.
    McpToolCall {
        /// Name of the server, or `agent`.
        server: String,
        /// Name of the tool.
        tool: String,
        /// The arguments.
        arguments: Value,
        /// The result, if the call succeeded.
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The error, if it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<ErrorMessage>,
        /// The status.
        status: ItemStatus,
    },
    /// A call of `web_search`.
    WebSearch {
        /// What was searched for.
        query: String,
    },
    /// A problem that did not end the run.
    Error(ErrorMessage),
}

/// Status of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// The call runs.
    InProgress,
    /// It succeeded.
    Completed,
    /// It failed, or was refused.
    Failed,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileUpdate {
    /// Path from the workspace root.
    path: String,
    /// `add`, `delete` or `update`.
    kind: &'static str,
}

/// Translates the events of one run.
#[derive(Debug, Default)]
pub struct CodexEvents {
    /// The session, once it is known.
    thread: Option<String>,
    /// Problems that were found before the run.
    warnings: Vec<String>,
    items: u64,
    /// The items of calls that have not ended.
    open: BTreeMap<CallKey, Item>,
    last_text: String,
}

impl CodexEvents {
    /// Creates the translation for a run that resumes `thread`, or creates a session; `warnings` become items.
    pub fn new(thread: Option<String>, warnings: Vec<String>) -> Self {
        Self { thread, warnings, ..Self::default() }
    }

    /// Returns the lines for an event.
    pub fn lines(&mut self, event: &Event) -> Vec<ThreadEvent> {
        match event {
            Event::SessionStart { session_id, .. } => {
                self.thread = Some(session_id.clone());
                Vec::new()
            }
            Event::RunStart { .. } => {
                let mut lines = Vec::new();
                lines.extend(self.thread.clone().map(|thread_id| ThreadEvent::ThreadStarted { thread_id }));
                lines.push(ThreadEvent::TurnStarted {});
                lines.extend(self.take_warnings());
                lines
            }
            Event::ModelResponse { purpose, message, .. } if !purpose.is_internal() => self.texts(message),
            Event::Retry { message, .. } => vec![self.problem(message.clone())],
            Event::ModelSwitched { from, to, failure } => {
                vec![self.problem(messages::codex_model_switched(from, to, &failure.message))]
            }
            Event::Notice { level: NoticeLevel::Warn | NoticeLevel::Error, text } => {
                vec![self.problem(text.clone())]
            }
            event => self.call(event, None).into_iter().collect(),
        }
    }

    /// Returns the last lines: the rest of the answer, and how the run ended.
    pub fn end(&mut self, result: &RunResult, language: Language) -> Vec<ThreadEvent> {
        let mut lines: Vec<ThreadEvent> = self.take_warnings();
        for (_, mut item) in std::mem::take(&mut self.open) {
            item.details.end(None, &[]);
            lines.push(ThreadEvent::ItemCompleted { item });
        }
        if result.status == Status::Success {
            let answer = result.output.text();
            if answer.trim() != self.last_text.trim() {
                let text = answer.into_owned();
                lines.push(self.completed(ItemDetails::AgentMessage { text }));
            }
            lines.push(ThreadEvent::TurnCompleted { usage: result.into() });
            return lines;
        }
        let error = ErrorMessage { message: messages::run_not_successful(result, language) };
        // As in Codex no turn fails when it is interrupted: the SDK reports the abort of its user then, not a failure.
        let is_interrupted = result.stop_reason == Some(StopReason::UserInterrupt);
        if is_interrupted || result.status == Status::Failed {
            lines.push(ThreadEvent::Error(error.clone()));
        }
        if !is_interrupted {
            lines.push(ThreadEvent::TurnFailed { error });
        }
        lines
    }

    /// Returns the line for a problem that did not end the run.
    pub fn problem(&mut self, message: String) -> ThreadEvent {
        self.completed(ItemDetails::Error(ErrorMessage { message }))
    }

    fn take_warnings(&mut self) -> Vec<ThreadEvent> {
        std::mem::take(&mut self.warnings).into_iter().map(|warning| self.problem(warning)).collect()
    }

    fn texts(&mut self, message: &Message) -> Vec<ThreadEvent> {
        let (reasoning, text) = (message.joined_thinking(), message.joined_text());
        let mut lines = Vec::new();
        if !reasoning.trim().is_empty() {
            lines.push(self.completed(ItemDetails::Reasoning { text: reasoning }));
        }
        if !text.trim().is_empty() {
            self.last_text.clone_from(&text);
            lines.push(self.completed(ItemDetails::AgentMessage { text }));
        }
        lines
    }

    /// Returns the line for an event of a call; `subagent` is the call that started the subagent that makes it.
    fn call(&mut self, event: &Event, subagent: Option<&str>) -> Option<ThreadEvent> {
        let key = |id: &str| CallKey::new(subagent, id);
        match event {
            Event::Subagent { call_id, event, .. } => self.call(event, Some(call_id)),
            Event::ToolCallStart { call, .. } => {
                let item = self.item(ItemDetails::of_call(call));
                self.open.insert(key(&call.id), item.clone());
                // A change of files has no status for the time before its end.
                let is_change = matches!(item.details, ItemDetails::FileChange { .. });
                (!is_change).then_some(ThreadEvent::ItemStarted { item })
            }
            Event::FileChangesPlanned { call_id, changes: planned } => {
                let item = self.open.get_mut(&key(call_id))?;
                if let ItemDetails::FileChange { changes, .. } = &mut item.details {
                    *changes = updates(planned);
                }
                None
            }
            Event::ToolCallEnd { result, changed, .. } => {
                let mut item = self.open.remove(&key(&result.call_id))?;
                item.details.end(Some(result), changed);
                Some(ThreadEvent::ItemCompleted { item })
            }
            _ => None,
        }
    }

    fn completed(&mut self, details: ItemDetails) -> ThreadEvent {
        ThreadEvent::ItemCompleted { item: self.item(details) }
    }

    fn item(&mut self, details: ItemDetails) -> Item {
        let id = format!("item_{}", self.items);
        self.items = self.items.saturating_add(1);
        Item { id, details }
    }
}

impl ItemDetails {
    /// Returns the item of a call that starts.
    fn of_call(call: &ToolCall) -> Self {
        let status = ItemStatus::InProgress;
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| Value::from(call.arguments.as_str()));
        let text = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
        match call.name.as_str() {
            RunCommand::NAME => Self::CommandExecution {
                command: text("command"),
                aggregated_output: String::new(),
                exit_code: None,
                status,
            },
            name if EDIT_TOOLS.contains(&name) || name == DeleteFile::NAME => {
                // Until the changes are known; of a patch they are not.
                let kind = if name == DeleteFile::NAME { "delete" } else { "update" };
                let path = Some(text("path")).filter(|path| !path.is_empty());
                let changes = path.into_iter().map(|path| FileUpdate { path, kind }).collect();
                Self::FileChange { changes, status }
            }
            WebSearch::NAME => Self::WebSearch { query: text("query") },
            name => {
                let called = arguments["name"].as_str().filter(|_| name == CALL_TOOL);
                let (server, tool) = server_and_tool(called.unwrap_or(name)).unwrap_or((OWN_SERVER, name));
                let (server, tool) = (server.to_owned(), tool.to_owned());
                let input = called.and_then(|_| arguments.get("input").cloned());
                let arguments = input.unwrap_or(arguments);
                Self::McpToolCall { server, tool, arguments, result: None, error: None, status }
            }
        }
    }

    /// Completes the item of a call that has `changed` files; without a result the call has not ended.
    fn end(&mut self, ended: Option<&ToolResult>, changed: &[Change]) {
        let success = ended.is_some_and(|result| !result.is_error);
        let text = ended.map_or(messages::CODEX_CALL_NOT_ENDED, |result| result.text.as_str());
        // The prefix is for the model.
        let text = text.strip_prefix("Error: ").unwrap_or(text);
        let new_status = if success { ItemStatus::Completed } else { ItemStatus::Failed };
        match self {
            Self::CommandExecution { aggregated_output, exit_code, status, .. } => {
                *exit_code = exit_code_in(text);
                text.clone_into(aggregated_output);
                *status = new_status;
            }
            Self::FileChange { changes, status } => {
                if !changed.is_empty() {
                    *changes = updates(changed);
                }
                *status = new_status;
            }
            Self::McpToolCall { result, error, status, .. } => {
                if success {
                    let content = json!([{ "type": "text", "text": text }]);
                    *result = Some(json!({ "content": content, "structured_content": null }));
                } else {
                    *error = Some(ErrorMessage { message: text.to_owned() });
                }
                *status = new_status;
            }
            Self::AgentMessage { .. } | Self::Reasoning { .. } | Self::WebSearch { .. } | Self::Error(_) => {}
        }
    }
}

fn updates(changes: &[Change]) -> Vec<FileUpdate> {
    let update = |change: &Change| FileUpdate {
        path: change.path.clone(),
        kind: match change.action {
            ChangeAction::Created => "add",
            ChangeAction::Modified => "update",
            ChangeAction::Deleted => "delete",
        },
    };
    changes.iter().map(update).collect()
}

impl From<&RunResult> for TurnUsage {
    fn from(result: &RunResult) -> Self {
        let usage = result.usage;
        Self {
            input_tokens: usage.prompt_tokens(),
            cached_input_tokens: usage.cached_read,
            cache_write_input_tokens: usage.cached_write,
            output_tokens: usage.output,
            reasoning_output_tokens: usage.reasoning,
        }
    }
}
