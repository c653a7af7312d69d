//! `agent help`: the manual, embedded.

use crate::args::Cli;
use crate::pager::{print_long, print_page};
use agent_config::error::did_you_mean;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::markdown::document_rows;
use std::fmt::Write;

/// Creates the entry of the page on a topic, which names its file.
macro_rules! page {
    ($topic:literal, $about:literal) => {
        ($topic, $about, include_str!(concat!("../../../config/help/", $topic, ".md")))
    };
}

/// The pages: topic, one line about it, text. Those for the beginning come first.
const PAGES: &[(&str, &str, &str)] = &[
    page!("start", "the first ten minutes"),
    page!("plan", "a plan first, then the work"),
    page!("keys", "the keys of a conversation"),
    page!("models", "choosing a model: names, keys, servers on this machine"),
    page!("agents", "built-in agents and agents of your own"),
    page!("approvals", "pending approvals: answer a call between runs"),
    page!("caching", "prompt caches of providers, the answer cache"),
    page!("chain", "agents that work on a task one after another"),
    page!("chat", "conversations at the terminal"),
    page!("ci", "use in CI: permissions, secrets, results"),
    page!("shell", "shell commands of the model: limits, background, their end"),
    page!("config", "configuration: files, layers, every key"),
    page!("consolidate", "one question to several models, with a judge"),
    page!("context", "the context window and its compaction"),
    page!("costs", "prices, budgets and the cost of a run"),
    page!("edits", "file edits: matching, refusals, patches"),
    page!("errors", "model errors: retries, fallback models, limits"),
    page!("exit-codes", "exit codes"),
    page!("evaluation", "self-evaluation of answers"),
    page!("fleet", "a queue of tasks and its workers"),
    page!("guardrails", "guardrails: limits, blocked commands, code and text rules"),
    page!("health", "figures on code: long and complex functions, repeated blocks"),
    (
        "hooks",
        "hooks: your programs before and after tool and model calls",
        include_str!("../../../hooks/README.md"),
    ),
    page!("hub", "agents on a Hub: activations, posts and their limits"),
    page!("images", "images in prompts and in results of tools"),
    page!("init", "setting up a project: presets, import from other agents"),
    page!("json", "the JSON document of --json"),
    page!("limits", "limits and circuit breakers that end a run early"),
    page!("loop", "repeating a task until checks pass, and resuming that"),
    page!("eval", "comparing models or configurations on a task"),
    page!("parallel", "several tasks at the same time, each on a branch of its own"),
    page!("mcp", "tools of MCP servers"),
    page!("memory", "what is stored for later sessions of a workspace"),
    page!("network", "what reaches the network: hosts of commands, web pages, searches"),
    page!("output", "standard output, standard error, log levels"),
    page!("permissions", "permission modes, prompts, refusals"),
    page!("pipeline", "steps of a file: prompts, commands, checks, conditions"),
    page!("providers", "providers: names, keys, your own servers"),
    page!("reports", "session reports in six formats"),
    page!("review", "reviews of changes: what is shown, findings, exit codes"),
    page!("replay", "replay of a session from its journal"),
    page!("scripted", "scripted models for tests and demos"),
    page!("security", "the sandbox: what commands can reach, what is guaranteed"),
    page!("serve", "use by editors and programs: ACP, MCP, Codex, JSON-RPC"),
    page!("sessions", "sessions: journal, resume, location"),
    page!("telemetry", "spans of a run for OpenTelemetry, off by default"),
    page!("thinking", "how hard the model thinks"),
    page!("trust", "trust in a project: what its configuration may do, and when"),
    page!("skills", "skills: instructions that the model loads when it needs them"),
    page!("stream", "every event as a line of JSON"),
    page!("subagents", "subagents: agents that the model may ask"),
    page!("words", "the words of this manual"),
    page!("undo", "undo, redo, diff: what a session did to files"),
    page!("structured", "answers that fit a JSON Schema"),
];

/// The topic whose page is made of the definition of the command line.
const COMMANDS: (&str, &str) = ("commands", "all commands of `agent`, in groups");

/// Prints the page on `topic`, or the list of topics; on a terminal wrapped to its width, and with a pager if it is longer than the screen.
///
/// # Errors
/// When there is no such topic, or standard output cannot be written.
pub fn help(app: &App, topic: Option<&str>) -> AppResult<()> {
    let Some(topic) = topic else { return print_long(app, &topics()) };
    let text = page(topic)?;
    match app.terminal.output_size() {
        Some(size) => print_page(app, &document_rows(&text, size.width), size),
        None => print(&app.terminal, &text),
    }
}

fn page(topic: &str) -> AppResult<String> {
    if topic == COMMANDS.0 {
        return Ok(Cli::commands_page());
    }
    if let Some((_, _, text)) = PAGES.iter().find(|(name, _, _)| *name == topic) {
        return Ok(text.split_inclusive('\n').filter(|line| !line.starts_with("<!--")).collect());
    }
    let suggestion = if Cli::has_command(topic) {
        Some(messages::help_of_command(topic))
    } else {
        did_you_mean(topic, entries().map(|(name, _)| name))
    };
    Err(AppError::new(FailureKind::Usage, messages::unknown_topic(topic, suggestion.as_deref())))
}

/// Returns each topic with one line about it.
fn entries() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|(name, about, _)| (*name, *about)).chain([COMMANDS])
}

fn topics() -> String {
    let mut text = String::from("agent help TOPIC; the topics are:\n");
    for (name, about) in entries() {
        let _ = writeln!(text, "  {name:<12} {about}");
    }
    text + messages::TOPICS_END
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u20_each_page_begins_with_a_sentence_and_up_to_three_examples() {
        for (topic, _, text) in PAGES.iter().filter(|(topic, ..)| *topic != "hooks") {
            let mut blocks = text.split("\n\n");
            let [title, sentence, examples] = [(); 3].map(|()| blocks.next().unwrap_or_default());
            assert!(title.starts_with("# ") && !title.contains('\n'), "{topic}: {title}");
            let is_sentence = sentence.ends_with('.') && !sentence.contains(". ") && !sentence.contains('\n');
            assert!(is_sentence, "{topic}: {sentence}");
            let lines: Vec<&str> = examples.lines().collect();
            let are_examples =
                lines.iter().all(|line| line.starts_with("    ") && line.chars().count() <= 80);
            assert!(are_examples && (1..=3).contains(&lines.len()), "{topic}: {examples}");
        }
    }

    #[test]
    fn u20_the_topics_of_the_beginning_are_the_first() {
        let first: Vec<&str> = entries().map(|(name, _)| name).take(4).collect();
        assert_eq!(first, ["start", "plan", "keys", "models"]);
    }
}
