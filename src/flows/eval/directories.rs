//! The directories of the runs of `agent eval --tasks`: each is a repository of its own with the files of a task.

use crate::work::record::WorkRecord;
use crate::work::workers::RunDirectories;
use crate::work::worktrees::subject;
use agent_config::environment::WORKTREES;
use agent_config::eval_tasks::{EvalTask, TaskFiles};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_core::run_result::ModifiedFile;
use agent_core::work::{LeftOut, Worktree};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_redactor::Redactor;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::create_private_dir;
use agent_terminal::Style;
use agent_text::lines::escape_controls;
use agent_workspace::copy::copy_workspace;
use agent_workspace::git::task_repository::{commit_run, create, extract, prepare_checks};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The branch of each repository; that of a worktree of the workspace has another name.
pub const BRANCH: &str = "main";
/// Paths that are named in a message.
const NAMED_PATHS: usize = 10;

/// The directories of all runs.
pub struct TaskDirectories<'a> {
    app: &'a App,
    language: Language,
    launcher: &'a Launcher,
    record: &'a WorkRecord,
    redactor: Arc<Redactor>,
    directory: PathBuf,
    /// The tasks by the names of their runs.
    tasks: BTreeMap<String, &'a EvalTask>,
    /// Names of the tasks of which a warning told that files are missing.
    incomplete: RefCell<BTreeSet<String>>,
}

impl<'a> TaskDirectories<'a> {
    /// Prepares directories for the command of `record`; `tasks` has the task of each run.
    pub fn new(
        app: &'a App,
        settings: &Settings,
        launcher: &'a Launcher,
        record: &'a WorkRecord,
        tasks: BTreeMap<String, &'a EvalTask>,
    ) -> Self {
        let directory = settings.state.join(WORKTREES);
        let (redactor, language) = (app.redactor(settings), settings.language);
        Self { app, language, launcher, record, redactor, directory, tasks, incomplete: RefCell::default() }
    }

    fn task(&self, run: &str) -> Result<&'a EvalTask, String> {
        self.tasks.get(run).copied().ok_or_else(|| format!("the run {run} has no task"))
    }

    /// Creates the repository of a run; what an attempt that was cut off has left is removed. Returns its commit.
    async fn fill(&self, task: &EvalTask, path: &Path) -> Result<String, String> {
        let container = path.parent().unwrap_or(path);
        let failed = |error: io::Error| format!("{}: {error}", container.display());
        if container.symlink_metadata().is_ok() {
            remove(path).map_err(failed)?;
        }
        create_private_dir(path).map_err(failed)?;
        match &task.files {
            TaskFiles::Directory { path: from, unseen } => self.copy(from, path, unseen)?,
            TaskFiles::Commit { clone, commit } => {
                let lacks = extract(self.launcher, clone, commit, path, &container.join("index")).await?;
                self.warn(task, &lacks);
            }
        }
        create(self.launcher, path).await
    }

    /// Warns once of what the files of a task lack.
    fn warn(&self, task: &EvalTask, lacks: &LeftOut) {
        let warnings = messages::worktree_lacks(lacks, self.language);
        if !warnings.is_empty() && self.incomplete.borrow_mut().insert(task.name.clone()) {
            for warning in warnings {
                self.app.notify(Style::Warning, &format!("{}: {warning}", escape_controls(&task.name)));
            }
        }
    }

    fn copy(&self, from: &Path, to: &Path, unseen: &BTreeSet<String>) -> Result<(), String> {
        let unseen = unseen.iter().map(|path| from.join(path)).chain([from.join(".git")]).collect();
        let copied = copy_workspace(from, to, &self.redactor, &unseen);
        let copied = copied.map_err(|error| format!("{}: {error}", from.display()))?;
        let missing = copied.left_out.iter().filter(|path| !unseen.contains(&from.join(path)));
        let missing: Vec<&str> = missing.map(String::as_str).take(NAMED_PATHS).collect();
        if missing.is_empty() { Ok(()) } else { Err(messages::not_copied(&from.to_string_lossy(), &missing)) }
    }
}

impl RunDirectories for TaskDirectories<'_> {
    fn launcher(&self) -> &Launcher {
        self.launcher
    }

    async fn create(&self, name: &str, number: usize, has_begun: bool) -> AppResult<(Worktree, PathBuf)> {
        let task = self.task(name).map_err(|why| unusable(name, &why))?;
        if let (true, Some(known)) = (has_begun, self.record.worktree(name)) {
            let path = PathBuf::from(&known.path);
            return Ok((known, path));
        }
        let last = Path::new(&task.name).file_name().unwrap_or_default();
        let path = self.directory.join(format!("{}-{number}", self.record.id)).join(last);
        let text = path.to_string_lossy().into_owned();
        let worktree = Worktree { branch: BRANCH.to_owned(), path: text, ..Worktree::default() };
        self.record.set_worktree(name, &worktree)?;
        let base = self.fill(task, &path).await.map_err(|why| unusable(&task.name, &why))?;
        let worktree = Worktree { base: Some(base), ..worktree };
        self.record.set_worktree(name, &worktree)?;
        Ok((worktree, path))
    }

    async fn prepare_checks(&self, name: &str, task: &str, worktree: &Worktree) -> Result<(), String> {
        let (path, base) = (Path::new(&worktree.path), worktree.base.as_deref().unwrap_or_default());
        let EvalTask { tests, test_patch, .. } = self.task(name)?;
        prepare_checks(self.launcher, path, base, &subject(task), tests, test_patch)
            .await
            .map_err(|why| messages::tests_not_restored(&why))
    }

    async fn commit(
        &self,
        name: &str,
        task: &str,
        worktree: Worktree,
        _changed: &[ModifiedFile],
    ) -> AppResult<Worktree> {
        let (path, base) = (Path::new(&worktree.path), worktree.base.as_deref().unwrap_or_default());
        let committed = commit_run(self.launcher, path, base, &subject(task)).await;
        self.record.set_committed(name, worktree, committed)
    }
}

fn unusable(task: &str, why: &str) -> AppError {
    AppError::new(FailureKind::Config, messages::no_task_directory(task, why))
}

/// Removes the directory of a run at `path`, with what is beside it.
///
/// # Errors
/// Fails when it cannot be removed.
#[expect(clippy::disallowed_methods, reason = "this module made the directory")]
pub fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_dir_all(path.parent().unwrap_or(path))
}
