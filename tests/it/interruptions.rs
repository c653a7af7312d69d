//! A run of forty steps is killed at any instant, or its disk is full for a while: it can be gone on with, and nothing is lost,
//! torn, done twice or left running.

use crate::support::extent::cases;
use crate::support::long_run::{LongRun, Told, is_unknown, reported, told};
use crate::support::random::Random;
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use crate::support::sleepers::{unique_seconds, wait_for_sleepers, wait_until_nothing_works_in};
use crate::support::syscall_faults::{Disk, Fault, Watched, at_each_of, fills, watched};
use rustix::process::Signal;
use std::fs;
use std::sync::LazyLock;

/// What every run is told; of a streamed answer it is a matter of time how many pieces are written.
const FLAGS: [&str; 5] = ["--mode", "yolo", "--no-stream", "--output-format", "stream-json"];

/// The most calls of one answer: of no more may the outcome be unknown.
const MOST_CALLS: usize = 5;

/// What the model reads in a run that nothing disturbs, and how many bytes it tells on standard output.
static UNDISTURBED: LazyLock<(Told, usize)> = LazyLock::new(|| {
    let run = LongRun::new(&unique_seconds());
    let (lab, server) = (run.project(), Server::following(&run.script()));
    let done = lab.run(&server, &FLAGS).exits(0);
    let all = told(&server.requests().last().unwrap().body);
    assert_eq!(reported(&done.stdout), all);
    assert_eq!(run.is_done(&lab, &all, &all, "undisturbed"), 0);
    (all, done.stdout.len())
});

/// What a run does to the disk that is watched and nothing disturbs; nothing where nobody may watch it.
static CALLS: LazyLock<Option<usize>> = LazyLock::new(|| {
    let (_, watched) = interrupted_by(Fault::None)?;
    assert_eq!(watched.code, Some(0), "{}", watched.stderr);
    Some(watched.calls.len())
});

/// A run that was interrupted.
struct Interrupted {
    run: LongRun,
    lab: Lab,
    seconds: String,
    /// What it has told on standard output.
    stdout: String,
    /// What the model has read.
    read: Told,
    what: String,
}

impl Interrupted {
    /// Nothing that it has started goes on.
    #[track_caller]
    fn is_over(&self) {
        wait_for_sleepers(&self.seconds, 0);
        wait_until_nothing_works_in(&self.lab.ws(), &self.what);
    }

    /// Goes on with it. Where it was killed before the journal had its task, that is said, and it is given again: only the
    /// command line had it.
    #[track_caller]
    fn resumed(&self, server: &Server) -> Finished {
        let journal = fs::read_to_string(self.lab.journal()).unwrap();
        if journal.contains(r#""origin":"prompt""#) {
            return self.lab.resume(server, &FLAGS);
        }
        assert!(!journal.contains("step_start"), "{}: it worked without a task", self.what);
        let refused = self.lab.resume(server, &FLAGS).exits(3);
        assert!(refused.stderr.contains("ended before it had a task"), "{}", refused.stderr);
        self.lab.resume(server, &[&["task"], &FLAGS[..]].concat())
    }

    /// Goes on with it to its end; how many calls have not ended as in a run that nothing disturbs.
    #[track_caller]
    fn goes_on(&self) -> usize {
        let what = &self.what;
        self.is_over();
        let begun = self.run.is_old_or_new(&self.lab, what);
        let server = Server::following(&self.run.script());
        let done = self.resumed(&server);
        assert_eq!(done.code, Some(0), "{what}: {}", done.stderr);
        self.is_over();
        let requests = server.requests();
        let all: Vec<Told> = requests.iter().map(|request| told(&request.body)).collect();
        let [first, last] = [all.first(), all.last()].map(|some| some.unwrap_or(&self.read));
        for (id, text) in reported(&self.stdout) {
            assert_eq!(first.get(&id), Some(&text), "{what}: {id} was reported as done");
        }
        for (id, text) in &self.read {
            assert_eq!(first.get(id), Some(text), "{what}: the model has read what became of {id}");
        }
        for id in begun {
            assert!(first.contains_key(&id), "{what}: {id} has run, and the model is not told");
        }
        for (id, text) in last.iter().filter(|(_, text)| is_unknown(text)) {
            assert_eq!(first.get(id), Some(text), "{what}: nothing has interrupted {id}");
        }
        assert!(first.values().filter(|text| is_unknown(text)).count() <= MOST_CALLS, "{what}: {first:?}");
        self.run.is_done(&self.lab, last, &UNDISTURBED.0, what)
    }
}

