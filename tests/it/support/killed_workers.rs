//! Workers that are killed, or stopped for longer than their claims, while others take their places.

use super::random::Random;
use super::run::{Lab, Running};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::time::{Duration, Instant};

/// Time after which the claim of a stopped worker has ended: more than `fleet.lease_seconds` of these tests.
const STOPPED: Duration = Duration::from_secs(5);

/// A number of workers with the same command line.
pub struct DisturbedWorkers {
    words: Vec<String>,
    running: Vec<Running>,
    /// Workers that were killed or have ended, or were stopped until the time.
    gone: Vec<(Running, Option<Instant>)>,
}

impl DisturbedWorkers {
    /// Starts `count` workers.
    pub fn start(lab: &Lab, count: usize, words: &[&str]) -> Self {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let mut workers = Self { words, running: Vec::new(), gone: Vec::new() };
        (0..count).for_each(|_| workers.add(lab));
        workers
    }

    pub fn add(&mut self, lab: &Lab) {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        self.running.push(lab.start(&words));
    }

    /// Kills a worker, or, if `may_stop`, stops it for longer than its claim; another one starts.
    pub fn disturb(&mut self, lab: &Lab, random: &mut Random, may_stop: bool) {
        let victim = self.running.swap_remove(random.below(self.running.len()));
        let until = (may_stop && random.below(5) == 0).then(|| Instant::now() + STOPPED);
        victim.signal(if until.is_some() { Signal::STOP } else { Signal::KILL });
        self.gone.push((victim, until));
        self.add(lab);
    }

    /// Wakes the stopped workers whose time has come, or all.
    pub fn wake(&mut self, all: bool) {
        for (worker, until) in &mut self.gone {
            if until.is_some_and(|until| all || until <= Instant::now()) {
                worker.signal(Signal::CONT);
                *until = None;
            }
        }
    }

    /// Waits until all workers have ended by themselves, for so long; returns whether they have.
    pub fn all_end_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        self.running.iter().all(|worker| {
            let id = Pid::from_raw(i32::try_from(worker.id()).unwrap()).unwrap();
            let process = pidfd_open(id, PidfdFlags::empty()).unwrap();
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).unwrap();
            poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)).unwrap() == 1
        })
    }

    /// Starts another worker for each that has ended by itself.
    pub fn replace_ended(&mut self, lab: &Lab) {
        for number in (0..self.running.len()).rev() {
            if self.running[number].has_ended() {
                self.gone.push((self.running.swap_remove(number), None));
                self.add(lab);
            }
        }
    }

    /// Sends a signal to all, if one is given, and waits for their end.
    pub fn finish(&mut self, signal: Option<Signal>) {
        for worker in self.running.drain(..).chain(self.gone.drain(..).map(|(worker, _)| worker)) {
            if let Some(signal) = signal {
                worker.signal(signal);
            }
            worker.finish();
        }
    }
}

/// A random time.
pub fn millis(random: &mut Random, from: usize, to: usize) -> Duration {
    Duration::from_millis(u64::try_from(from + random.below(to - from)).unwrap())
}
