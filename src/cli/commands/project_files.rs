//! Writes the files of `agent init` and `agent import`: a file that exists is kept unless the user asks to replace it.

use agent_config::project::MAX_CONFIG_BYTES;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::config_file::path_inside;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_workspace::Workspace;
use agent_workspace::error::FileError;
use agent_workspace::path::RelPath;
use agent_workspace::replace::Expected;
use clap::Args;
use rustix::fs::Mode;

/// A file to write.
pub struct NewFile {
    /// Its path from the root of the directory.
    pub path: &'static str,
    /// Its path for the user.
    pub shown: String,
    /// Its content.
    pub text: String,
    /// Its permission bits when it is created; `None` for those of the workspace.
    pub mode: Option<Mode>,
}

/// How files are written.
#[derive(Debug, Clone, Copy, Args)]
pub struct WriteOptions {
    /// Replace files that exist
    #[arg(long)]
    pub overwrite: bool,
    /// Only print the files
    #[arg(long)]
    pub dry_run: bool,
}

/// State of the file that is there now.
enum Current {
    Absent,
    Same,
    Other { hash: String },
}

/// Writes `files` into `workspace` and prints what became of each. No file is written when one of them cannot be.
///
/// # Errors
/// Fails for a link that leaves the directory, and when a file cannot be read or written.
pub fn write(app: &App, workspace: &Workspace, files: &[NewFile], options: WriteOptions) -> AppResult<()> {
    let planned: Vec<(&NewFile, RelPath, Current)> = files
        .iter()
        .map(|file| current(workspace, file).map(|(path, current)| (file, path, current)))
        .collect::<AppResult<_>>()?;
    for (file, path, current) in planned {
        let exists = !matches!(current, Current::Absent);
        if options.dry_run && !matches!(current, Current::Same) {
            preview(app, &messages::file_preview(&file.shown, exists, options.overwrite), &file.text)?;
            continue;
        }
        let line = match current {
            Current::Same => messages::file_unchanged(&file.shown),
            Current::Other { .. } if !options.overwrite => messages::file_kept(&file.shown),
            Current::Other { hash } => {
                replace(workspace, file, &path, &Expected::Hash(hash))?;
                messages::file_replaced(&file.shown)
            }
            Current::Absent => {
                replace(workspace, file, &path, &Expected::Absent)?;
                messages::file_created(&file.shown)
            }
        };
        print(&app.terminal, &format!("{line}\n"))?;
    }
    Ok(())
}

/// Prints a file in a dry run below `heading`.
///
/// # Errors
/// Fails when standard output cannot be written.
pub fn preview(app: &App, heading: &str, text: &str) -> AppResult<()> {
    print(&app.terminal, &format!("\n{heading}\n{}", app.redact(text)))
}

/// Returns the path of `file` and what is there now.
fn current(workspace: &Workspace, file: &NewFile) -> AppResult<(RelPath, Current)> {
    let path = path_inside(workspace, file.path, &file.shown)?;
    let current = match workspace.read(&path, MAX_CONFIG_BYTES) {
        Ok(content) if content.bytes == file.text.as_bytes() => Current::Same,
        Ok(content) => Current::Other { hash: content.hash },
        Err(FileError::Missing(_)) => Current::Absent,
        Err(error) => return Err(failed(&file.shown, &error.to_string())),
    };
    Ok((path, current))
}

fn replace(workspace: &Workspace, file: &NewFile, path: &RelPath, expected: &Expected<'_>) -> AppResult<()> {
    let written = workspace.replace_with_mode(path, expected, file.text.as_bytes(), file.mode);
    written.map(drop).map_err(|error| failed(&file.shown, &error.to_string()))
}

fn failed(shown: &str, why: &str) -> AppError {
    AppError::new(FailureKind::Request, format!("cannot write {shown}: {why}"))
}
