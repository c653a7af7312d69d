//! Tasks with a bundle (`agent submit --bundle`): the worker works in a clone of it, and the commits come back as another bundle.

use crate::commands::context::{WorkerContext, may_pass};
use crate::objects::MAX_OBJECT_BYTES;
use crate::queue::Queue;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::fleet::{Bundle, TaskRecord, TaskState, branch_name};
use agent_flows::work::worktrees::{git_launcher, open_repository, unusable};
use agent_process::launch::Launcher;
use agent_process::scratch_dir::ScratchDir;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_runtime::private_file::create_private_dir;
use agent_workspace::git::bundle::init;
use agent_workspace::git::worktree::Repository;
use std::path::{Component, Path, PathBuf};

/// Name of a bundle while git writes or reads it.
const FILE: &str = "bundle";

/// Stores `reference` of the repository at `settings.workspace` with its history in the queue.
///
/// # Errors
/// Fails for what is no branch, tag or `HEAD`, for more than 64 MiB, and when the queue cannot be used.
pub async fn store(app: &App, settings: &Settings, queue: &Queue, reference: &str) -> AppResult<Bundle> {
    let launcher = git_launcher(app, settings)?;
    let repository = open_repository(&launcher, settings).await?;
    let wrong = |why: String| AppError::new(FailureKind::Usage, format!("--bundle {reference}: {why}"));
    let commit = repository.commit_of(reference).await.map_err(wrong)?;
    let (directory, file) = scratch(&settings.state)?;
    repository.write_bundle(&file, reference).await.map_err(wrong)?;
    let bytes = read(&file)?;
    drop(directory);
    if bytes.len() > MAX_OBJECT_BYTES {
        let (has, most) = (bytes.len() >> 20, MAX_OBJECT_BYTES >> 20);
        return Err(wrong(format!("it has {has} MiB with its history, and a bundle at most {most}")));
    }
    let object = queue.put_object(&bytes, app.source.unix_time().as_secs()).await?;
    Ok(Bundle { object, commit, prefix: repository.prefix })
}

/// Returns the directory `prefix` of a working tree, which must be in it: whoever may write to the queue has chosen it.
///
/// # Errors
/// Fails for a directory that does not exist, or is elsewhere.
pub fn directory_in(root: &Path, prefix: &str) -> AppResult<PathBuf> {
    let wrong = |why: String| AppError::new(FailureKind::Config, format!("the directory `{prefix}`: {why}"));
    let directory = root.join(prefix);
    let is_below = Path::new(prefix).components().all(|part| matches!(part, Component::Normal(_)));
    let places = root.canonicalize().and_then(|root| Ok((root, directory.canonicalize()?)));
    let (root, found) = places.map_err(|error| wrong(error.to_string()))?;
    if is_below && found.starts_with(root) {
        return Ok(directory);
    }
    Err(wrong("it is not in the repository".to_owned()))
}

/// Checks that `text`, which a record has, is the id of a commit and no option of git.
///
/// # Errors
/// When it is something else.
pub fn check_commit(text: &str) -> AppResult<()> {
    if [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(AppError::new(FailureKind::Config, "the record has no id of a commit"))
}

/// Makes `path` a clone of a bundle, with its commit checked out.
///
/// # Errors
/// Fails when the bundle is gone from the queue, and when git cannot read it.
pub async fn clone(
    worker: &WorkerContext<'_>,
    launcher: &Launcher,
    settings: &Settings,
    bundle: &Bundle,
    path: &Path,
) -> AppResult<()> {
    check_commit(&bundle.commit)?;
    let bytes = worker.until_answered(async || worker.queue.object(&bundle.object).await).await?;
    let gone = || {
        AppError::new(FailureKind::Config, "its bundle is no longer in the queue, which keeps it for 60 days")
    };
    let bytes = bytes.ok_or_else(gone)?;
    let (_directory, file) = scratch(&settings.state)?;
    write(&file, &bytes)?;
    create_private_dir(path).map_err(|error| may_pass(&format!("{}: {error}", path.display())))?;
    let cloned = async {
        init(launcher, path, &bundle.commit).await?;
        let repository = Repository::open(launcher, path).await?;
        repository.read_bundle(&file, &bundle.commit).await?;
        repository.check_out(&bundle.commit).await
    };
    cloned.await.map_err(|why| unusable(&why))
}

/// Stores the commits from `base` to `commit` in the queue, and records them for the newest attempt of `task`.
///
/// # Errors
/// Fails when git or the queue cannot be used.
pub async fn store_result(
    worker: &WorkerContext<'_>,
    task: &TaskRecord,
    repository: &Repository<'_>,
    settings: &Settings,
    base: &str,
    commit: &str,
) -> AppResult<()> {
    let (_directory, file) = scratch(&settings.state)?;
    repository.write_result(&file, base, commit).await.map_err(|why| may_pass(&why))?;
    let bytes = read(&file)?;
    let put = async || worker.queue.put_object(&bytes, worker.now()).await;
    let object = worker.until_answered(put).await?;
    let record = |task: &mut TaskRecord| task.result_bundle = Some(object.clone());
    let set = async || worker.queue.update(task, record).await;
    // Whether the task is still that of this attempt is decided when its end is recorded.
    worker.until_answered(set).await.map(drop)
}

/// Creates the branch of a task in the repository of the workspace, from the bundle of its result; returns its name.
///
/// # Errors
/// Fails for a task that is not done, changed nothing or has no bundle, and when the repository lacks the commit that it began with.
pub async fn fetch(app: &App, settings: &Settings, queue: &Queue, id: &str) -> AppResult<String> {
    let task = queue.record(id).await?;
    let wrong = |why: &str| AppError::new(FailureKind::Usage, format!("the task {id} {why}"));
    let (Some(object), Some(commit)) = (&task.result_bundle, &task.commit) else {
        return Err(wrong(&if task.spec.bundle.is_none() {
            "has no bundle: its branch is in the repository of its directory".to_owned()
        } else if task.state == TaskState::Done {
            "has changed nothing".to_owned()
        } else {
            format!("is not done, but {}", task.state.name())
        }));
    };
    check_commit(commit)?;
    let bytes = queue
        .object(object)
        .await?
        .ok_or_else(|| wrong("has a result that is gone: it is kept for 60 days"))?;
    let launcher = git_launcher(app, settings)?;
    let repository = open_repository(&launcher, settings).await?;
    let (_directory, file) = scratch(&settings.state)?;
    write(&file, &bytes)?;
    let branch = branch_name(id);
    let fetched = async {
        repository.read_bundle(&file, commit).await?;
        repository.create_branch(&branch, commit).await
    };
    fetched.await.map_err(|why| unusable(&why))?;
    Ok(branch)
}

/// Creates a private directory, and returns the path of a file in it.
fn scratch(state: &Path) -> AppResult<(ScratchDir, PathBuf)> {
    let parent = state.join("bundles");
    let directory = ScratchDir::new(&parent);
    let directory = directory.map_err(|error| may_pass(&format!("{}: {error}", parent.display())))?;
    let file = directory.path().join(FILE);
    Ok((directory, file))
}

#[expect(clippy::disallowed_methods, reason = "a file in a directory of its own")]
fn read(file: &Path) -> AppResult<Vec<u8>> {
    std::fs::read(file).map_err(|error| may_pass(&format!("{}: {error}", file.display())))
}

#[expect(clippy::disallowed_methods, reason = "a file in a directory of its own")]
fn write(file: &Path, bytes: &[u8]) -> AppResult<()> {
    std::fs::write(file, bytes).map_err(|error| may_pass(&format!("{}: {error}", file.display())))
}
