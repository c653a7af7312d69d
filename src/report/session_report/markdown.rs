//! An account as Markdown. What stands in it cannot act as Markdown: lines are code, and fences longer than any in the text.

use super::text::{self, StatusLabel};
use super::{FileChange, SessionReport, Step};
use crate::core::event::Purpose;
use crate::core::language::Language;
use crate::messages;
use crate::terminal::{first_line, sanitize, sanitize_prose};
use crate::text::lines::one_line;
use std::fmt::Write as _;

/// Characters of a task, a summary or a path.
const LINE_CHARS: usize = 200;
/// Characters that may mean something in the text of Markdown, or make a link.
const ACTIVE: &str = "\\`*_[]<>&|~!#@$:";

/// The whole account but for arguments and results, which are in the other forms.
pub(super) fn render(account: &SessionReport) -> String {
    let mut text = format!(
        "# Execution Report\n\n{}\n\n| | |\n|---|---|\n",
        code(&first_line(text::task(account), LINE_CHARS), LINE_CHARS)
    );
    let mark = StatusLabel::of(account).word();
    let _infallible = writeln!(text, "| Status | {mark}: {} |", code(&text::verdict(account), LINE_CHARS));
    for (name, value) in text::figures(account).into_iter().chain(text::setting(account)) {
        let _infallible = writeln!(text, "| {name} | {} |", code(&value, LINE_CHARS));
    }
    if text::task(account).contains('\n') {
        let _infallible = write!(text, "\n## Task\n\n{}", fenced("", &sanitize_prose(&account.task)));
    }
    if !account.output.is_empty() {
        let _infallible = write!(text, "\n## Answer\n\n{}", fenced("", &sanitize_prose(&account.output)));
    }
    for (title, lines) in text::attention(account) {
        let _infallible = write!(text, "\n## {title}\n\n{}", list(&lines, usize::MAX));
    }
    if !account.files_modified.is_empty() {
        let _infallible = write!(text, "\n## Files\n\n{}", files(&account.files_modified));
        for diff in account.files_modified.iter().filter_map(|file| file.diff.as_deref()) {
            let _infallible = write!(text, "\n{}", fenced("diff", &sanitize(diff)));
        }
    }
    if !account.steps.is_empty() {
        let _infallible = write!(text, "\n## Timeline\n\n{}", timeline(&account.steps));
    }
    for omission in text::omissions(account) {
        let _infallible = write!(text, "\n{omission}\n");
    }
    text
}

/// A line of a stranger as code, which links nothing, mentions nobody and ends no table cell.
pub(super) fn code(text: &str, max_chars: usize) -> String {
    let line = one_line(text.trim(), max_chars);
    if line.is_empty() {
        return line;
    }
    if !line.contains(['`', '|', '\\']) {
        return format!("`{line}`");
    }
    let mut escaped = String::from("<code>");
    for c in line.chars() {
        if ACTIVE.contains(c) {
            let _infallible = write!(escaped, "&#{};", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped.replace("www.", "www&#46;") + "</code>"
}

/// A text of a stranger between fences that it cannot close.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// A list, an entry a line.
pub(super) fn list(lines: &[String], max_chars: usize) -> String {
    let mut text = String::new();
    for line in lines {
        let _infallible = writeln!(text, "- {}", code(line, max_chars));
    }
    text
}

/// The files as a table.
pub(super) fn files(files: &[FileChange]) -> String {
    let mut table = String::from("| File | What | By |\n|---|---|---|\n");
    for FileChange { file, .. } in files {
        let (path, what, by) = (code(&file.path, LINE_CHARS), file.action.name(), file.by.name());
        let _infallible = writeln!(table, "| {path} | {what} | {by} |");
    }
    table
}

/// The steps as a table: a line for each answer of a model, and one for each call.
pub(super) fn timeline(steps: &[Step]) -> String {
    let mut table = String::from("| Step | What | Outcome | Time |\n|---|---|---|---|\n");
    for step in steps {
        let name = match step.purpose {
            Purpose::Step => step.number.to_string(),
            Purpose::Closing => "closing".to_owned(),
            Purpose::Summary => "summary".to_owned(),
            Purpose::Evaluation => "evaluation".to_owned(),
        };
        let usage = step
            .usage
            .map_or_else(|| "tokens unknown".to_owned(), |usage| messages::tokens(usage, Language::En));
        let answered = if step.finish_reason.is_some() { "answered" } else { "no answer" };
        let (cost, time) = (messages::money(step.cost_usd, Language::En), text::time(step.latency_ms));
        let _infallible = writeln!(table, "| {name} | model: {usage}, {cost} | {answered} | {time} |");
        for call in &step.calls {
            let what = code(&format!("{} {}", call.tool, call.summary), LINE_CHARS);
            let (outcome, time) = (text::outcome(call.outcome), text::time(call.latency_ms));
            let _infallible = writeln!(table, "| {name} | {what} | {outcome} | {time} |");
        }
    }
    table
}
