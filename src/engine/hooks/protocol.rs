//! Protocol of hooks: the environment and input they receive, and the output that is read from them.

use super::rule::HookEvent;
use crate::core::message::CallKey;
use crate::process::capture::Captured;
use crate::process::shell;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum characters of a tool's output passed to a hook (spec.md 1.9).
const MAX_TOOL_OUTPUT_CHARS: usize = 2000;

/// Maximum characters of the task passed to a hook (spec.md 1.9).
const MAX_TASK_CHARS: usize = 200;

/// Maximum characters of any other variable: Linux limits one variable to 128 KiB, and also their total size.
const MAX_VARIABLE_CHARS: usize = 8000;

/// Maximum characters of one text from a hook for the model.
const MAX_MESSAGE_CHARS: usize = 8000;

/// Placeholder for the path of the file in a hook's command.
const FILE_PLACEHOLDER: &str = "{file}";

/// Data about an event for a hook. Fields that the event does not have stay empty.
#[derive(Debug, Clone, Default, Serialize)]
pub struct HookInput {
    /// The tool call, for hooks of a client.
    #[serde(skip)]
    pub call: Option<CallKey>,
    /// The tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The tool's arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_input: Option<Value>,
    /// The tool's result; the hook receives the first 2000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_output: Option<String>,
    /// Whether the call succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_success: Option<bool>,
    /// The file that the call names or, for `post_edit`, changed; relative to the workspace root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    /// The other files that the call names; a hook runs once for each file that it matches.
    #[serde(skip)]
    pub other_files: Vec<String>,
    /// The shell command that would run or ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The user's task; the hook receives the first 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The current step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Whether the model's answer contains tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_tool_calls: Option<bool>,
    /// Number of steps of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// The status of the run that ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Cost of the run so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_usd: Option<f64>,
    /// Approximate tokens of the next prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

impl HookInput {
    /// Returns the environment variables for a hook.
    pub(super) fn variables(&self, event: HookEvent, workspace: &str) -> BTreeMap<String, String> {
        let file = self.file_path.as_deref().map(plain_path);
        let edited = file.clone().filter(|_| event == HookEvent::PostEdit);
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let truth = |truth: Option<bool>| truth.map(|truth| truth.to_string());
        let variables = [
            ("AGENT_EVENT", Some(event.name().to_owned())),
            ("AGENT_WORKSPACE", Some(workspace.to_owned())),
            ("AGENT_TOOL_NAME", self.tool_name.clone()),
            ("AGENT_FILE_PATH", file),
            ("AGENT_EDITED_FILE", edited.clone()),
            ("ARCHITECT_EDITED_FILE", edited),
            ("AGENT_COMMAND", self.command.clone()),
            ("AGENT_TOOL_RESULT_SUCCESS", truth(self.tool_success)),
            ("AGENT_TASK", self.task.as_deref().map(|task| first(task, MAX_TASK_CHARS).to_owned())),
            ("AGENT_AGENT", self.agent.clone()),
            ("AGENT_MODEL", self.model.clone()),
            ("AGENT_STEP", number(self.step)),
            ("AGENT_HAS_TOOL_CALLS", truth(self.has_tool_calls)),
            ("AGENT_STEPS", number(self.steps)),
            ("AGENT_STATUS", self.status.clone()),
            ("AGENT_CONTEXT_TOKENS", self.context_tokens.map(|tokens| tokens.to_string())),
            ("AGENT_SPENT_USD", self.spent_usd.map(|dollars| format!("{dollars:.6}"))),
        ];
        let set = variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        set.map(|(name, value)| (name, first(&value, MAX_VARIABLE_CHARS).to_owned())).collect()
    }

    /// Returns the JSON document for a hook's standard input.
    pub(super) fn document(&self, event: HookEvent) -> Vec<u8> {
        let bounded = Self {
            tool_output: self
                .tool_output
                .as_deref()
                .map(|text| first(text, MAX_TOOL_OUTPUT_CHARS).to_owned()),
            task: self.task.as_deref().map(|text| first(text, MAX_TASK_CHARS).to_owned()),
            ..self.clone()
        };
        let mut document = serde_json::json!({ "event": event.name() });
        if let (Value::Object(document), Ok(Value::Object(fields))) =
            (&mut document, serde_json::to_value(bounded))
        {
            document.extend(fields);
        }
        document.to_string().into_bytes()
    }

