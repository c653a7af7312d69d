//! `agent replay --live-tools`: the tools are called again in a copy of the workspace as it was, and nothing else is touched.

use crate::support::calls::turn;
use crate::support::kernel::{Kernel, has_own_network, here, kernels};
use crate::support::run::{Finished, Lab, YOLO};
use crate::support::server::Server;
use crate::support::site::{Site, page};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

fn command(text: &str) -> Value {
    turn("run_command", &json!({"command": text}))
}

fn write(path: &str, content: &str) -> Value {
    turn("write_file", &json!({"path": path, "content": content}))
}

fn read(path: &str) -> Value {
    turn("read_file", &json!({"path": path}))
}

/// A model that makes these turns and is done.
fn model(turns: &[Value]) -> Server {
    let turns: Vec<Value> = turns.iter().cloned().chain([json!({"text": "done"})]).collect();
    Server::turns(turns)
}

/// Runs these turns in yolo mode.
fn works(lab: &Lab, turns: &[Value]) {
    lab.run_yolo(&model(turns), &[]).exits(0);
}

/// Calls the tools of the newest session again, in yolo mode.
fn again(lab: &Lab) -> Finished {
    lab.agent(&["replay", "--live-tools", "--mode", "yolo"])
}

/// The same, and every result is what it was.
#[track_caller]
fn same(lab: &Lab, calls: usize) -> Finished {
    let done = again(lab).exits(0);
    assert!(done.stdout.contains("identical to its end (llm_done)"), "{}", done.stdout);
    let word = if calls == 1 { "call" } else { "calls" };
    assert!(done.stdout.contains(&format!("\n{calls} {word} run again")), "{}", done.stdout);
    done
}

/// Everything below `dir`: what it is, since when, and what it holds.
fn tree(dir: &Path) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if metadata.is_dir() {
            found.extend(tree(&path));
        }
        found.insert(path, (metadata.permissions().mode(), metadata.modified().unwrap(), content));
    }
    found
}

/// The id of the newest session.
fn id(lab: &Lab) -> String {
    lab.journal().parent().unwrap().file_name().unwrap().to_string_lossy().into_owned()
}

/// Hands the newest session of one lab to the other.
fn hand_on(from: &Lab, to: &Lab, more: &[&str]) {
    let file = from.outside().join("session");
    let file = file.to_str().unwrap();
    let id = id(from);
    let export = ["sessions", "export", &id, "-o", file];
    from.agent(&[&export, more].concat()).exits(0);
    to.agent(&["sessions", "import", file]).exits(0);
}

#[test]
fn calls_made_again_on_the_files_as_they_were_answer_the_same_and_nothing_is_touched() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::with_a_txt().file("sub/gone.txt", "1\n").file(".gitignore", "ignored\n");
    symlink("a.txt", lab.ws().join("link")).unwrap();
    let place = lab.ws().canonicalize().unwrap();
    works(
        &lab,
        &[
            read("a.txt"),
            write("new/b.txt", "made\n"),
            turn("edit_file", &json!({"path": "a.txt", "old_str": "alpha", "new_str": "beta"})),
            command("cat a.txt new/b.txt; pwd; ls -A; echo x >> a.txt; rm -r sub; echo took 0.$$s; mktemp"),
            turn("list_files", &json!({"path": "."})),
            read(place.join("a.txt").to_str().unwrap()),
            command(&format!("cat {}/a.txt", place.display())),
            read("../outside"),
        ],
    );
    fs::write(lab.ws().join("a.txt"), "changed since\n").unwrap();
    let before = tree(&lab.ws());
    let told = same(&lab, 8);
    assert!(told.stderr.contains("the tools run in a copy of"), "{}", told.stderr);
    assert_eq!(tree(&lab.ws()), before);
    assert_eq!(fs::read_dir(lab.home().join("cache/replay")).unwrap().count(), 0, "the copy is gone");
    same(&lab, 8);
}

#[test]
fn a_command_that_answers_otherwise_is_told_with_both_answers() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new();
    let outside = lab.outside().join("outside.txt");
    fs::write(&outside, "same\nthen\n").unwrap();
    let script = format!("/bin/cat {}", outside.display());
    let lab = lab.env("HOME", outside.parent().unwrap().to_str().unwrap());
    works(&lab, &[command("echo first"), command(&script), command("echo last")]);
    same(&lab, 3);
    fs::write(&outside, "same\nnow\n").unwrap();
    let told = again(&lab).exits(1).stdout;
    assert!(told.contains("differs at event") && told.contains(", step 2\n"), "{told}");
    assert!(told.contains("run_command gives another result (- recorded, + now)"), "{told}");
    assert!(
        told.contains("\n   same\n  -then\n  +now\n") && told.contains("\n2 calls run again\n"),
        "{told}"
    );
}

