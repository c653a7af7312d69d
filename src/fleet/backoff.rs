//! How long a server that does not answer is left alone.

use std::time::Duration;

/// First wait between two tries; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Longest wait between two tries.
pub const MAX_WAIT: Duration = Duration::from_secs(5);
/// Doublings after which a wait is no longer than the longest one.
const MAX_DOUBLINGS: usize = 10;

/// Returns the wait after so many tries without an answer: with a random part, so that many clients do not come at the same moment.
pub fn wait_after(tries: usize) -> Duration {
    let doublings = u32::try_from(tries.min(MAX_DOUBLINGS)).unwrap_or_default();
    jittered(FIRST_WAIT.saturating_mul(1 << doublings).min(MAX_WAIT))
}

/// Returns `wait`, up to a tenth shorter or longer, so that many processes do not come at the same moment.
pub fn spread(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    (wait * 9 / 10).saturating_add(wait / 5 * (random % 1_000) / 1_000)
}

/// Returns between half of `wait` and all of it.
fn jittered(wait: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or_default();
    (wait / 2).saturating_add(wait / 2 * (random % 1_000) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_at_least_half_of_its_length_and_doubles_up_to_the_longest_one() {
        for (tries, full) in [(0, 100), (1, 200), (3, 800), (6, 5_000), (usize::MAX, 5_000)] {
            for _ in 0..100 {
                let (wait, full) = (wait_after(tries), Duration::from_millis(full));
                assert!(wait >= full / 2 && wait <= full, "{wait:?} after {tries}");
            }
        }
    }
}
