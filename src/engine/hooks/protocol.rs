//! Protocol of hooks: the environment and input they receive, and the output that is read from them.

use super::rule::HookEvent;
use agent_core::message::CallKey;
use agent_process::capture::Captured;
use agent_process::shell;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum characters of a tool's output passed to a hook.
const MAX_TOOL_OUTPUT_CHARS: usize = 2000;

/// Maximum characters of the task passed to a hook.
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
    /// Known cost of the session so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
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
        let dollars = |amount: Option<f64>| amount.map(|amount| format!("{amount:.6}"));
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
            ("AGENT_SPENT_USD", dollars(self.spent_usd)),
            ("AGENT_TOTAL_COST", dollars(self.total_cost_usd)),
            ("AGENT_COST", dollars(self.total_cost_usd)),
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

/// A refusal in the output of a hook, in one of the forms that hooks of this program, of Claude Code
/// (<https://code.claude.com/docs/en/hooks>) and of Codex use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The user must approve the call.
    Ask(String),
    /// The action does not happen.
    Block(String),
    /// The run ends.
    Stop(String),
}

impl Refusal {
    /// Returns the refusal in an object that a hook has printed, with the hook's reason or an empty one.
    ///
    /// # Errors
    /// What is not understood: a decision that is not known, or a field with a value of another type.
    pub fn read(fields: &Map<String, Value>) -> Result<Option<Self>, String> {
        let no_fields = Map::new();
        let specific = match fields.get("hookSpecificOutput") {
            None | Some(Value::Null) => &no_fields,
            Some(Value::Object(specific)) => specific,
            Some(_) => return Err("`hookSpecificOutput` is not an object".to_owned()),
        };
        // The decision about a permission request has the form {"behavior": "deny", "message": "…"}.
        let (decisions, behavior) = match specific.get("decision") {
            Some(Value::Object(request)) => (request, request.get("behavior")),
            other => (specific, other),
        };
        let reasons = [
            specific.get("permissionDecisionReason"),
            decisions.get("message"),
            fields.get("reason"),
            fields.get("stopReason"),
            fields.get("systemMessage"),
        ];
        let mut reasons = reasons.into_iter().flatten().filter_map(Value::as_str).filter_map(non_empty_text);
        let why = reasons.next().unwrap_or_default();
        match fields.get("continue") {
            None | Some(Value::Null | Value::Bool(true)) => {}
            Some(Value::Bool(false)) => {
                let reason = fields.get("stopReason").and_then(Value::as_str).and_then(non_empty_text);
                return Ok(Some(Self::Stop(reason.unwrap_or(why))));
            }
            Some(other) => return Err(format!("`continue` is {}", shown(&other.to_string()))),
        }
        let (mut asks, mut blocks) = (false, false);
        for decision in [specific.get("permissionDecision"), behavior, fields.get("decision")] {
            let word = match decision {
                None | Some(Value::Null) => continue,
                Some(Value::String(word)) => word.trim().to_lowercase(),
                Some(other) => {
                    return Err(format!("the decision {} is not known", shown(&other.to_string())));
                }
            };
            match word.as_str() {
                "allow" | "approve" => {}
                "ask" => asks = true,
                "block" | "deny" | "defer" => blocks = true,
                _ => return Err(format!("the decision {} is not known", shown(&word))),
            }
        }
        Ok(if blocks { Some(Self::Block(why)) } else { asks.then_some(Self::Ask(why)) })
    }

    /// Returns the reason, if the hook gives one.
    pub fn stated_reason(&self) -> Option<&str> {
        let (Self::Ask(reason) | Self::Block(reason) | Self::Stop(reason)) = self;
        Some(reason.as_str()).filter(|reason| !reason.is_empty())
    }

    /// Returns the reason, or that there is none.
    pub fn reason(&self) -> &str {
        self.stated_reason().unwrap_or(NO_REASON)
    }

