//! The iterations of a loop: each is a run with a clean conversation, followed by the checks.

use crate::loop_command::LoopRequest;
use crate::loop_command::progress_file::ProgressFile;
use crate::work::checks::{Commands, check_gate};
use crate::work::outcome::WorkOutcome;
use crate::work::record::{WorkStart, work_store};
use crate::work::request::WorkCommand;
use crate::work::running::{NewTask, NextRun, RunningWork, Stop, WorkTask, can_go_on, usage};
use crate::work::workers::RunDirectories;
use crate::work::worktrees::{Worktrees, base_commit, git_launcher, open_repository};
use agent_config::settings::Settings;
use agent_config::text_file::read_text;
use agent_core::message_origin::MessageOrigin;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{ModifiedFile, RunResult};
use agent_core::stop_reason::Status;
use agent_core::work::{WorkRun, WorkStopReason};
use agent_engine::guardrails::quality_gate::QualityGate;
use agent_engine::policy::Policy;
use agent_messages as messages;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::directories;
use agent_run::error::AppResult;
use agent_run::preparation::PromptData;
use agent_run::request::{RunRequest, Task};
use agent_terminal::Style;
use agent_text::excerpt;
use agent_workspace::Workspace;
use agent_workspace::git::review_diff::ReviewDiff;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Maximum bytes of the file with the task.
const MAX_SPEC_BYTES: u64 = 1 << 20;
/// Characters of the changes that the model is shown.
const CHANGES_CHARS: usize = 5_000;
/// Characters of the last error that the model is shown.
const ERROR_CHARS: usize = 1_000;
/// Characters of an answer in the progress file.
const PROGRESS_CHARS: usize = 1_000;
/// How often the same checks may fail for the same files.
const MAX_SAME: usize = 3;

/// A loop that can start or be resumed.
pub struct Iterations<'a> {
    app: &'a App,
    settings: Settings,
    command: LoopRequest,
    request: RunRequest,
    launcher: Rc<Launcher>,
    workspace: Workspace,
    policy: Arc<Policy>,
    checks: Vec<String>,
    max: u32,
    tag: String,
    task: WorkTask,
    progress_file: Option<ProgressFile>,
    in_worktree: bool,
}

impl<'a> Iterations<'a> {
    /// Checks the request and prepares what all iterations share.
    ///
    /// # Errors
    /// Fails for a loop without a task or checks, and for an invalid configuration.
    pub fn prepare(app: &'a App, command: LoopRequest) -> AppResult<Self> {
        let mut request = command.work.run.clone();
        let mut settings = app.load_and_notify(&request.effective_overrides())?.settings;
        let section = &settings.ralph;
        request.overrides.agent = request.overrides.agent.or_else(|| section.agent.clone());
        request.overrides.budget =
            least([command.max_cost, request.overrides.budget, section.max_cost], f64::total_cmp);
        request.overrides.timeout =
            least([command.max_time, request.overrides.timeout, section.max_time], Ord::cmp);
        let (max, tag) =
            (command.max_iterations.unwrap_or(section.max_iterations), section.completion_tag.clone());
        if request.dry_run {
            return Err(usage(messages::LOOP_NEEDS_CHANGES));
        }
        let checks = std::mem::take(&mut request.checks);
        if checks.is_empty() {
            return Err(usage(messages::LOOP_NEEDS_CHECK));
        }
        let task = match &command.spec {
            Some(file) if command.work.record.is_none() => {
                if command.work.task.is_some() {
                    return Err(usage(messages::LOOP_TASK_OR_SPEC));
                }
                WorkTask::New(spec(file)?.into())
            }
            _ => command.work.read_task(app)?,
        };
        directories::prepare(&settings)?;
        settings.timeout = None;
        let launcher = assemble::launcher(app, &settings)?;
        let (workspace, policy) = assemble::guarded_workspace(app, &settings, launcher.tier())?;
        let progress_file = command.progress_file.clone().map(ProgressFile::at);
        let tag = command.completion_tag.clone().unwrap_or(tag);
        Ok(Self {
            app,
            settings,
            request,
            launcher,
            workspace,
            policy,
            checks,
            max,
            tag,
            task,
            progress_file,
            in_worktree: command.worktree,
            command,
        })
    }

