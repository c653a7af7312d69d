//! How much the long tests try: some cases of each kind, all that the gate tries, or every point.

/// Without it the long tests try some cases of each kind, with the value `1` all of the gate, with the value `every-point` every point.
const VARIABLE: &str = "AGENT_TEST_ALL";

/// Whether the long tests try more than some cases of each kind.
pub fn all() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// How many cases are tried: `few`, the `many` of the gate, or `every` one.
pub fn cases(few: u64, many: u64, every: u64) -> u64 {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) => few,
        Ok("every-point") => every,
        Ok(_) => many,
    }
}

/// Returns every case, or one of `few` of them.
pub fn some_of<T>(every: impl IntoIterator<Item = T>, few: usize) -> Vec<T> {
    every.into_iter().step_by(if all() { 1 } else { few }).collect()
}
