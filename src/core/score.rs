//! Scores of the runs of models or configurations on the same tasks, and their ranking.

use crate::price::Usd;
use crate::ranking::{Median, Ranked, RunScore, ScoreParts, TaskScore};
use crate::statistics::{EQUAL, count, mean, median, median_interval, wilson};
use crate::stop_reason::{Status, StopReason};
use crate::work::WorkRun;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The runs of a model or a configuration on a task.
pub struct TaskRuns<'a> {
    /// The task.
    pub task: String,
    /// The model, or the file of the configuration.
    pub name: String,
    /// Maximum number of steps of each run.
    pub max_steps: u32,
    /// The runs.
    pub runs: Vec<&'a WorkRun>,
}

/// Returns the scores of all runs; `all` are those of one task or of several.
pub fn scores(all: &[TaskRuns<'_>]) -> Vec<TaskScore> {
    // The highest cost of each task, and whether it has checks.
    let mut tasks: BTreeMap<&str, (Usd, bool)> = BTreeMap::new();
    for (task, run) in all.iter().flat_map(|one| one.runs.iter().map(|run| (one.task.as_str(), run))) {
        let (most, has_checks) = tasks.entry(task).or_default();
        *most = (*most).max(run.result.cost.total_usd.unwrap_or_default());
        *has_checks |= !run.checks.is_empty();
    }
    let score = |one: &TaskRuns<'_>| {
        let (most, has_checks) = tasks.get(one.task.as_str()).copied().unwrap_or_default();
        let scored = |run: &&WorkRun| {
            let parts = parts(run, one.max_steps, most, has_checks);
            RunScore {
                run: run.name.clone(),
                passed: has_passed(run),
                score: sum(&parts),
                parts,
                steps: run.result.steps,
                cost_usd: run.result.cost.total_usd,
                seconds: run.result.duration_seconds,
            }
        };
        let runs = one.runs.iter().map(scored).collect();
        TaskScore { task: one.task.clone(), name: one.name.clone(), runs }
    };
    all.iter().map(score).collect()
}

/// Ranks the names by their scores on all tasks, the best first; equal scores by cost, steps, and the order in which they come.
pub fn rank(scores: &[TaskScore]) -> Vec<Ranked> {
    let mut seen = BTreeSet::new();
    let names = scores.iter().map(|score| score.name.as_str()).filter(|name| seen.insert(*name));
    let of = |name: &str| scores.iter().filter(|score| score.name == name).collect::<Vec<_>>();
    let mut ranked: Vec<Ranked> = names.map(|name| figures(name, &of(name))).collect();
    ranked.sort_by(|one, other| {
        let by_cost = match (one.median_cost_usd, other.median_cost_usd) {
            (Some(one), Some(other)) => one.value.total_cmp(&other.value),
            (known, other) => other.is_some().cmp(&known.is_some()),
        };
        let by_score = if (one.score - other.score).abs() <= EQUAL {
            Ordering::Equal
        } else {
            other.score.total_cmp(&one.score)
        };
        by_score.then(by_cost).then(one.median_steps.value.total_cmp(&other.median_steps.value))
    });
    ranked
}

fn figures(name: &str, tasks: &[&TaskScore]) -> Ranked {
    let runs: Vec<&RunScore> = tasks.iter().flat_map(|task| &task.runs).collect();
    let mean_of = |of: fn(&ScoreParts) -> f64| mean(&each(&runs, |run| of(&run.parts)));
    let knows_costs = runs.iter().all(|run| run.parts.cost.is_some());
    let parts = ScoreParts {
        checks: mean_of(|parts| parts.checks),
        status: mean_of(|parts| parts.status),
        efficiency: mean_of(|parts| parts.efficiency),
        cost: knows_costs.then(|| mean_of(|parts| parts.cost.unwrap_or(0.0))),
    };
    // Runs of one task resemble each other more than those of different tasks.
    let trials = |of: fn(&RunScore) -> f64| match tasks {
        [_] => each(&runs, of),
        tasks => tasks.iter().map(|task| mean(&each(&task.runs.iter().collect::<Vec<_>>(), of))).collect(),
    };
    let median_of = |of: fn(&RunScore) -> f64| {
        let values = trials(of);
        Median { value: median(&values), interval: median_interval(&values) }
    };
    let passed = trials(|run| f64::from(u8::from(run.passed)));
    Ranked {
        name: name.to_owned(),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        passed: u32::try_from(runs.iter().filter(|run| run.passed).count()).unwrap_or(u32::MAX),
        pass_rate_interval: wilson(mean(&passed), passed.len()),
        score: sum(&parts),
        parts,
        median_score: median_of(|run| run.score),
        median_steps: median_of(|run| f64::from(run.steps)),
        median_cost_usd: knows_costs.then(|| median_of(|run| run.cost_usd.map_or(0.0, f64::from))),
        median_seconds: median_of(|run| run.seconds),
    }
}

fn each(runs: &[&RunScore], of: impl Fn(&RunScore) -> f64) -> Vec<f64> {
    runs.iter().map(|run| of(run)).collect()
}

fn sum(parts: &ScoreParts) -> f64 {
    let sum = parts.checks + parts.status + parts.efficiency + parts.cost.unwrap_or(0.0);
    sum.clamp(0.0, 100.0)
}

/// Checks whether a run ended as success and passed all checks.
pub fn has_passed(run: &WorkRun) -> bool {
    run.result.status == Status::Success && run.checks.iter().all(|check| check.passed)
}

