//! Permission rules of Claude Code (`Bash(npm run test:*)`, `Read(./.env)`) as rules and guardrails of this program.
//!
//! `deny` and `ask` may become stricter, never laxer. `allow` is carried over only where exactly the same is allowed.

use super::{Counterpart, Target};
use agent_core::message::MCP_PREFIX;
use agent_messages as messages;
use serde_json::json;

/// Glob of the tools that read files.
const READ_TOOLS: &str = "{read_file,list_files,find_files,search_code,grep}";
/// Glob of the tools that change files.
const EDIT_TOOLS: &str = "{write_file,edit_file,apply_patch,delete_file}";

/// Returns the counterpart of `rule` in the list `action` (`allow`, `ask` or `deny`).
///
/// # Errors
/// Fails with the reason why there is none.
pub(super) fn counterpart(action: &str, rule: &str, target: Target) -> Result<Counterpart, String> {
    let (tool, specifier) = split(rule).ok_or_else(|| messages::IMPORT_MALFORMED.to_owned())?;
    let specifier = specifier.filter(|text| !["", "*", ":*", "**"].contains(text));
    match tool {
        "Bash" => command(action, specifier),
        "Read" | "Grep" | "Glob" | "LS" => read(action, tool, specifier, target),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => edit(action, specifier, target),
        "WebFetch" => fetch(action, specifier),
        "Task" | "Agent" if specifier.is_none() && action != "allow" => {
            Ok(Counterpart::rule(action, "tool", "dispatch_subagent"))
        }
        _ if tool.starts_with(MCP_PREFIX) && (action == "allow" || specifier.is_some()) => {
            Err(messages::IMPORT_MCP_ALLOW.to_owned())
        }
        _ if tool.starts_with(MCP_PREFIX) => Ok(Counterpart::rule(action, "tool", &server_tools(tool))),
        _ => Err(messages::IMPORT_NO_TOOL.to_owned()),
    }
}

/// Returns the glob of `tool`, which is the tool of a server or all of them. The other agent writes `_` for what is no letter.
fn server_tools(tool: &str) -> String {
    let of_server = tool.strip_prefix(MCP_PREFIX).unwrap_or(tool);
    let (server, tool) = of_server.split_once("__").unwrap_or((of_server, "*"));
    format!("{MCP_PREFIX}{}__{tool}", server.to_ascii_lowercase().replace('_', "?"))
}

/// Splits a rule into the tool and the text in parentheses.
fn split(rule: &str) -> Option<(&str, Option<&str>)> {
    let rule = rule.trim();
    match rule.split_once('(') {
        Some((tool, rest)) => Some((tool, Some(rest.strip_suffix(')')?.trim()))),
        None => Some((rule, None)),
    }
}

fn command(action: &str, specifier: Option<&str>) -> Result<Counterpart, String> {
    let allows = action == "allow";
    let Some(text) = specifier else {
        let every = || messages::IMPORT_ALLOWS_EVERYTHING.to_owned();
        return if allows { Err(every()) } else { Ok(Counterpart::rule(action, "tool", "run_command")) };
    };
    let prefix =
        text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")).filter(|text| !text.contains('*'));
    let words = prefix.or_else(|| (!text.contains('*')).then_some(text)).filter(|words| is_plain(words));
    match (words, action) {
        (Some(words), "allow") if prefix.is_some() => Ok(Counterpart::rule(action, "command", words)),
        (_, "allow") => Err(messages::IMPORT_ALLOW_PREFIX.to_owned()),
        (Some(words), _) => Ok(Counterpart::rule(action, "command", words)),
        (None, "deny") => Ok(Counterpart::new("guardrails.blocked_commands", pattern(text))),
        (None, _) => Err(messages::IMPORT_ASK_PATTERN.to_owned()),
    }
}

/// Checks whether the words of a command mean themselves, to a shell too, and begin with a program.
fn is_plain(words: &str) -> bool {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || " _-./:@%+,=".contains(c);
    let first = words.split_whitespace().next().unwrap_or_default();
    !first.is_empty() && !first.contains('=') && words.chars().all(is_plain_char)
}

/// Returns the regular expression of a command in which `*` stands for any text.
fn pattern(text: &str) -> String {
    let text = text.strip_suffix(":*").map_or_else(|| text.to_owned(), |prefix| format!("{prefix}*"));
    let (text, end) = match text.strip_suffix('*') {
        Some(prefix) => (prefix.trim_end(), ""),
        None => (text.as_str(), "$"),
    };
    let parts: Vec<String> = text.split('*').map(regex::escape).collect();
    format!("^{}{end}", parts.join(".*"))
}

fn read(action: &str, tool: &str, specifier: Option<&str>, target: Target) -> Result<Counterpart, String> {
    match (action, specifier) {
        ("allow", _) => Err(messages::IMPORT_READING.to_owned()),
        (_, Some(_)) if tool != "Read" => Err(messages::IMPORT_IGNORED_THERE.to_owned()),
        ("deny", Some(path)) => {
            Ok(Counterpart::new("guardrails.sensitive_files", file_pattern(path, target)?))
        }
        (_, Some(path)) => Ok(path_rule(action, READ_TOOLS, &file_pattern(path, target)?)),
        (_, None) if tool == "Read" => Ok(Counterpart::rule(action, "tool", READ_TOOLS)),
        (_, None) => {
            let ours = match tool {
                "Grep" => "{grep,search_code}",
                "Glob" => "find_files",
                _ => "list_files",
            };
            Ok(Counterpart::rule(action, "tool", ours))
        }
    }
}

fn edit(action: &str, specifier: Option<&str>, target: Target) -> Result<Counterpart, String> {
    match (action, specifier) {
        ("allow", None) => Err(messages::IMPORT_ALLOWS_EVERYTHING.to_owned()),
        ("allow", Some(_)) => Err(messages::IMPORT_ALLOW_FILES.to_owned()),
        ("deny", Some(path)) => {
            Ok(Counterpart::new("guardrails.protected_files", file_pattern(path, target)?))
        }
        (_, Some(path)) => Ok(path_rule(action, EDIT_TOOLS, &file_pattern(path, target)?)),
        (_, None) => Ok(Counterpart::rule(action, "tool", EDIT_TOOLS)),
    }
}

fn path_rule(action: &str, tools: &str, path: &str) -> Counterpart {
    Counterpart::new("policy.rules", json!({"action": action, "tool": tools, "path": path}))
}

/// Returns the file pattern for a path, which may match more files here: a name alone matches in every directory.
fn file_pattern(path: &str, target: Target) -> Result<String, String> {
    if path.starts_with("//") || path.starts_with('~') || path.split('/').any(|part| part == "..") {
        return Err(messages::IMPORT_OUTSIDE.to_owned());
    }
    if path.starts_with('!') || path.contains('\\') || (path.starts_with('/') && target == Target::User) {
        return Err(messages::IMPORT_PATTERN.to_owned());
    }
    let bare = path.trim_start_matches("./").trim_start_matches('/');
    if bare.is_empty() { Ok("*".to_owned()) } else { Ok(bare.to_owned()) }
}

fn fetch(action: &str, specifier: Option<&str>) -> Result<Counterpart, String> {
    match (action, specifier.map(|text| text.strip_prefix("domain:"))) {
        ("allow", _) => Err(messages::IMPORT_WEB.to_owned()),
        (_, None) => Ok(Counterpart::rule(action, "tool", "web_fetch")),
        (_, Some(Some(host))) => Ok(Counterpart::rule(action, "host", host)),
        (_, Some(None)) => Err(messages::IMPORT_MALFORMED.to_owned()),
    }
}
