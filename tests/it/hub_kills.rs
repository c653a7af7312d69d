//! Workers, the processes that look at the Hub, and the server of the queue are killed while agents answer: each notification gets one
//! answer.
//!
//! Time is the subject: a seed decides when something is killed. `AGENT_TEST_ALL_CRASHES=1` does so with 1,000 activations and three seeds.

use crate::hub::ALWAYS;
use crate::nats_server::NatsServer;
use crate::support::dying::points;
use crate::support::hub::{HUB_KEY, Hub};
use crate::support::random::Random;
use crate::support::run::{KEY, Lab, Running};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Workers at a time.
const WORKERS: usize = 4;
/// Time after which the claim of a stopped worker has ended: more than `fleet.lease_seconds`.
const STOPPED: Duration = Duration::from_secs(5);
/// The answer of each activation.
const ANSWER: &str = "I do not know.";
/// A Hub, agents with notifications, and the processes that answer them.
struct Fleet {
    hub: Hub,
    lab: Lab,
    model: Server,
    nats: Option<NatsServer>,
    workers: Vec<Running>,
    feeders: Vec<Running>,
    /// Workers that were killed, or stopped until the time.
    gone: Vec<(Running, Option<Instant>)>,
    threads: Vec<String>,
}

impl Fleet {
    fn start(nats: Option<NatsServer>, knows_keys: bool) -> Self {
        let (hub, lab, mut threads) = (Hub::start(), Lab::new().env("HUB_API_KEY", HUB_KEY), Vec::new());
        let agents = lab.outside().join("agents");
        if !knows_keys {
            hub.ignore_keys();
        }
        for number in 0..points(12, 100) {
            let agent = format!("agent{number}");
            hub.agent(&agent, None);
            fs::create_dir_all(agents.join(&agent)).unwrap();
            fs::write(agents.join(&agent).join("config.yaml"), ALWAYS).unwrap();
            for _ in 0..points(10, 10) {
                let post = hub.post("ann", "A question");
                hub.notify(&agent, "mention", &post, "Do you know?");
                threads.push(post);
            }
        }
        let queue = nats.as_ref().map_or_else(|| "null".to_owned(), NatsServer::url);
        let (url, agents) = (hub.url(), agents.display());
        let lab = lab.config(&format!(
            "hub: {{url: \"{url}\", poll_interval: 1, agents: {agents}}}\nfleet: {{queue: {queue}, lease_seconds: 3}}\n"
        ));
        let model = Server::following(&format!("turns: [{{text: {ANSWER}, repeat: 9}}]"));
        let mut fleet = Self {
            hub,
            lab,
            model,
            nats,
            workers: Vec::new(),
            feeders: Vec::new(),
            gone: Vec::new(),
            threads,
        };
        for _ in 0..2 {
            fleet.start_feeder();
        }
        for _ in 0..WORKERS {
            fleet.start_worker();
        }
        fleet
    }

    fn start_feeder(&mut self) {
        self.feeders.push(self.lab.start(&["hub", "serve"]));
    }

    fn start_worker(&mut self) {
        let url = self.model.url();
        let words = ["worker", "--hub", "--mode", "notification", "--jobs", "2", "--model", "openai/mock"];
        let worker = self.lab.start(&[&words[..], &["--api-base", &url, "--api-key", KEY]].concat());
        self.workers.push(worker);
    }

    /// Kills a worker, or, if `may_stop`, stops it for longer than its claim; another one starts.
    fn disturb(&mut self, random: &mut Random, may_stop: bool) {
        let victim = self.workers.swap_remove(random.below(self.workers.len()));
        let until = (may_stop && random.below(5) == 0).then(|| Instant::now() + STOPPED);
        victim.signal(if until.is_some() { Signal::STOP } else { Signal::KILL });
        self.gone.push((victim, until));
        self.start_worker();
    }

