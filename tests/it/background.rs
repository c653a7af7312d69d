//! Commands in the background: started, read, stopped, told, and gone with the run.

use crate::support::calls::{call, command};
use crate::support::kernel::{confines, has_own_network};
use crate::support::run::{Lab, YOLO};
use crate::support::server::Server;
use crate::support::sleepers::{survivors, unique_seconds, wait_for_sleepers};
use serde_json::{Value, json};
use std::fs;

fn foreground(text: &str) -> Value {
    command(text)
}

fn background(text: &str) -> Value {
    call("run_command", &json!({"command": text, "background": true}))
}

/// Waits for output that has not been read, or for the end.
fn output(id: &str) -> Value {
    call("command_output", &json!({"id": id, "wait": 60}))
}

/// What the tools answer to these calls, one a step.
fn results_of(lab: &Lab, turns: &[Value]) -> Vec<String> {
    let server = Server::calls(turns.iter().cloned());
    lab.run_yolo(&server, &[]).exits(0);
    server.requests().last().unwrap().texts("tool")
}

/// As whoever runs the tests, and as nobody.
fn both(test: impl Fn(Lab)) {
    test(Lab::new());
    if rustix::process::geteuid().is_root() {
        test(Lab::new().unprivileged());
    }
}

/// A command with four children that try to stay: one detached, one that is stopped, one that hears no signal.
fn tree(seconds: &str) -> String {
    format!(
        "sleep {seconds} & (setsid sleep {seconds} <&- >/dev/null 2>&1 &); (trap '' TERM INT HUP; exec sleep {seconds}) & \
         sleep {seconds} & until grep -q sleep /proc/$!/comm; do :; done; kill -STOP $!; wait"
    )
}

const IN_TREE: usize = 4;

const SERVER: &str = r#"perl -MIO::Socket::INET -e '$| = 1;
    $server = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1", LocalPort => 8123) or die "no port: $!";
    print "listening\n";
    while ($one = $server->accept) { print $one "hello from the server\n"; close $one }'"#;

const CLIENT: &str = r#"perl -MIO::Socket::INET -e '
    $one = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 8123) or die "no connection: $!"; print <$one>'"#;

#[test]
fn a_server_in_the_background_answers_the_next_command() {
    if !has_own_network() {
        return;
    }
    both(|lab| {
        let all =
            results_of(&lab, &[background(SERVER), output("bg1"), foreground(CLIENT), foreground(CLIENT)]);
        assert!(all[0].starts_with("Started in the background: bg1\n"), "{}", all[0]);
        assert!(
            all[1].starts_with("bg1 has been running for ") && all[1].ends_with("output:\nlistening\n"),
            "{}",
            all[1]
        );
        for answer in &all[2..] {
            assert_eq!(answer, "stdout:\nhello from the server\nexit_code: 0");
        }
    });
}

#[test]
fn runs_do_not_reach_each_others_servers() {
    if !confines() {
        return;
    }
    let (here, there) = (Lab::new(), Lab::new());
    let server = Server::calls([
        background(SERVER),
        output("bg1"),
        foreground("mkfifo gate; touch ready; read -r line < gate"),
    ]);
    let serving = here.start_run(&server, &YOLO);
    here.wait_for_file("ready");
    let all = results_of(&there, &[foreground(CLIENT)]);
    assert!(all[0].contains("no connection: "), "{}", all[0]);
    fs::write(here.ws().join("gate"), "go\n").unwrap();
    serving.finish().exits(0);
}

