//! One attempt of a task: a run in a worktree, whose effects appear when its result is recorded.

use crate::commands::attempt_directory::{
    AttemptDirectory, home_of, is_kept, path_of, remove_clone, set_worker,
};
use crate::commands::bundle::{clone, directory_in, store_result};
use crate::commands::claim::{AttemptRun, Claim, ending_of, ending_of_run};
use crate::commands::context::{WorkerContext, is_worker_fault, may_pass};
use crate::commands::executor::ExecutorRun;
use crate::commands::long_prompt::with_prompt;
use crate::commands::stored_session::store_session;
use agent_config::agent_definition::OWN;
use agent_config::flag_values::parse_mode;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::fleet::{AttemptKey, TaskRecord, TaskState, branch_name};
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_core::task_transitions::Ending;
use agent_engine::approver::NoApprover;
use agent_flows::work::next_run::{NextRun, is_cut_in_first_calls};
use agent_flows::work::workers::concurrent_request;
use agent_flows::work::worktrees::{git_launcher, open_repository, subject, unusable};
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::deciding_engine::command_refusal;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::perform::run_for_client;
use agent_run::request::{RunRequest, Task};
use agent_run::session::session_store;
use agent_workspace::git::commit_id;
use agent_workspace::git::worktree::Repository;
use agent_workspace::git::worktree_commit::Committed;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// An attempt.
pub struct Attempt<'a> {
    worker: &'a WorkerContext<'a>,
    task: &'a TaskRecord,
    run: &'a AttemptRun,
}

impl<'a> Attempt<'a> {
    /// Creates the newest attempt of `task`.
    pub fn new(worker: &'a WorkerContext<'a>, task: &'a TaskRecord, run: &'a AttemptRun) -> Self {
        Self { worker, task, run }
    }

    /// Checks whether a new attempt is better than the rest of this one, whose worker was killed.
    pub fn begins_anew(&self) -> bool {
        let Some(session) = &self.task.session_id else { return false };
        // What cannot be read is reported by the attempt.
        self.settings().and_then(|it| is_cut_in_first_calls(&session_store(&it), session)).unwrap_or(false)
    }

