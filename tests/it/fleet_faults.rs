//! The server of a queue is cut off, and the disk under the queue is full for a while, while workers are killed and stopped: each task is
//! done, and its effect appears once.
//!
//! Time is the subject. `AGENT_TEST_ALL=every-point` does so with 1,000 tasks, for 40 seconds.

use crate::fleet_kills::{Fleet, check};
use crate::nats_server::NatsServer;
use crate::support::extent::cases;
use crate::support::random::Random;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Name of the file that takes the room.
const FILLER: &str = "filler";

/// How long the server is away, or the disk full.
fn fault() -> Duration {
    Duration::from_secs(cases(4, 4, 40))
}

fn tasks() -> u64 {
    cases(20, 20, 1_000)
}

/// A small file system in memory. Dropping it removes it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one of so many MiB; `None` where that is not permitted.
    fn mount(mebibytes: u32) -> Option<Self> {
        let path = tempfile::tempdir().unwrap().keep();
        let size = format!("size={mebibytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self(path));
        }
        eprintln!("no file system can be mounted here");
        fs::remove_dir(path).unwrap();
        None
    }

    fn fill(&self) {
        let mut file = File::create(self.0.join(FILLER)).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn empty(&self) {
        fs::remove_file(self.0.join(FILLER)).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether the queue cannot be used, or tasks are left.
fn is_disturbed(fleet: &Fleet) -> bool {
    let listed = fleet.lab.agent(&["tasks", "list", "--state", "done", "--json"]);
    listed.code == Some(1) || (listed.json()["tasks"].as_array().unwrap().len() as u64) < tasks()
}

/// Goes on with the kills until all tasks have ended, and checks them.
fn end(mut fleet: Fleet, random: &mut Random) {
    let (kills, restarts) = fleet.disturb_until_done(random);
    let (lab, done) = fleet.finish();
    check(&lab, &done, tasks());
    let attempts: u64 = done.iter().map(|task| task["attempt"].as_u64().unwrap()).sum();
    eprintln!(
        "{attempts} attempts, {kills} workers killed or stopped after the fault, {restarts} restarts of the server"
    );
}

#[test]
fn tasks_on_a_server_that_is_cut_off_are_done_each_once() {
    let Some(nats) = NatsServer::start() else { return };
    let mut fleet = Fleet::start(Some(nats), "null", tasks());
    fleet.wait_for_first();
    let server = fleet.nats.as_mut().unwrap();
    server.kill();
    let mut random = Random(1);
    fleet.disturb_for(fault(), &mut random);
    fleet.nats.as_mut().unwrap().restart();
    end(fleet, &mut random);
}

#[test]
fn tasks_in_a_database_on_a_full_disk_are_done_each_once_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount(16) else { return };
    let mut fleet = Fleet::start(None, &format!("sqlite:{}/tasks.sqlite", disk.0.display()), tasks());
    fleet.wait_for_first();
    disk.fill();
    let mut random = Random(2);
    fleet.disturb_for(fault(), &mut random);
    assert!(is_disturbed(&fleet), "the disk was not full");
    disk.empty();
    end(fleet, &mut random);
}

#[test]
fn tasks_on_a_server_whose_disk_is_full_are_done_each_once_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount(if tasks() == 1_000 { 512 } else { 64 }) else { return };
    let Some(nats) = NatsServer::start_in(&disk.0, &[]) else { return };
    let mut fleet = Fleet::start(Some(nats), "null", tasks());
    fleet.wait_for_first();
    disk.fill();
    let mut random = Random(3);
    fleet.disturb_for(fault(), &mut random);
    assert!(is_disturbed(&fleet), "the disk was not full");
    disk.empty();
    // It stores nothing more after a failed write until it is started again.
    let server = fleet.nats.as_mut().unwrap();
    server.kill();
    server.restart();
    end(fleet, &mut random);
}
