//! Statistics for few runs: intervals of shares and medians, and exact tests of a difference, which assume no distribution.

/// Quantile of the normal distribution for an interval of 95 %.
const Z: f64 = 1.96;

/// Highest probability of what lies outside an interval, and of a difference by chance that counts as one.
pub const ALPHA: f64 = 0.05;

/// Values that differ by no more are equal: a difference of sums of the same parts is not exactly zero.
pub const EQUAL: f64 = 1e-9;

/// Returns the mean; 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / count(values.len()) }
}

/// Returns a number of things as a number to calculate with.
pub fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Returns the median; 0 for no values.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    match sorted.len() {
        0 => 0.0,
        length if length % 2 == 1 => at(length / 2),
        length => f64::midpoint(at(length / 2 - 1), at(length / 2)),
    }
}

/// Returns the interval of 95 % of the median between two order statistics, which assumes no distribution (H. A. David and
/// H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1); `None` for fewer than six values, which have none.
pub fn median_interval(values: &[f64]) -> Option<[f64; 2]> {
    let sorted = sorted(values);
    // The binomial distribution: the probability that exactly `below` values lie below the median.
    let mut log_probability = -count(sorted.len()) * std::f64::consts::LN_2;
    let (mut outside, mut below) = (0.0, 0_usize);
    while below < sorted.len() {
        outside += log_probability.exp();
        if outside > ALPHA / 2.0 {
            break;
        }
        log_probability += (count(sorted.len() - below) / count(below + 1)).ln();
        below += 1;
    }
    let low = below.checked_sub(1)?;
    Some([*sorted.get(low)?, *sorted.get(sorted.len() - 1 - low)?])
}

/// Returns the Wilson score interval of 95 % of a share that was seen in `number` independent trials (E. B. Wilson, 1927).
pub fn wilson(share: f64, number: usize) -> [f64; 2] {
    if number == 0 {
        return [0.0, 1.0];
    }
    let (number, z2) = (count(number), Z * Z);
    let centre = share + z2 / (2.0 * number);
    let spread = Z * (share * (1.0 - share) / number + z2 / (4.0 * number * number)).sqrt();
    let bound = |value: f64| (value / (1.0 + z2 / number)).clamp(0.0, 1.0);
    [bound(centre - spread), bound(centre + spread)]
}

/// Returns the probability of signed ranks at least as unequal by chance: the exact two-sided test for pairs with these differences
/// (F. Wilcoxon, 1945). Differences of zero are left out; equal ones share their rank. If all others have the same size, this is the sign
/// test, which for pairs of yes and no is the exact form of the test of Q. `McNemar` (1947).
pub fn signed_rank_test(differences: &[f64]) -> f64 {
    let differences: Vec<f64> =
        differences.iter().copied().filter(|difference| difference.abs() > EQUAL).collect();
    let ranks = doubled_ranks(&differences.iter().map(|difference| difference.abs()).collect::<Vec<_>>());
    let signed = ranks.iter().zip(&differences);
    let positive: usize = signed.filter(|(_, difference)| **difference > 0.0).map(|(rank, _)| rank).sum();
    let mean = count(ranks.iter().sum()) / 2.0;
    // The probability of each sum of positive ranks, if each sign is as likely as the other.
    let by_chance = ranks.iter().fold(vec![1.0], |sums, rank| {
        shifted_and_added(&sums, &sums, *rank).into_iter().map(|sum| sum / 2.0).collect()
    });
    two_sided(&by_chance, mean, positive)
}

/// Returns the probability of rank sums at least as unequal by chance: the exact two-sided test for two independent groups (H. B. Mann and
/// D. R. Whitney, 1947). Equal values share their rank; for values of yes and no this is the exact test of a 2×2 table (R. A. Fisher, 1922).
pub fn rank_sum_test(first: &[f64], second: &[f64]) -> f64 {
    let ranks = doubled_ranks(&[first, second].concat());
    let sum: usize = ranks.iter().take(first.len()).sum();
    let mean = count(ranks.iter().sum()) * count(first.len()) / count(ranks.len().max(1));
    // The number of ways to choose each number of ranks (the index) with each sum.
    let mut ways = vec![vec![1.0]];
    ways.resize(first.len() + 1, Vec::new());
    for rank in ranks {
        let fewer = std::iter::once(Vec::new()).chain(ways.iter().cloned());
        ways = fewer.zip(&ways).map(|(fewer, same)| shifted_and_added(same, &fewer, rank)).collect();
    }
    let chosen = ways.pop().unwrap_or_default();
    let all: f64 = chosen.iter().sum();
    let by_chance: Vec<f64> = chosen.iter().map(|ways| ways / all).collect();
    two_sided(&by_chance, mean, sum)
}

