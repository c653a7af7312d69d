//! Questions to the person at the terminal.

use super::figures::{bytes, thousands};

/// The end of every question.
pub fn prompt_choices(may_last: bool) -> &'static str {
    if may_last {
        "Allow it? y = yes, s = yes until this run ends, n = no, n WHY = no and why, a = abort the run: "
    } else {
        "Allow it? y = yes, n = no, a = abort the run: "
    }
}

/// What may run unasked from then on, if the person says so.
pub fn prompt_lasting(what: &str) -> String {
    format!("   s allows until this run ends: {what}")
}

/// What is allowed until the run ends: every change of these files by this tool.
pub fn lasting_files(tool: &str, files: &str) -> String {
    format!("{tool} on {files}, whatever it does there")
}

/// What is allowed until the run ends: every request of this tool to this host.
pub fn lasting_host(tool: &str, host: &str) -> String {
    format!("{tool} on every page of {host}")
}

/// What is allowed until the run ends: this very call.
pub fn lasting_call(tool: &str, summary: &str) -> String {
    format!("exactly this call again: {tool} {summary}")
}

/// The first line of a question.
pub fn prompt_title(call: &str) -> String {
    format!("May I run {call}?")
}

/// Why it is asked.
pub fn prompt_reason(reason: &str) -> String {
    format!("   Asked because {reason}")
}

/// Stands for the lines of a preview that are not shown.
pub fn preview_cut(left_out: usize, total: usize, size: usize) -> String {
    let number = |lines: usize| thousands(u64::try_from(lines).unwrap_or(u64::MAX));
    format!("… {} of {} lines not shown ({} in all) …", number(left_out), number(total), bytes(size))
}

/// Stands for the middle of a long line.
pub fn line_cut(characters: usize) -> String {
    format!(" … {} characters not shown … ", thousands(u64::try_from(characters).unwrap_or(u64::MAX)))
}

/// A path that is asked about is not where its name says, but at `real`, or nowhere inside of the workspace.
pub fn leads_elsewhere(path: &str, real: Option<&str>) -> String {
    format!(
        "{path} leads through a link {}",
        real.map_or("out of the workspace".into(), |real| format!("to {real}"))
    )
}

/// There are more such paths than are shown.
pub fn more_links(count: usize) -> String {
    format!("and {count} more paths lead through links")
}
