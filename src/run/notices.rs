//! Notices at the start of a run: confinement of commands, a context window that is too small, hooks that never run, a damaged journal.

use crate::assemble;
use agent_config::claude_names::{self, names};
use agent_config::settings::Settings;
use agent_core::limits::Limits;
use agent_engine::hooks::{HookRule, matcher};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_session::context_window::BYTES_PER_TOKEN;
use agent_session::session_state::SessionState;
use agent_tools::toolbox::known_names;

/// Divisor of the context window: tools that take more than this share cause a notice.
const TOOLS_SHARE: u64 = 3;

/// Returns the notices at the start of a run with `tools` on the confinement of commands, the context windows of the models, and the hooks.
pub fn startup_notices<'a>(
    settings: &Settings,
    launcher: &Launcher,
    limits: &Limits,
    window: Option<u64>,
    tools: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let mut notices = assemble::sandbox_notices(settings, launcher);
    notices.extend(window_notice(limits, window));
    notices.extend(unmatched_hooks(settings, tools));
    notices
}

/// Returns a notice on each hook that never runs, or not for a part of its matcher. `tools` are those of the run, in addition to the
/// tools that a configuration can name.
pub fn unmatched_hooks<'a>(settings: &Settings, tools: impl Iterator<Item = &'a str>) -> Vec<String> {
    let tools: Vec<String> = known_names().into_iter().chain(tools.map(str::to_owned)).collect();
    let mut notices = Vec::new();
    for (event, rules) in &settings.hooks {
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.enabled) {
            let key = format!("hooks.{}[{index}]", event.name());
            if event.has_tool() {
                let parts = unmatched_parts(rule, &tools).into_iter();
                notices.extend(
                    parts.map(|part| messages::hook_matches_nothing(&key, part, &similar(part, &tools))),
                );
            } else if rule.matcher != "*" || !rule.file_patterns.is_empty() {
                notices.push(messages::hook_without_tool(&key, event.name()));
            }
        }
    }
    notices
}

/// Returns the alternatives of the matcher that match none of `tools`. One that names an MCP server counts only if the server has tools.
fn unmatched_parts<'a>(rule: &'a HookRule, tools: &[String]) -> Vec<&'a str> {
    let text = rule.matcher.as_str();
    let parts: Vec<&str> =
        if text.contains(['(', '[', '\\']) { vec![text] } else { text.split('|').collect() };
    let servers = || {
        tools
            .iter()
            .filter(|tool| claude_names::is_of_server(tool))
            .filter_map(|tool| Some(tool.rsplit_once("__")?.0))
    };
    let is_unmatched = |part: &&str| {
        let may_be_absent = part.contains("mcp") && !servers().any(|server| part.contains(server));
        let matches = matcher(part).map(|regex| tools.iter().any(|tool| regex.is_match(tool)));
        *part != "*" && !may_be_absent && matches.is_ok_and(|matches| !matches)
    };
    parts.into_iter().filter(is_unmatched).collect()
}

/// Returns the tools that a part of a matcher may mean: those of that name in Claude Code, or those whose name contains it.
fn similar(part: &str, tools: &[String]) -> Vec<String> {
    let covered: Vec<String> = names().covered(part).map(str::to_owned).collect();
    let word = part.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let containing = tools.iter().filter(|tool| !word.is_empty() && tool.contains(&word)).cloned();
    if covered.is_empty() { containing.collect() } else { covered }
}

/// Returns notices on damaged and incomplete parts of the journal.
pub fn journal_problems(known: &SessionState) -> impl Iterator<Item = String> {
    let damaged = (!known.damaged.is_empty()).then(|| messages::journal_damaged(&known.damaged));
    let incomplete = (!known.incomplete.is_empty()).then(|| messages::journal_incomplete(&known.incomplete));
    damaged.into_iter().chain(incomplete)
}

/// Returns a notice if the tools take too much of the smallest context window.
fn window_notice(limits: &Limits, window: Option<u64>) -> Option<String> {
    let tools = limits.tools_bytes / BYTES_PER_TOKEN;
    let window = window.filter(|window| tools > window / TOOLS_SHARE)?;
    Some(messages::tools_fill_window(tools, window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    // Fault B23: a matcher that matches no tool, such as the anchored beginning of a name, was silent.
    #[test]
    fn the_parts_of_a_matcher_that_match_no_tool_are_found() {
        let tools = ["write_file", "edit_file", "mcp__docs__search", "mcp__a_b__x"].map(str::to_owned);
        let parts = |matcher: &str| {
            let rule: HookRule =
                serde_json::from_value(json!({"command": "true", "matcher": matcher})).unwrap();
            unmatched_parts(&rule, &tools).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        for matcher in [
            "*",
            ".*",
            "write.*",
            "write_file|edit_file",
            "(write|edit)_file",
            "mcp__.*",
            "mcp__docs__search",
            "mcp__other__x",
        ] {
            assert_eq!(parts(matcher), Vec::<String>::new(), "{matcher}");
        }
        assert_eq!(parts("write"), ["write"]);
        assert_eq!(parts("write|edit_file|Bash"), ["write", "Bash"]);
        assert_eq!(parts("(write|edit)"), ["(write|edit)"]);
        assert_eq!(parts("mcp__docs|mcp__docs__find"), ["mcp__docs", "mcp__docs__find"]);
        assert_eq!(similar("write", &tools), ["write_file"]);
        assert_eq!(similar("Write", &tools), ["write_file", "apply_patch", "delete_file"]);
    }
}