    /// Runs the task and records how that ended, unless the task is no longer its own. The claim is renewed all the time.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn perform(&self) -> AppResult<()> {
        let (claim, interrupt) = (self.claim(), self.worker.stop.child_token());
        let ended = tokio::select! {
            ended = Box::pin(self.in_worktree(&interrupt)) => ended,
            never = claim.renew(&interrupt) => match never {},
        };
        let Err(error) = ended else { return Ok(()) };
        if self.is_not_recorded(&error) {
            return Err(error);
        }
        let spec = &self.task.spec;
        let uses_own_model = spec.model.is_none() && spec.executor.as_deref().is_none_or(|name| name == OWN);
        let error = self.worker.attribute(error, uses_own_model).await;
        if is_worker_fault(&error) {
            self.claim().give_back().await?;
            return Err(error);
        }
        // The money of all tasks together is used up, or the worker ends, which says nothing about this one.
        if error.kind == FailureKind::Quota || self.worker.stop.is_cancelled() {
            return self.claim().give_back().await;
        }
        let is_own = self.claim().finish(ending_of(error.kind, error.to_string()), None).await?;
        if !is_own {
            self.worker.app.report_error(&error);
        }
        Ok(())
    }

    /// Checks whether the worker ends while the queue cannot be used: the next worker of this machine goes on with the attempt.
    fn is_not_recorded(&self, error: &AppError) -> bool {
        error.kind == FailureKind::Network && self.worker.stop.is_cancelled()
    }

    fn claim(&self) -> Claim<'a> {
        Claim { worker: self.worker, task: self.task, run: self.run }
    }

    fn key(&self) -> AttemptKey {
        self.task.newest_attempt()
    }

    async fn in_worktree(&self, interrupt: &CancellationToken) -> AppResult<()> {
        let settings = self.settings()?;
        let launcher = git_launcher(self.worker.app, &settings)?;
        let own = path_of(self.worker, &settings, self.key());
        set_worker(&own, self.task.worker.as_deref().unwrap_or_default())?;
        let opened = self.open(&launcher, &settings).await;
        if opened.is_err() && self.task.session_id.is_none() {
            remove_clone(&own).map_err(|why| may_pass(&why))?;
        }
        let (repository, base) = opened?;
        for attempt in 1..self.task.attempt {
            let earlier = AttemptKey { attempt, ..self.key() };
            AttemptDirectory::new(self.worker, &repository, &settings, self.task, earlier).remove().await;
        }
        let place = AttemptDirectory::new(self.worker, &repository, &settings, self.task, self.key());
        if self.task.session_id.is_none() && !place.is_clone {
            if let Err(error) = place.create(&base).await {
                // A part may exist, also if another attempt has removed it meanwhile.
                place.remove().await;
                return Err(error);
            }
        } else if !place.path.is_dir() {
            return Err(may_pass(messages::ATTEMPT_IS_GONE));
        } else {
            repository.remove_locks(&place.path, None).await.map_err(|why| may_pass(&why))?;
        }
        let done = Box::pin(self.run_in(&place, &base, &settings, interrupt)).await;
        if done.as_ref().is_err_and(|error| self.is_not_recorded(error)) {
            return done;
        }
        let own =
            match self.worker.until_answered(async || self.worker.queue.record(&self.task.id).await).await {
                Err(error) if self.is_not_recorded(&error) => return Err(error),
                record => record.ok().filter(|record| record.newest_attempt() == self.key()),
            };
        let published = match &own {
            Some(record) => place.publish(record).await,
            None => Ok(()),
        };
        // The worktree keeps a commit that could not be published.
        if published.is_ok() && place.remove().await && own.is_some_and(|record| record.state.has_ended()) {
            self.worker.until_answered(async || self.worker.queue.set_settled(self.task).await).await?;
        }
        done.and(published)
    }

    /// Opens the repository of the task, or makes one of its bundle; returns also the commit with which the attempt begins.
    async fn open<'l>(
        &self,
        launcher: &'l Launcher,
        settings: &Settings,
    ) -> AppResult<(Repository<'l>, String)> {
        if let Some(bundle) = &self.task.spec.bundle {
            let path = path_of(self.worker, settings, self.key());
            if self.task.session_id.is_none() {
                clone(self.worker, launcher, settings, bundle, &path).await?;
            } else if !path.is_dir() {
                return Err(may_pass(messages::ATTEMPT_IS_GONE));
            }
            let mut repository = Repository::open(launcher, &path).await.map_err(|why| may_pass(&why))?;
            repository.prefix.clone_from(&bundle.prefix);
            return Ok((repository, bundle.commit.clone()));
        }
        let (branch, head) = (branch_name(&self.task.id), self.task.base.as_deref().unwrap_or("HEAD"));
        let reference = format!("refs/heads/{branch}");
        let (repository, base, existing) = tokio::join!(
            open_repository(launcher, settings),
            commit_id(launcher, &settings.workspace, head),
            commit_id(launcher, &settings.workspace, &reference),
        );
        let repository = repository?;
        if existing.is_ok() {
            return Err(unusable(&messages::branch_exists(&branch)));
        }
        let base = base.map_err(|why| unusable(&why))?;
        // Before the run costs anything.
        let checked = repository.check_branch(&branch).await;
        checked.map_err(|why| unusable(&messages::branch_impossible(&branch, &why)))?;
        Ok((repository, base))
    }

    /// Loads the settings of the task's directory, or for a bundle of the worker's directory. The request of the worker bounds the task.
    fn settings(&self) -> AppResult<Settings> {
        let dir = Some(Path::new(&self.task.spec.dir)).filter(|_| self.task.spec.bundle.is_none());
        self.settings_of(dir.or(self.worker.request.overrides.workspace.as_deref()))
    }

    fn settings_of(&self, workspace: Option<&Path>) -> AppResult<Settings> {
        let mut request = self.worker.request.clone();
        request.overrides.workspace = workspace.map(Path::to_owned);
        let settings = self.worker.app.load_and_notify(&request.effective_overrides())?.settings;
        directories::prepare(&settings)?;
        Ok(settings)
    }

    /// Checks that the policy of the worker lets the checks of the task run in `directory`.
    fn check_commands(&self, directory: &Path) -> AppResult<()> {
        let checks = &self.task.spec.checks;
        if checks.is_empty() {
            return Ok(());
        }
        let settings = self.settings_of(Some(directory))?;
        for check in checks {
            if let Some(why) = command_refusal(self.worker.app, &settings, check)? {
                return Err(AppError::new(FailureKind::Config, messages::check_refused(check, &why)));
            }
        }
        Ok(())
    }

    async fn run_in(
        &self,
        place: &AttemptDirectory<'_>,
        base: &str,
        settings: &Settings,
        interrupt: &CancellationToken,
    ) -> AppResult<()> {
        let directory = directory_in(&place.path, &place.repository.prefix)?;
        self.check_commands(&directory)?;
        let own = &self.worker.request;
        let mut spec = self.task.spec.clone();
        if let Some(object) = spec.long_prompt.clone() {
            let bytes = self.worker.until_answered(async || self.worker.queue.object(&object).await).await?;
            spec = with_prompt(spec, bytes)?;
        }
        if let Some(executor) = ExecutorRun::new(self.worker.app, settings, own, &spec, "")? {
            let own = self.settings_of(Some(&directory))?;
            let home = home_of(&place.path);
            let result = Box::pin(executor.run(own, &directory, &home, interrupt)).await?;
            return Box::pin(self.record(place, base, settings, result)).await;
        }
        let mut request = concurrent_request(self.request(settings)?, interrupt);
        request.overrides.workspace = Some(directory);
        let app = self.worker.app.for_worker();
        let (sessions, session_id) = (session_store(settings), self.task.session_id.as_deref());
        let task = Task::new(spec.prompt);
        let result = match NextRun::of(&app, &sessions, session_id, was_interrupted, &task)? {
            NextRun::Ended(result) => *result,
            NextRun::Start { session_id, task, spent } => {
                let record = |task: &mut TaskRecord| {
                    (task.session_id, task.base) = (Some(session_id.clone()), Some(base.to_owned()));
                };
                let set = async || self.worker.queue.update(self.task, record).await;
                if !self.worker.until_answered(set).await? {
                    return Ok(());
                }
                (request.session_id, request.task) = (Some(session_id), task);
                request.total_budget.iter().for_each(|total| total.add_used(spent));
                self.run.begin();
                Box::pin(run_for_client(&app, &request)).await?.outcome.result
            }
        };
        Box::pin(self.record(place, base, settings, result)).await
    }

    /// Records how the run of the attempt ended.
    async fn record(
        &self,
        place: &AttemptDirectory<'_>,
        base: &str,
        settings: &Settings,
        result: RunResult,
    ) -> AppResult<()> {
        self.run.end(result.clone());
        store_session(self.worker, self.task, settings, &result).await?;
        if result.status != Status::Success {
            if self.worker.stop.is_cancelled() {
                return self.claim().give_back().await;
            }
            if let Some(fault) = self.worker.key_fault(&result) {
                return Err(fault);
            }
            return self.claim().finish(ending_of_run(&result), Some(&result)).await.map(drop);
        }
        Box::pin(self.record_success(place, base, settings, result)).await
    }

    /// Commits the changes in the worktree, and records that the task is done. A directory with changes that are in no commit is kept. That a run
    /// succeeded is paid for, so what failed after it is not tried with another run.
    async fn record_success(
        &self,
        place: &AttemptDirectory<'_>,
        base: &str,
        settings: &Settings,
        mut result: RunResult,
    ) -> AppResult<()> {
        let committed = Box::pin(self.commit(place, base, settings, &mut result)).await;
        if committed.as_ref().is_err_and(|error| self.is_not_recorded(error)) {
            return committed.map(drop);
        }
        let left_out = committed.as_ref().map_or(&[][..], |committed| &committed.left_out);
        if committed.is_err() || !left_out.is_empty() {
            let path = place.path.to_string_lossy().into_owned();
            let record = |task: &mut TaskRecord| {
                (task.left_out, task.worktree) = (left_out.to_vec(), Some(path.clone()));
            };
            let set = async || self.worker.queue.update(self.task, record).await;
            if self.worker.until_answered(set).await? {
                place.keep()?;
            }
        }
        let ending = match committed {
            Ok(committed) => Ending::Done(committed.commit),
            Err(why) => Ending::Failed(messages::not_committed(&why.to_string())),
        };
        self.claim().finish(ending, Some(&result)).await.map(drop)
    }

    /// Commits the changes in the worktree, and stores the commits if it is a clone.
    async fn commit(
        &self,
        place: &AttemptDirectory<'_>,
        base: &str,
        settings: &Settings,
        result: &mut RunResult,
    ) -> AppResult<Committed> {
        let message = subject(&self.task.spec.prompt);
        let committed = {
            let _turn = self.worker.git.lock().await;
            // A command of the run may have been killed.
            let unlocked = place.repository.remove_locks(&place.path, None).await;
            unlocked.map_err(|why| may_pass(&why))?;
            place.repository.commit_all(&place.path, base, &message, &result.files_modified).await
        };
        let committed = committed.map_err(|why| may_pass(&why))?;
        let Some(commit) = &committed.commit else { return Ok(committed) };
        if result.executor.is_some() {
            let changed = place.repository.changed_files(base, commit).await;
            result.files_modified = changed.map_err(|why| may_pass(&why))?;
        }
        if place.is_clone {
            store_result(self.worker, self.task, place.repository, settings, base, commit).await?;
        }
        Ok(committed)
    }

    /// Returns the request of the run: the request of the worker, with what the task asks for within them.
    fn request(&self, settings: &Settings) -> AppResult<RunRequest> {
        let (spec, mut request) = (&self.task.spec, self.worker.request.clone());
        let wrong = |why: String| AppError::new(FailureKind::Config, why);
        if request.overrides.agent.is_some() && spec.agent.is_some() && spec.agent != request.overrides.agent
        {
            return Err(wrong(messages::worker_has_agent(
                request.overrides.agent.as_deref().unwrap_or_default(),
            )));
        }
        request.overrides.agent = spec.agent.clone().or(request.overrides.agent);
        request.overrides.approvals = Some(NoApprover::Refuse);
        request.overrides.model = spec.model.clone().or(request.overrides.model);
        request.bounds.mode = Some(settings.policy.mode);
        let mode = spec.mode.as_deref().map(parse_mode).transpose().map_err(wrong)?;
        request.overrides.mode = mode.or(request.overrides.mode);
        request.bounds.max_steps = spec.max_steps;
        request.bounds.timeout = spec.timeout.map(Duration::from_secs);
        let budget = spec.budget.map(Usd::try_from).transpose().map_err(|error| wrong(error.to_string()))?;
        request.bounds.budget = [request.bounds.budget, budget].into_iter().flatten().min();
        request.checks.extend(spec.checks.iter().cloned());
        Ok(request)
    }
}

