//! What `agent eval` measures: the runs of each model or configuration on each task.

use crate::eval::EvalRequest;
use crate::work::running::usage;
use crate::work::workers::WorkerTask;
use agent_config::eval_tasks::EvalTask;
use agent_core::price::Usd;
use agent_core::score::TaskRuns;
use agent_core::work::WorkRun;
use agent_messages as messages;
use agent_run::error::AppResult;
use agent_run::request::RunRequest;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of model calls of a run, unless `--max-steps` or the task sets another.
const MAX_STEPS: u32 = 50;
/// Maximum number of runs.
const MAX_RUNS: usize = 10_000;

/// The tasks, and what they are measured with.
pub struct Measurement<'a> {
    /// What they are measured with.
    pub command: &'a EvalRequest,
    /// The models or configurations.
    pub names: &'a [String],
    /// The tasks.
    pub tasks: Vec<EvalTask>,
}

impl Measurement<'_> {
    fn repeat(&self) -> u8 {
        self.command.repeat.unwrap_or(1)
    }

    /// Returns the runs of each task and name with their numbers, those of the first repetition first.
    fn runs(&self) -> impl Iterator<Item = (&EvalTask, &String, u8)> {
        let all = move |number| {
            self.tasks.iter().flat_map(move |task| self.names.iter().map(move |name| (task, name, number)))
        };
        (1..=self.repeat()).flat_map(all)
    }

    fn run_name(&self, task: &EvalTask, name: &str, number: u8) -> String {
        let name =
            if self.command.tasks.is_some() { format!("{}: {name}", task.name) } else { name.to_owned() };
        if self.repeat() == 1 { name } else { format!("{name} #{number}") }
    }

    fn max_steps(&self, task: &EvalTask) -> u32 {
        let limits = [self.command.work.run.overrides.max_steps, task.max_steps];
        limits.into_iter().flatten().min().unwrap_or(MAX_STEPS)
    }

    /// Returns the task of each run, by the name of the run.
    ///
    /// # Errors
    /// Fails if there are too many runs, or two with the same name.
    pub fn tasks_by_run(&self) -> AppResult<BTreeMap<String, &EvalTask>> {
        let count = self.tasks.len() * self.names.len() * usize::from(self.repeat());
        if count > MAX_RUNS {
            return Err(usage(messages::too_many_runs(count, MAX_RUNS)));
        }
        let named = self.runs().map(|(task, name, number)| (self.run_name(task, name, number), task));
        let tasks: BTreeMap<_, _> = named.collect();
        if tasks.len() == count { Ok(tasks) } else { Err(usage(messages::SAME_RUN_NAME)) }
    }

    /// Returns the runs with `request`.
    ///
    /// # Errors
    /// Fails for a budget that is no amount of money.
    pub fn worker_tasks(&self, request: &RunRequest) -> AppResult<Vec<WorkerTask>> {
        let budget = self.command.budget_per_model.map(Usd::try_from).transpose();
        let budget = budget.map_err(|error| usage(error.to_string()))?;
        let worker = |(task, name, number): (&EvalTask, &String, u8)| {
            let mut request = request.clone();
            if self.command.models.is_empty() {
                request.overrides.config = Some(name.into());
            } else {
                request.overrides.model = Some(name.clone());
            }
            request.overrides.max_steps = Some(self.max_steps(task));
            request.bounds.budget = budget;
            let timeouts = [self.command.timeout_per_model, task.timeout];
            request.bounds.timeout = timeouts.into_iter().flatten().min().map(Duration::from_secs);
            WorkerTask {
                name: self.run_name(task, name, number),
                prompt: task.prompt.clone(),
                request,
                checks: task.checks.iter().chain(&self.command.work.run.checks).cloned().collect(),
                variables: task.variables.clone(),
            }
        };
        Ok(self.runs().map(worker).collect())
    }

    /// Returns the runs that were made, by task and name.
    pub fn task_runs<'a>(&self, runs: &'a [WorkRun]) -> Vec<TaskRuns<'a>> {
        let by_name: BTreeMap<&str, &WorkRun> = runs.iter().map(|run| (run.name.as_str(), run)).collect();
        let of = |(task, name): (&EvalTask, &String)| TaskRuns {
            task: task.name.clone(),
            name: name.clone(),
            max_steps: self.max_steps(task),
            runs: (1..=self.repeat())
                .filter_map(|number| by_name.get(self.run_name(task, name, number).as_str()).copied())
                .collect(),
        };
        let pairs = self.tasks.iter().flat_map(|task| self.names.iter().map(move |name| (task, name)));
        pairs.map(of).collect()
    }
}
