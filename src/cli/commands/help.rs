//! `agent help`: the manual, embedded.

use crate::cli::compose::output::print;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::terminal::Terminal;
use std::fmt::Write;

/// The pages: topic, one line about it, text.
const PAGES: &[(&str, &str, &str)] = &[
    ("agents", "agents: the built-in ones and your own", include_str!("../../../config/help/agents.md")),
    (
        "approvals",
        "calls that wait for your answer between runs",
        include_str!("../../../config/help/approvals.md"),
    ),
    (
        "caching",
        "prompts that providers keep, answers that you keep",
        include_str!("../../../config/help/caching.md"),
    ),
    ("ci", "in CI: what a job may have, and what to look at", include_str!("../../../config/help/ci.md")),
    (
        "commands",
        "commands: limits, background, what ends when",
        include_str!("../../../config/help/commands.md"),
    ),
    ("config", "configuration: files, layers, every key", include_str!("../../../config/help/config.md")),
    (
        "context",
        "the model's window: how room is made in it",
        include_str!("../../../config/help/context.md"),
    ),
    ("costs", "prices, budgets, what a run cost", include_str!("../../../config/help/costs.md")),
    (
        "edits",
        "edits: how files are changed, what is refused, patches",
        include_str!("../../../config/help/edits.md"),
    ),
    (
        "errors",
        "errors of the model: retries, fallback, a full window",
        include_str!("../../../config/help/errors.md"),
    ),
    ("exit-codes", "what the exit code says", include_str!("../../../config/help/exit-codes.md")),
    (
        "evaluation",
        "answers that the model judges itself",
        include_str!("../../../config/help/evaluation.md"),
    ),
    (
        "guardrails",
        "guardrails: limits, blocked commands, code, tests, texts",
        include_str!("../../../config/help/guardrails.md"),
    ),
    ("hooks", "hooks: your programs around tool and model calls", include_str!("../../../hooks/README.md")),
    ("json", "the document of --json", include_str!("../../../config/help/json.md")),
    (
        "limits",
        "limits: what ends a run early, and when it goes nowhere",
        include_str!("../../../config/help/limits.md"),
    ),
    ("output", "what goes where, and how loud", include_str!("../../../config/help/output.md")),
    ("permissions", "modes, questions, refusals", include_str!("../../../config/help/permissions.md")),
    (
        "providers",
        "providers: names, keys, servers of your own",
        include_str!("../../../config/help/providers.md"),
    ),
    (
        "reports",
        "reports: an account of a session in four forms",
        include_str!("../../../config/help/reports.md"),
    ),
    (
        "replay",
        "replay: a session done again from its journal, and compared",
        include_str!("../../../config/help/replay.md"),
    ),
    ("scripted", "a model that plays a script", include_str!("../../../config/help/scripted.md")),
    (
        "security",
        "what commands can reach, what is promised",
        include_str!("../../../config/help/security.md"),
    ),
    (
        "sessions",
        "sessions: journal, resume, where they are",
        include_str!("../../../config/help/sessions.md"),
    ),
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
