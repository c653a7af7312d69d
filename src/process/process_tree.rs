//! The tree below the launcher process: what it takes of the machine and, for kernels that refuse it a pid namespace, how
//! every process of it is found and ended.

use super::limits::Usage;
use rustix::event::Timespec;
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Rounds of a sweep, one each [`ROUND`]: ten seconds, because only a process stuck in the kernel outlives a SIGKILL.
const MAX_ROUNDS: u32 = 5000;

/// The pause between two rounds.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// The bytes of `/proc/PID/stat` that are read: its name is at most 64 bytes, and the 52 numbers have up to 20 digits.
const STAT_BYTES: u64 = 2048;

/// The bytes that it usually has, so that one look is enough.
const USUAL_STAT_BYTES: usize = 512;

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

/// Kills what is below this process, except the processes `spared` and what is below those, until nothing else is left. Of
/// its own children the caller reaps only what was killed here.
pub(super) fn sweep_others(spared: &BTreeSet<i32>) {
    for _ in 0..MAX_ROUNDS {
        let mut parents = parents();
        parents.retain(|pid, _| !spared.contains(pid));
        let others = descendants(rustix::process::getpid(), &parents);
        if others.is_empty() {
            return;
        }
        for pid in others {
            let _already_gone = rustix::process::kill_process(pid, Signal::KILL);
            let _not_ours_or_not_yet = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
        let _interrupted = rustix::event::poll(&mut [], Some(&ROUND));
    }
}

/// The parent of `pid`, where `/proc` shows it.
pub(super) fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(parent_in(&read(pid.as_raw_nonzero().get(), "stat")?)?)
}

/// What the tree takes now. A process that shares its memory with its parent since a fork counts with all of it, one that
/// ends meanwhile not at all.
pub(super) fn usage() -> Usage {
    let own = rustix::process::getpid();
    let parents = parents();
    // Where our own number is not shown the view is that of the namespace below us, and all in it is of the tree.
    let is_namespace = std::fs::read_link("/proc/self").is_err();
    let members = if is_namespace {
        parents.keys().copied().filter_map(Pid::from_raw).collect()
    } else {
        descendants(own, &parents)
    };
    let mut usage = Usage::default();
    for pid in members {
        let pid = pid.as_raw_nonzero().get();
        let tasks = read(pid, "stat").and_then(|stat| threads_in(&stat)).unwrap_or(0);
        let pages = read(pid, "statm").and_then(|statm| own_pages_in(&statm)).unwrap_or(0);
        usage.tasks = usage.tasks.saturating_add(tasks);
        let bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        usage.memory_bytes = usage.memory_bytes.saturating_add(bytes);
    }
    usage
}

/// The parent of each process that `/proc` shows.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parent_in(&read(pid, "stat")?)?))).collect()
}

/// The beginning of a file of `/proc/PID`.
fn read(pid: i32, file: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_STAT_BYTES);
    let file = std::fs::File::open(format!("/proc/{pid}/{file}")).ok()?;
    file.take(STAT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The parent's id in the text of `/proc/PID/stat`: `PID (NAME) STATE PARENT …`, where the name may hold anything.
fn parent_in(stat: &[u8]) -> Option<i32> {
    after_name(stat, 1)
}

/// The number of threads in the same text: its 20th field.
fn threads_in(stat: &[u8]) -> Option<u64> {
    after_name(stat, 17)
}

/// The `index`-th field behind the name, counted from 0.
fn after_name<T: std::str::FromStr>(stat: &[u8], index: usize) -> Option<T> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(index)?.parse().ok()
}

/// The pages in memory that are no file's, in the text of `/proc/PID/statm`: `SIZE RESIDENT SHARED …`.
fn own_pages_in(statm: &[u8]) -> Option<u64> {
    let mut fields = std::str::from_utf8(statm).ok()?.split_ascii_whitespace().skip(1);
    let resident: u64 = fields.next()?.parse().ok()?;
    let shared: u64 = fields.next()?.parse().ok()?;
    Some(resident.saturating_sub(shared))
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
    fn threads_and_memory_are_read_as_the_kernel_writes_them() {
        let stat = b"7 (a b) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 33 0 12345 4096 10";
        assert_eq!(threads_in(stat), Some(33));
        assert_eq!(own_pages_in(b"2000 500 120 1 0 300 0\n"), Some(380));
        assert_eq!((threads_in(b"7 (x"), own_pages_in(b"")), (None, None));
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