    /// Replaces `{file}` in `command`, with or without quotes around it, by the quoted path.
    pub(super) fn fill_placeholder(&self, command: &str) -> String {
        let file = shell::quoted(&self.file_path.as_deref().map(plain_path).unwrap_or_default());
        let mut filled = String::with_capacity(command.len());
        let mut rest = command;
        // A single pass, so that `{file}` inside of a path is not replaced again.
        while let Some(at) = rest.find(FILE_PLACEHOLDER) {
            let (mut before, after) = rest.split_at(at);
            let mut after = after.strip_prefix(FILE_PLACEHOLDER).unwrap_or_default();
            for quote in ['"', '\''] {
                if let (Some(open), Some(close)) = (before.strip_suffix(quote), after.strip_prefix(quote)) {
                    (before, after) = (open, close);
                    break;
                }
            }
            filled.push_str(before);
            filled.push_str(&file);
            rest = after;
        }
        filled + rest
    }
}

/// Parsed output of a hook that exited with 0.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookOutput {
    /// New arguments for the tool.
    pub(super) updated_input: Option<Value>,
    /// Text for the model.
    pub(super) context: Option<String>,
    /// Result that replaces a call or the error of a failed call.
    pub(super) result: Option<String>,
    /// Reason to end the run.
    pub(super) stop: Option<String>,
}

/// Reason used when a hook ends a run without a reason.
const NO_REASON: &str = "a hook ended the run and gave no reason";

/// Result of a call that a hook skips without a result (spec.md 2.1).
const SKIPPED: &str = "Tool call skipped by hook";

impl HookOutput {
    /// Parses standard output: a JSON object with `additionalContext` and the fields allowed for `event`, else plain text.
    pub(super) fn read(event: HookEvent, stdout: &Captured) -> Self {
        let whole = !stdout.is_truncated() && stdout.tail.is_empty();
        match serde_json::from_slice(&stdout.head) {
            Ok(Value::Object(mut fields)) if whole => Self {
                updated_input: match event {
                    HookEvent::PreToolUse => fields.remove("updatedInput").filter(Value::is_object),
                    _ => None,
                },
                context: fields.get("additionalContext").and_then(Value::as_str).and_then(non_empty_text),
                result: Self::result(event, &fields),
                stop: Self::stop(event, &fields),
            },
            _ => Self { context: text(stdout), ..Self::default() },
        }
    }

    fn stop(event: HookEvent, fields: &Map<String, Value>) -> Option<String> {
        let ends = event.can_block() && fields.get("continue") == Some(&Value::Bool(false));
        let reason = fields.get("stopReason").and_then(Value::as_str).and_then(non_empty_text);
        ends.then(|| reason.unwrap_or_else(|| NO_REASON.to_owned()))
    }

    fn result(event: HookEvent, fields: &Map<String, Value>) -> Option<String> {
        let text_field = |name: &str| fields.get(name).and_then(Value::as_str).map(bounded);
        let skips = || (fields.get("skip") == Some(&Value::Bool(true))).then(|| SKIPPED.to_owned());
        match event {
            HookEvent::PreToolUse => text_field("overrideResult").or_else(skips),
            HookEvent::OnError => text_field("fallbackResult"),
            _ => None,
        }
    }
}

/// Returns the text of a stream, of limited length; `None` when it is empty.
pub(super) fn text(captured: &Captured) -> Option<String> {
    non_empty_text(&String::from_utf8_lossy(&captured.head))
}

fn non_empty_text(text: &str) -> Option<String> {
    Some(bounded(text)).filter(|text| !text.is_empty())
}

fn bounded(text: &str) -> String {
    let text = text.trim();
    let shown = first(text, MAX_MESSAGE_CHARS);
    let rest =
        if shown.len() < text.len() { "\n[... the rest of the hook's output is left out ...]" } else { "" };
    format!("{shown}{rest}")
}

