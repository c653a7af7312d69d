//! The directory of an attempt: a worktree of the task's repository, or a clone of its bundle. Beside it are a home for another program, and a
//! file with the name of its worker, by which the next worker of the machine finds the directories of killed ones. The file is renamed when
//! the directory is kept for the user.

use crate::commands::bundle::check_commit;
use crate::commands::context::{WorkerContext, may_pass};
use agent_config::environment::{WORKSPACES, WORKTREES};
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::failure::FailureKind;
use agent_core::fleet::{AttemptKey, TaskRecord, TaskState, branch_name};
use agent_flows::work::worktrees::git_launcher;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::create_private_dir;
use agent_terminal::Style;
use agent_workspace::git::worktree::Repository;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What the names of the files beside it end with.
const HOME: &str = "home";
const WORKER: &str = "worker";
const KEPT: &str = "kept";

/// Most bytes of the name of a worker.
const MAX_NAME_BYTES: u64 = 1 << 10;

/// The directory of an attempt.
pub struct AttemptDirectory<'a> {
    worker: &'a WorkerContext<'a>,
    /// The repository of the task, or the clone.
    pub repository: &'a Repository<'a>,
    /// Its path.
    pub path: PathBuf,
    /// Whether it is a repository of its own, made of a bundle.
    pub is_clone: bool,
}

impl<'a> AttemptDirectory<'a> {
    /// Returns the directory of an attempt in the state directory of `settings`.
    pub fn new(
        worker: &'a WorkerContext<'a>,
        repository: &'a Repository<'a>,
        settings: &Settings,
        task: &TaskRecord,
        key: AttemptKey,
    ) -> Self {
        let path = path_of(worker, settings, key);
        Self { worker, repository, path, is_clone: task.spec.bundle.is_some() }
    }

    /// Creates the worktree, which begins with the commit `base`.
    ///
    /// # Errors
    /// Fails when git or the state directory cannot be used.
    pub async fn create(&self, base: &str) -> AppResult<()> {
        let _turn = self.worker.git.lock().await;
        self.repository.add(&self.path, None, base).await.map_err(|why| may_pass(&why))
    }

    /// Creates the branch of a task that is done.
    ///
    /// # Errors
    /// Fails when git cannot be used, or the branch is on another commit.
    pub async fn publish(&self, task: &TaskRecord) -> AppResult<()> {
        let is_published = task.state == TaskState::Done && !self.is_clone;
        let Some(commit) = task.commit.as_ref().filter(|_| is_published) else {
            return Ok(());
        };
        check_commit(commit)?;
        let _turn = self.worker.git.lock().await;
        let branch = branch_name(&task.id);
        let not_made = |why: String| messages::branch_not_made(&task.id, &branch, &why, self.worker.language);
        let made = self.repository.create_branch(&branch, commit).await;
        made.map_err(|why| AppError::new(FailureKind::Config, not_made(why)))
    }

    /// Keeps it for the user: no worker removes it.
    ///
    /// # Errors
    /// Fails when the state directory cannot be used.
    pub fn keep(&self) -> AppResult<()> {
        let kept = self.path.with_extension(KEPT);
        rustix::fs::rename(self.path.with_extension(WORKER), &kept)
            .map_err(|error| may_pass(&format!("{}: {error}", kept.display())))?;
        let home = home_of(&self.path);
        log_not_removed(self.worker, &home, remove_directory(&home));
        Ok(())
    }

    /// Removes it, if it exists and is not kept; returns whether that succeeded.
    pub async fn remove(&self) -> bool {
        if is_kept(&self.path) {
            return true;
        }
        let removed = if self.is_clone {
            remove_clone(&self.path)
        } else {
            let _turn = self.worker.git.lock().await;
            self.repository.remove(&self.path).await.and_then(|()| remove_beside(&self.path))
        };
        log_not_removed(self.worker, &self.path, removed)
    }
}

/// Returns the path of the directory of an attempt.
pub fn path_of(worker: &WorkerContext<'_>, settings: &Settings, key: AttemptKey) -> PathBuf {
    let AttemptKey { task, attempt } = key;
    settings.state.join(WORKTREES).join(format!("{}-{task}-{attempt}", worker.queue.id()))
}

