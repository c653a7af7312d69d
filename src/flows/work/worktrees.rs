//! The worktrees of a command whose runs work beside the user's working tree.

use crate::work::record::WorkRecord;
use crate::work::workers::RunDirectories;
use agent_config::environment::WORKTREES;
use agent_config::schema::SandboxMode;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::run_result::ModifiedFile;
use agent_core::work::Worktree;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::create_private_dir;
use agent_terminal::{Style, one_line};
use agent_workspace::git::worktree::{Merge, Repository};
use agent_workspace::git::worktree_commit::Committed;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::sync::Mutex;

/// Characters of a task in the message of a commit.
const SUBJECT_CHARS: usize = 60;

/// Returns a launcher for git alone: the worktrees and the repository are not among what commands may change.
///
/// # Errors
/// Fails when no process can be started.
pub fn git_launcher(app: &App, settings: &Settings) -> AppResult<Rc<Launcher>> {
    let mut settings = settings.clone();
    settings.sandbox_off = true;
    settings.sandbox.mode = SandboxMode::Auto;
    settings.sandbox.allowed_hosts.clear();
    assemble::launcher(app, &settings)
}

/// Returns the message of a commit with what a run has changed.
pub fn subject(task: &str) -> String {
    format!("agent: {}", one_line(task, SUBJECT_CHARS))
}

/// Returns the error about a worktree that cannot be used.
pub fn unusable(why: &str) -> AppError {
    AppError::new(FailureKind::Config, messages::no_worktrees(why))
}

fn unusable_repository(why: &str) -> AppError {
    AppError::new(FailureKind::Config, messages::no_repository_for_worktrees(why))
}

/// Opens the repository of the workspace.
///
/// # Errors
/// Fails without a repository.
pub async fn open_repository<'a>(launcher: &'a Launcher, settings: &Settings) -> AppResult<Repository<'a>> {
    Repository::open(launcher, &settings.workspace).await.map_err(|why| unusable_repository(&why))
}

/// Returns the commit that the worktrees of a command begin with: `base`, with the uncommitted files on top of it if
/// `include_uncommitted`. Warns of what it lacks.
///
/// # Errors
/// Fails for an unknown `base`, and without any commit.
pub async fn base_commit(
    app: &App,
    settings: &Settings,
    repository: &Repository<'_>,
    base: Option<&str>,
    include_uncommitted: bool,
) -> AppResult<String> {
    let commit =
        repository.commit_of(base.unwrap_or("HEAD")).await.map_err(|why| unusable_repository(&why))?;
    let mut left_out = repository.left_out().await.map_err(|why| unusable_repository(&why))?;
    let commit = if include_uncommitted && left_out.uncommitted > 0 {
        left_out.uncommitted = 0;
        let directory = tempfile::tempdir_in(&settings.state);
        let directory = directory.map_err(|error| unusable(&error.to_string()))?;
        let index = directory.path().join("index");
        let made = repository.commit_working_tree(&commit, &index, "agent: uncommitted files").await;
        let Committed { commit: made, left_out } = made.map_err(|why| unusable(&why))?;
        if !left_out.is_empty() {
            let text = messages::uncommitted_left_out(&left_out, settings.language);
            app.notify(Style::Warning, &text);
        }
        made.unwrap_or(commit)
    } else {
        commit
    };
    for warning in messages::worktree_lacks(&left_out, settings.language) {
        app.notify(Style::Warning, &warning);
    }
    Ok(commit)
}

/// The worktrees of a command.
pub struct Worktrees<'a> {
    repository: Repository<'a>,
    record: &'a WorkRecord,
    directory: PathBuf,
    /// The commit that they begin with.
    base: String,
    /// Held while git works, which locks its files.
    turn: Mutex<()>,
}

