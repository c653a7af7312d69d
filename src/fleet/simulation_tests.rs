//! A simulated fleet: workers that are killed or stopped, a store that is away (a server that is cut off or starts again, a full disk), machines
//! that boot, clocks that are set, runs that fail and answers that are lost, all from a seed. The clock is that of tokio, which jumps to the next event when nothing else is to be done.
//!
//! `AGENT_TEST_ALL=every-point` does so with 100 workers and 100,000 tasks.

use crate::boot_clock::simulated;
use crate::queue::Queue;
use crate::random::Random;
use crate::selection::Selection;
use crate::sqlite::SqliteStore;
use agent_core::fleet::{Priority, TaskRecord, TaskSpec, TaskState};
use agent_core::hub::Lane;
use agent_core::task_transitions::Ending;
use futures_util::future::join_all;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(30);
/// How long the store is away.
const OUTAGE: Duration = Duration::from_secs(40);
/// Seconds of a run.
const RUN: (u64, u64) = (1, 59);

/// A queue and what its workers have done.
struct Fleet {
    queue: Queue,
    started: Instant,
    /// Once in so many claims the machine boots.
    boot_odds: usize,
    boots: Cell<u64>,
    /// Seconds by which the clock of the wall was set.
    set_by: Cell<i64>,
    /// Until when the store is away.
    away_until: Cell<Instant>,
    /// The attempts of each task whose success was recorded.
    successes: RefCell<BTreeMap<u64, Vec<u32>>>,
    faults: RefCell<BTreeMap<&'static str, u64>>,
    is_done: Cell<bool>,
}

impl Fleet {
    fn now(&self) -> u64 {
        (1_000_000 + self.started.elapsed().as_secs()).saturating_add_signed(self.set_by.get())
    }

    fn count(&self, fault: &'static str) {
        *self.faults.borrow_mut().entry(fault).or_default() += 1;
    }

    /// Claims and does tasks until none is left. `place` is the number of the worker.
    async fn work(&self, seed: u64, place: u64) {
        let mut random = Random(seed << 32 | place);
        let mut name = format!("worker-{place}-0");
        for life in 1.. {
            self.until_answered().await;
            let Some(task) = self.queue.claim(Lane::Submitted, &name, self.now()).await.unwrap() else {
                let counts = self.queue.counts().await.unwrap();
                let is_open = |state: TaskState| matches!(state, TaskState::Queued | TaskState::Claimed);
                self.is_done.set(counts.iter().all(|(state, count)| !is_open(*state) || *count == 0));
                if self.is_done.get() {
                    return;
                }
                sleep(Duration::from_secs(1)).await;
                continue;
            };
            if random.below(self.boot_odds) == 0 {
                self.count("a machine boots");
                self.boots.set(self.boots.get() + 1);
                simulated(self.started, self.boots.get());
            }
            if random.below(self.boot_odds) == 0 {
                self.count("the store is away");
                self.away_until.set(Instant::now() + OUTAGE);
            }
            if random.below(self.boot_odds / 4) == 0 {
                self.count("the clock jumps by an hour");
                self.set_by.set(if self.set_by.get() == 0 { random.of(&[-3600, 3600]) } else { 0 });
            }
            let run = seconds(&mut random, RUN);
            match random.below(100) {
                0..=2 => {
                    self.count("a worker is killed");
                    sleep(run / 2).await;
                    name = format!("worker-{place}-{life}");
                    sleep(seconds(&mut random, (1, 10))).await;
                }
                3..=4 => {
                    self.count("a worker is stopped for longer than its claim");
                    sleep(LEASE * 2).await;
                    self.finish(&task, &Ending::Done(None), &mut random).await;
                }
                5..=7 => {
                    self.count("a run fails");
                    if self.run(&task, run).await {
                        self.finish(&task, &Ending::Retry("the server is away".to_owned()), &mut random)
                            .await;
                    }
                }
                _ => {
                    if self.run(&task, run).await {
                        self.finish(&task, &Ending::Done(None), &mut random).await;
                    }
                }
            }
        }
    }

    /// Lets a run pass, and renews its claim; returns whether the claim was held to its end.
    async fn run(&self, task: &TaskRecord, run: Duration) -> bool {
        let end = Instant::now() + run;
        while Instant::now() < end {
            sleep((LEASE / 3).min(end - Instant::now())).await;
            if !self.is_away() && !self.queue.renew(task).await.unwrap() {
                self.count("a claim is lost");
                return false;
            }
        }
        true
    }

