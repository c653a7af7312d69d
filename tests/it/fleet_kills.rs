//! Workers, and the server of the queue, are killed and stopped while they work: each task is done, and its effect appears once.
//!
//! Time is the subject: a seed decides when something is killed. `AGENT_TEST_ALL=every-point` does so with 1,000 tasks and three seeds, and with
//! 300 tasks of scripted models.

use crate::nats_server::NatsServer;
use crate::support::extent::cases;
use crate::support::killed_workers::{DisturbedWorkers, millis};
use crate::support::random::Random;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

/// Workers at a time.
const WORKERS: usize = 4;
/// Longest wait for the end of the tasks.
fn longest() -> Duration {
    Duration::from_mins(cases(2, 2, 15))
}

/// Each command adds the name of its worktree, which tells the attempt, unless it is there: a command that was interrupted is followed by
/// another.
const TURNS: &str = "turns:
  - calls: [{name: run_command, arguments: {command: 'a=$(basename $PWD); grep -qsx $a log.txt || echo $a >> log.txt'}}]
  - calls: [{name: run_command, arguments: {command: 'a=$(basename $PWD); grep -qsx $a log.txt || echo $a >> log.txt; true'}}]
  - calls: [{name: run_command, arguments: {command: 'a=$(basename $PWD); grep -qsx $a log.txt || echo $a >> log.txt; :'}}]
  - {text: done, repeat: 9}
";

/// Tasks in a queue, and those who are at work.
pub struct Fleet {
    pub lab: Lab,
    _model: Option<Server>,
    pub nats: Option<NatsServer>,
    workers: DisturbedWorkers,
    tasks: u64,
}

impl Fleet {
    /// Submits tasks and starts workers. The queue is that of the server, or `queue`.
    pub fn start(nats: Option<NatsServer>, queue: &str, tasks: u64) -> Self {
        let lab = with_queue(nats.as_ref(), queue);
        submit(&lab, tasks, |number| json!({"prompt": "x", "id": format!("t{number}"), "max_attempts": 100}));
        let model = Server::following(TURNS);
        let url = model.url();
        let words = ["worker", "--drain", "--jobs", "2", "--mode", "yolo", "--model", "openai/mock"];
        let words = [&words[..], &["--api-base", &url, "--api-key", KEY]].concat();
        let workers = DisturbedWorkers::start(&lab, WORKERS, &words);
        Self { lab, _model: Some(model), nats, workers, tasks }
    }

    /// The same with scripted models and three workers. Each task adds its line to a file, whether it is there or not.
    fn start_scripted(nats: Option<NatsServer>, tasks: u64) -> Self {
        let lab = with_queue(nats.as_ref(), "null");
        submit(&lab, tasks, |number| {
            let script = lab.outside().join(format!("t{number}.yaml"));
            let command = json!({"command": format!("echo line {number} >> out.txt")});
            // A run that was killed between its last answer and its end asks once more.
            let turns = [
                json!({"calls": [{"name": "run_command", "arguments": command}]}),
                json!({"text": "done", "repeat": 9}),
            ];
            fs::write(&script, json!({ "turns": turns }).to_string()).unwrap();
            let model = format!("scripted:{}", script.display());
            json!({"prompt": "x", "id": format!("t{number}"), "max_attempts": 100, "model": model})
        });
        let words = ["worker", "--drain", "--jobs", "2", "--mode", "yolo"];
        let workers = DisturbedWorkers::start(&lab, 3, &words);
        Self { lab, _model: None, nats, workers, tasks }
    }

    /// Waits until the first tasks are done.
    pub fn wait_for_first(&self) {
        self.wait_for(2);
    }

    /// Kills or stops a worker each 0.5 to 2 s, for so long.
    pub fn disturb_for(&mut self, time: Duration, random: &mut Random) {
        let began = Instant::now();
        while began.elapsed() < time {
            self.workers.all_end_within(millis(random, 500, 2_000));
            self.disturb(random);
        }
    }