/// Returns the home directory of another program that works in the directory `path`.
pub fn home_of(path: &Path) -> PathBuf {
    path.with_extension(HOME)
}

/// Notes that `worker` works in the directory `path`, before that is created.
///
/// # Errors
/// Fails when the state directory cannot be used.
#[expect(clippy::disallowed_methods, reason = "a file of the attempt, in a private directory")]
pub fn set_worker(path: &Path, worker: &str) -> AppResult<()> {
    let directory = path.parent().unwrap_or(path);
    create_private_dir(directory)
        .and_then(|()| std::fs::write(path.with_extension(WORKER), worker))
        .map_err(|error| may_pass(&format!("{}: {error}", directory.display())))
}

/// Removes a clone, if there is one, and what is beside it.
///
/// # Errors
/// The message of the system.
pub fn remove_clone(path: &Path) -> Result<(), String> {
    remove_directory(path).and_then(|()| remove_beside(path))
}

/// Checks whether the directory `path` is kept for the user.
pub fn is_kept(path: &Path) -> bool {
    path.with_extension(KEPT).symlink_metadata().is_ok()
}

/// Returns the directories of the queue `queue` below the state directory of the user: path, name of the worker, attempt.
pub fn known_directories(queue: &str, state: &Path) -> Vec<(PathBuf, String, AttemptKey)> {
    let workspaces = state.join(WORKSPACES).read_dir().into_iter().flatten().flatten();
    let entries = workspaces.flat_map(|workspace| workspace.path().join(WORKTREES).read_dir());
    let files = entries.flatten().flatten().map(|entry| entry.path());
    let known = files
        .filter(|file| file.extension().is_some_and(|extension| extension == WORKER))
        .filter_map(|file| {
            let path = file.with_extension("");
            let worker = read_text(&file, MAX_NAME_BYTES).ok().flatten()?;
            let key = key_of(queue, &path)?;
            Some((path, worker, key))
        });
    known.collect()
}

/// Removes directories of workers that no longer run, whose tasks have newer attempts or have ended.
///
/// # Errors
/// Fails when no process can be started.
pub async fn remove_abandoned(
    worker: &WorkerContext<'_>,
    settings: &Settings,
    abandoned: &[PathBuf],
) -> AppResult<()> {
    let launcher = git_launcher(worker.app, settings)?;
    for path in abandoned {
        let removed = {
            let _turn = worker.git.lock().await;
            remove_whatever_it_is(&launcher, path).await
        };
        if log_not_removed(worker, path, removed) {
            let text = messages::abandoned_removed(&path.display().to_string(), worker.language);
            worker.log(Style::Plain, &text);
        }
    }
    Ok(())
}

async fn remove_whatever_it_is(launcher: &Launcher, path: &Path) -> Result<(), String> {
    // A worktree has a file there, with the path of its repository.
    if path.join(".git").is_file()
        && let Ok(repository) = Repository::open(launcher, path).await
    {
        repository.remove(path).await?;
    }
    remove_clone(path)
}

/// Returns the attempt of the queue `queue` that works in the directory `path`.
fn key_of(queue: &str, path: &Path) -> Option<AttemptKey> {
    let (task, attempt) =
        path.file_name()?.to_str()?.strip_prefix(queue)?.strip_prefix('-')?.split_once('-')?;
    Some(AttemptKey { task: task.parse().ok()?, attempt: attempt.parse().ok()? })
}

fn log_not_removed(worker: &WorkerContext<'_>, path: &Path, removed: Result<(), String>) -> bool {
    let is_removed = removed.is_ok();
    if let Err(why) = removed {
        let text = messages::attempt_not_removed(&path.display().to_string(), &why, worker.language);
        worker.log(Style::Warning, &text);
    }
    is_removed
}

/// Removes what is beside the directory `path`, the name of the worker last.
fn remove_beside(path: &Path) -> Result<(), String> {
    remove_directory(&home_of(path))?;
    match rustix::fs::unlink(path.with_extension(WORKER)) {
        Err(error) if error != rustix::io::Errno::NOENT => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Removes a directory that only an attempt has used, if there is one.
///
/// # Errors
/// The message of the system.
#[expect(clippy::disallowed_methods, reason = "a directory that only its attempt has used")]
pub fn remove_directory(path: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
        _ => Ok(()),
    }
}
