//! `agent report`: prints or writes a report on a session.

use crate::commands::common_args::CommonArgs;
use agent_core::failure::FailureKind;
use agent_report::session_report::{ReportFormat, markdown};
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_run::report_file::ReportFile;
use agent_run::requested_report::{rendered, session_report};
use agent_run::session::{session_store, use_state_with};
use clap::Args;
use std::path::PathBuf;

/// Arguments of `agent report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Session id; default: the newest session of this workspace
    pub session: Option<String>,
    /// Format; default: by the file extension, else markdown
    #[arg(long, value_parser = str::parse::<ReportFormat>, value_name = "json|markdown|github|html|junit|sarif")]
    pub format: Option<ReportFormat>,
    /// Output file, which is replaced; default: standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Prints or writes a report on a session.
///
/// # Errors
/// Fails for an unknown or unreadable session, and when the file or standard output cannot be written.
pub fn report(app: &App, args: &ReportArgs) -> AppResult<()> {
    let mut settings = app.load_and_notify(&args.common.overrides())?.settings;
    use_state_with(&mut settings, args.session.as_deref());
    let id = session_store(&settings).id_or_last_ended(args.session.as_deref())?;
    let report = session_report(app, &settings, &id)?;
    let Some(path) = &args.output else {
        let text = rendered(args.format.unwrap_or(ReportFormat::Markdown), &report)?;
        let for_person = args.format.is_none() && app.terminal.stream_info().stdout.is_terminal();
        return print(&app.terminal, &if for_person { markdown::for_terminal(&text) } else { text });
    };
    let text = rendered(args.format.unwrap_or_else(|| ReportFormat::from_path(path)), &report)?;
    ReportFile::at(path.clone()).replace(&text).map_err(|error| {
        AppError::new(FailureKind::Session, format!("cannot write {}: {error}", path.display()))
    })
}
