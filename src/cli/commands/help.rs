//! `agent help`: the manual, embedded.

use crate::cli::compose::output::print;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::terminal::Terminal;
use std::fmt::Write;

/// The pages: topic, one line about it, text.
const PAGES: &[(&str, &str, &str)] = &[
    ("agents", "built-in agents and agents of your own", include_str!("../../../config/help/agents.md")),
    (
        "approvals",
        "pending approvals: answer a call between runs",
        include_str!("../../../config/help/approvals.md"),
    ),
    (
        "caching",
        "prompt caches of providers, the answer cache",
        include_str!("../../../config/help/caching.md"),
    ),
    ("ci", "use in CI: permissions, secrets, results", include_str!("../../../config/help/ci.md")),
    (
        "commands",
        "shell commands: limits, background, when they end",
        include_str!("../../../config/help/commands.md"),
    ),
    ("config", "configuration: files, layers, every key", include_str!("../../../config/help/config.md")),
    ("context", "the context window and its compaction", include_str!("../../../config/help/context.md")),
    ("costs", "prices, budgets and the cost of a run", include_str!("../../../config/help/costs.md")),
    ("edits", "file edits: matching, refusals, patches", include_str!("../../../config/help/edits.md")),
    (
        "errors",
        "model errors: retries, fallback models, limits",
        include_str!("../../../config/help/errors.md"),
    ),
    ("exit-codes", "exit codes", include_str!("../../../config/help/exit-codes.md")),
    ("evaluation", "self-evaluation of answers", include_str!("../../../config/help/evaluation.md")),
    (
        "guardrails",
        "guardrails: limits, blocked commands, code and text rules",
        include_str!("../../../config/help/guardrails.md"),
    ),
    (
        "hooks",
        "hooks: your programs before and after tool and model calls",
        include_str!("../../../hooks/README.md"),
    ),
    ("json", "the JSON document of --json", include_str!("../../../config/help/json.md")),
    (
        "limits",
        "limits and circuit breakers that end a run early",
        include_str!("../../../config/help/limits.md"),
    ),
    ("output", "standard output, standard error, log levels", include_str!("../../../config/help/output.md")),
    (
        "permissions",
        "permission modes, prompts, refusals",
        include_str!("../../../config/help/permissions.md"),
    ),
    (
        "providers",
        "providers: names, keys, your own servers",
        include_str!("../../../config/help/providers.md"),
    ),
    ("reports", "session reports in four formats", include_str!("../../../config/help/reports.md")),
    ("replay", "replay of a session from its journal", include_str!("../../../config/help/replay.md")),
    ("scripted", "scripted models for tests and demos", include_str!("../../../config/help/scripted.md")),
    (
        "security",
        "the sandbox: what commands can reach, what is guaranteed",
        include_str!("../../../config/help/security.md"),
    ),
    ("sessions", "sessions: journal, resume, location", include_str!("../../../config/help/sessions.md")),
    ("thinking", "how hard the model thinks", include_str!("../../../config/help/thinking.md")),
    (
        "trust",
        "trust in a project: what its configuration may do, and when",
        include_str!("../../../config/help/trust.md"),
    ),
    ("stream", "every event as a line of JSON", include_str!("../../../config/help/stream.md")),
    (
        "subagents",
        "subagents: agents that the model may ask",
        include_str!("../../../config/help/subagents.md"),
    ),
    ("undo", "undo, redo, diff: what a session did to files", include_str!("../../../config/help/undo.md")),
    ("structured", "answers that fit a JSON Schema", include_str!("../../../config/help/structured.md")),
];

/// Prints the page on `topic`, or the list of topics.
///
/// # Errors
/// When there is no such topic, or standard output cannot be written.
pub fn help(terminal: &Terminal, topic: Option<&str>) -> CliResult<()> {
    let Some(topic) = topic else { return print(terminal, &topics()) };
    let Some((_, _, text)) = PAGES.iter().find(|(name, _, _)| *name == topic) else {
        let message = format!("there is no help on `{topic}`.\n{}", topics());
        return Err(CliError::new(FailureKind::Usage, message.trim_end()));
    };
    let shown: Vec<&str> = text.lines().filter(|line| !line.starts_with("<!--")).collect();
    print(terminal, &shown.join("\n"))
}

fn topics() -> String {
    let mut text = String::from("agent help TOPIC; the topics are:\n");
    for (name, about, _) in PAGES {
        let _ = writeln!(text, "  {name:<12} {about}");
    }
    text.push_str("`agent --help` lists the commands, `agent COMMAND --help` their flags.\n");
    text
}
