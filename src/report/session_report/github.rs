//! Session report as Markdown for GitHub: one bold line and folded sections, short enough for a comment or a job summary.

use super::markdown::{code, files, list, timeline};
use super::text::{self, StatusLabel};
use super::{FileChange, SessionReport};
use agent_messages as messages;
use agent_terminal::{first_line, sanitize, sanitize_prose};
use agent_text::excerpt;
use agent_text::fence::fenced;
use std::fmt::Write as _;

/// Maximum bytes of the report. A comment holds 65,536 characters, a job summary sixteen times that.
const MAX_BYTES: usize = 60_000;
/// Maximum bytes of the diffs: half of the report.
const MAX_DIFF_BYTES: usize = MAX_BYTES / 2;
/// Characters of the answer.
const ANSWER_CHARS: usize = 8_000;
/// Maximum entries of a list, and steps of the timeline.
const MAX_ENTRIES: usize = 100;
/// Characters of a list entry.
const LINE_CHARS: usize = 250;
/// Characters of the task.
const TASK_CHARS: usize = 120;

/// Renders as much of the report as a comment holds, the most important sections first.
pub(super) fn render(report: &SessionReport) -> String {
    let (label, task) =
        (StatusLabel::of(report).name(), code(&first_line(text::task(report), TASK_CHARS), TASK_CHARS));
    let mut text = format!("## {label} agent: {task}\n\n**{}**\n", headline(report));
    let mut left_out = Vec::new();
    for Section { title, body, state } in sections(report) {
        let section = format!("\n<details{state}><summary>{title}</summary>\n\n{body}\n</details>\n");
        if text.len() + section.len() > MAX_BYTES {
            left_out.push(title);
        } else {
            text.push_str(&section);
        }
    }
    if !left_out.is_empty() {
        let _infallible = write!(text, "\nOmitted because of their length: {}.\n", left_out.join(", "));
    }
    for omission in text::omissions(report) {
        let _infallible = write!(text, "\n{omission}\n");
    }
    text
}

/// A folded section.
struct Section {
    title: String,
    body: String,
    /// ` open` if the section is unfolded.
    state: &'static str,
}

fn headline(report: &SessionReport) -> String {
    let model = report.model.as_deref().map(|model| ("Model", code(model, TASK_CHARS)));
    let figures = text::figures(report).into_iter().chain(model);
    let figures: Vec<String> = figures.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{} · {}", text::verdict(report), figures.join(" · "))
}

fn sections(report: &SessionReport) -> Vec<Section> {
    let mut sections = Vec::new();
    if !report.output.is_empty() {
        let answer = excerpt::fit(&report.output, ANSWER_CHARS);
        let body = fenced("", &sanitize_prose(&answer));
        sections.push(Section { title: "Answer".to_owned(), body, state: " open" });
    }
    for (title, lines) in text::attention(report) {
        let (shown, more) = lines.split_at(lines.len().min(MAX_ENTRIES));
        let body = list(shown, LINE_CHARS) + &and_more(more.len());
        sections.push(Section { title: format!("{title} ({})", lines.len()), body, state: "" });
    }
    let changed = &report.files_modified;
    if !changed.is_empty() {
        let (shown, more) = changed.split_at(changed.len().min(MAX_ENTRIES));
        let body = format!("{}{}\n{}", files(shown), and_more(more.len()), diffs(changed));
        sections.push(Section { title: format!("Files changed ({})", changed.len()), body, state: "" });
    }
    if !report.steps.is_empty() {
        let (shown, more) = report.steps.split_at(report.steps.len().min(MAX_ENTRIES));
        let body = timeline(shown) + &and_more(more.len());
        let title = format!("Timeline ({})", messages::count(report.steps.len() as u64, "step"));
        sections.push(Section { title, body, state: "" });
    }
    sections
}

fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("\n{} more.\n", messages::thousands(count as u64)) }
}

/// Renders the diffs that fit.
fn diffs(files: &[FileChange]) -> String {
    let mut text = String::new();
    let mut without = 0_u64;
    for diff in files.iter().filter_map(|file| file.diff.as_deref()) {
        let diff = fenced("diff", &sanitize(diff));
        if text.len() + diff.len() > MAX_DIFF_BYTES {
            without += 1;
        } else {
            text.push_str(&diff);
        }
    }
    if without > 0 {
        let _infallible =
            write!(text, "\n{} omitted because of the length.\n", messages::count(without, "diff"));
    }
    text
}
