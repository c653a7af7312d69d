//! How much the long tests try: some cases of each kind, all that the gate tries, or every point.

/// Says that the long tests try as much as the gate does.
const ALL: &str = "AGENT_TEST_ALL";
/// Says that the long tests try every point.
const EVERYWHERE: &str = "AGENT_TEST_ALL_CRASHES";

/// Whether every point is tried.
pub fn everywhere() -> bool {
    std::env::var_os(EVERYWHERE).is_some()
}

/// Whether the long tests try more than some cases of each kind.
pub fn all() -> bool {
    everywhere() || std::env::var_os(ALL).is_some()
}

/// How many cases are tried: `few`, the `many` of the gate, or `every` one.
pub fn cases(few: u64, many: u64, every: u64) -> u64 {
    match (everywhere(), all()) {
        (true, _) => every,
        (false, true) => many,
        (false, false) => few,
    }
}

/// Returns every case, or one of `few` of them.
pub fn some_of<T>(every: impl IntoIterator<Item = T>, few: usize) -> Vec<T> {
    every.into_iter().step_by(if all() { 1 } else { few }).collect()
}