    /// Runs the iterations.
    ///
    /// # Errors
    /// Fails when the record cannot be written, and when an iteration cannot start.
    pub async fn run(mut self) -> AppResult<WorkOutcome> {
        let task = match std::mem::replace(&mut self.task, WorkTask::New(NewTask::default())) {
            WorkTask::New(task) => WorkTask::New(NewTask { base: self.base().await?, ..task }),
            recorded @ WorkTask::Recorded(_) => recorded,
        };
        let request = std::mem::take(&mut self.request);
        let work = RunningWork::begin(self.app, &self.settings, &self.command, request, task)?;
        if self.progress_file.is_none() {
            let path = work_store(&self.settings).session_dir(&work.record.id)?.join("progress.md");
            self.progress_file = Some(ProgressFile::at(path));
        }
        if self.in_worktree {
            return Box::pin(self.run_in_worktree(work)).await;
        }
        let ended = Box::pin(self.iterations(&work, &work.request)).await;
        work.end(ended, |_| ())
    }

    /// Runs the iterations in a worktree, and commits there what they have changed.
    async fn run_in_worktree(mut self, work: RunningWork<'a>) -> AppResult<WorkOutcome> {
        let git = git_launcher(self.app, &self.settings)?;
        let repository = open_repository(&git, &self.settings).await?;
        let worktrees = Worktrees::new(repository, &self.settings, &work.record)?;
        let (worktree, directory) =
            worktrees.create(LoopRequest::NAME, 1, work.record.has_begun(None)).await?;
        let mut request = work.request.clone();
        request.overrides.workspace = Some(directory);
        self.use_workspace(&request)?;
        work.log(Style::Bold, &messages::works_on(&worktree.branch, work.language));
        let ended = Box::pin(self.iterations(&work, &request)).await;
        let task = work.record.start().task;
        let changed: Vec<ModifiedFile> =
            work.record.ended_runs().into_iter().flat_map(|run| run.result.files_modified).collect();
        let worktree = worktrees.commit(LoopRequest::NAME, &task, worktree, &changed).await?;
        let ended = match ended {
            Ok(WorkStopReason::Done) if worktree.problem.is_some() => Ok(WorkStopReason::RunFailed),
            ended => ended,
        };
        work.end(ended, |result| result.worktree = Some(worktree))
    }

    /// Runs checks, and reads changes, in the workspace of `request`.
    fn use_workspace(&mut self, request: &RunRequest) -> AppResult<()> {
        self.settings = self.app.load(&request.effective_overrides())?.settings;
        self.settings.timeout = None;
        self.launcher = assemble::launcher(self.app, &self.settings)?;
        (self.workspace, self.policy) =
            assemble::guarded_workspace(self.app, &self.settings, self.launcher.tier())?;
        Ok(())
    }

    /// Returns the commit from which the changes of a new loop are counted.
    async fn base(&self) -> AppResult<Option<String>> {
        if self.in_worktree {
            let git = git_launcher(self.app, &self.settings)?;
            let repository = open_repository(&git, &self.settings).await?;
            return base_commit(self.app, &self.settings, &repository, None, false).await.map(Some);
        }
        let hidden = |path: &str| self.policy.is_sensitive(path);
        Ok(match ReviewDiff::new(&self.launcher, &self.workspace, Some("HEAD"), hidden).await {
            Ok(diff) => Some(diff.base),
            Err(why) => {
                let text = messages::no_loop_changes(&why, self.settings.language);
                self.app.notify(Style::Warning, &self.app.redact(&text));
                None
            }
        })
    }

    async fn iterations(&self, work: &RunningWork<'_>, request: &RunRequest) -> Result<WorkStopReason, Stop> {
        let start = work.record.start();
        let mut state = Progress::default();
        loop {
            if let Some(reason) = self.iterate(work, request, &start, &mut state).await? {
                return Ok(reason);
            }
        }
    }