    /// Returns the stricter of two refusals; `self` if both are equally strict.
    fn or_stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Stop(_), _)
            | (Self::Block(_), Self::Ask(_) | Self::Block(_))
            | (Self::Ask(_), Self::Ask(_)) => self,
            _ => other,
        }
    }
}

/// Parsed output of a hook.
#[derive(Debug, Default, PartialEq)]
pub(super) struct HookOutput {
    /// New arguments for the tool.
    pub(super) updated_input: Option<Value>,
    /// Text for the model.
    pub(super) context: Option<String>,
    /// Result that replaces a call or the error of a failed call.
    pub(super) result: Option<String>,
    /// The strictest refusal.
    pub(super) refusal: Option<Refusal>,
    /// Text for the user.
    pub(super) note: Option<String>,
}

/// Reason of a refusal without one.
pub(super) const NO_REASON: &str = "the hook gave no reason";

/// Result of a call that a hook skips without a result.
const SKIPPED: &str = "Tool call skipped by hook";

/// Keys of the objects that a hook may print. Those without a meaning here, such as `suppressOutput`, only concern what is shown.
const KEYS: [&str; 14] = [
    "additionalContext",
    "async",
    "asyncTimeout",
    "continue",
    "decision",
    "fallbackResult",
    "hookSpecificOutput",
    "overrideResult",
    "reason",
    "skip",
    "stopReason",
    "suppressOutput",
    "systemMessage",
    "updatedInput",
];

/// Those of [`KEYS`] that messages of other programs have too, such as the JSON of cargo, and that alone mean nothing after a call.
const COMMON_KEYS: [&str; 4] = ["async", "asyncTimeout", "reason", "skip"];

/// Keys of `hookSpecificOutput` before a call.
const SPECIFIC_KEYS: [&str; 6] = [
    "additionalContext",
    "decision",
    "hookEventName",
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
];

/// Maximum characters of a part of a hook's output in an error.
const MAX_SHOWN_CHARS: usize = 80;

impl HookOutput {
    /// Parses standard output: plain text, JSON objects, or both, as after a banner.
    ///
    /// # Errors
    /// Before a call: what is not understood in an output without a readable refusal. After other events, it is text.
    pub(super) fn read(event: HookEvent, stdout: &Captured) -> Result<Self, String> {
        let bytes: Vec<u8> = stdout.head.iter().chain(&stdout.tail).copied().collect();
        let printed = String::from_utf8_lossy(&bytes);
        let printed = without_escape_sequences(printed.trim_start_matches('\u{feff}'));
        let pieces = pieces(printed.trim());
        let is_object = matches!(pieces.as_slice(), [Piece::Object(..)]);
        let (mut output, mut text, mut problem) = (Self::default(), String::new(), None);
        for piece in pieces {
            let (found, source) = match piece {
                Piece::Broken(excerpt, source) => {
                    (Err(format!("{} is not valid JSON", shown(excerpt))), source)
                }
                // After other events, an object among text counts if it has a known key.
                Piece::Object(fields, source)
                    if is_object || event == HookEvent::PreToolUse || has_known_key(&fields) =>
                {
                    (output.apply(event, &fields).map(|()| true), source)
                }
                Piece::Text(source) | Piece::Object(_, source) => (Ok(false), source),
            };
            match found {
                Ok(true) => {}
                Ok(false) => text.push_str(source),
                Err(_) if event != HookEvent::PreToolUse => text.push_str(source),
                Err(why) => problem = problem.or(Some(why)),
            }
        }
        if event == HookEvent::PreToolUse && stdout.is_truncated() {
            problem.get_or_insert_with(|| "it is too long".to_owned());
        }
        if let (Some(why), None) = (problem, &output.refusal) {
            return Err(format!("its output is not understood: {why}"));
        }
        output.context = match (non_empty_text(&text), output.context) {
            (Some(text), Some(context)) => Some(format!("{text}\n{context}")),
            (text, context) => text.or(context),
        };
        Ok(output)
    }