fn parts(run: &WorkRun, max_steps: u32, most: Usd, has_checks: bool) -> ScoreParts {
    let passed = run.checks.iter().filter(|check| check.passed).count();
    let checks = match (has_checks, run.checks.len()) {
        (false, _) => 20.0,
        // A failed run is not checked.
        (true, 0) => 0.0,
        (true, all) => 40.0 * count(passed) / count(all),
    };
    let status = match run.result.status {
        Status::Success => 30.0,
        _ if run.result.stop_reason == Some(StopReason::Timeout) => 5.0,
        Status::Partial => 15.0,
        Status::Failed => 0.0,
    };
    let unused = 1.0 - f64::from(run.result.steps) / f64::from(max_steps.max(1));
    let cost = run.result.cost.total_usd.map(|cost| {
        if most == Usd::ZERO {
            10.0
        } else {
            10.0 * (1.0 - f64::from(cost) / f64::from(most)).clamp(0.0, 1.0)
        }
    });
    ScoreParts {
        checks,
        status,
        // Without a step, nothing was done.
        efficiency: if run.result.steps == 0 { 0.0 } else { 20.0 * unused.clamp(0.0, 1.0) },
        cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality_gate::GateResult;
    use crate::run_result::{Cost, RunResult};
    use proptest::prelude::*;

    fn run(status: Status, steps: u32, cost: Option<f64>, checks: &[bool]) -> WorkRun {
        let check = |passed: &bool| GateResult {
            name: "test".to_owned(),
            required: true,
            passed: *passed,
            output: String::new(),
            duration_ms: 1,
        };
        let total_usd = cost.map(|cost| Usd::try_from(cost).unwrap());
        let cost = Cost { total_usd, ..Cost::default() };
        let result = RunResult { status, steps, cost, ..RunResult::default() };
        WorkRun { checks: checks.iter().map(check).collect(), result, ..WorkRun::default() }
    }

    fn names(ranked: &[Ranked]) -> Vec<&str> {
        ranked.iter().map(|one| one.name.as_str()).collect()
    }

    fn on<'a>(task: &str, name: &str, runs: &[&'a WorkRun]) -> TaskRuns<'a> {
        TaskRuns { task: task.to_owned(), name: name.to_owned(), max_steps: 50, runs: runs.to_vec() }
    }

    #[test]
    fn a18_the_score_is_the_sum_of_its_parts() {
        let runs = [
            run(Status::Success, 10, Some(1.0), &[true, true]),
            run(Status::Partial, 50, Some(2.0), &[true, false]),
            run(Status::Failed, 60, None, &[]),
        ];
        let all: Vec<_> =
            ["a", "b", "c"].into_iter().zip(&runs).map(|(name, run)| on("", name, &[run])).collect();
        let ranked = rank(&scores(&all));
        assert_eq!(names(&ranked), ["a", "b", "c"]);
        let scores: Vec<f64> = ranked.iter().map(|one| one.score).collect();
        assert_eq!(scores, [40.0 + 30.0 + 16.0 + 5.0, 20.0 + 15.0, 0.0]);
        assert_eq!(ranked[2].parts.cost, None);
    }

    #[test]
    fn a18_equal_scores_are_ranked_by_cost_then_steps_then_order() {
        let unknown = run(Status::Failed, 0, None, &[true]);
        let (free, other) =
            (run(Status::Failed, 50, Some(0.0), &[false]), run(Status::Failed, 50, Some(0.0), &[false]));
        let all = [on("", "x", &[&free]), on("", "y", &[&other]), on("", "z", &[&unknown])];
        assert_eq!(names(&rank(&scores(&all))), ["z", "x", "y"]);
    }

    #[test]
    fn a18_repetitions_of_a_task_are_no_independent_trials_beside_other_tasks() {
        let (good, bad) = (run(Status::Success, 1, None, &[true]), run(Status::Success, 1, None, &[false]));
        let one = rank(&scores(&[on("t", "a", &[&good, &good, &bad, &bad])]));
        let two = rank(&scores(&[on("t", "a", &[&good, &good]), on("u", "a", &[&bad, &bad])]));
        assert_eq!((one[0].runs, one[0].passed), (two[0].runs, two[0].passed));
        assert_eq!((one[0].pass_rate_interval, two[0].pass_rate_interval), (wilson(0.5, 4), wilson(0.5, 2)));
    }

    #[test]
    fn a18_the_cost_of_a_run_is_compared_within_its_task() {
        let [cheap, dear] = [1.0, 9.0].map(|cost| run(Status::Success, 1, Some(cost), &[]));
        let all = [on("t", "a", &[&cheap]), on("u", "a", &[&dear])];
        assert!(scores(&all).iter().all(|score| score.runs[0].parts.cost == Some(0.0)));
    }

    proptest! {
        #[test]
        fn a_score_lies_between_0_and_100(steps in 0_u32..500, cost in prop::option::of(0.0_f64..9.0), checks in prop::collection::vec(any::<bool>(), 0..4), max in 0_u32..60) {
            let one = run(Status::Success, steps, cost, &checks);
            let ranked = rank(&scores(&[TaskRuns { max_steps: max, ..on("", "a", &[&one, &one]) }]));
            prop_assert!((0.0..=100.0).contains(&ranked[0].score), "{ranked:?}");
            let [low, high] = ranked[0].pass_rate_interval;
            prop_assert!(0.0 <= low && low <= high && high <= 1.0);
        }
    }
}
