//! One attempt of a task: a run in a worktree, whose effects appear when its result is recorded.

use crate::cli::commands::client_run::run_for_client;
use crate::cli::commands::fleet::context::WorkerContext;
use crate::cli::commands::run_args::{RunOptions, parse_mode};
use crate::cli::commands::run_setup::Task;
use crate::cli::commands::work::workers::concurrent_options;
use crate::cli::commands::work::worktrees::{git_launcher, open_repository, subject, unusable};
use crate::cli::compose::directories;
use crate::cli::compose::preparation::Preparation;
use crate::cli::error::{CliError, CliResult};
use crate::config::environment::WORKTREES;
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::core::fleet::{TaskRecord, TaskState, branch_name};
use crate::core::price::Usd;
use crate::core::run_result::RunResult;
use crate::core::stop_reason::Status;
use crate::engine::worktree::Repository;
use crate::fleet::boot_clock::BootTime;
use crate::fleet::queue::Ending;
use crate::messages;
use crate::runtime::private_file::create_private_dir;
use crate::terminal::Style;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// An attempt.
pub struct Attempt<'a> {
    worker: &'a WorkerContext<'a>,
    task: &'a TaskRecord,
}

/// The worktree of an attempt.
struct Place<'a> {
    repository: &'a Repository<'a>,
    path: PathBuf,
    /// Branch of the worktree.
    branch: String,
}

impl<'a> Place<'a> {
    /// Returns the place of an attempt of the task `id`, below `directory`.
    fn new(repository: &'a Repository<'a>, directory: &Path, (id, attempt): (&str, u32)) -> Self {
        let name = format!("{id}-{attempt}");
        Self { repository, path: directory.join(&name), branch: format!("agent/attempt/{name}") }
    }

    /// Creates the branch of a task that is done.
    async fn publish(&self, task: &TaskRecord) -> CliResult<()> {
        let Some(commit) = task.commit.as_ref().filter(|_| task.state == TaskState::Done) else {
            return Ok(());
        };
        self.repository.create_branch(&branch_name(&task.id), commit).await.map_err(|why| unusable(&why))
    }

    /// Removes worktree and branch, if they exist; returns whether that succeeded.
    async fn remove(&self, worker: &WorkerContext<'_>) -> bool {
        let removed = async {
            self.repository.remove_locks(&self.path, &self.branch).await?;
            self.repository.remove(&self.path).await?;
            self.repository.delete_branch(&self.branch, "", true).await
        };
        if let Err(why) = removed.await {
            worker.log(Style::Warning, &messages::attempt_not_removed(&self.branch, &why));
            return false;
        }
        true
    }
}

impl<'a> Attempt<'a> {
    /// Creates the newest attempt of `task`.
    pub fn new(worker: &'a WorkerContext<'a>, task: &'a TaskRecord) -> Self {
        Self { worker, task }
    }

