//! The fuzz targets by name. `tests/it/fuzz.rs` calls the same checks with the corpora.

pub mod checks;

/// Runs the target of this name.
///
/// # Panics
/// When there is none, or what must hold does not.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, check) = checks::TARGETS.iter().find(|(known, _)| *known == name).expect("a target");
    check(bytes);
}
