//! Processes and memory of MCP servers: whoever is killed, nothing is left, and the agent stays small.

use crate::support::calls::turn;
use crate::support::kernel::{Kernel, here, kernels};
use crate::support::mcp::{done, peers, processes_with, results, run_args};
use crate::support::run::{Lab, Running, YOLO};
use crate::support::server::Server;
use crate::support::sleepers::{survivors, unique_seconds, wait_for_sleepers};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// Time until everything that a dead process started is gone.
const ALLOWED: Duration = Duration::from_secs(1);

/// Maximum memory of the agent, in KiB.
const MOST_KIB: u64 = 150 * 1024;

/// A server whose first call starts two sleepers, one in a session of its own, and does not end; other calls are answered.
fn stayer(seconds: &str) -> Lab {
    let functions = format!(
        "at_call() {{ if [ -e begun ]; then text called; return; fi; sleep {seconds} & setsid sleep {seconds} & \
         touch begun; wait; }}"
    );
    peers(&[("test", &functions, "workspace: write")])
}

fn echo() -> Value {
    turn("mcp__test__echo", &json!({}))
}

/// Starts a run on `lab` and waits until its server hangs in a call.
fn hanging(kernel: Kernel, lab: &Lab, model: &Server, seconds: &str) -> Running {
    let url = model.url();
    let running = kernel.start(lab, &run_args(&url, &YOLO));
    lab.wait_for_file("begun");
    wait_for_sleepers(seconds, 2);
    running
}

/// The process of the server of `lab`.
fn server_of(lab: &Lab) -> u32 {
    let script = format!("/bin/sh\0{}\0", lab.ws().join("test.sh").display());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_server =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line == script.as_bytes());
    pids.find(is_server).expect("the server runs")
}

/// The processes between `pid` and `ancestor`, the nearest to `pid` first.
fn launchers(pid: u32, ancestor: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        (parent != ancestor && parent > 1).then_some(parent)
    };
    std::iter::successors(parent(&pid), parent).collect()
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}

fn in_every_tier(test: impl Fn(Kernel)) {
    for (kernel, tier) in kernels() {
        if here(&Lab::new(), kernel, tier) {
            test(kernel);
        }
    }
}

#[test]
fn mh_009_kill_9_of_the_agent_leaves_nothing_of_a_server_in_any_tier() {
    in_every_tier(|kernel| {
        let seconds = unique_seconds();
        let lab = stayer(&seconds);
        let model = Server::turns([echo(), done()]);
        let running = hanging(kernel, &lab, &model, &seconds);
        running.signal(Signal::KILL);
        assert!(wait_for_sleepers(&seconds, 0) < ALLOWED, "{kernel:?}");
        assert_eq!(running.finish().code, None);
    });
}

#[test]
fn mh_009_kill_9_of_a_server_leaves_nothing_of_it_and_the_next_call_is_answered_by_a_new_one() {
    in_every_tier(|kernel| {
        let seconds = unique_seconds();
        let lab = stayer(&seconds);
        let model = Server::turns([echo(), echo(), done()]);
        let running = hanging(kernel, &lab, &model, &seconds);
        kill(server_of(&lab));
        assert!(wait_for_sleepers(&seconds, 0) < ALLOWED, "{kernel:?}");
        running.finish().exits(0);
        let requests = model.requests();
        let failed = results(&requests[1]);
        assert!(failed.contains("signal 9 ended it") && failed.contains("started again"), "{failed}");
        assert!(results(&requests[2]).contains("called"), "{kernel:?}: {}", results(&requests[2]));
        assert_eq!(processes_with(&lab.ws().display().to_string()), 0);
    });
}