    /// The same, and kills the server each 10 to 20 s, until the time is over or all tasks have ended. Returns the number of workers and of
    /// servers.
    pub fn disturb_until_done(&mut self, random: &mut Random) -> (usize, usize) {
        let began = Instant::now();
        let mut next_restart = began + millis(random, 2_000, 4_000);
        let (mut kills, mut restarts) = (0, 0);
        while began.elapsed() < Duration::from_secs(cases(4, 12, 600)) {
            if self.workers.all_end_within(millis(random, 500, 2_000)) && self.has_ended() {
                break;
            }
            self.disturb(random);
            kills += 1;
            if next_restart <= Instant::now() {
                self.restart_server();
                next_restart = Instant::now() + millis(random, 10_000, 20_000);
                restarts += 1;
            }
        }
        (kills, restarts)
    }

    /// Waits until the first `count` tasks have ended.
    fn wait_for(&self, count: u64) {
        let ids: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
        let words = ["tasks", "wait", "--timeout", "30"].into_iter().chain(ids.iter().map(String::as_str));
        let (words, began) = (words.collect::<Vec<_>>(), Instant::now());
        while self.lab.agent(&words).code == Some(5) {
            let tasks = || self.lab.agent(&["tasks", "list", "--json"]).stdout;
            assert!(began.elapsed() < longest(), "the tasks do not end: {}", tasks());
        }
    }

    /// Kills or stops a worker; another one starts, also for those that have ended by themselves.
    fn disturb(&mut self, random: &mut Random) {
        self.workers.replace_ended(&self.lab);
        self.workers.disturb(&self.lab, random, true);
        self.workers.wake(false);
    }

    fn restart_server(&mut self) {
        if let Some(nats) = &mut self.nats {
            nats.kill();
            nats.restart();
        }
    }

    fn has_ended(&self) -> bool {
        let is_empty =
            |state| self.lab.agent(&["tasks", "list", "--state", state]).stdout.starts_with("no tasks");
        is_empty("queued") && is_empty("claimed")
    }

    /// Waits until the workers have nothing to do, and returns the tasks. A last worker removes what killed ones have left.
    pub fn finish(mut self) -> (Lab, Vec<Value>) {
        self.workers.wake(true);
        self.workers.replace_ended(&self.lab);
        self.wait_for(self.tasks);
        self.workers.add(&self.lab);
        self.workers.finish(None);
        let listed = self.lab.agent(&["tasks", "list", "--json"]).exits(0).json();
        (self.lab, listed["tasks"].as_array().unwrap().clone())
    }
}

/// A repository, and a home whose queue is that of the server, or `queue`.
fn with_queue(nats: Option<&NatsServer>, queue: &str) -> Lab {
    let queue = nats.map_or_else(|| queue.to_owned(), NatsServer::url);
    let config = format!("fleet: {{queue: {queue}, lease_seconds: 3}}");
    Lab::new().file("a.txt", "first\n").config(&config).committed()
}

fn submit(lab: &Lab, tasks: u64, task: impl Fn(u64) -> Value) {
    let file = lab.outside().join("tasks.jsonl");
    let mut lines = String::new();
    (0..tasks).for_each(|number| writeln!(lines, "{}", task(number)).unwrap());
    fs::write(&file, lines).unwrap();
    lab.agent(&["submit", "-f", file.to_str().unwrap()]).exits(0);
}

/// Checks that each task is done, and that its effect is on its branch once.
pub fn check(lab: &Lab, done: &[Value], tasks: u64) {
    assert_eq!(done.len() as u64, tasks);
    for task in done {
        assert_eq!((&task["state"], &task["result"]["output"]), (&json!("done"), &json!("done")), "{task}");
        let branch = task["branch"].as_str().unwrap();
        let log = lab.git(&["show", &format!("{branch}:log.txt")]);
        let of_attempt = format!("-{}-{}", task["number"], task["attempt"]);
        assert!(log.lines().count() == 1 && log.trim_end().ends_with(&of_attempt), "{log}{task}");
    }
    let branches = lab.git(&["branch", "--format=%(refname:short)"]).lines().count() as u64;
    let worktrees = lab.git(&["worktree", "list"]);
    assert_eq!((branches, worktrees.lines().count()), (tasks + 1, 1), "{worktrees}");
    assert_eq!(lab.git(&["fsck", "--no-progress", "--no-dangling"]), "");
}

