//! Nothing outlives its command or its run: however they end, whoever runs them, and whatever holds the tree together.

use crate::support::extent::all;
use crate::support::kernel::{Kernel, doctor, here, kernels};
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::sleepers::{survivors, unique_seconds, wait_for_sleepers};
use rustix::process::Signal;
use serde_json::json;
use std::fs;
use std::time::Duration;

/// How long something may live on when nobody can wait for its end.
const ALLOWED: Duration = Duration::from_secs(5);

/// The ways in which a run ends: by itself and by signals, the last of which is how a panic ends that cannot unwind.
const ENDS: [Option<Signal>; 5] =
    [None, Some(Signal::INT), Some(Signal::TERM), Some(Signal::KILL), Some(Signal::ABORT)];

/// A command that waits for what tries to stay: a child, a daemon in a session of its own, one that hears no signal, and
/// one that is stopped.
fn tree(seconds: &str) -> String {
    format!("{} wait", stayers(seconds))
}

fn stayers(seconds: &str) -> String {
    format!(
        "sleep {seconds} & (setsid sleep {seconds} <&- >/dev/null 2>&1 &); (trap '' TERM INT HUP; exec sleep {seconds}) & \
         sleep {seconds} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!;"
    )
}

const STAYERS: usize = 4;

/// As whoever runs the tests, and as nobody.
fn both(test: impl Fn(Lab)) {
    let is_root = rustix::process::geteuid().is_root();
    if all() || !is_root {
        test(Lab::new().started());
    }
    if is_root {
        test(Lab::new().started().unprivileged());
    }
}

/// For the kernels in which this tier is found, and both users; by default without root.
fn held_by(tier: &str, test: impl Fn(Kernel, Lab)) {
    for (kernel, found) in kernels() {
        if found == tier {
            both(|lab| {
                if here(&lab, kernel, tier) {
                    test(kernel, lab);
                }
            });
        }
    }
}

/// For all of them.
fn in_every_tier(test: impl Fn(Kernel, Lab)) {
    for tier in ["full", "bubblewrap", "rules", "none"] {
        held_by(tier, &test);
    }
}

/// What the model reads about this script, run as one command.
fn answer(kernel: Kernel, lab: &Lab, script: &str, timeout: u64) -> String {
    fs::write(lab.ws().join("attempt.sh"), script).unwrap();
    let arguments = json!({"command": "sh attempt.sh", "timeout": timeout}).to_string();
    let finished = kernel.agent(lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]);
    format!("{}{}", finished.stdout, finished.stderr)
}

