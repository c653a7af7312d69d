//! `agent work`: lists, shows and removes the records of commands of several runs.

use crate::commands::common_args::CommonArgs;
use agent_core::failure::FailureKind;
use agent_core::work::WorkResult;
use agent_flows::work::record::{RecordedWork, work_store};
use agent_journal::session_store::SessionStore;
use agent_messages as messages;
use agent_report::session_report::ReportFormat;
use agent_report::work_report;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::one_line;
use clap::Subcommand;
use std::fmt::Write as _;
use std::path::Path;

/// Characters of a task in the list.
const TASK_CHARS: usize = 60;

/// Subcommands of `agent work`.
#[derive(Debug, Subcommand)]
pub enum WorkCommand {
    /// List the records, newest first
    List,
    /// Show the runs of a record
    Show {
        /// Its id
        id: String,
        /// As the JSON document
        #[arg(long)]
        json: bool,
    },
    /// Remove a record; its sessions stay
    Rm {
        /// Its id
        id: String,
    },
}

/// Runs a subcommand; without one, lists the records.
///
/// # Errors
/// Fails for an invalid configuration, an unknown record, and when it cannot be read or removed.
pub fn work(app: &App, command: Option<WorkCommand>, common: &CommonArgs) -> AppResult<()> {
    let store = work_store(&app.load_and_notify(&common.overrides())?.settings);
    match command {
        None | Some(WorkCommand::List) => {
            let mut text = String::new();
            for id in store.list()? {
                let line = match RecordedWork::read(&store, &id) {
                    Ok((work, _)) => {
                        let reason = work.result.as_ref().and_then(|result| result.stop_reason);
                        let state = reason.map_or("not ended", |reason| reason.name());
                        let (command, runs) = (&work.start.command, work.ended_runs().len());
                        let task = one_line(&work.start.task, TASK_CHARS);
                        format!("{command}  {state}  {runs} runs  {task}")
                    }
                    Err(error) => error.to_string(),
                };
                let _infallible = writeln!(text, "{id}  {line}");
            }
            if text.is_empty() {
                text.push_str("no records: commands of several runs, such as `agent loop`, write them\n");
            }
            print(&app.terminal, &text)
        }
        Some(WorkCommand::Show { id, json: as_json }) => {
            let (work, _) = RecordedWork::read(&store, &id)?;
            let result = work.result.clone().unwrap_or_else(|| WorkResult {
                work_id: Some(id.clone()),
                runs: work.ended_runs(),
                ..WorkResult::not_started(&work.start.command, None)
            });
            let form = if as_json { ReportFormat::Json } else { ReportFormat::Markdown };
            let text = work_report::render(form, &result);
            let text = text.map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?;
            print(&app.terminal, &text)
        }
        Some(WorkCommand::Rm { id }) => {
            check_worktrees(&store, &id)?;
            store.remove(&id)?;
            print(&app.terminal, &format!("removed {id}\n"))
        }
    }
}

/// Checks that no worktree of a record exists: without the record, nothing would list or remove it.
fn check_worktrees(store: &SessionStore, id: &str) -> AppResult<()> {
    // A record that cannot be read can be removed.
    let Ok((work, _)) = RecordedWork::read(store, id) else { return Ok(()) };
    let exists = work.worktrees().any(|(_, worktree)| Path::new(&worktree.path).exists());
    if exists { Err(AppError::new(FailureKind::Session, messages::has_worktrees(id))) } else { Ok(()) }
}
