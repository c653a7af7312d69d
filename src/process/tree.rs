//! Finds and ends every descendant of the launcher process, for kernels that refuse it a pid namespace.

use rustix::event::Timespec;
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::io::Read;

/// Rounds of a sweep, one each [`ROUND`]: ten seconds, because only a process stuck in the kernel outlives a SIGKILL.
const MAX_ROUNDS: u32 = 5000;

/// The pause between two rounds.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// The bytes of `/proc/PID/stat` up to the parent's id: the name in it is at most 64 bytes.
const STAT_BYTES: u64 = 256;

/// Kills descendants until none is left. The caller is their subreaper, so that none can be adopted by another.
pub(super) fn sweep() {
    for _ in 0..MAX_ROUNDS {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_no_child_is_left) => return,
            }
        }
        for pid in descendants(rustix::process::getpid(), &parents()) {
            let _already_gone = rustix::process::kill_process(pid, Signal::KILL);
        }
        let _interrupted = rustix::event::poll(&mut [], Some(&ROUND));
    }
}

/// The parent of each process that `/proc` shows.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let mut stat = Vec::new();
            std::fs::File::open(entry.path().join("stat"))
                .ok()?
                .take(STAT_BYTES)
                .read_to_end(&mut stat)
                .ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// The parent's id in the text of `/proc/PID/stat`: `PID (NAME) STATE PARENT …`, where the name may hold anything.
fn parent_in(stat: &[u8]) -> Option<i32> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Everything below `root`.
fn descendants(root: Pid, parents: &BTreeMap<i32, i32>) -> Vec<Pid> {
    let root = root.as_raw_nonzero().get();
    let is_below = |pid: i32| {
        let mut ancestor = pid;
        // A chain cannot be longer than there are processes; the bound guards against a snapshot with a cycle.
        for _ in 0..parents.len() {
            match parents.get(&ancestor) {
                Some(&parent) if parent == root => return true,
                Some(&parent) => ancestor = parent,
                None => return false,
            }
        }
        false
    };
    parents.keys().copied().filter(|pid| is_below(*pid)).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_hostile_name() {
        assert_eq!(parent_in(b"12 (a) S 99 (b) S 7 12 12"), Some(7));
        assert_eq!(parent_in(b"12 (sh) R 1 12"), Some(1));
        assert_eq!(parent_in(b"nonsense"), None);
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_cycles_end() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (8, 9), (9, 8)]);
        let found: Vec<i32> = descendants(Pid::from_raw(2).unwrap(), &parents)
            .iter()
            .map(|pid| pid.as_raw_nonzero().get())
            .collect();
        assert_eq!(found, [3, 4]);
    }
}
