//! `agent report`, and `--report` at the end of a run: an account of a session, made of its journal and of the contents that its
//! changes displaced.

use crate::cli::commands::common_args::CommonArgs;
use crate::cli::commands::report_file::ReportFile;
use crate::cli::commands::run_args::RunOptions;
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::compose::session::session_store;
use crate::cli::compose::undo_store;
use crate::cli::error::{CliError, CliResult};
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::core::file_change::FileState;
use crate::core::run_result::RunResult;
use crate::journal::file_history::{FileHistory, Restoration};
use crate::journal::read;
use crate::journal::session_store::SessionError;
use crate::messages;
use crate::report::session_report::{FileChange, ReportFormat, SessionReport, SessionReportBuilder};
use crate::terminal::Style;
use crate::text::diff;
use crate::workspace::Workspace;
use crate::workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use clap::Args;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Diffs of a report, and bytes of all of them.
const MAX_DIFFS: usize = 100;
const MAX_DIFF_BYTES: usize = 512 << 10;
/// Names the file to which the commands of a job on GitHub add what its page is to show.
const JOB_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// `agent report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// The form; without it what the ending of the file says, else markdown
    #[arg(long, value_parser = str::parse::<ReportFormat>, value_name = "json|markdown|github|html")]
    pub format: Option<ReportFormat>,
    /// The file, which is replaced; without it standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Prints or writes an account of a session.
///
/// # Errors
/// When there is no such session, it cannot be read, or the file or standard output cannot be written.
pub fn report(app: &App, args: &ReportArgs) -> CliResult<()> {
    let settings = app.load_settings(&args.common)?.settings;
    let id = args.session.clone().map_or_else(|| session_store(&settings).last(), Ok)?;
    let account = session_report(app, &settings, &id)?;
    let Some(path) = &args.output else {
        return print(&app.terminal, &rendered(args.format.unwrap_or(ReportFormat::Markdown), &account)?);
    };
    let text = rendered(args.format.unwrap_or_else(|| ReportFormat::from_path(path)), &account)?;
    ReportFile::at(path.clone()).replace(&text).map_err(|error| {
        CliError::new(FailureKind::Session, format!("cannot write {}: {error}", path.display()))
    })
}

fn rendered(form: ReportFormat, account: &SessionReport) -> CliResult<String> {
    form.render(account).map_err(|error| CliError { kind: FailureKind::Internal, cause: error.into() })
}

/// What a run leaves besides its answer.
#[derive(Debug)]
pub struct RequestedReport {
    form: ReportFormat,
    to: Destination,
}

/// Where it goes.
#[derive(Debug)]
enum Destination {
    StandardError,
    /// In place of what is there.
    File(ReportFile),
    /// After what is there.
    JobSummary(ReportFile),
}

impl RequestedReport {
    /// What the flags ask for, if they do. The directory of the file is looked at now, before any command runs.
    pub fn from_options(app: &App, options: &RunOptions) -> Option<Self> {
        let summary = app.environment.get(JOB_SUMMARY).map(PathBuf::from);
        let (form, file) = match (options.report, options.report_file.clone()) {
            (None, None) => return None,
            (Some(form), None) => (form, summary.clone().filter(|_| form == ReportFormat::Github)),
            (None, Some(file)) if Some(&file) == summary.as_ref() => (ReportFormat::Github, Some(file)),
            (form, Some(file)) => (form.unwrap_or_else(|| ReportFormat::from_path(&file)), Some(file)),
        };
        let to = match file {
            None => Destination::StandardError,
            Some(file) if Some(&file) == summary.as_ref() => Destination::JobSummary(ReportFile::at(file)),
            Some(file) => Destination::File(ReportFile::at(file)),
        };
        Some(Self { form, to })
    }