#[test]
fn what_a_journal_permits_does_not_count_and_a_call_that_is_refused_now_is_told() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new();
    works(&lab, &[command("echo it ran")]);
    let told = lab.agent(&["replay", "--live-tools", "--mode", "confirm-all"]).exits(1).stdout;
    assert!(
        told.contains("-it ran\n") && told.contains("  +Error: `run_command` needs a confirmation"),
        "{told}"
    );
    assert!(told.contains("It ran in the session and is refused now"), "{told}");
    let lab = lab.config("policy: {rules: [{action: deny, command: echo, reason: no echo here}]}\n");
    let told = again(&lab).exits(1).stdout;
    assert!(
        told.contains("no echo here") && told.contains("It ran in the session and is refused now"),
        "{told}"
    );
}

#[test]
fn a_call_that_did_not_run_then_does_not_run_now() {
    let lab = Lab::with_a_txt();
    let turns = [write("b.txt", "refused"), read("a.txt")];
    lab.run(&model(&turns), &[]).exits(0);
    let told = same(&lab, 1).stdout;
    assert!(told.contains("taken from the journal: 1 did not run then"), "{told}");
}

#[test]
fn a_session_that_was_handed_on_without_names_answers_the_same_elsewhere() {
    if !has_own_network() {
        return;
    }
    let file = |lab: Lab| lab.file("a.txt", "alpha\n");
    for more in [&["--redact"][..], &[]] {
        let (lab, elsewhere) = (file(Lab::new()), file(Lab::new()));
        let place = lab.ws().canonicalize().unwrap();
        works(&lab, &[read("a.txt"), command(&format!("pwd; cat {}/a.txt", place.display())), read("../x")]);
        hand_on(&lab, &elsewhere, more);
        let told = same(&elsewhere, 3);
        assert!(told.stderr.contains("this session was imported from"), "{}", told.stderr);
    }
}

#[test]
fn a_session_brought_to_other_files_is_told_what_is_not_as_it_was() {
    let (lab, elsewhere) = (Lab::with_a_txt(), Lab::new().file("a.txt", "other\n"));
    works(
        &lab,
        &[read("a.txt"), turn("edit_file", &json!({"path": "a.txt", "old_str": "alpha", "new_str": "beta"}))],
    );
    hand_on(&lab, &elsewhere, &[]);
    let told = again(&elsewhere).exits(1);
    assert!(
        told.stderr.contains("not at their original content, because it is not stored here: a.txt"),
        "{}",
        told.stderr
    );
    assert!(told.stdout.contains("read_file gives another result"), "{}", told.stdout);
    assert_eq!(elsewhere.read("a.txt"), "other\n");
}

#[test]
fn a_hostile_session_reaches_neither_the_workspace_nor_what_else_commands_may_change() {
    let victim = Lab::new().file("a.txt", "mine\n").file("sub/b.txt", "mine\n");
    let shared = victim.outside().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("c.txt"), "mine\n").unwrap();
    let (real, shared) = (victim.ws().canonicalize().unwrap(), shared.canonicalize().unwrap());
    symlink(&real, victim.ws().join("link")).unwrap();
    let victim =
        victim.config(&format!("sandbox: {{writable: [{}, {}]}}\n", shared.display(), real.display()));
    let (a, c) = (real.join("a.txt"), shared.join("c.txt"));
    let hostile = Lab::new();
    symlink(&real, hostile.ws().join("link")).unwrap();
    for turn in [
        write(a.to_str().unwrap(), "theirs"),
        write("link/a.txt", "theirs"),
        command(&format!("echo theirs > {}", a.display())),
        command(&format!("chmod 777 {}; touch {}", a.display(), real.join("sub").display())),
        command("cd link && echo theirs > sub/b.txt"),
        command(&format!("echo theirs > {}", c.display())),
    ] {
        works(&hostile, std::slice::from_ref(&turn));
        hand_on(&hostile, &victim, &[]);
        fs::remove_file(hostile.outside().join("session")).unwrap();
        victim.forges();
        let before = (tree(&real), tree(&shared));
        let done = again(&victim);
        assert_eq!((tree(&real), tree(&shared)), before, "{turn}: {}{}", done.stdout, done.stderr);
    }
}

/// The kernels in which a command has no view of its own, with their tiers.
fn without_a_view() -> impl Iterator<Item = (Kernel, &'static str)> {
    kernels().into_iter().filter(|(_, tier)| matches!(*tier, "rules" | "none"))
}