    /// Kills the server of the queue and one of those who look at the Hub.
    fn restart_servers(&mut self, random: &mut Random) {
        if let Some(nats) = &mut self.nats {
            nats.kill();
            nats.restart();
        }
        let victim = self.feeders.swap_remove(random.below(self.feeders.len()));
        victim.signal(Signal::KILL);
        victim.finish();
        self.start_feeder();
    }

    /// Wakes the stopped workers whose time has come.
    fn wake(&mut self, all: bool) {
        for (worker, until) in &mut self.gone {
            if until.is_some_and(|until| all || until <= Instant::now()) {
                worker.signal(Signal::CONT);
                *until = None;
            }
        }
    }

    fn tasks(&self) -> Vec<Value> {
        let listed = self.lab.agent(&["tasks", "list", "--json"]).exits(0).json();
        listed["tasks"].as_array().unwrap().clone()
    }

    /// Waits until each notification was read, and ends the processes.
    fn finish(&mut self) {
        self.wake(true);
        self.hub.wait_until_all_read();
        for process in self.workers.drain(..).chain(self.feeders.drain(..)) {
            process.signal(Signal::TERM);
            process.finish();
        }
        for (process, _) in self.gone.drain(..) {
            process.signal(Signal::TERM);
            process.finish();
        }
    }
}

fn millis(random: &mut Random, from: usize, to: usize) -> Duration {
    Duration::from_millis(u64::try_from(from + random.below(to - from)).unwrap())
}

/// Kills until each notification was answered, and checks what is on the Hub then.
fn each_notification_is_answered_once(nats: impl Fn() -> Option<NatsServer>, knows_keys: bool) {
    for seed in 0..points(1, 3) {
        let (mut random, began) = (Random(seed), Instant::now());
        let mut fleet = Fleet::start(nats(), knows_keys);
        let mut next_restart = began + millis(&mut random, 500, 1_500);
        let (mut kills, mut restarts) = (0, 0);
        while began.elapsed() < Duration::from_secs(points(12, 900)) && fleet.hub.unread() > 0 {
            sleep(millis(&mut random, 500, 2_000));
            fleet.disturb(&mut random, knows_keys);
            fleet.wake(false);
            kills += 1;
            if next_restart <= Instant::now() {
                fleet.restart_servers(&mut random);
                next_restart = Instant::now() + millis(&mut random, 10_000, 20_000);
                restarts += 1;
            }
        }
        fleet.finish();
        for thread in &fleet.threads {
            let comments = fleet.hub.comments(thread);
            assert!(matches!(comments.as_slice(), [(_, text)] if text == ANSWER), "{thread}: {comments:?}");
        }
        let errors: Vec<Value> =
            fleet.hub.posts().into_iter().filter(|post| post["author"]["id"] != "ann").collect();
        let tasks = fleet.tasks();
        let attempts: u64 = tasks.iter().map(|task| task["attempt"].as_u64().unwrap()).sum();
        let done = tasks.iter().filter(|task| task["state"] == json!("done")).count();
        assert!(kills > 0 && restarts > 0, "{kills} kills, {restarts} restarts");
        eprintln!(
            "seed {seed}: {} answers, {} tasks, {done} done, {attempts} attempts, {kills} workers killed or stopped, {restarts} restarts, {} error posts, {:?}",
            fleet.threads.len(),
            tasks.len(),
            errors.len(),
            began.elapsed()
        );
    }
}

#[test]
fn b18_with_a_database_each_notification_is_answered_once_whatever_is_killed() {
    each_notification_is_answered_once(|| None, true);
}

#[test]
fn b18_with_a_server_each_notification_is_answered_once_whatever_is_killed() {
    if NatsServer::start().is_some() {
        each_notification_is_answered_once(NatsServer::start, true);
    }
}

#[test]
fn b18_on_a_hub_without_keys_each_notification_is_answered_once_whatever_is_killed() {
    each_notification_is_answered_once(|| None, false);
}
