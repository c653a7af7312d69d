//! Process tree below the launcher process: its resource usage, and how to end all of it without a pid namespace.

use super::limits::Usage;
use rustix::event::Timespec;
use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Maximum rounds of a sweep, one each [`ROUND`]: ten seconds. Only a process stuck in the kernel outlives a SIGKILL.
const MAX_ROUNDS: u32 = 5000;

/// Pause between two rounds.
const ROUND: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Number of successive scans without a find after which no process is left. One scan can miss a chain of processes that replace each
/// other: a process ends before its parent is read, and its successor starts after the processes were listed.
const EMPTY_SCANS: u32 = 5;

/// Bytes of `/proc/PID/stat` to read. Its name is at most 64 bytes, and the 52 numbers have up to 20 digits.
const STAT_BYTES: u64 = 2048;

/// Usual size of it in bytes, so that one read is enough.
const USUAL_STAT_BYTES: usize = 512;

/// Kills descendants until none is left. The caller is their subreaper, so that no other process adopts them.
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

/// Counts the descendants that still run when the command, whose orphans become children of this process, has been reaped.
pub(super) fn running_orphans() -> i32 {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => break,
            Err(_no_child_is_left) => return 0,
        }
    }
    i32::try_from(descendants(rustix::process::getpid(), &parents()).len()).unwrap_or(i32::MAX)
}

/// Sends SIGTERM to the descendants of this process, except `spared`.
pub(super) fn terminate(spared: Option<Pid>) {
    for pid in
        descendants(rustix::process::getpid(), &parents()).into_iter().filter(|pid| Some(*pid) != spared)
    {
        let _already_gone = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Kills descendants of this process until none is found, except the processes `spared` and their descendants. Reaps only the
/// children that it killed.
pub(super) fn sweep_others(spared: &BTreeSet<i32>) {
    let mut empty_scans = 0;
    for _ in 0..MAX_ROUNDS {
        let mut parents = parents();
        parents.retain(|pid, _| !spared.contains(pid));
        let others = descendants(rustix::process::getpid(), &parents);
        empty_scans = if others.is_empty() { empty_scans + 1 } else { 0 };
        if empty_scans == EMPTY_SCANS {
            return;
        }
        for pid in others {
            let _already_gone = rustix::process::kill_process(pid, Signal::KILL);
            let _not_ours_or_not_yet = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
        let _interrupted = rustix::event::poll(&mut [], Some(&ROUND));
    }
}

/// Returns the parent of `pid` if `/proc` shows it.
pub(super) fn parent(pid: Pid) -> Option<Pid> {
    Pid::from_raw(parent_in(&read(pid.as_raw_nonzero().get(), "stat")?)?)
}

/// Measures the tree's current usage. A process that shares memory with its parent since a fork counts with all of it. One that
/// ends during the measurement does not count.
pub(super) fn usage() -> Usage {
    let own = rustix::process::getpid();
    let parents = parents();
    // If `/proc` does not show this process, it belongs to the namespace below, and everything in it is part of the tree.
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

/// Returns the parent of each process that `/proc` shows.
fn parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, parent_in(&read(pid, "stat")?)?))).collect()
}

/// Reads the start of a file of `/proc/PID`.
fn read(pid: i32, file: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_STAT_BYTES);
    let file = std::fs::File::open(format!("/proc/{pid}/{file}")).ok()?;
    file.take(STAT_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Parses the parent's id from the text of `/proc/PID/stat`: `PID (NAME) STATE PARENT …`. The name may contain any characters.
fn parent_in(stat: &[u8]) -> Option<i32> {
    after_name(stat, 1)
}

/// Parses the number of threads from the same text: its 20th field.
fn threads_in(stat: &[u8]) -> Option<u64> {
    after_name(stat, 17)
}

/// Parses the `index`-th field after the name, counted from 0.
fn after_name<T: std::str::FromStr>(stat: &[u8], index: usize) -> Option<T> {
    let after_name = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(index)?.parse().ok()
}

/// Parses the number of resident pages without file-backed ones from the text of `/proc/PID/statm`: `SIZE RESIDENT SHARED …`.
fn own_pages_in(statm: &[u8]) -> Option<u64> {
    let mut fields = std::str::from_utf8(statm).ok()?.split_ascii_whitespace().skip(1);
    let resident: u64 = fields.next()?.parse().ok()?;
    let shared: u64 = fields.next()?.parse().ok()?;
    Some(resident.saturating_sub(shared))
}

/// Returns all descendants of `root`.
fn descendants(root: Pid, parents: &BTreeMap<i32, i32>) -> Vec<Pid> {
    let root = root.as_raw_nonzero().get();
    let is_below = |pid: i32| {
        let mut ancestor = pid;
        // A chain cannot be longer than the number of processes. The bound protects against a cycle in the snapshot.
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