/// Returns the probability of a value at least as far from `mean` as `observed`; `by_chance` has the probability of each value.
fn two_sided(by_chance: &[f64], mean: f64, observed: usize) -> f64 {
    let distance = |value: usize| (count(value) - mean).abs();
    let far =
        by_chance.iter().enumerate().filter(|(value, _)| distance(*value) >= distance(observed) - EQUAL);
    far.map(|(_, probability)| probability).sum::<f64>().min(1.0)
}

/// Returns `values` plus `others` moved up by `by` places.
fn shifted_and_added(values: &[f64], others: &[f64], by: usize) -> Vec<f64> {
    if others.is_empty() {
        return values.to_vec();
    }
    let mut sums = values.to_vec();
    sums.resize(values.len().max(others.len() + by), 0.0);
    sums.iter_mut().skip(by).zip(others).for_each(|(sum, other)| *sum += other);
    sums
}

/// Returns the rank of each value among all of them, doubled, because equal values share the mean of their ranks.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let rank = |value: &f64| {
        let lower = values.iter().filter(|other| **other < value - EQUAL).count();
        let equal = values.iter().filter(|other| (**other - value).abs() <= EQUAL).count();
        2 * lower + equal + 1
    };
    values.iter().map(rank).collect()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 5e-5, "{value} is not {expected}");
    }

    #[test]
    fn the_interval_of_few_trials_is_wide() {
        let [low, high] = wilson(1.0, 1);
        assert!(low < 0.21 && high > 0.999, "{low} {high}");
        let [low, high] = wilson(0.5, 100);
        is_near(low, 0.40383);
        is_near(high, 0.59617);
    }

    #[test]
    fn the_interval_of_a_median_lies_between_the_order_statistics_of_published_tables() {
        let values = |number: u32| (1..=number).map(f64::from).collect::<Vec<_>>();
        // The ranks for 95 % in the usual tables, such as those of W. J. Conover.
        for (number, interval) in [
            (5, None),
            (6, Some([1.0, 6.0])),
            (8, Some([1.0, 8.0])),
            (9, Some([2.0, 8.0])),
            (12, Some([3.0, 10.0])),
            (20, Some([6.0, 15.0])),
            (100, Some([40.0, 61.0])),
        ] {
            assert_eq!(median_interval(&values(number)), interval, "{number}");
        }
    }

    #[test]
    fn the_test_of_pairs_gives_published_probabilities() {
        // Hollander and Wolfe, Nonparametric Statistical Methods: depression scores before and after, V = 40.
        let differences = [0.952, -0.147, 1.022, 0.430, 0.620, 0.590, 0.490, -0.080, 0.010];
        is_near(signed_rank_test(&differences), 0.039_062_5);
        // McNemar with 10 and 2 discordant pairs: twice the binomial probability of at most 2 of 12.
        let pairs = [[1.0; 10].as_slice(), &[-1.0; 2], &[0.0; 30]].concat();
        is_near(signed_rank_test(&pairs), 2.0 * (1.0 + 12.0 + 66.0) / 4096.0);
        is_near(signed_rank_test(&[]), 1.0);
    }

    #[test]
    fn the_test_of_groups_gives_published_probabilities() {
        // Hollander and Wolfe: permeability of membranes, W = 35.
        let first = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        is_near(rank_sum_test(&first, &[1.15, 0.88, 0.90, 0.74, 1.21]), 0.254_412);
        // Fisher's cups of tea: 3 of 4 against 1 of 4.
        is_near(rank_sum_test(&[1.0, 1.0, 1.0, 0.0], &[1.0, 0.0, 0.0, 0.0]), 0.485_714);
        is_near(rank_sum_test(&[], &[]), 1.0);
    }

    proptest! {
        #[test]
        fn a_median_lies_within_its_interval(values in prop::collection::vec(0.0_f64..9.0, 0..60)) {
            if let Some([low, high]) = median_interval(&values) {
                let median = median(&values);
                prop_assert!(low <= median && median <= high);
            }
            prop_assert_eq!(median_interval(&values).is_some(), values.len() >= 6);
        }

        #[test]
        fn a_probability_is_one_and_the_order_of_groups_does_not_matter(
            first in prop::collection::vec(0_u8..5, 0..9), second in prop::collection::vec(0_u8..5, 0..9)
        ) {
            let [first, second] = [first, second].map(|group| group.into_iter().map(f64::from).collect::<Vec<_>>());
            let test = rank_sum_test(&first, &second);
            prop_assert!((0.0..=1.0).contains(&test));
            prop_assert!((test - rank_sum_test(&second, &first)).abs() < 1e-9);
            let negated: Vec<f64> = first.iter().map(|value| -value).collect();
            prop_assert!((signed_rank_test(&first) - signed_rank_test(&negated)).abs() < 1e-9);
        }
    }
}
