//! Messages of a conversation: roles, parts, tool calls, tool results.

use crate::image::Image;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Role of a message's author, as the provider APIs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The instructions; one message, at the start.
    System,
    /// The user, a hook, or the agent loop (`[SYSTEM] …`).
    User,
    /// The model.
    Assistant,
    /// The results of all tool calls of one response, in the order of the calls.
    Tool,
}

/// A message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Role of the author.
    pub role: Role,
    /// The parts of the message, in order.
    pub parts: Vec<Part>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image of the user; a text part before it describes it.
    Image(Image),
    /// Reasoning of the model, if its provider returns it.
    Thinking {
        /// The visible reasoning.
        text: String,
        /// Data that must be sent back to the provider unmodified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<OpaqueData>,
    },
    /// A tool call by the model.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
}

/// Prefix of the names of tools of MCP servers.
pub const MCP_PREFIX: &str = "mcp__";

/// A tool call by the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Links the call to its result; generated here if the server sends none.
    pub id: String,
    /// Name of the tool as the model wrote it.
    pub name: String,
    /// The arguments as the model wrote them; not necessarily valid JSON. In everything that is stored, shown or sent, secrets are replaced.
    pub arguments: String,
    /// Data that must be sent back to the provider unmodified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OpaqueData>,
    #[serde(skip)]
    unredacted: UnredactedArguments,
}

/// The arguments of a call before secrets were replaced in them. They exist only in the process that received the call: they are neither stored nor
/// shown, and calls that differ in nothing else are equal.
#[derive(Clone, Default)]
struct UnredactedArguments(Option<String>);

impl PartialEq for UnredactedArguments {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl std::fmt::Debug for UnredactedArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[unredacted]")
    }
}

impl ToolCall {
    /// Creates a call without opaque data.
    pub fn new(id: impl Into<String>, name: impl Into<String>, arguments: impl Into<String>) -> Self {
        let (id, name, arguments) = (id.into(), name.into(), arguments.into());
        Self { id, name, arguments, opaque: None, unredacted: UnredactedArguments::default() }
    }

    /// Returns the call with data for the provider.
    #[must_use]
    pub fn with_opaque(self, opaque: impl Into<Option<OpaqueData>>) -> Self {
        Self { opaque: opaque.into(), ..self }
    }

    /// Replaces the secrets in the arguments; the tool still receives them ([`ToolCall::with_unredacted_arguments`]).
    pub fn redact_arguments(&mut self, redact: impl FnOnce(&mut String)) {
        let before = self.arguments.clone();
        redact(&mut self.arguments);
        if self.arguments != before {
            self.unredacted.0.get_or_insert(before);
        }
    }

    /// Returns the call with the arguments that the tool receives: a call must not run with a marker in place of a secret.
    #[must_use]
    pub fn with_unredacted_arguments(&self) -> Self {
        let arguments = self.unredacted.0.as_ref().unwrap_or(&self.arguments).clone();
        Self { arguments, unredacted: UnredactedArguments::default(), ..self.clone() }
    }
}

/// A call of a run or of one of its subagents. The ids of calls are chosen by models and unique within one conversation only.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// Id of the call that started the subagent that makes this one; absent for a call of the run itself.
    pub subagent: Option<String>,
    /// Id of the call in its conversation.
    pub id: String,
}

impl CallKey {
    /// Creates the key of the call `id` in the conversation of a run, or of the subagent that the call `subagent` started.
    pub fn new(subagent: Option<&str>, id: &str) -> Self {
        Self { subagent: subagent.map(str::to_owned), id: id.to_owned() }
    }
}

/// The result of a tool call; each call gets exactly one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// The text sent to the model.
    pub text: String,
    /// Whether the call failed or was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Images of the result, which the text describes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// Data of one provider; only the codec with this name may send it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpaqueData {
    /// The codec that uses the data, such as `chat_completions`.
    pub codec: String,
    /// The data, unmodified.
    pub data: Value,
}

/// Role of the author of a message in an earlier conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryRole {
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// A message of an earlier conversation: text only, without calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryMessage {
    /// Role of the author.
    pub role: HistoryRole,
    /// The text.
    pub content: String,
}

impl From<&HistoryMessage> for Message {
    fn from(message: &HistoryMessage) -> Self {
        let role = match message.role {
            HistoryRole::User => Role::User,
            HistoryRole::Assistant => Role::Assistant,
        };
        Self::text(role, message.content.as_str())
    }
}

impl ToolResult {
    /// Returns the first non-blank line, which summarizes the result, without the prefix `Error: ` added for the model.
    pub fn summary_line(&self) -> &str {
        let first = self.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        first.strip_prefix("Error: ").unwrap_or(first)
    }
}

impl Message {
    /// Removes the provider-specific data.
    pub fn clear_opaque(&mut self) {
        for part in &mut self.parts {
            match part {
                Part::Thinking { opaque, .. } => *opaque = None,
                Part::ToolCall(call) => call.opaque = None,
                Part::Text { .. } | Part::Image(_) | Part::ToolResult(_) => {}
            }
        }
    }

    /// Returns the message without its calls and without provider-specific data, which may belong to them.
    #[must_use]
    pub fn without_calls(mut self) -> Self {
        self.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
        self.clear_opaque();
        self
    }

    /// Creates a message with one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// Creates the message with the results of a response's tool calls.
    pub fn tool_results(results: Vec<ToolResult>) -> Self {
        Self { role: Role::Tool, parts: results.into_iter().map(Part::ToolResult).collect() }
    }

    /// Returns all text parts joined, without reasoning.
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
            })
            .collect()
    }

    /// Returns all reasoning joined, one line per part.
    pub fn joined_thinking(&self) -> String {
        let thoughts = self.parts.iter().filter_map(|part| match part {
            Part::Thinking { text, .. } if !text.is_empty() => Some(text.as_str()),
            Part::Thinking { .. }
            | Part::Text { .. }
            | Part::Image(_)
            | Part::ToolCall(_)
            | Part::ToolResult(_) => None,
        });
        thoughts.collect::<Vec<_>>().join("\n")
    }

    /// Iterates over the images, those of tool results included.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.parts.iter().flat_map(|part| match part {
            Part::Image(image) => std::slice::from_ref(image),
            Part::ToolResult(result) => result.images.as_slice(),
            Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => &[],
        })
    }

    /// Iterates over the tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Image(_) | Part::Thinking { .. } | Part::ToolResult(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_receives_the_arguments_that_nobody_else_is_shown() {
        let mut call = ToolCall::new("a", "write_file", "{\"key\":\"secret\"}");
        call.redact_arguments(|arguments| *arguments = arguments.replace("secret", "[redacted]"));
        call.redact_arguments(|arguments| *arguments = arguments.replace("key", "KEY"));
        let stored = serde_json::to_string(&call).unwrap();
        assert!(!stored.contains("secret") && !format!("{call:?}").contains("secret"), "{stored}");
        assert_eq!(call.with_unredacted_arguments().arguments, "{\"key\":\"secret\"}");
        let read: ToolCall = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, call);
        assert_eq!(read.with_unredacted_arguments().arguments, call.arguments);
    }

    #[test]
    fn the_gist_of_a_result_is_its_first_line() {
        let gist = |text: &str| {
            let result = ToolResult {
                call_id: String::new(),
                text: text.to_owned(),
                is_error: true,
                images: Vec::new(),
            };
            result.summary_line().to_owned()
        };
        assert_eq!(gist("Error: no such file: x\nTry y."), "no such file: x");
        assert_eq!(gist("\n  done\n"), "done");
        assert_eq!(gist(""), "");
    }
}