/// Kills until the time is over, or everything is done, and checks what is there then.
fn each_task_is_done_once(nats: impl Fn() -> Option<NatsServer>) {
    let tasks = cases(10, 30, 1_000);
    for seed in 0..cases(1, 1, 3) {
        let (mut random, began) = (Random(seed), Instant::now());
        let mut fleet = Fleet::start(nats(), "null", tasks);
        let (kills, restarts) = fleet.disturb_until_done(&mut random);
        let (lab, done) = fleet.finish();
        check(&lab, &done, tasks);
        let sum = |field: &str| done.iter().map(|task| task[field].as_u64().unwrap()).sum::<u64>();
        let (attempts, failed) = (sum("attempt"), sum("failed_attempts"));
        assert!(failed > 0 && (attempts > tasks || tasks < 1_000), "{attempts} attempts, {failed} failed");
        assert!(kills > 0 && (restarts > 0 || nats().is_none()), "{kills} kills, {restarts} restarts");
        eprintln!(
            "seed {seed}: {tasks} tasks, {attempts} attempts, {kills} workers killed or stopped, {restarts} restarts of the server, {:?}",
            began.elapsed()
        );
    }
}

/// Kills three workers of scripted models until everything is done, and checks that each branch has its line exactly once.
fn each_line_is_on_its_branch_once(nats: impl Fn() -> Option<NatsServer>) {
    let tasks = cases(5, 12, 300);
    let (mut random, began) = (Random(41), Instant::now());
    let mut fleet = Fleet::start_scripted(nats(), tasks);
    let (kills, restarts) = fleet.disturb_until_done(&mut random);
    let (lab, done) = fleet.finish();
    let lines = |task: &Value| match task["branch"].as_str() {
        Some(branch) => lab.git(&["show", &format!("{branch}:out.txt")]),
        None => String::new(),
    };
    let wrong: Vec<String> = done
        .iter()
        .filter(|task| {
            task["state"] != "done" || lines(task) != format!("line {}\n", &task["id"].as_str().unwrap()[1..])
        })
        .map(|task| {
            let session = lab.agent(&["tasks", "session", task["id"].as_str().unwrap()]).stdout;
            format!("{task}\n{}\n{session}\n", lines(task))
        })
        .collect();
    let attempts: u64 = done.iter().map(|task| task["attempt"].as_u64().unwrap()).sum();
    eprintln!(
        "{tasks} tasks, {attempts} attempts, {kills} workers killed or stopped, {restarts} restarts of the server, {:?}",
        began.elapsed()
    );
    assert_eq!((done.len() as u64, wrong), (tasks, Vec::new()));
}

// Fault C1: the script of a killed worker began again.
#[test]
fn the_command_of_a_scripted_task_runs_once_though_workers_of_a_database_are_killed() {
    each_line_is_on_its_branch_once(|| None);
}

// Fault C1: the script of a killed worker began again.
#[test]
fn the_command_of_a_scripted_task_runs_once_though_workers_and_the_server_are_killed() {
    if NatsServer::start().is_some() {
        each_line_is_on_its_branch_once(NatsServer::start);
    }
}

#[test]
fn tasks_in_a_database_whose_workers_are_killed_are_done_each_once() {
    each_task_is_done_once(|| None);
}

#[test]
fn tasks_on_a_server_that_is_killed_with_its_workers_are_done_each_once() {
    if NatsServer::start().is_some() {
        each_task_is_done_once(NatsServer::start);
    }
}