#[test]
fn mh_009_kill_9_of_a_launcher_of_a_server_leaves_nothing_of_it() {
    in_every_tier(|kernel| {
        for at in 0.. {
            let seconds = unique_seconds();
            let lab = stayer(&seconds);
            let model = Server::turns([echo(), done()]);
            let running = hanging(kernel, &lab, &model, &seconds);
            let launchers = launchers(server_of(&lab), running.id());
            kill(launchers[at]);
            let what = format!("{kernel:?}, launcher {at} of {}", launchers.len());
            if at + 1 == launchers.len() {
                // The process that starts launchers is needed for new servers only.
                running.signal(Signal::INT);
                running.finish().exits(130);
                assert_eq!(survivors(&seconds), 0, "{what}");
                break;
            }
            assert!(wait_for_sleepers(&seconds, 0) < ALLOWED, "{what}");
            running.finish().exits(0);
            let read = results(&model.requests()[1]);
            assert!(read.contains("ended during the call"), "{what}: {read}");
        }
    });
}

#[test]
fn mh_008_a_server_gets_sigterm_and_2_s_to_end_before_it_is_killed() {
    // It ends by the signal alone: it no longer reads.
    let polite =
        "at_call() { trap 'echo ended > ended; exit' TERM; text called; while :; do sleep 0.05; done; }";
    let lab = peers(&[("test", polite, "workspace: write")]);
    lab.run_yolo(&Server::turns([echo(), done()]), &[]).exits(0);
    assert_eq!(lab.read("ended"), "ended\n");
    let seconds = unique_seconds();
    let stubborn = format!(
        "trap '' TERM\nat_initialized() {{ sleep {seconds} & }}\nat_call() {{ text called; exec sleep {seconds}; }}"
    );
    let lab = peers(&[("test", &stubborn, "")]);
    let begun = Instant::now();
    lab.run_yolo(&Server::turns([echo(), done()]), &[]).exits(0);
    assert!(begun.elapsed() >= Duration::from_secs(2), "it had its time");
    assert_eq!(survivors(&seconds), 0);
}

/// The peak memory of the agent in KiB after a call of a server with these functions, and what the model reads.
fn peak(functions: &str) -> (u64, String) {
    let lab = peers(&[("test", functions, "")]);
    let model = Server::turns([echo(), json!({"fault": "hang"})]);
    let url = model.url();
    let running = lab.start(&run_args(&url, &YOLO));
    model.wait_for_request(2);
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    running.signal(Signal::INT);
    running.finish().exits(130);
    (peak.unwrap(), results(&model.requests()[1]))
}

#[test]
fn mh_005_no_message_of_a_server_costs_more_than_150_mb() {
    let gigabyte = "head -c 1000000000 /dev/zero | tr '\\0' a";
    let values = "seq 7000000 | sed 's/.*/0/' | tr '\\n' ,";
    let text = "head -c 15000000 /dev/zero | tr '\\0' a; say '\"}]}}'";
    let start = r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":""#;
    let list = r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[],"_meta":{"a":["#;
    let cases = [
        (start, gigabyte, "longer than 16 MiB"),
        ("Error %s: ", gigabyte, "no messages of MCP"),
        (list, values, "more than 262144 values"),
        (start, text, "output:"),
    ];
    for (start, rest, wanted) in cases {
        let (peak, read) = peak(&format!("at_call() {{ printf '{start}' \"$id\"; {rest}; }}"));
        assert!(peak < MOST_KIB, "{start}: {peak} KiB");
        assert!(read.contains(wanted), "{read}");
    }
}

#[test]
fn mh_006_a_flood_on_standard_error_is_read_and_only_its_end_is_shown() {
    let flood = "at_call() { head -c 50000000 /dev/zero | tr '\\0' e >&2; echo the very end >&2; exit 3; }";
    let (peak, read) = peak(flood);
    assert!(read.contains("it exited with code 3") && read.contains("the very end"), "{read}");
    assert!(peak < MOST_KIB && read.len() < 4_000, "{peak} KiB, {} bytes", read.len());
}

#[test]
fn mh_016_a_long_result_is_cut_and_kept() {
    let long = r#"at_call() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
        seq 400000 | sed 's/$/\\n/' | tr -d '\n'; say '"}]}}'; }"#;
    let (peak, read) = peak(long);
    assert!(peak < MOST_KIB && read.len() < 60_000, "{peak} KiB, {} bytes", read.len());
    assert!(read.contains("output:") && read.contains("400000"), "{read}");
}
