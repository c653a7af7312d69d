//! A conversation: messages made of parts, tool calls, tool results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who a message comes from, as the provider APIs name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The instructions, once, at the front.
    System,
    /// The person, a hook, or the loop itself (`[SYSTEM] …`).
    User,
    /// The model.
    Assistant,
    /// The results of one turn's tool calls, all of them, in the model's order.
    Tool,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who it comes from.
    pub role: Role,
    /// What it is made of, in order.
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
    /// The model's reasoning, as far as its provider shows it.
    Thinking {
        /// The visible part.
        text: String,
        /// What the provider wants back unmodified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opaque: Option<OpaqueData>,
    },
    /// A request of the model to run a tool.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult(ToolResult),
}

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Joins the call with its result; made up by us where a server sends none.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments exactly as the model wrote them; not necessarily valid JSON.
    pub arguments: String,
    /// What the provider wants back unmodified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OpaqueData>,
}

/// What a tool answered; every call gets exactly one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// The call it answers.
    pub call_id: String,
    /// What the model reads.
    pub text: String,
    /// Whether the call failed or was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// Data of one provider that only the codec of that name may replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpaqueData {
    /// The codec that understands it, such as `chat_completions`.
    pub codec: String,
    /// The data, untouched.
    pub data: Value,
}

/// Who said something in an earlier conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HistoryRole {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Something that was said in an earlier conversation: words alone, no calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryMessage {
    /// Who said it.
    pub role: HistoryRole,
    /// The words.
    pub content: String,
}

impl From<&HistoryMessage> for Message {
    fn from(said: &HistoryMessage) -> Self {
        let role = match said.role {
            HistoryRole::User => Role::User,
            HistoryRole::Assistant => Role::Assistant,
        };
        Self::text(role, said.content.as_str())
    }
}

impl ToolResult {
    /// Its first line, which says how it went, without the `Error:` that is there for the model.
    pub fn summary_line(&self) -> &str {
        let first = self.text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        first.strip_prefix("Error: ").unwrap_or(first)
    }
}

impl Message {
    /// Drops what only the model that made the message can read.
    pub fn clear_opaque(&mut self) {
        for part in &mut self.parts {
            match part {
                Part::Thinking { opaque, .. } => *opaque = None,
                Part::ToolCall(call) => call.opaque = None,
                Part::Text { .. } | Part::ToolResult(_) => {}
            }
        }
    }

    /// The message as it is without its calls, and without what only its model can read, which may belong to them.
    #[must_use]
    pub fn without_calls(mut self) -> Self {
        self.parts.retain(|part| !matches!(part, Part::ToolCall(_)));
        self.clear_opaque();
        self
    }

    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// The message that answers a turn's tool calls.
    pub fn tool_results(results: Vec<ToolResult>) -> Self {
        Self { role: Role::Tool, parts: results.into_iter().map(Part::ToolResult).collect() }
    }

    /// All text parts joined; thinking is not part of it.
    pub fn joined_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
            })
            .collect()
    }

    /// All reasoning joined, a line for each part.
    pub fn joined_thinking(&self) -> String {
        let thoughts = self.parts.iter().filter_map(|part| match part {
            Part::Thinking { text, .. } if !text.is_empty() => Some(text.as_str()),
            Part::Thinking { .. } | Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
        });
        thoughts.collect::<Vec<_>>().join("\n")
    }

    /// The tool calls, in the model's order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Thinking { .. } | Part::ToolResult(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_of_a_result_is_its_first_line() {
        let gist = |text: &str| {
            let result = ToolResult { call_id: String::new(), text: text.to_owned(), is_error: true };
            result.summary_line().to_owned()
        };
        assert_eq!(gist("Error: no such file: x\nTry y."), "no such file: x");
        assert_eq!(gist("\n  done\n"), "done");
        assert_eq!(gist(""), "");
    }
}
