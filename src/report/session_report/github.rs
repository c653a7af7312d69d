//! An account as Markdown for GitHub: one bold line, everything else folded, short enough for a comment or a job's summary.

use super::markdown::{code, fenced, files, list, timeline};
use super::text::{self, StatusLabel};
use super::{FileChange, SessionReport};
use crate::messages;
use crate::terminal::{first_line, sanitize, sanitize_prose};
use crate::text::excerpt;
use std::fmt::Write as _;

/// A comment holds 65,536 characters; a summary would hold sixteen times that.
const MAX_BYTES: usize = 60_000;
/// Bytes of the diffs: half of it, so that there is room for the rest.
const MAX_DIFF_BYTES: usize = MAX_BYTES / 2;
/// Characters of the answer.
const ANSWER_CHARS: usize = 8_000;
/// Entries of a list, and steps of the timeline.
const MAX_ENTRIES: usize = 100;
/// Characters of an entry of a list.
const LINE_CHARS: usize = 250;
/// Characters of the task.
const TASK_CHARS: usize = 120;

/// As much of the account as a comment holds, the most important first.
pub(super) fn render(account: &SessionReport) -> String {
    let (mark, task) =
        (StatusLabel::of(account).word(), code(&first_line(text::task(account), TASK_CHARS), TASK_CHARS));
    let mut text = format!("## {mark} agent: {task}\n\n**{}**\n", headline(account));
    let mut left_out = Vec::new();
    for Section { title, body, state } in sections(account) {
        let section = format!("\n<details{state}><summary>{title}</summary>\n\n{body}\n</details>\n");
        if text.len() + section.len() > MAX_BYTES {
            left_out.push(title);
        } else {
            text.push_str(&section);
        }
    }
    if !left_out.is_empty() {
        let _infallible = write!(text, "\nToo long to stand here: {}.\n", left_out.join(", "));
    }
    for omission in text::omissions(account) {
        let _infallible = write!(text, "\n{omission}\n");
    }
    text
}

/// Something folded.
struct Section {
    title: String,
    body: String,
    /// ` open` where it is to be seen at once.
    state: &'static str,
}

fn headline(account: &SessionReport) -> String {
    let model = account.model.as_deref().map(|model| ("Model", code(model, TASK_CHARS)));
    let figures = text::figures(account).into_iter().chain(model);
    let figures: Vec<String> = figures.map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{} · {}", text::verdict(account), figures.join(" · "))
}

fn sections(account: &SessionReport) -> Vec<Section> {
    let mut sections = Vec::new();
    if !account.output.is_empty() {
        let answer = excerpt::fit(&account.output, ANSWER_CHARS);
        let body = fenced("", &sanitize_prose(&answer));
        sections.push(Section { title: "Answer".to_owned(), body, state: " open" });
    }
    for (title, lines) in text::attention(account) {
        let (shown, more) = lines.split_at(lines.len().min(MAX_ENTRIES));
        let body = list(shown, LINE_CHARS) + &and_more(more.len());
        sections.push(Section { title: format!("{title} ({})", lines.len()), body, state: "" });
    }
    let changed = &account.files_modified;
    if !changed.is_empty() {
        let (shown, more) = changed.split_at(changed.len().min(MAX_ENTRIES));
        let body = format!("{}{}\n{}", files(shown), and_more(more.len()), diffs(changed));
        sections.push(Section { title: format!("Files changed ({})", changed.len()), body, state: "" });
    }
    if !account.steps.is_empty() {
        let (shown, more) = account.steps.split_at(account.steps.len().min(MAX_ENTRIES));
        let body = timeline(shown) + &and_more(more.len());
        let title = format!("Timeline ({})", messages::count(account.steps.len() as u64, "step"));
        sections.push(Section { title, body, state: "" });
    }
    sections
}

fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("\n{} more.\n", messages::thousands(count as u64)) }
}

/// The diffs that have room.
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
        let _infallible = write!(text, "\n{} too long to stand here.\n", messages::count(without, "diff"));
    }
    text
}