    /// Leaves it, or says why not; the run has ended as `result` says and ends no other way for it. `settings` are there when
    /// they could be read.
    pub fn write(&self, app: &App, settings: Option<&Settings>, result: &RunResult) {
        let id = result.session_id.as_deref();
        let account = match settings.zip(id) {
            Some((settings, id)) => session_report(app, settings, id),
            None => Ok(SessionReport::default()),
        };
        let text = account.and_then(|mut account| {
            account.set_result(result);
            rendered(self.form, &account)
        });
        match text {
            Ok(text) => self.write_text(app, &text, id),
            Err(error) => {
                let why = app.redact(&error.to_string());
                app.notify(Style::Warning, &messages::report_not_written(self.file(), &why, id));
            }
        }
    }

    fn file(&self) -> Option<&Path> {
        match &self.to {
            Destination::StandardError => None,
            Destination::File(file) | Destination::JobSummary(file) => Some(file.path()),
        }
    }

    fn write_text(&self, app: &App, text: &str, id: Option<&str>) {
        let (file, written) = match &self.to {
            Destination::StandardError => return app.notify(Style::Plain, text.trim_end()),
            Destination::File(file) => (file, file.replace(text)),
            Destination::JobSummary(file) => (file, file.append(text)),
        };
        let Err(error) = written else { return };
        let told = match file.write_copy_in(app.environment.current_dir(), text) {
            Ok(path) => messages::report_written_elsewhere(file.path(), &error, &path),
            Err(_) => messages::report_not_written(Some(file.path()), &error.to_string(), id),
        };
        app.notify(Style::Warning, &told);
    }
}

/// The account of session `id`, without the secrets that are known now.
fn session_report(app: &App, settings: &Settings, id: &str) -> CliResult<SessionReport> {
    let path = session_store(settings).journal_path(id)?;
    let redactor = app.redactor(settings);
    let (mut fold, mut history) = (SessionReportBuilder::default(), FileHistory::default());
    let visited = read::for_each_record(&path, |_, record| {
        match record {
            Some(mut record) => {
                history.apply(&record);
                redactor.redact_event(&mut record.event);
                fold.add(&record);
            }
            None => fold.damaged(),
        }
        true
    });
    visited.map_err(|error| SessionError::Unreadable(id.to_owned(), error.to_string()))?;
    let mut account = fold.finish();
    // The records of a fork, and of a session from elsewhere, tell of others.
    account.session_id = Some(id.to_owned());
    let standing: BTreeSet<String> = history.files().map(|path| redactor.text(path).into_owned()).collect();
    account.files_modified.retain(|change| standing.contains(&change.file.path));
    let Ok(workspace) = Workspace::open(&settings.workspace) else { return Ok(account) };
    let contents = undo_store::content_store(app, settings);
    let mut room = MAX_DIFF_BYTES;
    for change in history.undo(0, None).into_iter().take(MAX_DIFFS) {
        let path = redactor.text(&change.path);
        let named = |file: &&mut FileChange| file.file.path == path;
        let Some(file) = account.files_modified.iter_mut().find(named) else { continue };
        let Some(whole) = session_diff(&workspace, &contents, &change) else { continue };
        let text = diff::truncate(&redactor.text(&whole));
        if !text.is_empty() && text.len() <= room {
            room -= text.len();
            file.diff = Some(text);
        }
    }
    Ok(account)
}

/// The diff between what a file was before the session and what the session left, where both are texts that are still there.
fn session_diff(workspace: &Workspace, contents: &ContentStore, change: &Restoration) -> Option<String> {
    let text = |state: &FileState| match state {
        FileState::Absent => Some(String::new()),
        FileState::Unknown => None,
        FileState::Content { hash, .. } => {
            let now = || {
                let path = workspace.path(&change.path).ok()?;
                let is_there = workspace.state_of(&path).ok()?.hash() == Some(hash.as_str());
                is_there.then(|| workspace.content_of(&path, MAX_FILE_BYTES).ok()).flatten()
            };
            String::from_utf8(contents.get(hash).or_else(now)?).ok()
        }
    };
    Some(diff::unified_full(&change.path, &text(&change.wanted)?, &text(&change.left)?))
}