/// Creates the branch of an ended task, and removes what its newest attempt has left. A task without success whose repository cannot be
/// used has nothing that could be lost.
///
/// # Errors
/// Fails when the repository of a task that is done cannot be used, or its branch is on another commit.
pub async fn settle(worker: &WorkerContext<'_>, task: &TaskRecord) -> AppResult<()> {
    let settled = async {
        let settings = Attempt::new(worker, task, &AttemptRun::default()).settings()?;
        if task.spec.bundle.is_some() {
            let path = path_of(worker, &settings, task.newest_attempt());
            if is_kept(&path) {
                return Ok(true);
            }
            return remove_clone(&path).map(|()| true).map_err(|why| may_pass(&why));
        }
        let launcher = git_launcher(worker.app, &settings)?;
        let repository = open_repository(&launcher, &settings).await?;
        let place = AttemptDirectory::new(worker, &repository, &settings, task, task.newest_attempt());
        place.publish(task).await?;
        AppResult::Ok(place.remove().await)
    };
    match settled.await {
        Err(error) if task.state == TaskState::Done => return Err(error),
        Ok(false) => {}
        Ok(true) | Err(_) => worker.queue.set_settled(task).await?,
    }
    Ok(())
}

/// Checks whether a run was interrupted because its worker ended, not because of what it did.
fn was_interrupted(result: &RunResult) -> bool {
    result.stop_reason == Some(StopReason::UserInterrupt)
}