/// Ends a run in each way while a hook, a background command and a command hold a tree each; what a hook has left
/// behind is gone before.
fn nothing_outlives_a_run(kernel: Kernel, lab: &Lab, flags: &[&str]) {
    let (seconds, left) = (unique_seconds(), unique_seconds());
    fs::write(lab.ws().join("tree.sh"), tree(&seconds)).unwrap();
    fs::write(lab.ws().join("leave.sh"), stayers(&left)).unwrap();
    let hooks = "hooks:\n  session_start: [{command: sh tree.sh, async: true, timeout: 300}]\n  \
                 post_tool_use: [{command: sh leave.sh}]\n";
    fs::write(lab.home().join("config.yaml"), hooks).unwrap();
    let call = |arguments| json!({"calls": [{"name": "run_command", "arguments": arguments}]});
    let turns = json!({"turns": [
        call(json!({"command": "sh tree.sh", "background": true})),
        call(json!({"command": "sh tree.sh & mkfifo gate; touch begun; read -r line < gate"})),
        {"text": "done"},
    ]});
    for end in ENDS {
        let server = Server::start(&turns.to_string());
        let url = server.url();
        let mut args = vec!["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY];
        args.extend(["--mode", "yolo"].iter().chain(flags));
        let run = kernel.start(lab, &args);
        lab.wait_for_file("begun");
        wait_for_sleepers(&seconds, 3 * STAYERS);
        assert_eq!(survivors(&left), 0, "{kernel:?}: of a hook that has ended");
        match end {
            Some(signal) => run.signal(signal),
            None => fs::write(lab.ws().join("gate"), "go\n").unwrap(),
        }
        let code = run.finish().code;
        let what = format!("{kernel:?} {flags:?}, {:?}, {end:?}", lab.uid());
        match end {
            None => assert_eq!((code, survivors(&seconds)), (Some(0), 0), "{what}"),
            Some(Signal::INT | Signal::TERM) => {
                assert_eq!((code, survivors(&seconds)), (Some(130), 0), "{what}");
            }
            Some(_) => assert!(code.is_none() && wait_for_sleepers(&seconds, 0) < ALLOWED, "{what}"),
        }
        assert_eq!(survivors(&left), 0, "{what}");
        for name in ["begun", "gate"] {
            fs::remove_file(lab.ws().join(name)).unwrap();
        }
    }
}

#[test]
fn class_44_nothing_outlives_a_run_in_the_full_tier() {
    held_by("full", |kernel, lab| nothing_outlives_a_run(kernel, &lab, &[]));
}

#[test]
fn class_44_nothing_outlives_a_run_behind_bubblewrap() {
    held_by("bubblewrap", |kernel, lab| nothing_outlives_a_run(kernel, &lab, &[]));
}

#[test]
fn class_44_nothing_outlives_a_run_behind_rules() {
    held_by("rules", |kernel, lab| nothing_outlives_a_run(kernel, &lab, &[]));
}

#[test]
fn class_44_nothing_outlives_a_run_where_nothing_confines() {
    held_by("none", |kernel, lab| nothing_outlives_a_run(kernel, &lab, &[]));
    both(|lab| nothing_outlives_a_run(Kernel::Native, &lab, &["--sandbox", "off"]));
}

#[test]
fn class_44_what_a_command_leaves_is_gone_when_it_is_answered() {
    in_every_tier(|kernel, lab| {
        let seconds = unique_seconds();
        let text = answer(kernel, &lab, &format!("{} exit 0", stayers(&seconds)), 60);
        assert!(text.contains("exit_code: 0"), "{kernel:?}: {text}");
        // Fault A14: background processes were ended without a word.
        assert!(text.contains("processes still ran when the command ended"), "{kernel:?}: {text}");
        assert!(text.contains("`background`"), "{kernel:?}: {text}");
        assert_eq!(survivors(&seconds), 0, "{kernel:?}, {:?}", lab.uid());
        let text = answer(kernel, &lab, "true & seq 3 | cat; wait", 60);
        assert!(!text.contains("still ran"), "{kernel:?}: {text}");
        let text = answer(kernel, &lab, &tree(&seconds), 1);
        assert!(text.contains("timed out"), "{kernel:?}: {text}");
        assert_eq!(survivors(&seconds), 0, "{kernel:?}, {:?}, after a time limit", lab.uid());
    });
}

#[test]
fn class_44_a_command_that_kills_or_stops_its_launcher_leaves_nothing() {
    held_by("none", |kernel, lab| {
        for signal in ["KILL", "TERM", "STOP", "HUP"] {
            let seconds = unique_seconds();
            let script = format!("{} kill -{signal} $PPID; sleep {seconds}", stayers(&seconds));
            let text = answer(kernel, &lab, &script, 1);
            let is_told =
                text.contains("because its launcher process was killed") || text.contains("timed out");
            assert!(is_told, "{signal}: {text}");
            assert_eq!(survivors(&seconds), 0, "{signal}, {:?}: {text}", lab.uid());
        }
    });
}

#[test]
fn class_44_a_command_that_stops_its_launcher_does_not_outlive_the_agent() {
    held_by("none", |kernel, lab| {
        for signal in [Signal::INT, Signal::KILL] {
            let seconds = unique_seconds();
            let script = format!("{} kill -STOP $PPID; touch begun; sleep {seconds}", stayers(&seconds));
            fs::write(lab.ws().join("attempt.sh"), script).unwrap();
            let arguments = json!({"command": "sh attempt.sh"}).to_string();
            let run = kernel.start(&lab, &["tools", "call", "run_command", &arguments, "--mode", "yolo"]);
            lab.wait_for_file("begun");
            run.signal(signal);
            run.finish();
            assert!(wait_for_sleepers(&seconds, 0) < ALLOWED, "{signal:?}, {:?}", lab.uid());
            fs::remove_file(lab.ws().join("begun")).unwrap();
        }
    });
}

/// Processes of the command of [`most_at_once`]: a watcher on a busy machine has time to end it before all are started.
const STARTED: usize = 3_000;

/// The most processes at once of a command that starts [`STARTED`], as seen from outside, and what the model reads about it.
fn most_at_once(kernel: Kernel, lab: &Lab, flags: &[&str]) -> (usize, String) {
    let seconds = unique_seconds();
    let sleepers = format!("for i in $(seq {STARTED}); do sleep {seconds} & done; wait");
    let call = json!({"name": "run_command", "arguments": {"command": sleepers, "timeout": 60}});
    let server = Server::batch([call]);
    let url = server.url();
    let args =
        ["run", "task", "--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--mode", "yolo"];
    let run = kernel.start(lab, &[&args, flags].concat());
    let mut most = 0;
    while server.requests().len() < 2 {
        most = most.max(survivors(&seconds));
    }
    assert_eq!((run.finish().code, survivors(&seconds)), (Some(0), 0), "{kernel:?}, {:?}", lab.uid());
    (most, server.requests().remove(1).body.to_string())
}

#[test]
fn class_45_kernel_limits_the_processes_of_one_command_where_doctor_reports_it() {
    let limit = 512;
    let check = |kernel: Kernel, lab: &Lab, flags: &[&str]| {
        let doctor = doctor(lab, kernel);
        let line = doctor.lines().find(|line| line.starts_with("processes ")).unwrap().to_owned();
        let (most, text) = most_at_once(kernel, lab, flags);
        eprintln!("{kernel:?} {flags:?} {:?}: {most} at once; {line}", lab.uid());
        assert!(text.contains("`commands.max_processes`"), "{kernel:?} {flags:?}, {:?}: {text}", lab.uid());
        assert!(
            most < limit || line.contains("watched"),
            "{kernel:?} {flags:?}, {:?}: {most}, {line}",
            lab.uid()
        );
        assert!(most < STARTED, "{kernel:?} {flags:?}, {:?}: {most}, {line}", lab.uid());
    };
    in_every_tier(|kernel, lab| check(kernel, &lab, &[]));
    both(|lab| check(Kernel::Native, &lab, &["--sandbox", "off"]));
}

#[test]
fn class_45_what_takes_too_much_is_ended_in_every_tier() {
    in_every_tier(|kernel, lab| {
        let limits = "commands: {max_processes: 300, max_memory_mib: 64}\n";
        fs::write(lab.home().join("config.yaml"), limits).unwrap();
        let seconds = unique_seconds();
        // A bomb that is over after three thousand.
        let bomb = format!(
            "for i in $(seq 30); do (for j in $(seq 100); do sleep {seconds} & done; wait) & done; wait"
        );
        let hog = format!("head -c 200000000 /dev/zero | tail -c 200000000 | sleep {seconds}");
        let too_much = [
            (bomb.as_str(), "as many processes and threads"),
            (hog.as_str(), "more memory"),
            ("exec truncate -s 9G big", "a file grew beyond 8 GiB"),
        ];
        for (script, told) in too_much {
            // A shell that the kernel refuses a process may go on waiting for others until its timeout.
            let text = answer(kernel, &lab, script, 20);
            let is_held = text.contains(told) || text.to_lowercase().contains("fork");
            assert!(is_held, "{kernel:?}, {:?}: {text}", lab.uid());
            assert_eq!(survivors(&seconds), 0, "{kernel:?}, {:?}: {text}", lab.uid());
        }
    });
}