impl<'a> Worktrees<'a> {
    /// Prepares the directory of the worktrees for the command of `record`.
    ///
    /// # Errors
    /// Fails when it cannot be created.
    pub fn new(repository: Repository<'a>, settings: &Settings, record: &'a WorkRecord) -> AppResult<Self> {
        let directory = settings.state.join(WORKTREES);
        create_private_dir(&directory)
            .map_err(|error| unusable(&format!("{}: {error}", directory.display())))?;
        let base = record.start().base.unwrap_or_default();
        Ok(Self { repository, record, directory, base, turn: Mutex::new(()) })
    }

    async fn new_worktree(&self, name: &str, number: usize) -> AppResult<Worktree> {
        let id = format!("{}-{number}", self.record.id);
        let (path, branch) = (self.directory.join(&id), format!("agent/{id}"));
        self.repository.check_new(&path, &branch).await.map_err(|why| unusable(&why))?;
        let worktree = Worktree { branch, path: path.to_string_lossy().into_owned(), ..Worktree::default() };
        self.record.set_worktree(name, &worktree)?;
        Ok(worktree)
    }

    /// Removes what a process that was killed has left of a worktree: its locks, and if its run has not begun all of it.
    async fn remove_interrupted(&self, worktree: &Worktree, has_begun: bool) -> Result<(), String> {
        let path = Path::new(&worktree.path);
        self.repository.remove_locks(path, Some(&worktree.branch)).await?;
        if !has_begun {
            self.repository.remove(path).await?;
            self.repository.delete_branch(&worktree.branch, "", true).await?;
        }
        Ok(())
    }

    /// Merges the branch of a run into the user's branch.
    ///
    /// # Errors
    /// Fails when that cannot be recorded.
    pub async fn merge(&self, name: &str, worktree: Worktree) -> AppResult<Worktree> {
        if worktree.commit.is_none() || worktree.merged.is_some() {
            return Ok(worktree);
        }
        let branch = &worktree.branch;
        let worktree = match self.repository.merge(branch, &format!("Merge {branch} ({name})")).await {
            Ok(Merge::Merged(commit)) => {
                Worktree { merged: Some(commit), conflicts: Vec::new(), problem: None, ..worktree }
            }
            Ok(Merge::Conflict(conflicts)) => Worktree { conflicts, ..worktree },
            Ok(Merge::Refused(why)) | Err(why) => {
                Worktree { problem: Some(messages::not_merged(&why)), ..worktree }
            }
        };
        self.record.set_worktree(name, &worktree)?;
        Ok(worktree)
    }
}

impl RunDirectories for Worktrees<'_> {
    fn launcher(&self) -> &Launcher {
        self.repository.launcher
    }

    async fn create(&self, name: &str, number: usize, has_begun: bool) -> AppResult<(Worktree, PathBuf)> {
        let _turn = self.turn.lock().await;
        let worktree = match self.record.worktree(name) {
            Some(known) => {
                self.remove_interrupted(&known, has_begun).await.map_err(|why| unusable(&why))?;
                known
            }
            None => self.new_worktree(name, number).await?,
        };
        let path = Path::new(&worktree.path);
        if !has_begun {
            let added = self.repository.add(path, Some(&worktree.branch), &self.base).await;
            added.map_err(|why| unusable(&why))?;
        }
        Ok((worktree.clone(), path.join(&self.repository.prefix)))
    }

    async fn prepare_checks(&self, _name: &str, _task: &str, _worktree: &Worktree) -> Result<(), String> {
        Ok(())
    }

    async fn commit(
        &self,
        name: &str,
        task: &str,
        worktree: Worktree,
        changed: &[ModifiedFile],
    ) -> AppResult<Worktree> {
        let _turn = self.turn.lock().await;
        let path = Path::new(&worktree.path);
        let (branch, subject) = (&worktree.branch, subject(task));
        let committed = self.repository.commit_to_branch(branch, path, &self.base, &subject, changed).await;
        self.record.set_committed(name, worktree, committed)
    }
}
