//! `agent sessions list`: the sessions of this workspace, newest first.

use super::args::ListArgs;
use super::{CommandContext, TASK_CHARS, unreadable};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_report::json;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::session_list::{ListedSession, sessions_of_gone_workspaces};
use agent_terminal::{one_line, truncate_end};
use std::fmt::Write;

/// Characters of the path of a workspace.
const PATH_CHARS: usize = 1000;

/// Columns before the task, where there is room for all.
const WIDE: usize = 87;
/// Columns before the task on a terminal that is not wide.
const NARROW: usize = 56;
/// Fewest columns of the task.
const MIN_TASK: usize = 20;
/// Bytes of the year and the dash after it.
const YEAR: usize = 5;
/// The status of a session without an end.
const UNFINISHED: &str = "unfinished";

/// Prints the sessions; reads only those that are printed.
///
/// # Errors
/// Fails for an unreadable session, and when standard output cannot be written.
pub fn list(context: &CommandContext<'_>, settings: &Settings, args: &ListArgs) -> AppResult<()> {
    let wanted = if args.all { usize::MAX } else { args.limit };
    let mut ids = context.store.list()?;
    let mut entries =
        ids.by_ref().take(wanted).map(|id| entry(context, id)).collect::<AppResult<Vec<ListedSession>>>()?;
    if args.all {
        entries.extend(sessions_of_gone_workspaces(settings, &context.redactor));
    }
    if args.json {
        let line = json::line(&entries)
            .map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() });
        return print(context.terminal, &line?);
    }
    if entries.is_empty() {
        return print(context.terminal, "no session in this workspace yet; `agent run \"…\"` starts one\n");
    }
    let columns = Columns::for_width(context.terminal.output_size().map(|size| size.width));
    let mut text = columns.head();
    let mut workspace = None;
    for entry in &entries {
        if entry.workspace.is_some() && entry.workspace != workspace {
            workspace.clone_from(&entry.workspace);
            let path = one_line(workspace.as_deref().unwrap_or_default(), PATH_CHARS);
            let _infallible = writeln!(text, "{}", messages::sessions_of_gone_workspace(&path));
        }
        text.push_str(&columns.row(entry));
    }
    if ids.next().is_some() {
        text.push_str("There are older ones: --all, or --limit N\n");
    }
    print(context.terminal, &text)
}

fn entry(context: &CommandContext<'_>, id: String) -> AppResult<ListedSession> {
    let path = context.store.journal_path(&id)?;
    ListedSession::read(&context.store, &context.redactor, id).map_err(|error| unreadable(&path, &error))
}

/// The columns of the list.
struct Columns {
    /// Whether there is room for the year, the reason of the end and the steps.
    is_wide: bool,
    /// Columns of the task.
    task: usize,
}

impl Columns {
    /// Returns the columns for a terminal that is `width` columns wide, or for a file.
    fn for_width(width: Option<usize>) -> Self {
        let width = width.unwrap_or(WIDE + TASK_CHARS);
        if width >= WIDE + MIN_TASK {
            Self { is_wide: true, task: (width - WIDE).min(TASK_CHARS) }
        } else {
            Self { is_wide: false, task: width.saturating_sub(NARROW).max(MIN_TASK) }
        }
    }

    fn head(&self) -> String {
        if self.is_wide {
            format!("{:<24} {:<16} {:<26} {:>5} {:>9}  TASK\n", "ID", "LAST (UTC)", "STATUS", "STEPS", "COST")
        } else {
            format!("{:<22} {:<11} {:<10} {:>8}  TASK\n", "ID", "LAST (UTC)", "STATUS", "COST")
        }
    }

    fn row(&self, entry: &ListedSession) -> String {
        let (id, last) = (&entry.id, messages::minute(entry.last_ms));
        let cost = entry.cost_usd.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
        let (task, _) = truncate_end(&one_line(entry.title(), TASK_CHARS), self.task);
        let steps = entry.steps;
        if self.is_wide {
            format!("{id:<24} {last:<16} {:<26} {steps:>5} {cost:>9}  {task}\n", status(entry))
        } else {
            // The year stands in the id.
            let day = last.get(YEAR..).unwrap_or_default();
            let status = entry.status.map_or(UNFINISHED, Status::name);
            format!("{id:<22} {day:<11} {status:<10} {cost:>8}  {task}\n")
        }
    }
}

fn status(entry: &ListedSession) -> String {
    let reason = entry.stop_reason.map_or("", StopReason::name);
    entry.status.map_or_else(|| UNFINISHED.to_owned(), |status| format!("{} ({reason})", status.name()))
}