#[test]
fn the_output_is_read_piece_by_piece_and_again_from_any_byte() {
    let all = results_of(
        &Lab::new(),
        &[
            foreground("mkfifo gate last"),
            background("echo one; read -r line < gate; echo two >&2; read -r line < last; exit 3"),
            output("bg1"),
            call("command_output", &json!({"id": "bg1"})),
            foreground("echo go > gate"),
            output("bg1"),
            foreground("echo go > last"),
            output("bg1"),
            call("command_output", &json!({"id": "bg1", "from": 2})),
            call("command_output", &json!({})),
        ],
    );
    assert!(all[2].ends_with("\noutput:\none\n"), "{}", all[2]);
    assert!(
        all[3].starts_with("bg1 has been running for ") && all[3].ends_with("\nNo new output."),
        "{}",
        all[3]
    );
    assert!(all[5].ends_with("\noutput:\ntwo\n"), "{}", all[5]);
    let (first, rest) = all[7].split_once('\n').unwrap();
    assert!(first.starts_with("bg1 ended after "), "{}", all[7]);
    assert_eq!(rest, "Command failed with exit_code: 3\nNo new output.");
    assert!(all[8].ends_with("\noutput:\ne\ntwo\n"), "{}", all[8]);
    assert!(all[9].starts_with("bg1 ended after ") && all[9].contains("exit_code: 3"), "{}", all[9]);
}

#[test]
fn a_flood_is_cut_to_its_end_and_says_where_the_rest_is() {
    let all = results_of(
        &Lab::new(),
        &[
            foreground("mkfifo gate"),
            background("seq 200000; echo filled > gate; read -r line < gate"),
            foreground("read -r line < gate"),
            call("command_output", &json!({"id": "bg1"})),
            call("command_output", &json!({"id": "bg1", "from": 0})),
        ],
    );
    assert!(all[3].len() < 20_000 && all[3].ends_with("\n199999\n200000\n"), "{}", all[3].len());
    assert!(all[3].contains(" bytes of earlier output omitted; read_file or grep with path \"output:"));
    assert!(
        all[4].contains(" bytes of earlier output omitted") && all[4].ends_with("more bytes: call again]")
    );
}

#[test]
fn a_command_that_ends_by_itself_is_told_once_and_recorded() {
    let lab = Lab::new();
    let server = Server::calls([
        foreground("mkfifo gate hold"),
        background("exec 3< gate 4> hold; exit 3"),
        foreground("exec 3> gate; cat hold"),
        foreground("true"),
        foreground("true"),
    ]);
    lab.run_yolo(&server, &[]).exits(0);
    let said: Vec<String> = server
        .requests()
        .last()
        .unwrap()
        .texts("user")
        .into_iter()
        .filter(|text| text.contains("background"))
        .collect();
    let [said] = said.as_slice() else { panic!("not told once: {said:?}") };
    assert!(said.starts_with("[SYSTEM] The background command bg1 (`exec 3< gate"), "{said}");
    assert!(said.contains("has ended: Command failed with exit_code: 3\n"), "{said}");
    let journal = fs::read_to_string(lab.journal()).unwrap();
    assert_eq!(journal.matches("\"background_start\"").count(), 1);
    assert_eq!(journal.matches("\"background_end\"").count(), 1);
}

#[test]
fn stop_command_ends_the_whole_tree_at_once() {
    both(|lab| {
        let seconds = unique_seconds();
        let server = Server::calls([
            foreground("mkfifo gate"),
            background(&tree(&seconds)),
            foreground("touch begun; read -r line < gate"),
            call("stop_command", &json!({"id": "bg1"})),
            foreground("touch stopped; read -r line < gate"),
            call("stop_command", &json!({"id": "bg1"})),
            call("stop_command", &json!({"id": "bg7"})),
        ]);
        let run = lab.start_run(&server, &YOLO);
        lab.wait_for_file("begun");
        wait_for_sleepers(&seconds, IN_TREE);
        fs::write(lab.ws().join("gate"), "go\n").unwrap();
        lab.wait_for_file("stopped");
        assert_eq!(survivors(&seconds), 0);
        fs::write(lab.ws().join("gate"), "go\n").unwrap();
        run.finish().exits(0);
        let all = server.requests().last().unwrap().texts("tool");
        assert!(all[3].starts_with("Stopped bg1 after "), "{}", all[3]);
        assert!(all[5].starts_with("It has ended already.\nbg1 ended after "), "{}", all[5]);
        assert_eq!(all[6], "Error: There is no background command 'bg7'. There are: bg1.");
    });
}