    /// Adds the fields of an object that have a meaning for `event`.
    fn apply(&mut self, event: HookEvent, fields: &Map<String, Value>) -> Result<(), String> {
        let is_before_call = event == HookEvent::PreToolUse;
        let specific = fields.get("hookSpecificOutput").and_then(Value::as_object);
        let field =
            |name: &str| fields.get(name).or_else(|| specific.and_then(|specific| specific.get(name)));
        let text_field = |name: &str| field(name).and_then(Value::as_str);
        let refusal = Refusal::read(fields);
        if let Ok(Some(refusal)) = refusal.clone() {
            self.refusal = Some(match self.refusal.take() {
                Some(earlier) => earlier.or_stricter(refusal),
                None => refusal,
            });
        }
        let contexts =
            self.context.take().into_iter().chain(text_field("additionalContext").and_then(non_empty_text));
        self.context = Some(contexts.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty());
        self.note = text_field("systemMessage").and_then(non_empty_text).or(self.note.take());
        match event {
            HookEvent::PreToolUse => {
                let skips = || (fields.get("skip") == Some(&Value::Bool(true))).then(|| SKIPPED.to_owned());
                self.result = text_field("overrideResult").map(bounded).or_else(skips).or(self.result.take());
                self.updated_input =
                    field("updatedInput").filter(|it| it.is_object()).cloned().or(self.updated_input.take());
            }
            HookEvent::OnError => {
                self.result = text_field("fallbackResult").map(bounded).or(self.result.take());
            }
            _ => {}
        }
        if is_before_call {
            check_before_call(fields, specific)?;
        }
        refusal.map(drop)
    }
}

/// Checks the keys and values of an object before a call.
fn check_before_call(
    fields: &Map<String, Value>,
    specific: Option<&Map<String, Value>>,
) -> Result<(), String> {
    let unknown = fields.keys().find(|key| !KEYS.contains(&key.as_str()));
    let inner = || specific?.keys().find(|key| !SPECIFIC_KEYS.contains(&key.as_str()));
    if let Some(key) = unknown.or_else(inner) {
        return Err(format!("the key {} is not known", shown(key)));
    }
    let updated =
        [Some(fields), specific].into_iter().flatten().filter_map(|fields| fields.get("updatedInput"));
    if updated.into_iter().any(|updated| !updated.is_object() && !updated.is_null()) {
        return Err("`updatedInput` is not an object".to_owned());
    }
    if fields.get("skip").is_some_and(|skip| !skip.is_boolean()) {
        return Err("`skip` is neither true nor false".to_owned());
    }
    if fields.get("overrideResult").is_some_and(|result| !result.is_string()) {
        return Err("`overrideResult` is not a text".to_owned());
    }
    let has = |fields: &Map<String, Value>, key: &str| fields.get(key).is_some_and(|value| !value.is_null());
    let has_reason = has(fields, "reason") || specific.is_some_and(|it| has(it, "permissionDecisionReason"));
    let has_decision = has(fields, "decision")
        || specific.is_some_and(|it| has(it, "permissionDecision") || has(it, "decision"))
        || has(fields, "continue");
    if has_reason && !has_decision {
        return Err("there is a reason without a decision".to_owned());
    }
    Ok(())
}

fn has_known_key(fields: &Map<String, Value>) -> bool {
    KEYS.iter().any(|key| !COMMON_KEYS.contains(key) && fields.contains_key(*key))
}

