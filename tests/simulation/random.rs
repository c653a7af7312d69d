//! Deterministic random numbers from a seed.

use std::cell::Cell;

/// A sequence of random numbers (splitmix64).
#[derive(Debug)]
pub struct Random(Cell<u64>);

impl Random {
    /// Creates the sequence of `seed` for one `part` of a scenario, so that the parts do not affect each other.
    pub fn new(seed: u64, part: u64) -> Self {
        let random = Self(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ part.rotate_left(32)));
        random.any();
        random
    }

    /// Returns a random number.
    pub fn any(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }

    /// Returns a number from `from` to `to`, both included.
    pub fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// Returns true once in `times` on average; never for 0.
    pub fn one_in(&self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// Returns a random element.
    pub fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}