#[test]
fn what_a_background_command_did_to_protected_files_is_put_back_and_told_however_it_ends() {
    const TOLD: &str = ".envrc\" (created, now removed)";
    if !confines() {
        return;
    }
    both(|lab| {
        // In files: what a command names in its text it is refused beforehand.
        let ready = "mkfifo gate 2>/dev/null; echo evil > .envrc; echo ready; read -r line < gate";
        fs::write(lab.ws().join("disturb.sh"), ready).unwrap();
        let disturbing = "sh disturb.sh";
        let server = Server::calls([
            background(disturbing),
            output("bg1"),
            call("stop_command", &json!({"id": "bg1"})),
            background(disturbing),
            output("bg2"),
            foreground("echo go > gate"),
            output("bg2"),
            background(disturbing),
            output("bg3"),
        ]);
        let finished = lab.run_yolo(&server, &[]).exits(0);
        let all = server.requests().last().unwrap().texts("tool");
        assert!(all[2].starts_with("Error: Stopped bg1 after ") && all[2].contains(TOLD), "{}", all[2]);
        // Whichever of the two ends first: neither takes what the other did for what was there before.
        assert!(all[6].contains("bg2 ended after "), "{}", all[6]);
        let both: Vec<_> = all[5..7].iter().filter(|text| text.contains(TOLD)).collect();
        assert!(
            both.len() == 1 && both[0].contains("it, or a command that ran at the same time, changed"),
            "{all:?}"
        );
        assert!(!lab.exists(".envrc"), "that of bg3 too, which ended with the run");
        for id in ["bg1", "bg3"] {
            let line = format!("the background command {id} broke a rule: it changed protected files");
            assert_eq!(finished.stderr.matches(&line).count(), 1, "{}", finished.stderr);
        }
        assert!(!finished.stderr.contains(r"\n"), "each in one line: {}", finished.stderr);
    });
}

#[test]
fn a_resumed_session_says_that_they_are_gone_and_gives_new_ids() {
    let lab = Lab::new();
    let server = Server::calls([background("sleep 300; echo never")]);
    lab.run_yolo(&server, &[]).exits(0);
    let server = Server::calls([background("sleep 300")]);
    lab.resume(&server, &["go on", "--mode", "yolo"]).exits(0);
    let said = server.requests().last().unwrap().texts("user");
    let gone = "ended with it: bg1 (`sleep 300; echo never`). Start those";
    assert_eq!(said.iter().filter(|text| text.contains(gone)).count(), 1, "{said:?}");
    assert!(
        server.requests().last().unwrap().texts("tool")[1].starts_with("Started in the background: bg2\n")
    );
}

#[test]
fn too_many_at_once_are_refused_until_one_is_stopped() {
    let mut turns: Vec<_> = (0..9).map(|_| background("sleep 300")).collect();
    turns.extend([call("stop_command", &json!({"id": "bg3"})), background("sleep 300")]);
    let all = results_of(&Lab::new(), &turns);
    assert!(all[7].starts_with("Started in the background: bg8\n"), "{}", all[7]);
    assert!(all[8].starts_with("Error: 8 background commands are running"), "{}", all[8]);
    assert!(all[10].starts_with("Started in the background: bg9\n"), "{}", all[10]);
}

#[test]
fn what_may_not_run_may_not_run_in_the_background_either() {
    let lab = Lab::new();
    let server = Server::calls([background("rm -rf /"), background("./deploy.sh")]);
    lab.run(&server, &["--mode", "confirm-sensitive"]);
    let all = server.requests().last().unwrap().texts("tool");
    assert!(all[0].contains("blocked by security policy"), "{}", all[0]);
    assert!(all[1].contains("needs a confirmation"), "{}", all[1]);
    assert!(!fs::read_to_string(lab.journal()).unwrap().contains("background_start"));
}

#[test]
fn a_time_limit_that_is_named_holds_in_the_background_too() {
    let limited = call("run_command", &json!({"command": "sleep 300", "background": true, "timeout": 1}));
    let all = results_of(&Lab::new(), &[limited, output("bg1")]);
    assert!(all[1].contains("\nCommand timed out after 1 s"), "{}", all[1]);
}