#[test]
fn commands_do_not_run_where_nothing_keeps_them_from_the_workspace() {
    for (kernel, tier) in without_a_view() {
        let lab = Lab::with_a_txt().config("hooks: {pre_tool_use: [{command: 'touch hooked'}]}\n");
        if !here(&lab, kernel, tier) {
            continue;
        }
        works(&lab, &[command("cp a.txt made"), read("made")]);
        fs::remove_file(lab.ws().join("made")).unwrap();
        let before = tree(&lab.ws());
        let done = kernel.agent(&lab, &["replay", "--live-tools", "--mode", "yolo"]).exits(0);
        let told = "1 call run again; taken from the journal: 1 commands, because no sandbox isolates";
        assert!(done.stdout.contains(told), "{}", done.stdout);
        assert_eq!(tree(&lab.ws()), before);
    }
}

/// Writes another tool's name where the newest session says which one a call's answer is of.
fn forge_name(lab: &Lab, name: &str) {
    let mut text = String::new();
    for line in fs::read_to_string(lab.journal()).unwrap().lines() {
        let mut record = serde_json::from_str::<Value>(line).unwrap()["record"].take();
        if record["event"]["type"] == "tool_call_end" {
            record["event"]["name"] = json!(name);
        }
        let crc = crc32fast::hash(record.to_string().as_bytes());
        writeln!(text, "{{\"crc\":\"{crc:08x}\",\"record\":{record}}}").unwrap();
    }
    fs::write(lab.journal(), text).unwrap();
    lab.forges();
}

#[test]
fn a_call_is_held_to_what_it_is_and_not_to_what_its_answer_is_called() {
    for (kernel, tier) in without_a_view() {
        let lab = Lab::new();
        if !here(&lab, kernel, tier) {
            continue;
        }
        let marker = lab.outside().join("marker");
        works(&lab, &[command(&format!("echo theirs > {}", marker.display()))]);
        // Where nothing confines the tests themselves, it is there.
        let _ = fs::remove_file(&marker);
        forge_name(&lab, "read_file");
        let told = kernel.agent(&lab, &["replay", "--live-tools", "--mode", "yolo"]).stdout;
        assert!(told.contains("\n0 calls run again"), "{told}");
        assert!(!marker.exists());
    }
    let site = Site::serving(|_| page("text/plain", "text"));
    let lab = site.lab();
    works(&lab, &[turn("web_fetch", &json!({"url": site.url("/")}))]);
    forge_name(&lab, "read_file");
    again(&lab);
    assert_eq!(site.heads().len(), 1);
}

#[test]
fn runs_with_an_undo_and_other_changes_between_them_answer_the_same() {
    let lab = Lab::with_a_txt();
    works(&lab, &[read("a.txt"), write("b.txt", "one\n")]);
    lab.agent(&["undo"]).exits(0);
    lab.resume(&model(&[read("b.txt"), write("b.txt", "two\n"), read("b.txt")]), &YOLO).exits(0);
    fs::write(lab.ws().join("b.txt"), "by hand\n").unwrap();
    let turns = [
        read("b.txt"),
        turn("edit_file", &json!({"path": "b.txt", "old_str": "by hand", "new_str": "three"})),
    ];
    lab.resume(&model(&turns), &YOLO).exits(0);
    let told = same(&lab, 7).stdout;
    assert!(told.contains("3 runs"), "{told}");
}

#[test]
fn hooks_around_calls_run_again_and_what_they_say_is_compared() {
    if !has_own_network() {
        return;
    }
    let config = "hooks:
  session_start: [{command: 'echo it begins'}]
  post_edit: [{command: 'echo tidied >> {file}'}]
  post_tool_use: [{command: 'cat said'}]
";
    let lab = Lab::new().file("said", "seen\n").config(config);
    works(&lab, &[write("b.txt", "new\n"), read("b.txt")]);
    same(&lab, 2);
    fs::write(lab.ws().join("said"), "otherwise\n").unwrap();
    let told = again(&lab).exits(1).stdout;
    assert!(told.contains("-seen") && told.contains("+otherwise"), "{told}");
}

#[test]
fn background_commands_run_again_and_what_they_have_written_so_far_is_not_compared() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new();
    let start =
        turn("run_command", &json!({"command": "touch begun; echo $$; sleep 600", "background": true}));
    let wait = command("until [ -e begun ]; do sleep 0.01; done; echo it runs");
    let look = turn("command_output", &json!({"id": "bg1"}));
    works(&lab, &[start, wait, look, turn("stop_command", &json!({"id": "bg1"}))]);
    let told = same(&lab, 3).stdout;
    assert!(told.contains("1 reading the output of a background command"), "{told}");
}