/// Prefixes a path that starts with `-`, so that no program reads it as an option.
fn plain_path(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

fn first(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| text.split_at(end).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str) -> Captured {
        Captured { head: text.into(), total: text.len() as u64, ..Captured::default() }
    }

    fn about(file: &str) -> HookInput {
        HookInput { file_path: Some(file.to_owned()), ..HookInput::default() }
    }

    #[test]
    fn h7_the_file_is_filled_in_as_one_word_whatever_it_is_called() {
        assert_eq!(about("a b.py").fill_placeholder("ruff check {file} && x"), "ruff check 'a b.py' && x");
        assert_eq!(about("a.py").fill_placeholder("x \"{file}\" '{file}' {file}"), "x 'a.py' 'a.py' 'a.py'");
        assert_eq!(about("'; rm -rf x").fill_placeholder("x {file}"), r"x ''\''; rm -rf x'");
        assert_eq!(about("-rf").fill_placeholder("x {file}"), "x './-rf'");
        assert_eq!(about("{file}").fill_placeholder("x {file}"), "x '{file}'");
        assert_eq!(HookInput::default().fill_placeholder("x {file}"), "x ''");
    }

    #[test]
    fn variables_and_document_hold_what_the_event_has_and_are_bounded() {
        let input = HookInput {
            tool_name: Some("edit_file".to_owned()),
            tool_output: Some("x".repeat(5000)),
            tool_success: Some(true),
            task: Some("ä".repeat(500)),
            step: Some(3),
            ..about("a.py")
        };
        let variables = input.variables(HookEvent::PostEdit, "/w");
        assert_eq!(variables["AGENT_TASK"].chars().count(), 200);
        let pairs = [
            ("AGENT_EVENT", "post_edit"),
            ("AGENT_WORKSPACE", "/w"),
            ("AGENT_EDITED_FILE", "a.py"),
            ("ARCHITECT_EDITED_FILE", "a.py"),
            ("AGENT_TOOL_RESULT_SUCCESS", "true"),
            ("AGENT_STEP", "3"),
        ];
        for (name, value) in pairs {
            assert_eq!(variables[name], value);
        }
        assert!(!input.variables(HookEvent::PostToolUse, "/w").contains_key("AGENT_EDITED_FILE"));
        let document: Value = serde_json::from_slice(&input.document(HookEvent::PostEdit)).unwrap();
        assert_eq!((&document["event"], &document["step"]), (&"post_edit".into(), &3.into()));
        assert_eq!(document["tool_output"].as_str().unwrap().len(), 2000);
        assert!(document.get("command").is_none());
    }

    #[test]
    fn h5_an_answer_is_json_or_text() {
        let answer = HookOutput::read(
            HookEvent::PreToolUse,
            &captured(r#"{"updatedInput": {"path": "b"}, "additionalContext": " look "}"#),
        );
        assert_eq!(answer.updated_input, Some(serde_json::json!({"path": "b"})));
        assert_eq!(answer.context.as_deref(), Some("look"));
        assert_eq!(
            HookOutput::read(HookEvent::PreToolUse, &captured("  plain text\n")).context.as_deref(),
            Some("plain text")
        );
        assert_eq!(
            HookOutput::read(HookEvent::PreToolUse, &captured("{broken")).context.as_deref(),
            Some("{broken")
        );
        assert_eq!(
            HookOutput::read(HookEvent::PreToolUse, &captured(r#"{"updatedInput": "no object"}"#)),
            HookOutput::default()
        );
        assert_eq!(HookOutput::read(HookEvent::PreToolUse, &captured("\n")), HookOutput::default());
        let rewrite = HookOutput::read(HookEvent::PostEdit, &captured(r#"{"updatedInput": {"path": "b"}}"#));
        assert_eq!(rewrite, HookOutput::default(), "there is nothing to rewrite any more");
        assert!(
            HookOutput::read(HookEvent::PreToolUse, &captured(&"x".repeat(50_000))).context.unwrap().len()
                < 9000
        );
    }

    #[test]
    fn h9_a_run_is_ended_where_hooks_are_heard() {
        let stop = |event, text| HookOutput::read(event, &captured(text)).stop;
        let text = r#"{"continue": false, "stopReason": "enough"}"#;
        assert_eq!(stop(HookEvent::PreToolUse, text).as_deref(), Some("enough"));
        assert_eq!(stop(HookEvent::OnError, r#"{"continue": false}"#).as_deref(), Some(NO_REASON));
        assert_eq!(stop(HookEvent::SessionEnd, text), None);
        assert_eq!(stop(HookEvent::PreToolUse, r#"{"continue": true, "stopReason": "x"}"#), None);
        assert_eq!(stop(HookEvent::PreToolUse, r#"{"stopReason": "x"}"#), None);
    }

    #[test]
    fn h9_a_result_is_given_where_there_is_none_yet() {
        let result = |event, text| HookOutput::read(event, &captured(text)).result;
        let before = |text| result(HookEvent::PreToolUse, text);
        assert_eq!(before(r#"{"overrideResult": " given "}"#).as_deref(), Some("given"));
        assert_eq!(before(r#"{"skip": true, "overrideResult": ""}"#).as_deref(), Some(""));
        assert_eq!(before(r#"{"skip": true}"#).as_deref(), Some(SKIPPED));
        assert_eq!(before(r#"{"skip": false, "fallbackResult": "x"}"#), None);
        assert_eq!(result(HookEvent::OnError, r#"{"fallbackResult": "x"}"#).as_deref(), Some("x"));
        assert_eq!(result(HookEvent::OnError, r#"{"skip": true, "overrideResult": "x"}"#), None);
        assert_eq!(result(HookEvent::PostToolUse, r#"{"skip": true, "fallbackResult": "x"}"#), None);
    }
}