    /// Runs the task and records how that ended, unless the task is no longer its own. The claim is renewed all the time.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn perform(&self) -> CliResult<()> {
        let interrupt = CancellationToken::new();
        let attempt = Box::pin(self.in_worktree(&interrupt));
        if let Err(error) = self.while_renewing(attempt, &interrupt).await? {
            let cause = self.worker.app.redact(&error.to_string());
            if !self.finish(&ending_of(error.kind, cause), None)? {
                self.worker.app.report_error(&error);
            }
        }
        Ok(())
    }

    async fn in_worktree(&self, interrupt: &CancellationToken) -> CliResult<()> {
        let settings = self.settings()?;
        let launcher = git_launcher(self.worker.app, &settings)?;
        let repository = open_repository(&launcher, &settings).await?;
        let base = repository.commit_of("HEAD").await.map_err(|why| unusable(&why))?;
        let directory = settings.state.join(WORKTREES);
        create_private_dir(&directory)
            .map_err(|error| unusable(&format!("{}: {error}", directory.display())))?;
        for attempt in 1..self.task.attempt {
            Place::new(&repository, &directory, (&self.task.id, attempt)).remove(self.worker).await;
        }
        let place = Place::new(&repository, &directory, (&self.task.id, self.task.attempt));
        repository.add(&place.path, &place.branch, &base).await.map_err(|why| unusable(&why))?;
        let done = self.run_in((&place, &base), &settings, interrupt).await;
        let record = self.worker.queue.borrow().get(&self.task.id)?;
        let published =
            if record.attempt == self.task.attempt { place.publish(&record).await } else { Ok(()) };
        // The branch of an attempt keeps a commit that could not be published.
        if published.is_ok() && place.remove(self.worker).await {
            self.worker.queue.borrow().set_settled(&self.task.id, self.task.attempt)?;
        }
        done.and(published)
    }

    /// Loads the settings of the task's directory; the options of the worker bound those of the task.
    fn settings(&self) -> CliResult<Settings> {
        let mut options = self.worker.options.clone();
        options.common.workspace = Some(PathBuf::from(&self.task.spec.dir));
        let settings = self.worker.app.load_and_notify(&options.flags())?.settings;
        directories::prepare(&settings)?;
        Ok(settings)
    }

    async fn run_in(
        &self,
        (place, base): (&Place<'_>, &str),
        settings: &Settings,
        interrupt: &CancellationToken,
    ) -> CliResult<()> {
        let mut options = concurrent_options(self.options(settings)?, interrupt);
        options.common.workspace = Some(place.path.join(&place.repository.prefix));
        let app = self.worker.app.for_worker();
        let task = Task::New {
            prompt: self.task.spec.prompt.clone(),
            history: None,
            config: None,
            preparation: Preparation::default(),
        };
        let result = Box::pin(run_for_client(&app, &options, task)).await?.result;
        if self.worker.stop.is_cancelled() && result.status != Status::Success {
            self.worker.queue.borrow().give_back(&self.task.id, self.task.attempt, self.worker.now())?;
            return Ok(());
        }
        if result.status != Status::Success {
            self.finish(&ending_of_run(&result), Some(&result))?;
            return Ok(());
        }
        let message = subject(&self.task.spec.prompt);
        let commit = place.repository.commit_all(&place.path, base, &message).await;
        let ending = match commit {
            Ok(commit) => Ending::Done(commit),
            Err(why) => Ending::Retry(messages::not_committed(&why)),
        };
        self.finish(&ending, Some(&result)).map(drop)
    }

    /// Awaits the attempt while it renews the claim. Interrupts it when the task is no longer its own, and when the worker ends.
    async fn while_renewing<T>(
        &self,
        mut attempt: impl Future<Output = T> + Unpin,
        interrupt: &CancellationToken,
    ) -> CliResult<T> {
        let mut renewals = interval(self.worker.lease / 3);
        renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = &mut attempt => return Ok(ended),
                _ = renewals.tick(), if !interrupt.is_cancelled() => {
                    let until = BootTime::now().after(self.worker.lease);
                    if !self.worker.queue.borrow().renew(&self.task.id, self.task.attempt, &until)? {
                        interrupt.cancel();
                    }
                }
                () = self.worker.stop.cancelled(), if !interrupt.is_cancelled() => interrupt.cancel(),
            }
        }
    }

    /// Returns the options of the run: those of the worker, with what the task asks for within them.
    fn options(&self, settings: &Settings) -> CliResult<RunOptions> {
        let (spec, mut options) = (&self.task.spec, self.worker.options.clone());
        let wrong = |why: String| CliError::new(FailureKind::Config, why);
        options.agent = spec.agent.clone().or(options.agent);
        options.model = spec.model.clone().or(options.model);
        options.bounds.mode = Some(settings.policy.mode);
        let mode = spec.mode.as_deref().map(parse_mode).transpose().map_err(wrong)?;
        options.mode = mode.or(options.mode);
        options.bounds.max_steps = spec.max_steps;
        options.bounds.timeout = spec.timeout.map(Duration::from_secs);
        let budget = spec.budget.map(Usd::try_from).transpose().map_err(|error| wrong(error.to_string()))?;
        options.bounds.budget = [options.bounds.budget, budget].into_iter().flatten().min();
        options.check.extend(spec.checks.iter().cloned());
        Ok(options)
    }

    fn finish(&self, ending: &Ending, result: Option<&RunResult>) -> CliResult<bool> {
        let attempt = (self.task.id.as_str(), self.task.attempt);
        Ok(self.worker.queue.borrow().finish(attempt, ending, result, self.worker.now())?)
    }
}

/// Creates the branch of an ended task, and removes what its newest attempt has left.
///
/// # Errors
/// Fails when its repository cannot be used, or its branch is on another commit.
pub async fn settle(worker: &WorkerContext<'_>, task: &TaskRecord) -> CliResult<()> {
    let settings = Attempt::new(worker, task).settings()?;
    let launcher = git_launcher(worker.app, &settings)?;
    let repository = open_repository(&launcher, &settings).await?;
    let place = Place::new(&repository, &settings.state.join(WORKTREES), (&task.id, task.attempt));
    place.publish(task).await?;
    if place.remove(worker).await {
        worker.queue.borrow().set_settled(&task.id, task.attempt)?;
    }
    Ok(())
}

/// Returns how an attempt ended whose run ended without success.
fn ending_of_run(result: &RunResult) -> Ending {
    let reason = result.stop_reason.map_or_else(|| result.status.name(), |reason| reason.name());
    match &result.error {
        Some(failure) if failure.retryable => Ending::Retry(failure.message.clone()),
        Some(failure) => Ending::Failed(failure.message.clone()),
        None => Ending::Failed(reason.to_owned()),
    }
}

/// Returns how an attempt ended whose run could not start: with the same configuration no other one would.
fn ending_of(kind: FailureKind, message: String) -> Ending {
    match kind {
        FailureKind::Internal | FailureKind::Session => Ending::Retry(message),
        _ => Ending::Failed(message),
    }
}