    /// Runs the next iteration; returns why the loop ends, if it does.
    async fn iterate(
        &self,
        work: &RunningWork<'_>,
        request: &RunRequest,
        start: &WorkStart,
        state: &mut Progress,
    ) -> Result<Option<WorkStopReason>, Stop> {
        let number = state.number + 1;
        if number > self.max {
            return Ok(Some(WorkStopReason::MaxIterations));
        }
        let name = format!("iteration {number}");
        let ended = work.record.ended_runs();
        let is_recorded = ended.iter().any(|run| run.name == name);
        let earlier = ended.into_iter().filter(|run| run.name != name);
        let mut request = request.clone();
        request.earlier_sessions = earlier.filter_map(|run| run.result.session_id).collect();
        let prompt = messages::loop_prompt(&start.task, number, self.max, &self.tag, &self.checks);
        request.task = Task::new(prompt).with_data(self.data(state));
        let next = NextRun {
            name: name.clone(),
            heading: messages::iteration(number, self.max, work.language),
            request,
            goes_on: can_go_on,
        };
        let result = work.run(&work.limits, next).await?;
        state.number = number;
        let Some(checks) = work.record.checks(&name, self.run_checks()).await? else {
            return Ok(Some(WorkStopReason::UserInterrupt));
        };
        work.log(Style::Plain, &messages::checks(&checks, work.language));
        if !is_recorded {
            self.add_progress(&name, &result, &checks);
        }
        let passed = checks.iter().all(|check| check.passed);
        if passed && result.status == Status::Success && has_word(&result.output.text(), &self.tag) {
            return Ok(Some(WorkStopReason::Done));
        }
        state.changes = self.changes(start.base.as_deref()).await;
        let tree = match &state.changes {
            Some(diff) if diff.too_large.is_empty() => Some(diff.text.clone()),
            _ => result.files_modified.is_empty().then(String::new),
        };
        Ok(state.add(tree, WorkRun { name, checks, result, ..WorkRun::default() }))
    }

    /// Returns the data that follow the prompt of the next iteration.
    fn data(&self, state: &Progress) -> Vec<PromptData> {
        let Some(last) = &state.last else { return Vec::new() };
        let mut data = Vec::new();
        if let Some(ReviewDiff { text, .. }) = &state.changes
            && !text.is_empty()
        {
            let (heading, text) =
                (messages::LOOP_CHANGES.to_owned(), excerpt::fit(text, CHANGES_CHARS).into_owned());
            data.push(PromptData { heading, text, origin: MessageOrigin::GitDiff });
        }
        for check in last.checks.iter().filter(|check| !check.passed) {
            data.push(PromptData::background(messages::loop_failed_check(&check.name), check.output.clone()));
        }
        if let Some(review) = last.result.review.as_ref().filter(|review| !review.findings.is_empty()) {
            data.push(PromptData::background(
                messages::LOOP_REVIEW.to_owned(),
                messages::change_findings(review),
            ));
        } else if last.result.status != Status::Success {
            let error = last.result.error.as_ref().map(|error| error.message.clone());
            let reason = last.result.stop_reason.map_or_else(String::new, |reason| reason.name().to_owned());
            let text = excerpt::fit(&error.unwrap_or(reason), ERROR_CHARS).into_owned();
            data.push(PromptData::background(messages::LOOP_LAST_ERROR.to_owned(), text));
        }
        let progress = self.progress_file.as_ref().map(ProgressFile::newest).unwrap_or_default();
        if !progress.is_empty() {
            data.push(PromptData::background(messages::LOOP_PROGRESS.to_owned(), progress));
        }
        data
    }

    /// Returns the changes since the commit `base`, without hidden files; `None` if they are not known.
    async fn changes(&self, base: Option<&str>) -> Option<ReviewDiff> {
        let hidden = |path: &str| self.policy.is_sensitive(path);
        ReviewDiff::since(&self.launcher, &self.workspace, base?.to_owned(), hidden).await.ok()
    }