    fn is_away(&self) -> bool {
        Instant::now() < self.away_until.get()
    }

    async fn until_answered(&self) {
        while self.is_away() {
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn finish(&self, task: &TaskRecord, ending: &Ending, random: &mut Random) {
        self.until_answered().await;
        let is_own = self.queue.finish(task, ending, None, self.now()).await.unwrap();
        if is_own && matches!(ending, Ending::Done(_)) {
            self.successes.borrow_mut().entry(task.number).or_default().push(task.attempt);
        }
        if random.below(50) == 0 {
            self.count("an answer is lost, and the end recorded again");
            assert!(!self.queue.finish(task, &Ending::Done(None), None, self.now()).await.unwrap());
        }
    }
}

fn seconds(random: &mut Random, (from, to): (u64, u64)) -> Duration {
    Duration::from_secs(from + random.below(usize::try_from(to - from + 1).unwrap()) as u64)
}

async fn simulate(seed: u64, workers: u64, tasks: u64) {
    // A file system in memory, where there is one: each change is synchronized.
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let queue = Queue::Sqlite(SqliteStore::open(&directory.path().join("tasks.sqlite"), LEASE).unwrap());
    let specs: Vec<(String, TaskSpec)> = (0..tasks)
        .map(|number| {
            let priority =
                [Priority::High, Priority::Normal, Priority::Low][usize::try_from(number % 3).unwrap()];
            (
                format!("t{number}"),
                TaskSpec { max_attempts: 100, ..TaskSpec { priority, ..TaskSpec::new("x", "/", 2) } },
            )
        })
        .collect();
    let started = Instant::now();
    simulated(started, 0);
    queue.submit(&specs, 1_000_000).await.unwrap();
    let fleet = Fleet {
        queue,
        started,
        boot_odds: usize::try_from(tasks).unwrap() / 10,
        boots: Cell::default(),
        away_until: Cell::new(started),
        set_by: Cell::default(),
        successes: RefCell::default(),
        faults: RefCell::default(),
        is_done: Cell::default(),
    };
    join_all((0..workers).map(|place| fleet.work(seed, place))).await;
    let took = started.elapsed();
    let done = fleet.queue.select(Selection::InState(TaskState::Done)).await.unwrap();
    assert_eq!(done.len() as u64, tasks, "seed {seed}");
    let successes = fleet.successes.borrow();
    for task in &done {
        assert_eq!(successes.get(&task.number), Some(&vec![task.attempt]), "seed {seed}: {task:?}");
    }
    let attempts: u64 = done.iter().map(|task| u64::from(task.attempt)).sum();
    let faults = fleet.faults.borrow();
    let all = [
        "a machine boots",
        "the store is away",
        "the clock jumps by an hour",
        "a worker is killed",
        "a worker is stopped for longer than its claim",
        "a run fails",
    ];
    assert!(attempts > tasks && all.iter().all(|fault| faults.contains_key(fault)), "{faults:?}");
    let outages = u32::try_from(faults.get("the store is away").copied().unwrap_or_default()).unwrap();
    // The work alone, and what faults cost: no worker is idle while a task waits.
    let ideal = Duration::from_secs(attempts * u64::midpoint(RUN.0, RUN.1) / workers);
    assert!(
        took < ideal * 5 / 4 + LEASE * 8 + OUTAGE * outages,
        "seed {seed}: {took:?} instead of {ideal:?}"
    );
    eprintln!(
        "seed {seed}: {tasks} tasks, {attempts} attempts, {took:?} of {ideal:?}, {:?}",
        fleet.faults.borrow()
    );
}

#[expect(clippy::disallowed_methods, reason = "how much is simulated is not for the agent")]
#[tokio::test(start_paused = true)]
async fn b08_a_simulated_fleet_does_each_task_once() {
    let is_whole = std::env::var("AGENT_TEST_ALL").is_ok_and(|extent| extent == "every-point");
    let (seeds, workers, tasks) = if is_whole { (3, 100, 100_000) } else { (2, 100, 1_000) };
    for seed in 0..seeds {
        simulate(seed, workers, tasks).await;
    }
}
