//! Processes that sleep for a number of seconds of their own, so that a test finds those that outlive what started them.

use crate::support::run::PATIENCE;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A number of seconds that no other process sleeps: five minutes, and nothing for long after a failure.
pub fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("300.8{}{:06}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How many processes sleep for `seconds`.
pub fn survivors(seconds: &str) -> usize {
    let argv = format!("sleep\0{seconds}\0").into_bytes();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == argv)).count()
}

/// Waits until so many processes sleep for `seconds`; how long that took.
#[track_caller]
pub fn wait_for_sleepers(seconds: &str, wanted: usize) -> Duration {
    let begun = Instant::now();
    while survivors(seconds) != wanted {
        assert!(begun.elapsed() < PATIENCE, "{} processes, not {wanted}", survivors(seconds));
        std::thread::yield_now();
    }
    begun.elapsed()
}

/// Waits until no process has `directory`, or one below it, as its working directory.
#[track_caller]
pub fn wait_until_nothing_works_in(directory: &Path, what: &str) {
    let (directory, begun) = (directory.canonicalize().unwrap(), Instant::now());
    let works_there =
        |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&directory));
    while fs::read_dir("/proc").unwrap().flatten().any(|entry| works_there(&entry.path())) {
        assert!(begun.elapsed() < PATIENCE, "{what}: a process outlives the run");
        std::thread::yield_now();
    }
}
