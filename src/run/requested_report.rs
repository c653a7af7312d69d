//! The report on a session from its journal and the stored earlier contents of files, and the report that a request asks for.

use crate::app::App;
use crate::error::{AppError, AppResult};
use crate::report_file::ReportFile;
use crate::request::RunRequest;
use crate::session::session_store;
use crate::undo_store;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::file_change::FileState;
use agent_core::run_result::RunResult;
use agent_journal::file_history::{FileHistory, Restoration};
use agent_journal::read;
use agent_journal::session_store::SessionError;
use agent_messages as messages;
use agent_report::session_report::{FileChange, ReportFormat, SessionReport, SessionReportBuilder};
use agent_terminal::Style;
use agent_text::diff;
use agent_workspace::Workspace;
use agent_workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of diffs in a report.
const MAX_DIFFS: usize = 100;
/// Maximum total size of these diffs in bytes.
const MAX_DIFF_BYTES: usize = 512 << 10;
/// Environment variable with the path of the summary file of a GitHub Actions job.
const JOB_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The report that a request asks for.
#[derive(Debug)]
pub struct RequestedReport {
    form: ReportFormat,
    to: Destination,
}

/// The destination of the report.
#[derive(Debug)]
enum Destination {
    StandardError,
    /// Replaces the file.
    File(ReportFile),
    /// Appends to the file.
    JobSummary(ReportFile),
}

impl RequestedReport {
    /// Returns the requested report, if any. The directory of the file is resolved now, before any command runs.
    pub fn of(app: &App, request: &RunRequest) -> Option<Self> {
        let summary = app.environment.get(JOB_SUMMARY).map(PathBuf::from);
        let (form, file) = match (request.report, request.report_file.clone()) {
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

    /// Writes the report or a warning; a failure does not change the `result` of the run. `settings` are `None` when
    /// they could not be loaded.
    pub fn write(&self, app: &App, settings: Option<&Settings>, result: &RunResult) {
        let id = result.session_id.as_deref();
        let report = match settings.zip(id) {
            Some((settings, id)) => session_report(app, settings, id),
            None => Ok(SessionReport::default()),
        };
        let text = report.and_then(|mut report| {
            report.set_result(result);
            rendered(self.form, &report)
        });
        self.write_or_warn(app, text.map_err(|error| error.to_string()), id);
    }

    /// Writes the text that `render` makes, or a warning; `id` names what the report is about.
    pub fn write_rendered(
        &self,
        app: &App,
        render: impl Fn(ReportFormat) -> io::Result<String>,
        id: Option<&str>,
    ) {
        self.write_or_warn(app, render(self.form).map_err(|error| error.to_string()), id);
    }

    fn write_or_warn(&self, app: &App, text: Result<String, String>, id: Option<&str>) {
        match text {
            Ok(text) => self.write_text(app, &text, id),
            Err(error) => {
                let why = app.redact(&error);
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
        let notice = match file.write_copy_in(app.environment.current_dir(), text) {
            Ok(path) => messages::report_written_elsewhere(file.path(), &error, &path),
            Err(_) => messages::report_not_written(Some(file.path()), &error.to_string(), id),
        };
        app.notify(Style::Warning, &notice);
    }
}

/// Returns the text of a report in a format.
///
/// # Errors
/// Fails when the report has no such form.
pub fn rendered(form: ReportFormat, report: &SessionReport) -> AppResult<String> {
    form.render(report).map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })
}

/// Creates the report on session `id`, with secrets redacted.
///
/// # Errors
/// Fails for an unknown or unreadable session.
pub fn session_report(app: &App, settings: &Settings, id: &str) -> AppResult<SessionReport> {
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
    let mut report = fold.finish();
    // The records of a fork or an imported session contain the id of the original.
    report.session_id = Some(id.to_owned());
    let standing: BTreeSet<String> = history.files().map(|path| redactor.text(path).into_owned()).collect();
    report.files_modified.retain(|change| standing.contains(&change.file.path));
    let Ok(workspace) = Workspace::open(&settings.workspace) else { return Ok(report) };
    let contents = undo_store::content_store(app, settings);
    let mut room = MAX_DIFF_BYTES;
    for change in history.undo(0, None).into_iter().take(MAX_DIFFS) {
        let path = redactor.text(&change.path);
        let named = |file: &&mut FileChange| file.file.path == path;
        let Some(file) = report.files_modified.iter_mut().find(named) else { continue };
        let Some(whole) = session_diff(&workspace, &contents, &change) else { continue };
        let text = diff::truncate(&redactor.text(&whole));
        if !text.is_empty() && text.len() <= room {
            room -= text.len();
            file.diff = Some(text);
        }
    }
    Ok(report)
}

/// Returns the diff between a file's content before the session and after it, if both are stored texts.
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
