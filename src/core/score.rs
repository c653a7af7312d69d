//! Scores of the runs of models or configurations on the same task, and their ranking.

use crate::core::price::Usd;
use crate::core::ranking::{Ranked, ScoreParts};
use crate::core::stop_reason::{Status, StopReason};
use crate::core::work::WorkRun;
use std::cmp::Ordering;

/// Quantile of the normal distribution for an interval of 95 %.
const Z: f64 = 1.96;

/// Ranks the runs of each name, the best first; equal scores by cost, steps, and the given order. `max_steps` is the limit of each run.
pub fn rank(all: &[(String, Vec<&WorkRun>)], max_steps: u32) -> Vec<Ranked> {
    let most = all.iter().flat_map(|(_, runs)| runs).filter_map(|run| run.result.cost.total_usd).max();
    let mut ranked: Vec<Ranked> =
        all.iter().map(|(name, runs)| figures(name, runs, (max_steps, most.unwrap_or_default()))).collect();
    ranked.sort_by(|one, other| {
        let by_cost = match (one.median_cost_usd, other.median_cost_usd) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (known, other) => other.is_some().cmp(&known.is_some()),
        };
        let by_score = if (one.score - other.score).abs() < 1e-9 {
            Ordering::Equal
        } else {
            other.score.total_cmp(&one.score)
        };
        by_score.then(by_cost).then(one.median_steps.total_cmp(&other.median_steps))
    });
    ranked
}

fn figures(name: &str, runs: &[&WorkRun], (max_steps, most): (u32, Usd)) -> Ranked {
    let parts: Vec<ScoreParts> = runs.iter().map(|run| parts(run, max_steps, most)).collect();
    let mean = |of: fn(&ScoreParts) -> f64| parts.iter().map(of).sum::<f64>() / count(parts.len().max(1));
    let knows_costs = parts.iter().all(|parts| parts.cost.is_some());
    let parts = ScoreParts {
        checks: mean(|parts| parts.checks),
        status: mean(|parts| parts.status),
        efficiency: mean(|parts| parts.efficiency),
        cost: knows_costs.then(|| mean(|parts| parts.cost.unwrap_or(0.0))),
    };
    let passed = runs.iter().filter(|run| has_passed(run)).count();
    let costs: Option<Vec<f64>> = runs.iter().map(|run| run.result.cost.total_usd.map(f64::from)).collect();
    Ranked {
        name: name.to_owned(),
        runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        passed: u32::try_from(passed).unwrap_or(u32::MAX),
        pass_rate_interval: wilson(count(passed), count(runs.len())),
        score: sum(&parts).clamp(0.0, 100.0),
        parts,
        median_steps: median(runs.iter().map(|run| f64::from(run.result.steps)).collect()),
        median_cost_usd: costs.map(median),
        median_seconds: median(runs.iter().map(|run| run.result.duration_seconds).collect()),
    }
}

fn sum(parts: &ScoreParts) -> f64 {
    parts.checks + parts.status + parts.efficiency + parts.cost.unwrap_or(0.0)
}

/// Checks whether a run ended as success and passed all checks.
pub fn has_passed(run: &WorkRun) -> bool {
    run.result.status == Status::Success && run.checks.iter().all(|check| check.passed)
}

fn parts(run: &WorkRun, max_steps: u32, most: Usd) -> ScoreParts {
    let passed = run.checks.iter().filter(|check| check.passed).count();
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
        checks: if run.checks.is_empty() { 20.0 } else { 40.0 * count(passed) / count(run.checks.len()) },
        status,
        // Without a step, nothing was done.
        efficiency: if run.result.steps == 0 { 0.0 } else { 20.0 * unused.clamp(0.0, 1.0) },
        cost,
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or_default();
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => at(length / 2),
        length => f64::midpoint(at(length / 2 - 1), at(length / 2)),
    }
}

/// Returns the Wilson score interval of `passed` of `runs` (E. B. Wilson, 1927).
fn wilson(passed: f64, runs: f64) -> [f64; 2] {
    if runs == 0.0 {
        return [0.0, 1.0];
    }
    let (rate, z2) = (passed / runs, Z * Z);
    let centre = rate + z2 / (2.0 * runs);
    let spread = Z * (rate * (1.0 - rate) / runs + z2 / (4.0 * runs * runs)).sqrt();
    let bound = |value: f64| (value / (1.0 + z2 / runs)).clamp(0.0, 1.0);
    [bound(centre - spread), bound(centre + spread)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::quality_gate::GateResult;
    use crate::core::run_result::{Cost, RunResult};
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

    #[test]
    fn a18_the_score_is_the_sum_of_its_parts() {
        let runs = [
            run(Status::Success, 10, Some(1.0), &[true, true]),
            run(Status::Partial, 50, Some(2.0), &[true, false]),
            run(Status::Failed, 60, None, &[]),
        ];
        let all: Vec<_> =
            ["a", "b", "c"].map(str::to_owned).into_iter().zip(runs.iter().map(|run| vec![run])).collect();
        let ranked = rank(&all, 50);
        assert_eq!(names(&ranked), ["a", "b", "c"]);
        let scores: Vec<f64> = ranked.iter().map(|one| one.score).collect();
        assert_eq!(scores, [40.0 + 30.0 + 16.0 + 5.0, 20.0 + 15.0, 20.0]);
        assert_eq!(ranked[2].parts.cost, None);
    }

    #[test]
    fn a18_equal_scores_are_ranked_by_cost_then_steps_then_order() {
        let unknown = run(Status::Failed, 0, None, &[true]);
        let (free, other) =
            (run(Status::Failed, 50, Some(0.0), &[false]), run(Status::Failed, 50, Some(0.0), &[false]));
        let all = vec![
            ("x".to_owned(), vec![&free]),
            ("y".to_owned(), vec![&other]),
            ("z".to_owned(), vec![&unknown]),
        ];
        assert_eq!(names(&rank(&all, 50)), ["z", "x", "y"]);
    }

    #[test]
    fn the_interval_of_few_runs_is_wide() {
        let [low, high] = wilson(1.0, 1.0);
        assert!(low < 0.21 && high > 0.999, "{low} {high}");
        let [low, high] = wilson(50.0, 100.0);
        assert!((low - 0.4038).abs() < 0.001 && (high - 0.5962).abs() < 0.001, "{low} {high}");
    }

    proptest! {
        #[test]
        fn a_score_lies_between_0_and_100(steps in 0_u32..500, cost in prop::option::of(0.0_f64..9.0), checks in prop::collection::vec(any::<bool>(), 0..4), max in 0_u32..60) {
            let one = run(Status::Success, steps, cost, &checks);
            let ranked = rank(&[("a".to_owned(), vec![&one, &one])], max);
            prop_assert!((0.0..=100.0).contains(&ranked[0].score), "{ranked:?}");
            let [low, high] = ranked[0].pass_rate_interval;
            prop_assert!(0.0 <= low && low <= high && high <= 1.0);
        }
    }
}
