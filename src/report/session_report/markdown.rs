//! Session report as Markdown. Untrusted text cannot act as Markdown: lines are code spans, and fences are longer than any in it.

use super::text::{self, StatusLabel};
use super::{FileChange, SessionReport, Step};
use agent_core::event::Purpose;
use agent_core::language::Language;
use agent_messages as messages;
use agent_terminal::{first_line, sanitize, sanitize_prose};
use agent_text::fence::fenced;
use agent_text::lines::one_line;
use std::fmt::Write as _;

/// Characters of a task, a summary or a path.
const LINE_CHARS: usize = 200;
/// Characters with a meaning in Markdown text or links.
const ACTIVE: &str = "\\`*_[]<>&|~!#@$:";

/// Renders the report without arguments and results, which other formats contain.
pub(super) fn render(report: &SessionReport) -> String {
    let mut text = format!(
        "# Execution Report\n\n{}\n\n| | |\n|---|---|\n",
        code(&first_line(text::task(report), LINE_CHARS), LINE_CHARS)
    );
    let label = StatusLabel::of(report).name();
    let _infallible = writeln!(text, "| Status | {label}: {} |", code(&text::verdict(report), LINE_CHARS));
    for (name, value) in text::figures(report).into_iter().chain(text::setting(report)) {
        let _infallible = writeln!(text, "| {name} | {} |", code(&value, LINE_CHARS));
    }
    if text::task(report).contains('\n') {
        let _infallible = write!(text, "\n## Task\n\n{}", fenced("", &sanitize_prose(&report.task)));
    }
    if !report.output.is_empty() {
        let _infallible = write!(text, "\n## Answer\n\n{}", fenced("", &sanitize_prose(&report.output)));
    }
    for (title, lines) in text::attention(report) {
        let _infallible = write!(text, "\n## {title}\n\n{}", list(&lines, usize::MAX));
    }
    if !report.files_modified.is_empty() {
        let _infallible = write!(text, "\n## Files\n\n{}", files(&report.files_modified));
        for diff in report.files_modified.iter().filter_map(|file| file.diff.as_deref()) {
            let _infallible = write!(text, "\n{}", fenced("diff", &sanitize(diff)));
        }
    }
    if !report.steps.is_empty() {
        let _infallible = write!(text, "\n## Timeline\n\n{}", timeline(&report.steps));
    }
    for omission in text::omissions(report) {
        let _infallible = write!(text, "\n{omission}\n");
    }
    text
}

/// Returns a report that `render` made as a person reads it on a terminal: the text in the elements of `code` as it is. Fenced text
/// has no such elements.
pub fn for_terminal(report: &str) -> String {
    let mut text = String::with_capacity(report.len());
    let mut fence: Option<&str> = None;
    for line in report.split_inclusive('\n') {
        let bare = line.trim_end();
        match fence {
            None if bare.starts_with("```") => fence = Some(bare.trim_end_matches(|c| c != '`')),
            Some(end) if bare == end => fence = None,
            None => {
                decode_line(line, &mut text);
                continue;
            }
            Some(_) => {}
        }
        text.push_str(line);
    }
    text
}

/// Adds `line` with its elements of code as code spans.
fn decode_line(line: &str, text: &mut String) {
    let mut rest = line;
    while let Some(start) = rest.find(['`', '<']) {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        if let Some((code, after)) = from.strip_prefix("<code>").and_then(|inner| inner.split_once("</code>"))
        {
            text.push('`');
            decode_entities(code, text);
            text.push('`');
            rest = after;
        } else {
            let end = from.get(1..).and_then(|inner| inner.find('`')).map_or(from.len(), |end| end + 2);
            let (span, after) = from.split_at(if from.starts_with('`') { end } else { 1 });
            text.push_str(span);
            rest = after;
        }
    }
    text.push_str(rest);
}

/// Adds `code` with its numeric entities as characters.
fn decode_entities(code: &str, text: &mut String) {
    let mut parts = code.split("&#");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let entity = part.split_once(';');
        let decoded = entity.and_then(|(number, after)| Some((char::from_u32(number.parse().ok()?)?, after)));
        match decoded {
            Some((c, after)) => {
                text.push(c);
                text.push_str(after);
            }
            None => text.extend(["&#", part]),
        }
    }
}

/// Formats an untrusted line as code, which cannot link, mention a user or end a table cell.
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

/// Formats a list, one entry per line.
pub(super) fn list(lines: &[String], max_chars: usize) -> String {
    let mut text = String::new();
    for line in lines {
        let _infallible = writeln!(text, "- {}", code(line, max_chars));
    }
    text
}

/// Formats the changed files as a table.
pub(super) fn files(files: &[FileChange]) -> String {
    let mut table = String::from("| File | Change | By |\n|---|---|---|\n");
    for FileChange { file, .. } in files {
        let (path, what, by) = (code(&file.path, LINE_CHARS), file.action.name(), file.by.name());
        let _infallible = writeln!(table, "| {path} | {what} | {by} |");
    }
    table
}

/// Formats the steps as a table: one row for each model call, and one for each tool call.
pub(super) fn timeline(steps: &[Step]) -> String {
    let mut table = String::from("| Step | Action | Outcome | Time |\n|---|---|---|---|\n");
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