    /// Runs the checks; `None` if they were interrupted.
    async fn run_checks(&self) -> AppResult<Option<Vec<GateResult>>> {
        let (app, launcher, language) = (self.app, &*self.launcher, self.settings.language);
        let commands = Commands { app, launcher, root: self.workspace.root(), language };
        let gates: Vec<QualityGate> = self.checks.iter().map(|check| check_gate(check)).collect();
        let runs = commands.run(&gates, &BTreeMap::new()).await?;
        Ok(runs.map(|runs| runs.into_iter().map(|run| run.result).collect()))
    }

    fn add_progress(&self, name: &str, result: &RunResult, checks: &[GateResult]) {
        let status = result.stop_reason.map_or_else(|| result.status.name(), |reason| reason.name());
        let answer = excerpt::fit(&result.output.text(), PROGRESS_CHARS).into_owned();
        let entry = messages::loop_progress(name, status, checks, &answer);
        if let Some(file) = &self.progress_file {
            file.add(self.app, &entry);
        }
    }
}

/// What the iterations so far have brought.
#[derive(Default)]
struct Progress {
    /// Number of the last iteration.
    number: u32,
    /// The last iteration.
    last: Option<WorkRun>,
    /// The changes since the start after it, if they are known.
    changes: Option<ReviewDiff>,
    /// The failed checks and the files of the last iterations that were all alike.
    same: Vec<(Vec<String>, String)>,
}

impl Progress {
    /// Adds an iteration with its files, if they are known; returns why the loop ends, if it does.
    fn add(&mut self, tree: Option<String>, run: WorkRun) -> Option<WorkStopReason> {
        let failed: Vec<String> =
            run.checks.iter().filter(|check| !check.passed).map(|check| check.name.clone()).collect();
        self.last = Some(run);
        match tree.map(|tree| (failed, tree)) {
            Some(state) if !state.0.is_empty() => {
                self.same.retain(|before| *before == state);
                self.same.push(state);
            }
            _ => self.same.clear(),
        }
        (self.same.len() >= MAX_SAME).then_some(WorkStopReason::NoProgress)
    }
}

/// Returns the least of the values that are given.
fn least<T>(values: [Option<T>; 3], order: impl Fn(&T, &T) -> std::cmp::Ordering) -> Option<T> {
    values.into_iter().flatten().min_by(|a, b| order(a, b))
}

/// Checks whether `word` stands in `text` as a word of its own.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|text| text.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn spec(file: &Path) -> AppResult<String> {
    let unusable = |why: String| usage(format!("--spec {}: {why}", file.display()));
    let text = read_text(file, MAX_SPEC_BYTES).map_err(|error| unusable(error.to_string()))?;
    match text {
        None => Err(unusable("there is no such file".to_owned())),
        Some(text) if text.trim().is_empty() => Err(unusable("it is empty".to_owned())),
        Some(text) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(passed: bool) -> WorkRun {
        let check = GateResult {
            name: "test".to_owned(),
            required: true,
            passed,
            output: String::new(),
            duration_ms: 1,
        };
        WorkRun { checks: vec![check], ..WorkRun::default() }
    }

    #[test]
    fn the_tag_is_a_word_of_its_own() {
        for text in ["COMPLETE", "done.\nCOMPLETE\n", "(COMPLETE)", "INCOMPLETE COMPLETE"] {
            assert!(has_word(text, "COMPLETE"), "{text}");
        }
        for text in ["", "INCOMPLETE", "COMPLETED", "COMPLETE_", "complete", "éCOMPLETE"] {
            assert!(!has_word(text, "COMPLETE"), "{text}");
        }
    }

    #[test]
    fn the_same_failures_for_the_same_files_end_the_loop_the_third_time() {
        let mut progress = Progress::default();
        let same = || Some("diff".to_owned());
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(Some("other".to_owned()), run(false)), None);
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(None, run(false)), None);
        assert_eq!(progress.add(same(), run(true)), None);
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(same(), run(false)), None);
        assert_eq!(progress.add(same(), run(false)), Some(WorkStopReason::NoProgress));
    }
}
