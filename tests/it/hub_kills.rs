//! Workers, the processes that look at the Hub, and the server of the queue are killed while agents answer: each notification gets one
//! answer.
//!
//! Time is the subject: a seed decides when something is killed. `AGENT_TEST_ALL=every-point` does so with 1,000 activations and three seeds.

use crate::hub::ALWAYS;
use crate::nats_server::NatsServer;
use crate::support::extent::cases;
use crate::support::hub::{HUB_KEY, Hub};
use crate::support::killed_workers::{DisturbedWorkers, millis};
use crate::support::random::Random;
use crate::support::run::{KEY, Lab, Running};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// Workers at a time.
const WORKERS: usize = 4;
/// Longest wait for the last answers.
const LONGEST: Duration = Duration::from_mins(2);
/// The command line of a process that looks at the Hub.
const FEEDER: &[&str] = &["hub", "serve"];
/// The answer of each activation.
const ANSWER: &str = "I do not know.";
/// A Hub, agents with notifications, and the processes that answer them.
struct Fleet {
    hub: Hub,
    lab: Lab,
    _model: Server,
    nats: Option<NatsServer>,
    workers: DisturbedWorkers,
    feeders: Vec<Running>,
    threads: Vec<String>,
}

impl Fleet {
    fn start(nats: Option<NatsServer>, knows_keys: bool) -> Self {
        let (hub, lab, mut threads) = (Hub::start(), Lab::new().env("HUB_API_KEY", HUB_KEY), Vec::new());
        let agents = lab.outside().join("agents");
        if !knows_keys {
            hub.ignore_keys();
        }
        for number in 0..cases(5, 12, 100) {
            let agent = format!("agent{number}");
            hub.agent(&agent, None);
            fs::create_dir_all(agents.join(&agent)).unwrap();
            fs::write(agents.join(&agent).join("config.yaml"), ALWAYS).unwrap();
            for _ in 0..10 {
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
        let url = model.url();
        let words = ["worker", "--hub", "--mode", "notification", "--jobs", "2", "--model", "openai/mock"];
        let words = [&words[..], &["--api-base", &url, "--api-key", KEY]].concat();
        let workers = DisturbedWorkers::start(&lab, WORKERS, &words);
        let feeders = (0..2).map(|_| lab.start(FEEDER)).collect();
        Self { hub, lab, _model: model, nats, workers, feeders, threads }
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
        self.feeders.push(self.lab.start(FEEDER));
    }

    fn tasks(&self) -> Vec<Value> {
        let listed = self.lab.agent(&["tasks", "list", "--json"]).exits(0).json();
        listed["tasks"].as_array().unwrap().clone()
    }

    /// Waits until each notification was read, and ends the processes.
    fn finish(&mut self) {
        self.workers.wake(true);
        assert!(self.hub.waits_until_all_read(LONGEST), "{} notifications are not read", self.hub.unread());
        self.workers.finish(Some(Signal::TERM));
        for feeder in self.feeders.drain(..) {
            feeder.signal(Signal::TERM);
            feeder.finish();
        }
    }
}

/// Kills until each notification was answered, and checks what is on the Hub then.
fn each_notification_is_answered_once(nats: impl Fn() -> Option<NatsServer>, knows_keys: bool) {
    for seed in 0..cases(1, 1, 3) {
        let mut random = Random(seed);
        let mut fleet = Fleet::start(nats(), knows_keys);
        // The start can take longer than the kills do.
        let began = Instant::now();
        let mut next_restart = began + millis(&mut random, 500, 1_500);
        let (mut kills, mut restarts) = (0, 0);
        while began.elapsed() < Duration::from_secs(cases(4, 12, 900)) {
            if fleet.hub.waits_until_all_read(millis(&mut random, 500, 2_000)) {
                break;
            }
            fleet.workers.disturb(&fleet.lab, &mut random, knows_keys);
            fleet.workers.wake(false);
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
