//! Hooks of Claude Code as hooks of this program. Their input differs, so hooks that visibly read it are not carried over.

use super::{Counterpart, ForeignSetting};
use crate::claude_names::{is_of_server, names};
use agent_messages as messages;
use agent_tools::toolbox::known_names;
use regex::Regex;
use serde_json::{Value, json};

/// Time limit of a hook there that sets none, and the longest here, in seconds.
const DEFAULT_TIMEOUT: u64 = 60;
const MAX_TIMEOUT: u64 = 300;

/// Texts in a command that read the other agent's input or environment.
const FOREIGN_INPUT: [&str; 7] =
    ["tool_input", "tool_response", "hook_event_name", "transcript_path", "session_id", "CLAUDE_", "{file}"];

/// Returns the hooks of the value of `hooks`; `file` names them.
pub(super) fn settings(file: &str, hooks: &Value) -> Vec<ForeignSetting> {
    let mut found = Vec::new();
    let Some(events) = hooks.as_object() else {
        let setting = ForeignSetting::skipped(file, "hooks", messages::IMPORT_MALFORMED);
        return vec![setting.restricting_commands(true)];
    };
    for (event, groups) in events {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
            for hook in group.get("hooks").and_then(Value::as_array).into_iter().flatten() {
                let command = hook.get("command").and_then(Value::as_str).unwrap_or_default();
                let event_name =
                    if matcher.is_empty() { event.clone() } else { format!("{event} {matcher}") };
                let name = format!("{file}: hooks.{event_name} `{command}`");
                let setting = ForeignSetting::new(name, counterpart(event, matcher, hook));
                found.push(setting.restricting_commands(event == "PreToolUse"));
            }
        }
    }
    found
}

fn counterpart(event: &str, matcher: &str, hook: &Value) -> Result<Counterpart, String> {
    if hook.get("type").and_then(Value::as_str) != Some("command") {
        return Err(messages::IMPORT_HOOK_TYPE.to_owned());
    }
    let Some(command) = hook.get("command").and_then(Value::as_str) else {
        return Err(messages::IMPORT_MALFORMED.to_owned());
    };
    let (key, matcher) = event_and_matcher(event, matcher)?;
    let command = relative_to_workspace(command);
    if FOREIGN_INPUT.iter().any(|text| command.contains(text)) {
        return Err(messages::IMPORT_HOOK_INPUT.to_owned());
    }
    let timeout = hook.get("timeout").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT);
    let mut rule = json!({"command": command, "timeout": timeout.clamp(1, MAX_TIMEOUT)});
    if let (Some(fields), Some(matcher)) = (rule.as_object_mut(), matcher) {
        fields.insert("matcher".to_owned(), matcher.into());
    }
    if let (Some(fields), Some(true)) = (rule.as_object_mut(), hook.get("async").and_then(Value::as_bool)) {
        fields.insert("async".to_owned(), true.into());
    }
    let note = match key {
        "hooks.agent_complete" => messages::IMPORT_STOP_HOOK,
        _ => messages::IMPORT_HOOK_CHECK,
    };
    Ok(Counterpart::new(key, rule).with_note(note))
}

/// Returns the key of an event, and the matcher of tools where one is needed.
fn event_and_matcher(event: &str, matcher: &str) -> Result<(&'static str, Option<String>), String> {
    let is_any = matcher.is_empty() || matcher == "*";
    let key = match event {
        "PreToolUse" => "hooks.pre_tool_use",
        "PostToolUse" => "hooks.post_tool_use",
        "PostToolUseFailure" => "hooks.on_error",
        "SessionStart" if is_any || matcher == "startup|resume" => return Ok(("hooks.session_start", None)),
        "SessionEnd" if is_any => return Ok(("hooks.session_end", None)),
        "Stop" => return Ok(("hooks.agent_complete", None)),
        "PreCompact" if is_any || matcher == "auto" => return Ok(("hooks.context_compress", None)),
        "SessionStart" | "SessionEnd" | "PreCompact" => return Err(messages::IMPORT_MATCHER.to_owned()),
        _ => return Err(messages::IMPORT_HOOK_EVENT.to_owned()),
    };
    if is_any {
        return Ok((key, None));
    }
    let tools = if matcher.contains(['(', '[', '\\']) { covered(matcher) } else { alternatives(matcher) };
    let tools = tools.ok_or_else(|| messages::IMPORT_MATCHER.to_owned())?;
    Ok((key, Some(tools.join("|"))))
}

/// Returns the tools here of each alternative of a matcher; `None` if one has none.
fn alternatives(matcher: &str) -> Option<Vec<String>> {
    let mut tools = Vec::new();
    for name in matcher.split('|') {
        // Both programs form the names of an MCP server's tools in the same way.
        let of_server = is_of_server(name).then(|| vec![name.to_owned()]);
        let found = of_server.or_else(|| covered(name))?;
        for tool in found {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
    }
    Some(tools)
}

/// Returns the tools here that a name or, there, a regular expression on any part of a name stands for.
fn covered(name: &str) -> Option<Vec<String>> {
    let tools: Vec<String> = if name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_') {
        names().covered(name).map(str::to_owned).collect()
    } else {
        let regex = Regex::new(name).ok()?;
        let is_meant = |tool: &String| {
            names().meanings(tool).any(|meaning| meaning != tool.as_str() && regex.is_match(meaning))
        };
        known_names().into_iter().filter(is_meant).collect()
    };
    Some(tools).filter(|tools| !tools.is_empty())
}

/// Replaces the variable with the project's directory: hooks run in it.
fn relative_to_workspace(command: &str) -> String {
    [
        "\"$CLAUDE_PROJECT_DIR\"/",
        "\"${CLAUDE_PROJECT_DIR}\"/",
        "$CLAUDE_PROJECT_DIR/",
        "${CLAUDE_PROJECT_DIR}/",
    ]
    .iter()
    .fold(command.to_owned(), |command, variable| command.replace(variable, "./"))
}