/// A part of what a hook prints, with its text.
enum Piece<'a> {
    Text(&'a str),
    Object(Map<String, Value>, &'a str),
    /// An object that cannot be parsed: the text from there on, and its first brace.
    Broken(&'a str, &'a str),
}

/// Splits `text` into JSON objects and the text around them. An object begins with a brace at the start of a line, or before a quote.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest, mut from) = (Vec::new(), text, 0);
    while let Some(at) = rest.get(from..).and_then(|tail| tail.find('{')).map(|at| from + at) {
        let (before, after) = rest.split_at(at);
        let line = before.trim_end_matches([' ', '\t', '\r']);
        let is_line_start = line.is_empty() || line.ends_with('\n');
        let starts_object = after.get(1..).is_some_and(|after| after.trim_start().starts_with(['"', '\'']));
        if !is_line_start && !starts_object {
            from = at + 1;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Map<String, Value>>();
        let (object, length) = match values.next() {
            Some(Ok(fields)) => (Some(fields), values.byte_offset()),
            _ => (None, 1),
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let (source, rest_of_text) = after.split_at(length);
        pieces.push(match object {
            Some(fields) => Piece::Object(fields, source),
            None => Piece::Broken(after, source),
        });
        (rest, from) = (rest_of_text, 0);
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Removes the escape sequences with which programs colour their output.
fn without_escape_sequences(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut after = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').chars();
        after.next();
        plain.push_str(after.as_str());
    }
    plain
}

/// Returns a part of a hook's output for an error, of limited length.
fn shown(text: &str) -> String {
    format!("`{}`", first(text.trim(), MAX_SHOWN_CHARS))
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

    fn read(event: HookEvent, text: &str) -> HookOutput {
        HookOutput::read(event, &captured(text)).unwrap()
    }

    #[test]
    fn h5_an_answer_is_json_or_text() {
        let answer =
            read(HookEvent::PreToolUse, r#"{"updatedInput": {"path": "b"}, "additionalContext": " look "}"#);
        assert_eq!(answer.updated_input, Some(serde_json::json!({"path": "b"})));
        assert_eq!(answer.context.as_deref(), Some("look"));
        for text in ["  plain text\n", "use {} or {file}, not null", "a {b\nc: d}\n[x]", "say \"no\""] {
            assert_eq!(read(HookEvent::PreToolUse, text).context.as_deref(), Some(text.trim()));
        }
        assert_eq!(read(HookEvent::PostEdit, "{broken").context.as_deref(), Some("{broken"));
        assert_eq!(read(HookEvent::PreToolUse, "\n"), HookOutput::default());
        let rewrite = read(HookEvent::PostEdit, r#"{"updatedInput": {"path": "b"}}"#);
        assert_eq!(rewrite, HookOutput::default(), "there is nothing to rewrite any more");
        assert!(read(HookEvent::PreToolUse, &"x".repeat(50_000)).context.unwrap().len() < 9000);
    }

    // Fault A11: the refusals of other agents' hooks, and JSON after a banner, were ignored or taken as text.
    #[test]
    fn a_refusal_in_any_published_form_is_one() {
        let refusal = |text: &str| read(HookEvent::PreToolUse, text).refusal;
        let block = |reason: &str| Some(Refusal::Block(reason.to_owned()));
        let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
        for text in [
            r#"{"decision": "block", "reason": "no"}"#,
            r#"{"decision": "deny", "reason": "no", "suppressOutput": true}"#,
            r#"{"decision": " Block ", "systemMessage": "no"}"#,
            r#"{"hookSpecificOutput": {"permissionDecision": "defer", "permissionDecisionReason": "no"}}"#,
            r#"{"decision": "approve", "hookSpecificOutput": {"permissionDecision": "deny"}, "reason": "no"}"#,
            r#"{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny", "message": "no"}}}"#,
            deny,
            &format!("[{deny}]"),
            &format!("\u{feff}{deny}"),
            &format!("Checking ...\n{deny}\n"),
            &format!("Checking ... {deny} done"),
            &format!("{{\"decision\": \"approve\"}}\n{deny}"),
            &format!("{deny}{{\"hookSpecificOutput\": {{\"permissionDecision\": \"ask\"}}}}"),
            &format!("{{\"level\": \"info\"}}\n{deny}\n{{\"decision\": \"blo"),
            "\u{1b}[1;39m{\n  \u{1b}[0m\u{1b}[34;1m\"decision\"\u{1b}[0m: \u{1b}[0;32m\"block\"\u{1b}[0m, \"reason\": \"no\"}",
        ] {
            assert_eq!(refusal(text), block("no"), "{text}");
        }
        assert_eq!(refusal(r#"{"decision": "block"}"#), block(""));
        let ask = refusal(r#"{"hookSpecificOutput": {"permissionDecision": "ask"}, "reason": "sure?"}"#);
        assert_eq!(ask, Some(Refusal::Ask("sure?".to_owned())));
        for text in [
            "{}",
            r#"{"continue": true, "suppressOutput": true, "systemMessage": "x"}"#,
            r#"{"decision": "approve", "reason": "fine"}"#,
            r#"{"decision": null, "hookSpecificOutput": {"permissionDecision": "allow"}}"#,
        ] {
            assert_eq!(refusal(text), None, "{text}");
        }
        let carried = read(
            HookEvent::PreToolUse,
            "one moment\n{\"hookSpecificOutput\": {\"permissionDecision\": \"allow\", \"updatedInput\": {\"a\": 1}, \"additionalContext\": \"two\"}}",
        );
        assert_eq!(carried.updated_input, Some(serde_json::json!({"a": 1})));
        assert_eq!(carried.context.as_deref(), Some("one moment\ntwo"));
    }

    // Fault A11: an output that could not be parsed was passed to the model as text, and the call ran.
    #[test]
    fn an_output_before_a_call_that_is_not_understood_is_an_error() {
        for (text, problem) in [
            ("{broken", "`{broken` is not valid JSON"),
            ("checked\n{\"decision\": \"blo", "not valid JSON"),
            ("{'decision': 'block'}", "not valid JSON"),
            ("result: {'decision': 'block'}", "not valid JSON"),
            (r#"{"permission": "deny"}"#, "`permission` is not known"),
            (r#"{"hook_specific_output": {}}"#, "`hook_specific_output` is not known"),
            (
                r#"{"hookSpecificOutput": {"permission_decision": "deny"}}"#,
                "`permission_decision` is not known",
            ),
            (r#"{"hookSpecificOutput": "deny"}"#, "is not an object"),
            (r#"{"decision": "reject"}"#, "`reject` is not known"),
            (r#"{"decision": false}"#, "`false` is not known"),
            (r#"{"continue": "false"}"#, "`continue`"),
            (r#"{"updatedInput": "no object"}"#, "`updatedInput` is not an object"),
            (r#"{"skip": "true"}"#, "`skip`"),
            (r#"{"reason": "not this"}"#, "a reason without a decision"),
        ] {
            let error = HookOutput::read(HookEvent::PreToolUse, &captured(text)).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
            assert!(HookOutput::read(HookEvent::PostToolUse, &captured(text)).is_ok(), "{text}");
        }
        let cut = Captured { total: 1_000_000, ..captured("long") };
        assert!(HookOutput::read(HookEvent::PreToolUse, &cut).unwrap_err().contains("too long"));
        assert_eq!(read(HookEvent::PostEdit, "a: {\"b\": 1}\n").context.as_deref(), Some("a: {\"b\": 1}"));
        let messages = "{\"reason\":\"compiler-message\",\"b\":1}\n{\"reason\":\"build-finished\"}";
        assert_eq!(read(HookEvent::PostEdit, messages).context.as_deref(), Some(messages));
    }

    #[test]
    fn h9_a_run_is_ended_where_hooks_are_heard() {
        let refusal = |event, text| read(event, text).refusal;
        let stop = |reason: &str| Some(Refusal::Stop(reason.to_owned()));
        let text = r#"{"continue": false, "stopReason": "enough"}"#;
        assert_eq!(refusal(HookEvent::PreToolUse, text), stop("enough"));
        assert_eq!(refusal(HookEvent::OnError, r#"{"continue": false}"#), stop(""));
        assert_eq!(refusal(HookEvent::PreToolUse, r#"{"continue": true, "stopReason": "x"}"#), None);
        assert_eq!(refusal(HookEvent::PreToolUse, r#"{"stopReason": "x"}"#), None);
    }

    #[test]
    fn h9_a_result_is_given_where_there_is_none_yet() {
        let result = |event, text| read(event, text).result;
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