#[test]
fn a_replay_that_is_interrupted_says_so_and_leaves_nothing() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new();
    works(&lab, &[command("if [ -e gate ]; then sleep 600; fi")]);
    fs::write(lab.ws().join("gate"), "").unwrap();
    let run = lab.start(&["replay", "--live-tools", "--mode", "yolo"]);
    run.wait_for_stderr("again: run_command");
    run.signal(Signal::INT);
    let done = run.finish().exits(130);
    assert!(done.stdout.contains("identical up to where you interrupted the replay"), "{}", done.stdout);
    assert_eq!(fs::read_dir(lab.home().join("cache/replay")).unwrap().count(), 0);
}

#[test]
fn a_run_that_was_interrupted_in_a_call_takes_that_from_its_journal_and_goes_on() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new();
    let server = model(&[command("echo half > made; touch begun; sleep 600")]);
    let run = lab.start_run(&server, &YOLO);
    lab.wait_for_file("begun");
    run.signal(Signal::INT);
    run.finish().exits(130);
    lab.resume(&model(&[read("made")]), &YOLO).exits(0);
    let told = same(&lab, 1).stdout;
    assert!(told.contains("1 in a step that was cut short"), "{told}");
}

#[test]
fn what_a_killed_run_had_done_is_done_when_the_next_one_goes_on() {
    if !has_own_network() {
        return;
    }
    let lab = Lab::new().file("made", "before\n");
    let server = model(&[read("made"), command("echo half > made; touch begun; sleep 600")]);
    let run = lab.start_run(&server, &YOLO);
    lab.wait_for_file("begun");
    run.signal(Signal::KILL);
    run.finish();
    lab.resume(&model(&[read("made")]), &YOLO).exits(0);
    let told = same(&lab, 2).stdout;
    assert!(told.contains("up to where its process was killed"), "{told}");
}

#[test]
fn a_call_that_waited_for_an_answer_is_made_in_the_run_that_made_it() {
    let lab = Lab::with_a_txt();
    let both = json!({"calls": [
        {"name": "write_file", "arguments": {"path": "b.txt", "content": "new"}},
        {"name": "read_file", "arguments": {"path": "a.txt"}},
    ]});
    let paused = lab.run(&model(&[both]), &["--approvals", "pause", "--json"]).exits(2).json();
    lab.agent(&["approve", paused["awaiting_approval"][0]["id"].as_str().unwrap()]).exits(0);
    lab.resume(&model(&[read("b.txt")]), &[]).exits(0);
    let told = same(&lab, 3).stdout;
    assert!(told.contains("(awaiting_approval)"), "{told}");
    let told = lab.agent(&["replay", "--live-tools"]).exits(1).stdout;
    assert!(told.contains("write_file gives another result") && told.contains("refused now"), "{told}");
}

#[test]
fn nothing_is_fetched_again_and_what_was_can_be_read() {
    let site = Site::serving(|_| page("text/plain", "a line of the page\n".repeat(3000)));
    let lab = site.lab();
    let mut first = turn("web_fetch", &json!({"url": site.url("/")}));
    first["calls"][0]["id"] = json!("fetched");
    works(&lab, &[first, turn("grep", &json!({"pattern": "of the", "path": "output:fetched"}))]);
    let fetched = site.heads().len();
    let told = same(&lab, 1).stdout;
    assert!(told.contains("taken from the journal: 1 to the web"), "{told}");
    assert_eq!((fetched, site.heads().len()), (1, 1));
}

#[test]
fn files_that_are_not_copied_are_reported() {
    let lab = Lab::with_a_txt().file("target/CACHEDIR.TAG", "").file("target/out", "1");
    let lab =
        lab.file("key.txt", "sk-other-0123456789abcdef").env("OTHER_API_KEY", "sk-other-0123456789abcdef");
    let lab = lab.file("keys/id", "1").config("sandbox: {hidden: [keys]}\n");
    works(&lab, &[read("a.txt")]);
    let told = same(&lab, 1).stderr;
    assert!(told.contains("empty in the copy, because they are caches: target"), "{told}");
    assert!(told.contains("not copied: key.txt, keys"), "{told}");
}

#[test]
fn a_workspace_that_holds_the_place_for_the_copy_is_refused() {
    let lab = Lab::new();
    let (server, dir) = (model(&[]), lab.outside());
    let home = dir.to_str().unwrap();
    lab.run(&server, &["-w", home]).exits(0);
    let told = lab.agent(&["replay", "--live-tools", "-w", home]).exits(3).stderr;
    assert!(told.contains("where the copy would be created"), "{told}");
    let told = lab.agent(&["replay", "--mode", "yolo"]).exits(3).stderr;
    assert!(told.contains("--live-tools"), "{told}");
}
