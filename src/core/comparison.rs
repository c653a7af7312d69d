//! Whether the difference of two measurements of `agent eval` is more than chance.

use crate::ranking::{RunScore, TaskScore};
use crate::statistics::{ALPHA, count, mean, rank_sum_test, signed_rank_test};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the document.
pub const COMPARISON_SCHEMA_VERSION: u32 = 1;

/// The document of `agent eval compare --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparisonDocument {
    /// Version of this document.
    pub schema_version: u32,
    /// Each model or configuration that is in both documents; for a single document, the best one with each other one.
    pub comparisons: Vec<Comparison>,
    /// Models or configurations that are in one of the two documents only.
    pub left_out: Vec<String>,
}

/// Two measurements on the same tasks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The model, or the file of the configuration, that was measured first.
    pub first: String,
    /// The one that was measured second.
    pub second: String,
    /// Number of tasks in both.
    pub tasks: u32,
    /// Number of tasks in one of them only.
    pub left_out_tasks: u32,
    /// The test of a difference.
    pub test: DifferenceTest,
    /// Whether the tasks or runs are enough for any difference to be more than chance.
    pub can_differ: bool,
    /// The share of runs that passed.
    pub pass_rate: Difference,
    /// The score without its part for the cost, which depends on the other runs of a measurement; at most 90.
    pub points: Difference,
    /// The cost of a run in US dollars; null if one is unknown.
    pub cost_usd: Option<Difference>,
}

/// The exact test of a difference, two-sided and without an assumed distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceTest {
    /// Several tasks: signed ranks (Wilcoxon) of the differences per task, each of the means over its runs. With one run per task and
    /// passed or not as the value, this is the test of `McNemar`.
    PairedTasks,
    /// One task: ranks (Mann and Whitney) of its runs. With passed or not as the value, this is Fisher's exact test of a 2×2 table.
    Runs,
}

/// A figure of both measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// Mean of the first.
    pub first: f64,
    /// Mean of the second.
    pub second: f64,
    /// The probability of a difference at least as large if there is none.
    pub p_value: f64,
    /// Whether this probability is below 0.05.
    pub differs: bool,
}

/// Compares two measurements; `None` if they have no task in common.
pub fn compare(first: &[TaskScore], second: &[TaskScore]) -> Option<Comparison> {
    let of_second: BTreeMap<&str, &TaskScore> =
        second.iter().map(|score| (score.task.as_str(), score)).collect();
    let pairs: Vec<(&TaskScore, &TaskScore)> =
        first.iter().filter_map(|score| Some((score, *of_second.get(score.task.as_str())?))).collect();
    let (one, other) = pairs.first()?;
    let difference = |of: fn(&RunScore) -> Option<f64>| difference(&pairs, of);
    let ones = |runs: &TaskScore, value: f64| vec![value; runs.runs.len()];
    let (test, least_p_value) = match pairs.as_slice() {
        [_] => (DifferenceTest::Runs, rank_sum_test(&ones(one, 1.0), &ones(other, 0.0))),
        pairs => (DifferenceTest::PairedTasks, signed_rank_test(&vec![1.0; pairs.len()])),
    };
    Some(Comparison {
        first: one.name.clone(),
        second: other.name.clone(),
        tasks: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        left_out_tasks: u32::try_from(first.len() + second.len() - 2 * pairs.len()).unwrap_or(u32::MAX),
        test,
        can_differ: least_p_value < ALPHA,
        pass_rate: difference(|run| Some(f64::from(u8::from(run.passed))))?,
        points: difference(|run| Some(run.parts.checks + run.parts.status + run.parts.efficiency))?,
        cost_usd: difference(|run| run.cost_usd.map(f64::from)),
    })
}

/// Compares a figure; `None` if it is unknown for a run.
fn difference(pairs: &[(&TaskScore, &TaskScore)], of: fn(&RunScore) -> Option<f64>) -> Option<Difference> {
    let values = |task: &TaskScore| task.runs.iter().map(of).collect::<Option<Vec<f64>>>();
    let pairs: Option<Vec<_>> =
        pairs.iter().map(|(first, second)| Some((values(first)?, values(second)?))).collect();
    let pairs = pairs?;
    let means: Vec<(f64, f64)> = pairs.iter().map(|(first, second)| (mean(first), mean(second))).collect();
    let p_value = match pairs.as_slice() {
        [(first, second)] => rank_sum_test(first, second),
        _ => signed_rank_test(&means.iter().map(|(first, second)| second - first).collect::<Vec<_>>()),
    };
    let number = count(means.len());
    Some(Difference {
        first: means.iter().map(|(first, _)| first).sum::<f64>() / number,
        second: means.iter().map(|(_, second)| second).sum::<f64>() / number,
        p_value,
        differs: p_value < ALPHA,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranking::ScoreParts;

    fn scores(name: &str, tasks: &[(&str, &[bool])]) -> Vec<TaskScore> {
        let run = |passed: &bool| RunScore {
            run: String::new(),
            passed: *passed,
            score: 0.0,
            parts: ScoreParts { checks: if *passed { 40.0 } else { 0.0 }, ..ScoreParts::default() },
            steps: 1,
            cost_usd: None,
            seconds: 1.0,
        };
        let score = |(task, runs): &(&str, &[bool])| TaskScore {
            task: (*task).to_owned(),
            name: name.to_owned(),
            runs: runs.iter().map(run).collect(),
        };
        tasks.iter().map(score).collect()
    }

    fn compared(first: &[(&str, &[bool])], second: &[(&str, &[bool])]) -> Option<Comparison> {
        let (first, second) = (scores("a", first), scores("b", second));
        compare(&first, &second)
    }

    #[test]
    fn a18_tasks_in_both_are_paired_and_the_others_are_counted() {
        let tasks = ["1", "2", "3", "4", "5", "6"];
        let bad: Vec<(&str, &[bool])> = tasks.iter().map(|task| (*task, &[false][..])).collect();
        let good: Vec<(&str, &[bool])> = tasks.iter().map(|task| (*task, &[true][..])).collect();
        let more = [bad, vec![("only here", &[true][..])]].concat();
        let all = compared(&more, &good).unwrap();
        assert_eq!((all.tasks, all.left_out_tasks, all.test), (6, 1, DifferenceTest::PairedTasks));
        assert_eq!((all.pass_rate.first, all.pass_rate.second), (0.0, 1.0));
        assert!(
            (all.pass_rate.p_value - 2.0 / 64.0).abs() < 1e-12 && all.pass_rate.differs && all.can_differ
        );
        assert_eq!(all.cost_usd, None);
    }

    #[test]
    fn a18_the_runs_of_one_task_are_compared_as_groups() {
        let few = compared(&[("t", &[true])], &[("t", &[false])]).unwrap();
        assert_eq!((few.test, few.can_differ, few.points.differs), (DifferenceTest::Runs, false, false));
        let more = compared(&[("t", &[true; 4])], &[("t", &[false; 4])]).unwrap();
        assert!(more.can_differ && more.points.differs && (more.points.p_value - 2.0 / 70.0).abs() < 1e-12);
    }

    #[test]
    fn a18_without_a_common_task_there_is_no_comparison() {
        assert_eq!(compared(&[("t", &[true])], &[("u", &[true])]), None);
    }
}
