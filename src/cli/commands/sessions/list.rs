//! `agent sessions list`: the sessions of this workspace, newest first.

use super::args::ListArgs;
use super::{CommandContext, TASK_CHARS, unreadable};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::stop_reason::StopReason;
use agent_messages as messages;
use agent_report::json;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::session_list::{ListedSession, sessions_of_gone_workspaces};
use agent_terminal::one_line;
use std::fmt::Write;

/// Characters of the path of a workspace.
const PATH_CHARS: usize = 1000;

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
    let mut text =
        format!("{:<24} {:<16} {:<26} {:>5} {:>9}  TASK\n", "ID", "LAST (UTC)", "STATUS", "STEPS", "COST");
    let mut workspace = None;
    for entry in &entries {
        if entry.workspace.is_some() && entry.workspace != workspace {
            workspace.clone_from(&entry.workspace);
            let path = one_line(workspace.as_deref().unwrap_or_default(), PATH_CHARS);
            let _infallible = writeln!(text, "{}", messages::sessions_of_gone_workspace(&path));
        }
        let _infallible = writeln!(
            text,
            "{:<24} {:<16} {:<26} {:>5} {:>9}  {}",
            entry.id,
            messages::minute(entry.last_ms),
            status(entry),
            entry.steps,
            entry.cost_usd.map_or_else(|| "-".to_owned(), |cost| cost.to_string()),
            one_line(&entry.task, TASK_CHARS),
        );
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

fn status(entry: &ListedSession) -> String {
    let reason = entry.stop_reason.map_or("", StopReason::name);
    entry.status.map_or_else(|| "unfinished".to_owned(), |status| format!("{} ({reason})", status.name()))
}