/// Runs until `fault`, watched; nothing where nobody may watch another process.
fn interrupted_by(fault: Fault) -> Option<(Interrupted, Watched)> {
    let seconds = unique_seconds();
    let run = LongRun::new(&seconds);
    let (lab, server) = (run.project(), Server::following(&run.script()));
    let url = server.url();
    let args = ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
    let watched = watched(&lab, &[&args[..], &FLAGS].concat(), fault)?;
    let read = server.requests().last().map(|request| told(&request.body)).unwrap_or_default();
    let what = format!("{fault:?}");
    Some((Interrupted { run, lab, seconds, stdout: watched.stdout.clone(), read, what }, watched))
}

#[test]
fn class_07_a_run_that_is_killed_at_any_instant_loses_nothing_and_repeats_nothing() {
    at_each_of(cases(3, 20, 250), "killed at an instant", |seed| {
        let bytes = Random(seed).below(UNDISTURBED.1);
        let seconds = unique_seconds();
        let run = LongRun::new(&seconds);
        let (lab, server) = (run.project(), Server::following(&run.script()));
        let running = lab.start_run(&server, &FLAGS);
        running.wait_for_stdout(bytes);
        running.signal(Signal::KILL);
        let stdout = running.finish().stdout;
        let what = format!("when it had told {bytes} bytes");
        Interrupted { run, lab, seconds, stdout, read: Told::new(), what }.goes_on()
    });
}

#[test]
fn class_07_a_run_that_is_killed_at_any_system_call_loses_nothing_and_repeats_nothing() {
    let Some(calls) = *CALLS else { return };
    at_each_of(cases(3, 20, 250), "killed at a system call", |seed| {
        let point = Random(seed).below(calls);
        let (interrupted, _) = interrupted_by(Fault::Death(point)).unwrap();
        interrupted.goes_on()
    });
}

#[test]
fn class_07_a_run_whose_disk_is_full_ends_with_an_error_and_loses_nothing() {
    let Some(calls) = CALLS.filter(|_| fills()) else { return };
    at_each_of(cases(4, 40, 50), "a full disk", |seed| {
        let mut random = Random(seed);
        let point = random.below(calls);
        let fault = Fault::Full(point, random.of(&[Disk::Both, Disk::State, Disk::Workspace]));
        let (interrupted, watched) = interrupted_by(fault).unwrap();
        let what = format!("{fault:?}: {:?}: {}", watched.code, watched.stderr);
        match watched.code {
            Some(0) => assert_eq!(interrupted.read.len(), UNDISTURBED.0.len(), "{what}"),
            code => {
                let result = watched.stdout.lines().last().unwrap_or_default();
                let is_told = result.contains("No space left on device");
                assert!(code == Some(1) && is_told, "{what}: {result}");
            }
        }
        interrupted.goes_on()
    });
}

#[test]
fn class_07_a_run_whose_journal_cannot_be_written_says_so() {
    let run = LongRun::new(&unique_seconds());
    let (lab, server) = (run.project(), Server::following(&run.script()));
    let url = server.url();
    let args =
        ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--mode", "yolo"];
    let Some(done) = watched(&lab, &args, Fault::Full(50, Disk::State)).filter(|_| fills()) else { return };
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let why = "the session journal cannot be written: No space left on device";
    assert!(done.stderr.contains(why), "{}", done.stderr);
}
